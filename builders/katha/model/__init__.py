"""The model planner: the same parts as the rules planner drafts, asked of a language model.

What a model is shown is in ``shown``, what is made of its replies in the ``read_*`` modules: they fill in
ids and everything else that follows from the draft, and send back what cannot be right. ``verify`` has a
model check a draft; ``planner`` also has one correct what a check found.
"""

from .planner import ModelPlanner

__all__ = ["ModelPlanner"]
