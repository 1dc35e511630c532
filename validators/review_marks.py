"""How releases of every kind name what people, or programs in their place, said of their records."""

VOTES = "votes.jsonl"
"""The votes of reviewers, in a folder that a review exports and in a release that publishes them."""
STANDS_FOR = "stands_for.jsonl"
"""Of each record the content that its review stands for, in a folder that a review exports."""
REVIEWED = "reviews"
"""Key of ``release.json`` under which it says which status its reviews give, and what became of the votes."""
BINDINGS = "review_bindings"
"""Key of ``release.json``: how many reviews name the content that was read, and which no longer hold."""
MARK = "simulated_reviews"
"""Key of ``release.json``: true where reviews or votes were made by programs."""
SIMULATED = "simulated-"
"""How the id of a reviewer begins who is a program."""


def is_simulated(rater: object) -> bool:
    """Return whether the id of a reviewer is that of a program."""
    return isinstance(rater, str) and rater.startswith(SIMULATED)
