"""Votes for publication: of those who agreed to it, under new names, with times that tell less.

The names are not those that the study worked with, and are made with its secret: the same person has the same
name in everything that one study publishes, and another name in another study. What people wrote freely is
pointed out, since nobody but a person can tell whether it says who they are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ...schemas.canonical import Json, jsonl_lines, new_folder, pretty_bytes, write_atomic
from ...schemas.judgement import NEEDED, HumanRow
from ...schemas.text import tallied
from ...validators.katha.seen import SEEN
from .folder import Study
from .items import opaque
from .points import is_final
from .protocol import SIMULATED
from .records import consenting
from .standing import Standing
from .task import UNCLEAR
from .votes import Counted, counted_votes, rows_of

VOTES, FLAGS, ABOUT = "votes.jsonl", "to_read.jsonl", "published.json"
Times = Literal["day", "exact", "none"]
TELLING = (
    (re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+"), "it looks like an address of e-mail"),
    (re.compile(r"https?://|www\.", re.IGNORECASE), "it has an address of the web"),
    (re.compile(r"(?:\d[\s().-]?){7,}"), "it has a long number"),
    (re.compile(r"(?<!\w)@\w{3,}"), "it has the name of an account"),
)
"""What a text has that may say who wrote it -> how that is called."""


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """How votes are published.

    Attributes:
        times: ``day``: only the day on which something was said; ``exact``: when; ``none``.
        texts: whether what people wrote freely is published.
    """

    times: Times = "day"
    texts: bool = True


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that somebody should read before it is published.

    Attributes:
        line: of the votes, from 1.
        text: what was written.
        why: why it should be read.
    """

    line: int
    text: str
    why: str

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {"line": self.line, "text": self.text, "why": self.why}


@dataclass(frozen=True)
class Published:
    """Votes for publication.

    Attributes:
        rows: the lines, in an order that says nothing of when each came.
        flags: what should be read before.
        people: how many people the lines are of, and how many gave votes.
        votes: how many votes of items the lines are of, and how many there are that can no longer change.
        left_out: lines that were left out because somebody wrote them freely.
        simulated: whether programs gave votes.
    """

    rows: tuple[HumanRow, ...]
    flags: tuple[Flag, ...]
    people: tuple[int, int]
    votes: tuple[int, int]
    left_out: int = 0
    simulated: bool = False
    study: str = field(default="", compare=False)

    def as_json(self) -> dict[str, Json]:
        """Return what it is, without the lines, as plain JSON."""
        return {
            "study": self.study, "lines": len(self.rows), "people_who_agreed": self.people[0],
            "people": self.people[1], "votes_published": self.votes[0], "votes": self.votes[1],
            "to_read": len(self.flags), "left_out": self.left_out, "simulated": self.simulated,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Return what it is, for people."""
        yield f"lines: {len(self.rows):,}, of {self.people[0]} of {self.people[1]} people who agreed to it"
        if self.left_out:
            yield f"left out: {tallied(self.left_out, 'lines')} that people wrote freely"
        if self.flags:
            texts = tallied(len(self.flags), "texts")
            yield f"read before you publish: {texts} that people wrote, in {FLAGS}"
        if self.simulated:
            yield "programs gave votes: every line of theirs says so"


def public_name(study: Study, reviewer: str) -> str:
    """Return the name of a reviewer in what a study publishes: always the same, and not their pseudonym."""
    begin = SIMULATED if reviewer.startswith(SIMULATED) else ""
    return begin + opaque(study.secret, "public", reviewer, prefix="p")[:13]


def publish(study: Study, standing: Standing, options: PublishOptions | None = None) -> Published:
    """Return the votes of a study that may be published.

    These are votes that count and can no longer be changed, of those who agreed to their publication; of
    training there are none.

    Args:
        study: the study.
        standing: where it stands.
        options: how; None for the usual.
    """
    options = options or PublishOptions()
    willing = consenting(standing)
    counted = [each for each in counted_votes(study, standing) if is_final(each.person, each.vote)]
    kept: list[tuple[HumanRow, str | None]] = []
    left_out = 0
    for each in counted:
        if each.person.id in willing:
            listed = list(_rows(study, each, options))
            left_out += sum(row is None for row, _ in listed)
            kept += [(row, text) for row, text in listed if row is not None]
    kept.sort(key=lambda pair: pair[0].model_dump_json())
    given = {each.person.id for each in counted}
    return Published(
        tuple(row for row, _ in kept),
        tuple(Flag(number, text, _why(text)) for number, (_, text) in enumerate(kept, 1) if text is not None),
        (len(given & willing), len(given)),
        (sum(each.person.id in willing for each in counted), len(counted)),
        left_out,
        any(row.simulated for row, _ in kept),
        study.protocol.name,
    )


def _rows(
    study: Study, counted: Counted, options: PublishOptions
) -> Iterator[tuple[HumanRow | None, str | None]]:
    """Yield the lines of a vote, each with the text that somebody wrote in it; None for a line left out."""
    written = {answer for answer in _texts_of(study, counted) if answer != UNCLEAR}
    changes = {
        "rater": public_name(study, counted.person.id),
        "at": _moment(counted.vote.event.at, options.times),
        SEEN: None,  # of a hidden story it would let anybody try what it says
    }
    for row in rows_of(study, counted):
        text = row.answer if row.answer in written else None
        if text is None or options.texts:
            yield row.model_copy(update=changes), text
        elif "answer" in NEEDED[row.kind]:
            yield None, None
        else:
            yield row.model_copy(update={**changes, "answer": None}), None


def _texts_of(study: Study, counted: Counted) -> Iterator[Json]:
    """Yield what somebody wrote freely in a vote."""
    names = {question.name for question in study.task.card.questions if question.type == "text"}
    yield from (answer for name, answer in counted.vote.answers.items() if name.partition("/")[0] in names)


def _moment(at: str, times: Times) -> str | None:
    if times == "none":
        return None
    return at if times == "exact" else f"{at[:10]}T00:00:00Z"


def _why(text: str) -> str:
    return next((why for pattern, why in TELLING if pattern.search(text)), "somebody wrote it freely")


def write_published(study: Study, folder: Path, options: PublishOptions | None = None) -> Published:
    """Write the votes of a study that may be published into a new folder, with what should be read before.

    Raises:
        TargetError: the folder is not empty, or cannot be written.
    """
    published = publish(study, study.standing(), options)
    rows = (row.model_dump(mode="json", exclude_defaults=True) for row in published.rows)
    with new_folder(folder):
        write_atomic(folder / VOTES, jsonl_lines(rows))
        write_atomic(folder / FLAGS, jsonl_lines(flag.as_json() for flag in published.flags))
        write_atomic(folder / ABOUT, [pretty_bytes(published.as_json())])
    return published
