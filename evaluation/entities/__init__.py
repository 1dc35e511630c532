"""EntityBench: generated multi-shot videos judged by shot, entity and recurrence (EntityBench, 3.2 and B)."""
