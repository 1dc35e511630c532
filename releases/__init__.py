"""Releases: pack a finished run, verify a release, load it, compare two, publish and fetch."""
