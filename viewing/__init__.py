"""Local pages that show what a run, a release or an evaluation holds. They read, and change nothing."""
