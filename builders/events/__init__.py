"""The StoryEval suite builder: event prompts with classes and difficulty."""
