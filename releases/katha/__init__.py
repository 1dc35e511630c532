"""Releases of stories: their form, and the official KathaBench package."""
