"""The kinds of benchmark, and the verbs with the kind looked up."""

SPOKEN = {"katha": "stories"}
"""Kind -> what commands and pages call it: both are accepted wherever a kind is named."""
