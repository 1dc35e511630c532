"""The report on an evaluation of shot images."""
