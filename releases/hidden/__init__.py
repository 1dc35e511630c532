"""The hidden test of a release: commitments to its stories, and the search for them in public files."""
