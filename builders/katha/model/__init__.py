"""The model planner: the same parts as the rules planner drafts, asked of a language model."""
