"""Stories for training among those that are judged: a method may have learned from them."""

from ...schemas.text import tallied

TRAIN = "train"
"""The split of a release that methods may be trained on."""


def trained_on(training: int, judged: int) -> str:
    """Return what is said where stories for training are judged."""
    are = "is" if training == 1 else "are"
    return (
        f"{training:,} of {tallied(judged, 'judged stories')} {are} of the split {TRAIN}, which methods may "
        "have learned from; evaluate with --split validation --split public_test to leave them out"
    )
