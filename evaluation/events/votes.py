"""Completion rate of one video, from the replies of a verifier: read, laid out by video, and counted.

Question: what share of the events that its prompt names does the video show completed?
Formula: the mean over the events of s*, where s* of an event comes from the votes of one verifier (Eq. 1).
Input: the completion list of each vote, one 0 or 1 per event, null for a vote without an answer.
Output: a share in [0, 1]; higher is better.
Undefined when: no vote has an answer. Whether that counts as 0 is decided where prompts are pooled.
Source: StoryEval, sections 2.2.3 and 6.1, Eq. 1.
Departures from the source: none. The paper does not say what a prompt with some answers counts; its tables
follow from the votes that were answered, which alone count here.
Example: votes (1, 0) and (1, 1) under unanimous voting give (1, 0), a rate of 0.5.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json
from ...schemas.events import Suite
from ...schemas.judgement import Judgement
from ...schemas.values import Score
from ..archive.archive import sort_key
from ..archive.replies import last_attempts
from ..metrics.metric import Quantity
from ..stats.uncertainty import Uncertainty

NonResponse = Literal["zero", "excluded"]
_K = re.compile(r"at_least_([1-9][0-9]?)")


@dataclass(frozen=True)
class Definitions(Uncertainty):
    """The named definitions that a completion score depends on; how sure it is is :class:`.Uncertainty`'s.

    Attributes:
        voting: when an event is completed: ``unanimous`` (every vote says so), ``at_least_K`` (K votes do; K
            is at most the number of votes that count), or ``average`` of the votes [unanimous].
        nonresponse: what a prompt without any answer counts: ``zero``, as in the paper, or ``excluded``.
    """

    voting: str = "unanimous"
    nonresponse: NonResponse = "zero"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.voting not in ("unanimous", "average") and _K.fullmatch(self.voting) is None:
            raise ConfigError(
                "voting", expected="unanimous, average or at_least_K", found=self.voting,
                fix="choose one of them",
            )  # fmt: skip
        if self.nonresponse not in get_args(NonResponse):
            raise ConfigError(
                "nonresponse",
                expected=" or ".join(get_args(NonResponse)),
                found=str(self.nonresponse),
                fix="choose one of them",
            )


def combine(votes: Sequence[Sequence[int]], voting: str) -> tuple[float, ...]:
    """Return the completion score of each event, in [0, 1].

    Formula: with votes s_1..s_n on an event, ``at_least_K`` is 1 where their sum is at least min(K, n), and
    ``unanimous`` is K = n (Eq. 1); ``average`` is their mean.

    ``votes``: completion lists of the same length, at least one.

    >>> combine([(1, 0), (1, 1), (1, 1)], "unanimous"), combine([(1, 0), (1, 1), (1, 1)], "at_least_2")
    ((1.0, 0.0), (1.0, 1.0))
    """
    sums, count = [sum(column) for column in zip(*votes, strict=True)], len(votes)
    if voting == "average":
        return tuple(total / count for total in sums)
    least = count if voting == "unanimous" else min(count, int(voting.removeprefix("at_least_")))
    return tuple(float(total >= least) for total in sums)


VotedEvents = tuple[int, ...]


class Panel(NamedTuple):
    """What one score is about: a method's videos and who judged them."""

    method: str
    judge: str


@dataclass
class Votes:
    """Every vote of one panel."""

    # file name and seed of a video -> the completion list of each vote, in order, null where a vote has no
    # answer
    lists: dict[tuple[str, int | None], list[VotedEvents | None]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)  # how many votes came out how
    # outcome and reason of the votes without an answer -> how many there are
    silent: Counter[str] = field(default_factory=Counter)


def collect_votes(
    judgements: Iterable[Judgement], suite: Suite, required: Mapping[str, int]
) -> dict[Panel, Votes]:
    """Return the votes of every panel, in order of method and judge.

    A vote without an answer may have been asked again, under the next numbers. What counts for a video are
    the first answers, as many as are required; where there are fewer, votes without one fill up the number.

    ``required``: judge -> how many votes of it a video needs; one that is not listed needs all that it has.
    """
    problems: list[UserError] = []
    panels: dict[Panel, Votes] = {}
    archived = sorted((judgement for judgement in judgements if judgement.kind == "completion"), key=sort_key)
    for judgement in last_attempts(archived):
        prompt = suite.prompts.get(judgement.unit)
        if prompt is None:
            problems.append(_problem(judgement, "a video of the suite", "none with that name"))
            continue
        listed = _completion(judgement)
        if listed is None and judgement.parsed is not None:
            flags = repr(judgement.parsed.get("completion"))[:80]
            problems.append(_problem(judgement, "a list of flags, each 0 or 1", flags))
            continue
        if listed is not None and len(listed) != len(prompt.event_list):
            flags = f"{len(listed)} flags for {len(prompt.event_list)} events"
            problems.append(_problem(judgement, "one flag per event", flags))
            continue
        votes = panels.setdefault(Panel(judgement.method or "", judgement.judge.spec), Votes())
        votes.lists.setdefault((judgement.unit, judgement.seed), []).append(listed)
        votes.outcomes[judgement.outcome] += 1
        if listed is None:
            votes.silent[
                f"{judgement.outcome}: {judgement.reason}" if judgement.reason else judgement.outcome
            ] += 1
    if problems:
        raise InputError(problems)
    for panel, votes in panels.items():
        for key, lists in votes.lists.items():
            votes.lists[key] = _counted(lists, required.get(panel.judge, len(lists)))
    return panels


