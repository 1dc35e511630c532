"""An audit as one page that loads nothing: measures with intervals, and the worst cases side by side."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ..releases.pages import policy_of, style_of, template_of
from ..schemas.values import Score
from .measures import MEASURES

if TYPE_CHECKING:
    from .auditing import Audit
    from .compare import Case

SHOWN = 12
"""So many cases of a group are shown; JSON has them all."""
GROUPS = {
    "boundaries": "Scenes that end elsewhere",
    "acts": "Characters, acts and things of gold that the draft does not have",
    "causes": "Causes that differ",
    "questions": "Questions of gold whose answers the draft does not accept",
    "blind": "Questions of the draft that the model did not answer as accepted",
    "variants": "Variants with a failed check: the scene before, and the variant",
    "labels": "Labels that differ",
}


def page_of(audit: "Audit") -> str:
    """Return the page."""
    style = style_of("page.css", __package__)
    groups = {name: list(cases) for name, cases in groupby(audit.cases, key=lambda case: case.group)}
    text: str = template_of("page.j2", __package__).render(
        style=style,
        policy=policy_of(style),
        audit=audit,
        measures=[(MEASURES[name], score) for name, score in audit.scores.items()],
        groups=[(title, *_shown(groups[name])) for name, title in GROUPS.items() if name in groups],
        readers=_readers(audit),
        score=Score,
    )
    return text


def _shown(cases: "Sequence[Case]") -> "tuple[Sequence[Case], int]":
    return cases[:SHOWN], max(0, len(cases) - SHOWN)


def _readers(audit: "Audit") -> list[tuple[str, str, Score, str]]:
    """Return a row for each reader and kind of part: share, and reasons why not."""
    return [
        (
            reader, kind, Score.model_validate(row["sound"]),
            ", ".join(f"{count} {name}" for name, count in row["reasons"].items()),
        )
        for reader, kinds in (audit.people or {}).get("readers", {}).items()
        for kind, row in kinds.items()
    ]  # fmt: skip
