"""Measures of evaluators that the KathaTrace paper names without a formula, and planted losses."""
