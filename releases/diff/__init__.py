"""What changed between two releases of a benchmark, and which version that asks for."""
