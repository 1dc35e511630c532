"""Judges: evidence packets, questions to models, and the archive of their replies."""
