"""The report on an evaluation of storyboards."""
