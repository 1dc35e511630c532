"""Judges of episodes: fidelity, actions, pairs of appearances, locations (EntityBench, B.3, B.4)."""
