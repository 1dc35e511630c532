"""Releases of shot scripts: their form, tables, and the official ViStoryBench tree."""
