"""Votes for publication: whose they are nobody can tell, and those who did not agree are not among them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.archive.archive import release_sha256, write_archive
from fabula.kinds.evaluations import calibrate
from fabula.people.participants import Resampling
from fabula.people.read import Known, read_human
from fabula.people.review.design import Plan
from fabula.people.review.exclusions import Rules
from fabula.people.review.exporting import public_name, publish, write_published
from fabula.people.review.folder import Study, StudyPlan, make_study
from fabula.people.review.items import Drawn, Part
from fabula.people.review.journal import Event, VoteJournal
from fabula.people.study import StudySettings
from fabula.releases.loading import Release
from fabula.schemas.canonical import csv_text
from fabula.schemas.judgement import EvaluationManifest, HumanRow
from fabula.testing.review_studies import NOW, TASK, add_votes, toy_answers, toy_study

AT = "2026-01-15T13:45:10.250Z"
Reply = Callable[..., Any]


def vote(
    study: Study, reviewer: str, seat: int, *, publish: bool = True, said: str = "because", **about: Any
) -> None:
    """Let somebody answer a whole seat, and close it."""
    keys = [place.item for place in study.seats[seat].places]
    blocks = tuple(dict.fromkeys(str(place.block) for place in study.seats[seat].places))
    answers = {key: toy_answers(study, key, said=said) for key in keys}
    add_votes(study, reviewer, answers, seat=seat, at=AT, closed=blocks, **about)
    with VoteJournal(study.folder) as journal:
        body = {"publish": publish, "expertise": None}
        event = Event(f"{reviewer}/said", AT, study.protocol.sha256, reviewer, "agreed", None, body)
        journal.add_now(event)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    made = toy_study(tmp_path / "study", plan=Plan(raters=3, block=2), simulated=False)
    vote(made, "r-aaaa1111", 1)
    vote(made, "r-bbbb2222", 2, publish=False)
    return made


def test_votes_when_somebody_did_not_agree_are_not_published(study: Study) -> None:
    published = publish(study, study.standing())
    assert {row.rater for row in published.rows} == {public_name(study, "r-aaaa1111")}
    assert published.people == (1, 2)
    assert published.votes == (4, 8)


def test_votes_when_they_can_still_change_are_not_published(tmp_path: Path) -> None:
    made = toy_study(tmp_path / "study", plan=Plan(raters=1, block=2))
    keys = [place.item for place in made.seats[1].places]
    answers = {key: toy_answers(made, key) for key in keys[:3]}
    add_votes(made, "simulated-1", answers, seat=1, closed=[str(made.seats[1].places[0].block)])
    with VoteJournal(made.folder) as journal:
        body = {"publish": True, "expertise": None}
        journal.add_now(Event("x", AT, made.protocol.sha256, "simulated-1", "agreed", None, body))
    published = publish(made, made.standing())
    assert {row.item for row in published.rows if row.kind == "rating"} == {
        made.stands[key].about for key in keys[:2]
    }
    assert published.simulated
    assert all(row.simulated and row.rater.startswith("simulated-p") for row in published.rows)


def test_names_when_published_are_new_and_the_same_in_one_study_only(study: Study, tmp_path: Path) -> None:
    write_published(study, tmp_path / "first")
    write_published(study, tmp_path / "second")
    content = b"".join(
        path.read_bytes() for path in tmp_path.glob("*/*") if path.parent.name in ("first", "second")
    )
    assert b"r-aaaa1111" not in content
    assert b"r-bbbb2222" not in content
    raters = [
        {json.loads(line)["rater"] for line in (tmp_path / name / "votes.jsonl").read_text().splitlines()}
        for name in ("first", "second")
    ]
    assert raters[0] == raters[1]
    other = toy_study(tmp_path / "other", simulated=False)
    assert public_name(other, "r-aaaa1111") not in raters[0]


def test_times_when_published_tell_the_day_alone(study: Study) -> None:
    assert AT != "2026-01-15T00:00:00Z"
    assert {row.at for row in publish(study, study.standing()).rows} == {"2026-01-15T00:00:00Z"}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("because it rained", "somebody wrote it freely"), ("I am @ana_l", "it has the name of an account"),
        ("ask ana@example.org", "it looks like an address of e-mail"),
        ("see www.example.org/ana", "it has an address of the web"),
        ("call +49 170 1234567", "it has a long number"),
    ],
)  # fmt: skip
def test_texts_when_people_wrote_them_are_pointed_out(tmp_path: Path, said: str, why: str) -> None:
    made = toy_study(tmp_path / "study", simulated=False)
    vote(made, "r-aaaa1111", 1, said=said)
    published = publish(made, made.standing())
    assert {(flag.text, flag.why) for flag in published.flags} == {(said, why)}
    assert [published.rows[flag.line - 1].answer for flag in published.flags] == [said] * 4


def test_unclear_when_answered_is_no_text_of_anybody(tmp_path: Path) -> None:
    made = toy_study(tmp_path / "study", simulated=False)
    vote(made, "r-aaaa1111", 1, said="unclear")
    assert publish(made, made.standing()).flags == ()


def test_order_of_lines_when_votes_came_in_another_order_is_the_same(tmp_path: Path) -> None:
    made = toy_study(tmp_path / "study", simulated=False)
    vote(made, "r-aaaa1111", 1)
    vote(made, "r-bbbb2222", 2)
    rows = publish(made, made.standing()).rows
    assert list(rows) == sorted(rows, key=HumanRow.model_dump_json)


# -- where they go


def rating_study(folder: Path, release: Release) -> Study:
    """A study about the stories of a release, with the kinds of lines that an evaluation is compared with."""
    task = folder / "toy.j2"
    folder.mkdir()
    task.write_text(TASK.replace("row: review,\n     adjudicated: true, ", ""), "utf-8")
    drawn = [
        Drawn(
            about=record.story_id, story=record.story_id, methods=("m", "n"), condition="image",
            parts={"questions": tuple(Part(id=q.question_id, text=q.question) for q in record.questions[:1])},
        )
        for record in release.records
    ]  # fmt: skip
    plan = StudyPlan(
        name="toy", title="", task=str(task), plan=Plan(raters=2, block=50), rules=Rules(), created_at=NOW
    )
    return make_study(folder / "study", plan, drawn)


def test_published_votes_when_given_to_calibrate_are_taken_as_they_are(
    tmp_path: Path, release: Release, reply: Reply
) -> None:
    made = rating_study(tmp_path / "made", release)
    for number, reviewer in enumerate(("r-aaaa1111", "r-bbbb2222"), 1):
        vote(made, reviewer, number)
    published = write_published(made, tmp_path / "published")
    path = tmp_path / "published" / "votes.jsonl"
    rows = read_human(path, Known.of_records(release.records, frozenset({"m", "n"})))
    assert sorted(rows, key=HumanRow.model_dump_json) == list(published.rows)
    assert {(row.at, row.protocol, row.simulated) for row in rows} == {
        ("2026-01-15T00:00:00Z", made.protocol.sha256, False)
    }
    folder = tmp_path / "evaluation"
    folder.mkdir()
    about = EvaluationManifest.model_validate(
        {
            "kind": "katha", "protocol": {"release": {"sha256": release_sha256(release.path)}},
            "subject": {"methods": {"m": {}}},
            "environment": {"sources": [{"role": "release", "name": "release", "path": str(release.path)}]},
        }
    )  # fmt: skip
    write_archive(
        folder,
        about,
        [reply(each.question_id, True) for record in release.records for each in record.questions],
    )
    report = calibrate(folder, path, settings=StudySettings(resampling=Resampling(20)))
    assert json.loads(json.dumps(report.document))


def test_published_votes_when_in_a_table_are_read_alike(tmp_path: Path, release: Release) -> None:
    made = rating_study(tmp_path / "made", release)
    vote(made, "r-aaaa1111", 1)
    published = publish(made, made.standing())
    header = sorted(HumanRow.model_fields)
    cells = [
        [
            "|".join(map(str, value)) if isinstance(value := row.as_json()[name], list) else value
            for name in header
        ]
        for row in published.rows
    ]
    path = tmp_path / "votes.csv"
    path.write_text(csv_text(header, cells), "utf-8")
    rows = read_human(path, Known.of_records(release.records, frozenset({"m", "n"})))
    assert sorted(rows, key=HumanRow.model_dump_json) == list(published.rows)
