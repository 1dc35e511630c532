"""Ablations as switches: what is left out, how, and what is measured without it."""
