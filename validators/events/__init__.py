"""What a prompt suite must satisfy: the conditions of StoryEval, and that its labels say what is there."""
