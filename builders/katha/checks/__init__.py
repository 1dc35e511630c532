"""The checks of a draft: by rules, by a model that verifies, and settled with what the author judged."""
