"""EntityMem: verified references of every entity of an episode, before anything is generated (EntityBench, 4)."""
