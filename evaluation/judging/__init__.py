"""Asking judges, whatever the kind: evidence, answers, settings, and what keeps evidence apart."""
