"""The StoryEval suite builder: event prompts with classes, from people's seeds, real videos and a model."""
