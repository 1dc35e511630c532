"""The ``fabula`` command: one file per verb; ``main`` only lists them."""
