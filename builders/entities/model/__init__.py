"""Episodes by a model: entities from the frames, names, scenes, actions, descriptions, and what is wrong."""
