"""Comics as a kind of benchmark: stories as pages of panels, judged by recoverability questions."""
