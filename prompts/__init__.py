"""Fabula package."""
