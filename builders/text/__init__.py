"""Reading a story by rules: segments, words, names; the text layer that the kinds share."""
