"""Releases of prompt suites: their form, and the official StoryEval file."""
