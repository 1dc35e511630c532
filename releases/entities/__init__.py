"""Releases of episodes: their form, tables, page, and the official EntityBench tree."""
