"""Packing a finished run into a release: what is taken, its documents, what it changes."""
