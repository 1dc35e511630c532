"""What ``import fabula`` offers: every verb as a function, with its result as an object."""
