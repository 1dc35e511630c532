"""The votes of an archive, laid out per method, verifier, video and seed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import InputError, UserError
from ...schemas.events import Suite
from ...schemas.judgement import Judgement
from ..archive import sort_key
from ..attempts import last_attempts

Completion = tuple[int, ...]


class Panel(NamedTuple):
    """What one score is about: a method's videos and who judged them."""

    method: str
    judge: str


@dataclass
class Votes:
    """Every vote of one panel.

    Attributes:
        lists: file name and seed of a video -> the completion list of each vote, in order, null where a vote
            has no answer.
        outcomes: how many votes came out how.
        silent: outcome and reason of the votes without an answer -> how many there are.
    """

    lists: dict[tuple[str, int | None], list[Completion | None]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)


def collect_votes(
    judgements: Iterable[Judgement], suite: Suite, required: Mapping[str, int]
) -> dict[Panel, Votes]:
    """Return the votes of every panel, in order of method and judge.

    A vote without an answer may have been asked again, under the next numbers. What counts for a video are
    the first answers, as many as are required; where there are fewer, votes without one fill up the number.

    Args:
        judgements: those of kind completion count; the others are left out.
        suite: the suite that was judged with.
        required: judge -> how many votes of it a video needs; one that is not listed needs all that it has.

    Raises:
        InputError: a judgement is about a video that the suite does not have, or its list has another length
            than the events; every problem is listed.
    """
    problems: list[UserError] = []
    panels: dict[Panel, Votes] = {}
    archived = sorted((one for one in judgements if one.kind == "completion"), key=sort_key)
    for one in last_attempts(archived):
        prompt = suite.prompts.get(one.unit)
        if prompt is None:
            problems.append(_problem(one, "a video of the suite", "none with that name"))
            continue
        listed = _completion(one)
        if listed is not None and len(listed) != len(prompt.event_list):
            found = f"{len(listed)} flags for {len(prompt.event_list)} events"
            problems.append(_problem(one, "one flag per event", found))
            continue
        votes = panels.setdefault(Panel(one.method or "", one.judge.spec), Votes())
        votes.lists.setdefault((one.unit, one.seed), []).append(listed)
        votes.outcomes[one.outcome] += 1
        if listed is None:
            votes.silent[f"{one.outcome}: {one.reason}" if one.reason else one.outcome] += 1
    if problems:
        raise InputError(problems)
    for panel, votes in panels.items():
        for key, lists in votes.lists.items():
            votes.lists[key] = _counted(lists, required.get(panel.judge, len(lists)))
    return panels


def _completion(one: Judgement) -> Completion | None:
    listed = one.parsed.get("completion") if one.parsed is not None else None
    if not isinstance(listed, list) or any(flag not in (0, 1) for flag in listed):
        return None
    return tuple(int(flag) for flag in listed)


def _counted(lists: list[Completion | None], required: int) -> list[Completion | None]:
    answered = [one for one in lists if one is not None][:required]
    return [*answered, *[None] * (required - len(answered))]


def _problem(one: Judgement, expected: str, found: str) -> UserError:
    where = f"{one.unit}, {one.judge.spec}, vote {one.vote}"
    return UserError(where, expected=expected, found=found, fix="score with the suite that was judged with")
