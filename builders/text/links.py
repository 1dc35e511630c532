"""Causes that an English story states: "because", "for" and "so" between two clauses that are read whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .clauses import words
from .statements import Statement

_CAUSES = ("because", "for")
_AHEAD = ("and because", "but because")


@dataclass(frozen=True, slots=True)
class Link:
    """A stated cause: why something happened, and what."""

    cause: Statement
    effect: Statement

    @property
    def text(self) -> str:
        """The link as one sentence without its full stop."""
        return f"{self.effect.text} because {self.cause.plain}"


def find_links(statements: Sequence[Statement | None]) -> tuple[Link, ...]:
    """Return the stated causes of a story, in story order.

    A clause with "because" explains the clause right before it in its sentence, or the one right after it
    where it opens the sentence; "so", "therefore" and the like give the result of the clause right before.
    Nothing unread may stand between, and none of the two may hang on a third clause.
    """
    links: list[Link] = []
    for before, clause in pairwise(statements):
        if before is None or clause is None:
            continue
        link, joined = clause.reading.link, before.sentence == clause.sentence
        ahead = before.reading.link in _AHEAD or (before.reading.link == "because" and before.opens)
        result = link in ("so", "and so") and _is_main(before) and (joined or before.reading.last)
        if joined and link in _CAUSES and _is_main(before):
            links.append(Link(clause, before))
        elif result or (joined and (before.reading.degree or (ahead and link == ""))):
            links.append(Link(before, clause))
    return tuple(link for link in links if _is_sound(link))


def _is_main(statement: Statement) -> bool:
    link = statement.reading.link
    return link.split(" ")[-1] not in words("subordinators") and not link.endswith("that")


def _is_sound(link: Link) -> bool:
    """Whether both sides say what happened or was so, and not the same."""
    clear = not link.effect.negated or link.effect.reading.link in ("so", "and so", "", "result")
    return clear and link.cause.text != link.effect.text
