"""Label Studio: the items of a seat as a project, and the annotations of one read back."""
