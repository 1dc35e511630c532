"""Reading a story by rules: segments, words, names, feelings; the text layer that the kinds share."""
