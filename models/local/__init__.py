"""Open models on this machine: which weights a spec means, servers that we start, models in process."""
