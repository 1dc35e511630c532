"""The picture quality of shots (EntityBench, B.2, Table 12)."""
