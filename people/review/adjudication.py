"""Adjudication: what reviewers do not decide between them goes to somebody else, who says why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json, canonical_text
from ...schemas.values import Issue
from ...validators.lines import read_objects
from ...validators.report import as_user_error
from .corrections import edits_after, listed_edits, problem_of, tidy, values_of
from .folder import Study
from .items import Item
from .journal import Event, VoteJournal
from .points import Known, Point, points
from .standing import Reviewer, Standing
from .task import LONGEST_TEXT, Question, place_of
from .verdicts import REASONS

ADJUDICATOR = "adjudicator"
REASON = "case_reason"
"""Place of the reason of a decision."""
COLUMNS = frozenset(("case", "value", "edits", "reason"))
"""What a line of a file of decisions may have."""
SHOWN = 40
"""So many cases are listed for people; JSON has them all."""


class NotDecided(ConfigError):
    """A decision that cannot be taken.

    Attributes:
        code: why, in a word: ``role``, ``own``, ``case``, ``value``, ``edits`` or ``reason``.
        place: of the answer that is wrong; empty where none is.
    """

    def __init__(self, where: str, *, code: str, what: str, fix: str, place: str = "") -> None:
        super().__init__(where, what=what, fix=fix)
        self.code, self.place = code, place


def cases(
    study: Study, standing: Standing, *, everything: bool = False, known: Known | None = None
) -> list[Point]:
    """Return the open cases of a study."""
    listed = points(study, standing, known=known)
    return [point for point in listed if point.is_case and (everything or point.is_open)]


def decide(
    study: Study, standing: Standing, who: str, line: Mapping[str, Json], at: str, sent: str = ""
) -> Event | None:
    """Return the event of a decision; None where it was decided just so before.

    ``sent``: id that the page gave the event; a new one if empty.
    """
    case, value, reason = str(line.get("case")), line.get("value"), line.get("reason")
    point = _decidable(study, standing, who, case)
    task, item = study.task, study.items[point.item]
    where = f"case {case}"
    if problem := point.question.problem(value):
        raise NotDecided(where, code="value", what=problem, fix="give another value", place=point.place)
    if not isinstance(reason, str) or not reason.strip() or len(reason) > LONGEST_TEXT:
        what = f"a reason of 1 to {LONGEST_TEXT} characters is expected"
        raise NotDecided(where, code="reason", what=what, fix="say why it is decided so", place=REASON)
    given = line.get("edits") or []
    after = edits_after(task, point.question)
    due = after is not None and value in after.when[point.question.name]
    if problem := _problem_of_edits(item, after if due else None, point.part, given):
        raise NotDecided(
            where, code="edits", what=problem, fix="correct the edits, or choose another value",
            place=point.place if after is None else place_of(after.name, point.part),
        )  # fmt: skip
    edits = {str(edit["path"]): tidy(edit["new"]) for edit in given}
    if point.decision is not None and point.decision.says(value, edits, reason.strip()):
        return None
    return Event(
        f"{who}/{sent or token_hex(12)}", at, study.protocol.sha256, who, "decided", case,
        {"value": value, "edits": listed_edits(edits), "reason": reason.strip(), "adjudicator": who,
         "votes": point.votes_sha256, **study.seen(point.item)},
    )  # fmt: skip


def _decidable(study: Study, standing: Standing, who: str, case: str) -> Point:
    """Return the point of a case that somebody may decide."""
    person = standing.reviewers.get(who)
    if person is None or person.role != ADJUDICATOR or person.revoked:
        raise NotDecided(
            who or "--who", code="role", what="this is not an adjudicator of the study",
            fix="invite one with fabula review invite STUDY --role adjudicator",
        )  # fmt: skip
    item = case.partition(":")[0]
    if has_reviewed(person, item):
        raise NotDecided(
            f"case {case}", code="own", what=f"{who} reviewed this item, and nobody decides about their own",
            fix="have another adjudicator decide",
        )  # fmt: skip
    there = {point.id: point for point in points(study, standing, frozenset((item,)))}
    if case not in there or not there[case].is_case:
        raise NotDecided(
            f"case {case}", code="case", what="there is no such case, or votes on it are missing",
            fix="see which there are with fabula review adjudicate STUDY",
        )  # fmt: skip
    return there[case]


def has_reviewed(person: Reviewer, item: str) -> bool:
    """Return whether somebody ever voted on an item."""
    return any(key.partition("#")[0] == item for key in person.votes)


def _problem_of_edits(item: Item, question: Question | None, part: str, edits: Json) -> str | None:
    """Return what is wrong with the corrections of a decision; ``question`` is None where none go with it."""
    if question is None:
        return "no corrections go with this value" if edits else None
    if question.optional and edits == []:
        return None
    return question.problem(edits) or problem_of(values_of(item, question, part), edits)


@dataclass
class _Taking:
    """Decisions of a file while they are read."""

    problems: list[UserError] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def report(self, issue: Issue) -> None:
        """Note what is wrong with the form of a line."""
        self.problems.append(as_user_error(issue))


def decide_from_file(study: Study, journal: VoteJournal, path: Path, who: str, at: str) -> int:
    """Take decisions from a file of JSON Lines, all or none, and return how many are new."""
    standing, taking, seen = Standing.of(journal.events()), _Taking(), dict[str, int]()
    for line in read_objects(path, path.name, taking.report):
        where, case = f"{path.name}:{line.number}", str(line.data.get("case"))
        strange = sorted(line.data.keys() - COLUMNS)
        if strange or case in seen:
            what = f"line {seen[case]} decides this case, too" if case in seen else f"unknown: {strange[0]}"
            fix = "keep one of them" if case in seen else f"a decision has {', '.join(sorted(COLUMNS))}"
            taking.problems.append(UserError(where, what=what, fix=fix))
            continue
        seen[case] = line.number
        try:
            event = decide(study, standing, who, line.data, at)
        except NotDecided as error:
            if error.code == "role":
                raise
            taking.problems.append(UserError(f"{where} {error.where}", what=error.what, fix=error.fix))
        else:
            taking.events += [] if event is None else [event]
    if taking.problems:
        raise InputError(taking.problems)
    journal.add_now(*taking.events)
    return len(taking.events)


def lines(listed: Sequence[Point]) -> Iterator[str]:
    """Yield cases for people."""
    if not listed:
        yield "nothing is to be decided"
    for point in listed[:SHOWN]:
        part = "" if point.own_part is None else f" {point.own_part}"
        why = "; ".join(REASONS[reason] for reason in point.verdict.why)
        yield f"{point.id}: {point.about}, {point.question.name}{part}: {why}"
        for each in point.said:
            edits = f", {canonical_text(listed_edits(each.edits))[:200]}" if each.edits else ""
            note = f" ({each.note[:200]})" if each.note else ""
            yield f"  {each.reviewer}: {each.answer}{edits}{note}"
        if point.decision is not None:
            yield f"  decided: {point.decision.value}, {point.decision.reason[:200]}"
    if len(listed) > SHOWN:
        yield f"and {len(listed) - SHOWN:,} more; --json lists them"
