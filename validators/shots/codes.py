"""Every code that the rules about shot scripts and their files report."""

from functools import partial

from ..codes import issue_of, read_codes

CODES = read_codes(__package__)
issue = partial(issue_of, CODES)
"""Code, place, path and message -> an issue."""
