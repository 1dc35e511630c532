"""Episodes by rules: people by the cast, places by colour, plain sentences; no objects."""
