"""Outputs of methods: where they lie, which can be judged, and what is wrong with the rest."""
