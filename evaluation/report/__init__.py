"""Reports: one self-contained page, JSON and CSV."""
