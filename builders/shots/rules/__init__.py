"""The rules planner for shot scripts: deterministic, no model; what the text does not tell is null."""