def _completion(judgement: Judgement) -> VotedEvents | None:
    listed = judgement.parsed.get("completion") if judgement.parsed is not None else None
    if not isinstance(listed, list) or any(type(flag) is not int or flag not in (0, 1) for flag in listed):
        return None
    return tuple(listed)


def _counted(lists: list[VotedEvents | None], required: int) -> list[VotedEvents | None]:
    answered = [flags for flags in lists if flags is not None][:required]
    return [*answered, *[None] * (required - len(answered))]


def _problem(judgement: Judgement, expected: str, found: str) -> UserError:
    where = f"{judgement.unit}, {judgement.judge.spec}, vote {judgement.vote}"
    return UserError(where, expected=expected, found=found, fix="score with the suite that was judged with")


MARK = "[COMPLETE_LIST]"
_MARK = re.compile(r"\[COMPLETE[_ ]LIST\]", re.IGNORECASE)
# Possessive: a reply may be long and hostile, and nothing is to be tried twice.
_NUMBER = r"(?<![\w.])[01](?![\w.])"
_REMARK = rf"\((?![^()\n]*{_NUMBER})[^()\n]{{1,300}}\)"
_FLAG = rf"[01](?:\s*+{_REMARK})?+"
_OTHER_FLAG = r"\s*+\((?:or|maybe|perhaps|possibly)?\s*+[01]\b|\s++or\s++[01]\b"
_OTHER_NUMBER = r"\.\d|-\d|%|[^\S\n]++\d|\s*+[;/|&]\s*+[-+]?\d|\s*+,\s*+[-+]?\w"
_BEFORE = r"(?:[\s*`_:=]|-(?![\d.]))*+\[?[\s*`_]*+"
_FLAGS = re.compile(
    rf"{_BEFORE}({_FLAG}(?:\s*+,\s*+{_FLAG})*)(?![\w,]|{_OTHER_NUMBER}|{_OTHER_FLAG})", re.IGNORECASE
)
_LISTED = re.compile(rf"{_BEFORE}[-+.]?(?:\d|(?:yes|no|true|false)\b)", re.IGNORECASE)
"""What begins a list, be it one of flags or not; words behind a mark may speak of the list above."""
_CJK = str.maketrans({"\N{IDEOGRAPHIC COMMA}": ",", "\N{LEFT BLACK LENTICULAR BRACKET}": "[",
                      "\N{RIGHT BLACK LENTICULAR BRACKET}": "]", "\N{MINUS SIGN}": "-"})  # fmt: skip
"""Punctuation of a list that NFKC leaves as it is."""
_EACH = re.compile(rf"([01])(?:\s*+({_REMARK}))?+")


@dataclass(frozen=True, slots=True)
class Completion:
    """What a reply says of the events."""

    flags: tuple[int, ...]  # 1 for a completed event, 0 for another
    # what stands in brackets behind each flag, such as ``partially``; None where nothing does
    remarks: tuple[str | None, ...]


class Unreadable(ValueError):
    """A reply from which no completion list can be read; the message says why."""


def parse_completion(text: str, events: int) -> Completion:
    """Return the completion list of a reply.

    The list stands after the mark ``[COMPLETE_LIST]``, flags separated by commas; markdown around it and
    words behind it do not matter, and full-width characters are the usual ones (NFKC). A flag counts as it
    stands, whatever remark in brackets follows it; a remark with another flag in it makes the list
    unreadable. Where the mark is there more than once, the last list counts: replies often repeat it after
    their reasons. Nothing is guessed: a list of another length, or with anything but 0 and 1 in it, is no
    answer, whatever list stands before it.

    >>> parse_completion("The door stays shut. Finally we have **[COMPLETE_LIST]: 1, 0**.", 2).flags
    (1, 0)
    """
    text = unicodedata.normalize("NFKC", text).translate(_CJK)
    marks = list(_MARK.finditer(text))
    if not marks:
        raise Unreadable(f"no {MARK} in the reply")
    for mark in reversed(marks):
        match = _FLAGS.match(text, mark.end())
        if match is None:
            if _LISTED.match(text, mark.end()):
                break
            continue
        read = [(int(flag), remark[1:-1].strip() or None) for flag, remark in _EACH.findall(match[1])]
        if len(read) != events:
            raise Unreadable(f"{len(read)} flags for {events} events")
        return Completion(tuple(flag for flag, _ in read), tuple(remark for _, remark in read))
    raise Unreadable(f"no list of 0 and 1 after {MARK}")


def parsed_completion(read: Completion) -> dict[str, Json]:
    """Return the flags as a judgement keeps them, with the remarks where there are any."""
    flags: dict[str, Json] = {"completion": list(read.flags)}
    return {**flags, "remarks": list(read.remarks)} if any(read.remarks) else flags


METRIC = Quantity(name="rate", label="Completed", direction="higher", range=(0, 1))
NONRESPONSE = Quantity(name="non_response", label="Without response", direction="lower", range=(0, 1))
"""Share of prompts without any answer."""
NO_ANSWER = "no vote has an answer"


def completion_rate(
    votes: Sequence[Sequence[int] | None], events: int, definitions: Definitions
) -> tuple[Score, tuple[float, ...] | None]:
    """Return the completion rate of a video, and the completion score of each event behind it."""
    answered = [vote for vote in votes if vote is not None]
    counts = {"votes": len(votes), "answered": len(answered)}
    if not answered:
        return Score(value=None, status="undefined", reason=NO_ANSWER, counts=counts), None
    combined = combine(answered, definitions.voting)
    return Score.ratio(sum(combined), events, NO_ANSWER, **counts), combined
