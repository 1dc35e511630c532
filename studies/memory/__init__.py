"""EntityMem: verified references of every entity of an episode, made before any video (EntityBench, 4)."""
