"""Models that make pictures and videos: what is asked of them, and an adapter for each service."""
