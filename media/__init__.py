"""Decoding and encoding: images and frames, with limits."""
