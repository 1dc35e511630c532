"""Reviews of records for tests: a study of sample records, and programs that vote on them as told."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..people.review.design import Plan
from ..people.review.folder import Study, StudyPlan, make_study, open_study
from ..people.review.plan import Rules
from ..people.review.sources.records import Story, drawn_record
from ..people.review.standing import Event, VoteJournal
from ..people.review.task import is_due, place_of
from ..schemas.canonical import Json, digest
from ..schemas.katha import StoryRecord, Variant
from .katha_samples import sample_bundles
from .review_studies import NOW, add_votes

Changes = Mapping[str, Json]
"""Place, with the part's own id -> answer, of what a reviewer says otherwise than that all is well."""


def record_study(folder: Path, stories: int = 2, plan: Plan | None = None, **settings: object) -> Study:
    """Make a study of sample records."""
    drawn = []
    for bundle in sample_bundles(stories):
        variants = tuple(map(Variant.model_validate, bundle["variants"]))
        story = Story(StoryRecord.model_validate(bundle["record"]), variants, digest(bundle["record"]))
        drawn.append(drawn_record(story))
    study_plan = StudyPlan(
        name="gold", title="", task="record", plan=plan or Plan(raters=3, block=50), rules=Rules(),
        created_at=NOW, source={"kind": "release", "release_sha256": "0" * 64},
        settings={"simulated": True, **settings},
    )  # fmt: skip
    return make_study(folder, study_plan, drawn)


def item_of(study: Study, story: str) -> str:
    """Return the opaque id of a story's item."""
    return next(each.item for each in study.stands.values() if each.about == story)


def place_in(study: Study, item: str, place: str) -> str:
    """Return the place of an answer from that with the part's own id."""
    name, _, own = place.partition("/")
    parts = {real: part for part, real in study.stands[item].parts.items()}
    return place_of(name, parts[own] if own else "")


def answers_of(study: Study, item: str, changes: Changes | None = None) -> dict[str, Json]:
    """Return answers that accept all of a record with confidence 4, but for some changes."""
    answers: dict[str, Json] = {}
    for question, part in study.task.asked(study.items[item].part_ids):
        if question.type in ("choice", "scale"):
            answers[place_of(question.name, part)] = (
                question.options[0].value if question.type == "choice" else 4
            )
    answers |= {place_in(study, item, place): answer for place, answer in (changes or {}).items()}
    asked = study.task.asked(study.items[item].part_ids)
    due = {place_of(question.name, part) for question, part in asked if is_due(question, part, answers)}
    return {place: answer for place, answer in answers.items() if place in due}


def vote_all(
    study: Study,
    changes: Mapping[str, Sequence[Changes]] | None = None,
    *,
    at: str = NOW,
    closing: bool = True,
    timeline: Sequence[tuple[float, str]] = (),
) -> Study:
    """Have every seat's reviewer, ``simulated-1`` onwards, vote on all of it; return the study.

    ``changes``: story -> for each seat, what its reviewer says otherwise.
    """
    for seat, number in zip(study.seats.values(), range(1, len(study.seats) + 1), strict=True):
        votes = {}
        for place in seat.places:
            said = (changes or {}).get(study.stands[place.item].about, ())
            own = said[number - 1] if number <= len(said) else None
            key = f"{place.item}#{place.repeat}" if place.repeat else place.item
            votes[key] = answers_of(study, place.item, own)
            wrong = study.task.problems(votes[key], study.items[place.item].part_ids)
            assert not wrong, wrong
        blocks = sorted({str(place.block) for place in seat.places})
        add_votes(
            study, f"simulated-{number}", votes, seat=seat.number, at=at, closed=blocks if closing else (),
            timeline=timeline,
        )  # fmt: skip
    return open_study(study.folder)


def add_adjudicator(study: Study) -> str:
    """Let an adjudicator take part; return the pseudonym."""
    name, role = "simulated-a", {"role": "adjudicator"}
    event = Event(f"{name}/invited", NOW, study.protocol.sha256, name, "invited", None, role)
    with VoteJournal(study.folder) as journal:
        journal.add_now(event)
    return name


def edit(path: str, new: Json) -> list[Json]:
    """Return the answer to a question for corrections that corrects one value."""
    return [{"path": path, "new": new}]
