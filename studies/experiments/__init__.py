"""Experiments: plans by renderers by seeds by judges as data, and the tables of the papers."""
