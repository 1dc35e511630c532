"""validators/suites."""
