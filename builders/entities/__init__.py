"""Raw video into entity-scheduled episodes (EntityBench sections 3.1 and A)."""
