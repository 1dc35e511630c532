"""evaluation/completion."""
