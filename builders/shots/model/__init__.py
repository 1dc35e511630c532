"""The model planner for shot scripts: the same parts as the rules draft, asked of a language model."""

from .planner import ShotModelPlanner

__all__ = ["ShotModelPlanner"]
