"""The checks that apply to a record, and how verdicts of rules, models and authors become one list.

What no program settles is judged by a model, by the author of a record (``checks`` of a given record), or by
nobody. A verdict that nobody gave is a check all the same: it has none and says so. That way a record is
``auto_checked`` only where every check that applies was made and passed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....schemas.canonical import Json
from ....schemas.paths import parse_path
from ....schemas.values import Own
from ..drafts import LABELS, author_of, covers
from .rules import depends_on_transition

RULES = "rules@1"
NOBODY = "not judged: no model read it, and its author gave no verdict"


@dataclass(frozen=True, slots=True)
class Applied:
    """A check that applies to every part of one sort."""

    code: str  # its code
    part: str  # a list of the record, a label, or ``story_text``
    meaning: str  # what holds where it passed
    # codes of a model's checks that say the same; where there are several, all are needed
    models: tuple[str, ...] = ()
    # codes of checks by rules that need no verdict of their own where this one has one
    rules: tuple[str, ...] = ()
    is_optional: bool = False  # whether a record lacks nothing where nobody made it

    def concerns(self, part: Json) -> bool:
        return self.code != "question_depends_on_transition" or depends_on_transition(part)


SCREEN, TEXT = "screen_", "story_text"
"""How the codes of checks of the story itself begin, and the part that they are about."""

SCREENED: Mapping[str, str] = {
    "too_long": "it has no more words than the setting allows",
    "rights_unresolved": "its rights status allows release",
    "near_duplicate": "it nearly equals no other story of the run",
    "personal_data": "it holds no address or number of a person",
    "harmful_content": "it holds no explicit sexual content, torture, mass harm or call for hate",
    "wordplay": "it does not depend on wordplay, which cannot be shown",
    "external_knowledge": "it needs no knowledge outside its text",
    "mainly_descriptive": "its clauses tell events",
    "several_moral_targets": "it supports one moral and not several",
}
"""What the stage ``screen_stories`` looks at -> what holds where that passed."""

_LABEL = "the course of events supports the label"
APPLIED: tuple[Applied, ...] = (
    *(Applied(f"{SCREEN}{code}", TEXT, meaning) for code, meaning in SCREENED.items()),
    Applied("scene_faithful", "scenes", "the story bears out every field", ("model_consistent",),
            ("entity_continuity",)),
    Applied("scene_drawable", "scenes", "one picture can show it", ("model_renderable",),
            ("prompt_too_long",)),
    Applied("transition_faithful", "transitions", "the story bears out every field", ("model_consistent",)),
    Applied("question_answerable", "questions", "who has read the text finds the answer",
            ("model_answerable",), ("answerable",)),
    Applied("question_not_guessable", "questions",
            "its wording does not give the answer away", is_optional=True),
    Applied("question_worth_asking", "questions",
            "its words do not tell its answer, on which the story turns", is_optional=True),
    Applied("question_drawable", "questions", "pictures can show what is asked"),
    Applied("question_depends_on_transition", "questions", "one scene of its transition alone is not enough"),
    Applied("question_answers_equivalent", "questions", "every accepted answer says the same",
            ("model_answers_equivalent",)),
    Applied("variant_sound", "variants", "it changes one meaning, as described, keeps the rest, reads well",
            ("model_contrast_minimal", "model_contrast_described", "model_contrast_read")),
    *(Applied("label_fits", name, _LABEL, ("model_label_fits",)) for name in LABELS),
)  # fmt: skip
"""The checks that apply to a story and the parts of its record, besides the rules."""

JUDGES_VARIANTS = frozenset(
    ("model_contrast_moral",
     *(code for check in APPLIED if check.part == "variants" for code in (check.code, *check.models)))
)  # fmt: skip
"""Codes of the checks in which a model or an author judges a variant."""

_PART = re.compile(r"\$\.([a-z_]+)(?:\[(\*|\d{1,6})\])?")
CODES = tuple(dict.fromkeys(check.code for check in APPLIED if check.part != TEXT))


class Verdict(Own):
    """What the author of a record says about a part of it.

    ``path`` is that of the part, such as ``$.questions[2]``, of all in a list, such as ``$.questions[*]``, of
    a label, or ``$.story_text``.
    """

    code: str
    path: str
    passed: bool
    note: str


def part_of(code: str) -> str:
    """Return in words what the checks of a code are about."""
    return " or ".join(check.part for check in APPLIED if check.code == code) or TEXT


def judges_part(verdict: Verdict, given: Mapping[str, Json]) -> bool:
    """Return whether the path of a verdict is that of a part that its code is about and the record gives."""
    match = _PART.fullmatch(verdict.path)
    if match is None:
        return False
    name, number = match.groups()
    if verdict.code.startswith(SCREEN):
        return name == TEXT and number is None
    if given.get(name) is None or name not in {check.part for check in APPLIED if check.code == verdict.code}:
        return False
    if name in LABELS:
        return number is None
    return number is not None and (number == "*" or int(number) < len(given[name]))


def settle(made: Sequence[Json], given: Json, draft: Json) -> list[Json]:
    """Return every check of a record: those that were made, its author's verdicts, and what nobody judged.

    A given verdict stands in the place of the same check without one. Where one of the two failed, the check
    failed: no verdict overrules a rule. A verdict on a part that was changed afterwards does not count.
    """
    checks = list(made)
    for verdict in _verdicts(given, draft):
        same = [row for row in checks if _is(row, verdict["code"], verdict["path"])]
        settled = {row["passed"] for row in same} - {None}
        if False in settled or verdict["passed"] in settled:
            continue
        checks = [row for row in checks if row not in same or row["passed"] is not None]
        checks.append(verdict)
    return [*_without_answered(checks), *_not_made(checks, draft)]


def _verdicts(given: Json, draft: Json) -> Iterator[Json]:
    """Yield the verdicts of an author on what is still as it was given, one for each part."""
    by = author_of(given)
    for check in (given or {}).get("checks", ()):
        for path in _expanded(check, draft):
            if _as_given(path, given, draft):
                yield {"code": check["code"], "path": path, "passed": check["passed"], "note": check["note"],
                       "producer": by}  # fmt: skip


def _expanded(verdict: Json, draft: Json) -> list[str]:
    """Return the paths of the parts that a verdict is about; of all, those that its check applies to."""
    name, every, _ = str(verdict["path"]).removeprefix("$.").partition("[*]")
    if not every:
        return [verdict["path"]]
    applied = next(check for check in APPLIED if check.code == verdict["code"])
    return [f"$.{name}[{number}]" for number, part in enumerate(draft[name]) if applied.concerns(part)]


def _as_given(path: str, given: Json, draft: Json) -> bool:
    name, *steps = parse_path(path)
    if name in LABELS:
        return bool(given[name] == draft[name])
    if not steps:
        return True  # the text of the story, which nobody changes
    return given[name][steps[0]].items() <= draft[name][steps[0]].items()  # type: ignore[no-any-return]


def _is(row: Mapping[str, Json], code: str, path: str) -> bool:
    """Return whether a check is the one of this code about this place, or about what lies in it."""
    return row["code"] == code and covers(path, parse_path(str(row["path"])))


def _part(path: str) -> str:
    """Return the element of a list that a path leads into, such as ``$.questions[1]``, or the field."""
    head, bracket, _ = path.partition("]")
    return head + bracket if bracket else path


def _without_answered(checks: Sequence[Json]) -> Iterator[Json]:
    """Yield the checks but those of rules without a verdict where the check that asks for more has one."""
    settled = {(row["code"], _part(str(row["path"]))) for row in checks if row["passed"] is not None}
    answers = {rule: (check.code, *check.models) for check in APPLIED for rule in check.rules}
    for row in checks:
        asked = answers.get(str(row["code"]), ())
        if row["passed"] is not None or not {(code, _part(str(row["path"]))) for code in asked} & settled:
            yield row


def _not_made(checks: Sequence[Json], draft: Json) -> Iterator[Json]:
    """Yield the checks that apply and that nobody made; one for all parts where none of them was checked."""
    known = {(str(row["code"]), _part(str(row["path"]))) for row in checks}
    for check in (applied for applied in APPLIED if not applied.is_optional):
        parts: Sequence[Json] = ()
        if check.part in (TEXT, *LABELS):
            paths = [f"$.{check.part}"] if check.part == TEXT or draft[check.part] is not None else []
        else:
            parts = draft[check.part]
            paths = [f"$.{check.part}[{n}]" for n, part in enumerate(parts) if check.concerns(part)]
        missing = [path for path in paths if not _was_made(check, path, known)]
        if len(missing) == len(parts) > 1:
            missing = [f"$.{check.part}[*]"]
        for path in missing:
            yield {"code": check.code, "path": path, "passed": None, "note": NOBODY, "producer": None}


def _was_made(check: Applied, path: str, known: set[tuple[str, str]]) -> bool:
    by_model = bool(check.models) and all((code, path) in known for code in check.models)
    return by_model or (check.code, path) in known
