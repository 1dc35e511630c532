"""StoryEval: event completion from archived replies."""
