"""Builders: source material in, records out."""
