"""Subsets of releases: asked for, drawn so that they are spread as the whole is, and checked."""
