"""Verifying a release: everything that can be wrong with it."""
