"""The report on an evaluation of episodes."""
