"""Books of many tales: read, split into stories, each with where it stands and what rights it has."""
