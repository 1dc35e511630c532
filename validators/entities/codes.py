"""Every code that the rules about episode scripts, their registries and split files report."""

from functools import partial

from ..codes import issue_of, read_codes

CODES = read_codes(__package__)
issue = partial(issue_of, CODES)
"""Code, place, path and message -> an issue."""

BLOCKING = frozenset(
    {
        *("unreadable", "too-large", "encoding", "json", "repeated-key", "shape", "unsafe-name"),
        *("no-shots", "scene-order", "list-length", "schedule-key", "story-name", "secret-removed"),
    }
)
"""Codes of what cannot be released: files of no use, and episodes whose shots cannot be told."""
