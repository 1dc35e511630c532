"""Studies of generators: pictures from plans, a memory of entities, Compass, copy-paste, experiments."""
