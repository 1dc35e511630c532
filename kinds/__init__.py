"""The kinds of benchmark, and the verbs with the kind looked up."""
