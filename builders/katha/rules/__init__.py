"""The rules for KathaBench records: English cue lists, language-independent elsewhere; no model."""
