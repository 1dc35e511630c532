"""The published benchmarks by name: what each is, where its data lies, and how it is run."""
