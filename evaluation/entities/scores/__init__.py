"""Scores of methods, compared and in the layout of the paper's tables."""
