"""Judging generated storyboards and videos, and scoring the replies."""
