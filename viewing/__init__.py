"""Local pages that show what a folder holds. They read; with ``--edit`` they add corrections to a run."""
