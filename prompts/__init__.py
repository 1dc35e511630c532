"""Prompts: one versioned text file each, loaded by :func:`fabula.prompts.loader.load_prompt`."""
