"""evaluation/judges."""
