"""The 51 metrics of EntityBench: what each is made of, its value in an episode, its number of a method."""
