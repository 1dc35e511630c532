"""Sources: where the items of a study come from; a task names its source with ``draws``."""
