"""The run engine: stages, journal, worker pool, runs. It knows nothing of stories."""
