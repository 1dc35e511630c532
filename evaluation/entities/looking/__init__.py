"""Looking at the videos of episodes: frames, boxes, crops, vectors and grids (EntityBench, B.2)."""
