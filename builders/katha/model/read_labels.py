"""Reading the reply that labels a story (Tables 6 and 11)."""

from ....schemas.canonical import Json
from ..parts import LABELS


def read_labels(reply: Json) -> Json:
    """Return narrative type and moral label of a reply to ``katha/label_story``.

    The reply's schema holds them to their vocabularies; the turning point, which the model states first in
    order to choose well, is not kept.
    """
    return {name: reply[name] for name in LABELS}
