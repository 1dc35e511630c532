"""What may be said of a record of stories: one word, with one meaning everywhere."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .vocabulary import vocabulary

State = Literal["draft", "checked", "reviewed", "withdrawn"]
UNREAD: tuple[State, ...] = ("draft", "checked")
"""Nobody but their makers has read them: a draft, or what rules, models or its author passed besides."""
CHECKED = "auto_checked"


def state_of(status: str, checks: Sequence[Mapping[str, Any]] = ()) -> State:
    """Return the state of a record that is there, from its status, of any version.

    *reviewed*: people accepted it as it stands. *checked*: nobody has read it, and rules, models or its
    author passed all that applies. *draft*: nobody has read it.
    """
    if status in vocabulary("validation_status").having("reviewed"):
        return "reviewed"
    passed = status == CHECKED and all(check["passed"] for check in checks)
    return "checked" if passed else "draft"
