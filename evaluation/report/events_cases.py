"""The prompts behind completion rates: which are shown, with their frames, events and votes."""

from collections.abc import Mapping, Sequence

from ...schemas.canonical import digest
from ...schemas.events import Suite
from ...schemas.judgement import Judgement
from ...schemas.score import Score
from ..completion.scores import PanelScore, Video
from .model import Case, CaseItem, Verdict
from .pictures import Pictures

CONDITION = "video"
EACH = 8
"""How many of the worst, typical and best prompts are shown."""

Chosen = tuple[PanelScore, Video, str]
Votes = Mapping[tuple[str | None, str], Sequence[Judgement]]


def chosen_prompts(panels: Sequence[PanelScore]) -> list[Chosen]:
    """Return the prompts that are shown and why: so many of each kind, spread over methods and judges.

    The worst have the lowest rates, the best the highest, the typical those nearest to the mean. Among
    prompts with the same rate a hash decides, so that not the first of the suite are shown only.
    """
    share = max(1, EACH // max(1, len(panels)))
    picked: dict[str, list[Chosen]] = {"worst": [], "typical": [], "best": []}
    for panel in panels:
        left = [one for one in panel.videos if one.rate is not None]
        mean = sum(one.rate or 0.0 for one in left) / max(1, len(left))
        for why, target in (("worst", 0.0), ("best", 1.0), ("typical", mean)):
            left = _nearest_first(left, target)
            picked[why] += [(panel, one, why) for one in left[:share]]
            left = left[share:]
    return [one for chosen in picked.values() for one in chosen]


def _nearest_first(videos: Sequence[Video], target: float) -> list[Video]:
    return sorted(videos, key=lambda one: (abs((one.rate or 0.0) - target), digest(one.unit)))


def prompt_case(
    chosen: Chosen,
    suite: Suite,
    votes: Votes,
    pictures: Pictures,
) -> Case:
    """Return one prompt with frames, events and votes."""
    panel, video, why = chosen
    method = panel.panel.method
    said = [one for one in votes.get((method, video.unit), ()) if one.judge.spec == panel.panel.judge]
    seed = said[0].seed if said else None
    events = suite.prompts[video.unit].event_list
    return Case(
        unit=video.unit,
        title=suite.prompts[video.unit].prompt,
        place="",
        method=method,
        seed=seed,
        why=why,
        score=Score(value=video.rate, status="ok")
        if video.rate is not None
        else Score(value=None, status="undefined", reason="no answer"),
        frames=pictures.every((method, video.unit, seed)),
        items=tuple(
            CaseItem(
                id=f"event {number + 1}",
                group=f"event {number + 1}",
                text=text,
                verdicts=tuple(_verdict(one, number) for one in said),
                combined={CONDITION: None if video.events is None else video.events[number] >= 0.5},
            )
            for number, text in enumerate(events)
        ),
    )


def _verdict(one: Judgement, number: int) -> Verdict:
    parsed = one.parsed or {}
    listed = parsed.get("completion")
    known = isinstance(listed, list) and number < len(listed)
    return Verdict(
        judge=one.judge.spec, condition=CONDITION, vote=one.vote, outcome=one.outcome,
        answer=str(parsed["description"]) if parsed.get("description") else one.reason,
        correct=bool(listed[number]) if known and listed is not None else None,
    )  # fmt: skip
