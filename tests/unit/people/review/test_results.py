"""What comes of a study: numbers counted by hand, and studies simulated so that the truth is known."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from scipy.stats import wilcoxon

from fabula.evaluation.archive.archive import release_sha256, write_archive
from fabula.evaluation.stats.tables import krippendorff_alpha
from fabula.kinds.evaluations import calibrate
from fabula.kinds.making_studies import Wanted, make
from fabula.people.read import Known, read_human
from fabula.people.recoverability import Resampling
from fabula.people.review.exporting import export_files, public_name, publish, write_published
from fabula.people.review.folder import Study, StudyPlan, invite, make_study, open_study, replace_protocol
from fabula.people.review.items import Drawn, Part
from fabula.people.review.plan import Plan, Rules
from fabula.people.review.points import cases, decide
from fabula.people.review.protocol import amended
from fabula.people.review.results import lines, results
from fabula.people.review.serve.routes import application
from fabula.people.review.serve.server import Server
from fabula.people.review.standing import Event, VoteJournal
from fabula.people.study import StudySettings
from fabula.releases.loading import Release
from fabula.schemas.canonical import Json, csv_text
from fabula.schemas.judgement import EvaluationManifest, HumanRow
from fabula.testing.review_page import Page
from fabula.testing.review_studies import NOW, TASK, add_votes, toy_answers, toy_study
from fabula.testing.reviewed_records import Changes, add_adjudicator, edit, record_study, vote_all
from fabula.testing.simulated_reviewers import Policy, SimulatedReviewer
from fabula.testing.study_sources import storyboard_evaluation
from fabula.validators.resampling import fleiss_kappa

FIRST, SECOND = "kb25k_0001", "kb25k_0002"
KIND: Changes = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", "kindness")}
WISE: Changes = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", "wisdom")}
UNSURE: Changes = {"moral_label": "ambiguous"}
SAID: dict[str, list[Changes]] = {
    FIRST: [KIND, WISE, {"confidence": 2}],
    SECOND: [{f"recoverability_qa/{SECOND}_q1": "invalid", "safety": "unsafe"}, UNSURE, {"confidence": 5}],
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Eight records of three reviewers, who differ about the first two; only read."""
    return vote_all(record_study(tmp_path_factory.mktemp("results") / "study", 8), SAID)


def of(study: Study) -> dict[str, Any]:
    """Return results as they are read from a file."""
    document: dict[str, Any] = json.loads(json.dumps(results(study, study.standing())))
    return document


def test_answers_when_counted_are_those_that_were_given_with_the_shares_that_pass(study: Study) -> None:
    kept = of(study)["kept"]
    assert (kept["votes"], kept["items"], kept["reviewers"]) == (24, 8, 3)
    questions = kept["questions"]
    for name, answers, passed in (
        ("moral_label", {"correct": 21, "corrected": 2, "ambiguous": 1}, 21 / 24),
        ("recoverability_qa", {"valid": 143, "needs_edit": 0, "invalid": 1}, 143 / 144),
        ("safety", {"ok": 23, "unsafe": 1, "rights_uncertain": 0}, 23 / 24),
    ):
        assert (questions[name]["answers"], questions[name]["pass"]["value"]) == (
            answers, pytest.approx(passed)
        )  # fmt: skip
    sections = {name: share["value"] for name, share in kept["sections"].items()}
    assert sections == {
        "category": 1.0, "moral": pytest.approx(21 / 24), "scenes": 1.0, "transitions": 1.0,
        "questions": pytest.approx(23 / 24), "variants": 1.0, "whole": pytest.approx(23 / 24),
    }  # fmt: skip
    share = questions["moral_label"]["pass"]
    assert (share["votes"], share["reviewers"], share["items"]) == (24, 3, 8)
    assert questions["confidence"]["answers"] == {"1": 0, "2": 1, "3": 0, "4": 22, "5": 1}
    assert "pass" not in questions["confidence"]  # nothing passes there
    assert kept["confidence"] == {
        "simulated-1": {"mean": 4.0, "votes": 8}, "simulated-2": {"mean": 4.0, "votes": 8},
        "simulated-3": {"mean": 31 / 8, "votes": 8},
    }  # fmt: skip


def test_agreement_when_measured_is_of_words_and_of_the_labels_that_they_stand_for(study: Study) -> None:
    question = of(study)["kept"]["questions"]["moral_label"]
    words = np.array([[1, 2, 0], [2, 0, 1], *[[3, 0, 0]] * 6], dtype=float)
    assert question["agreement"]["kappa"] == pytest.approx(fleiss_kappa(words))
    assert question["agreement"]["alpha"] == pytest.approx(krippendorff_alpha(words))
    # eight labels of the records, kindness, wisdom and unclear; three all differ in the first record
    shown = [
        value.value for item in study.items.values() for value in item.values if value.path == "$.moral_label"
    ]
    names = sorted({*shown, "kindness", "wisdom", "unclear"})
    stories = {each.about: study.items[each.item] for each in study.stands.values()}
    labels = []
    for story in sorted(stories):
        own = next(value.value for value in stories[story].values if value.path == "$.moral_label")
        said = {FIRST: ["kindness", "wisdom", own], SECOND: [own, "unclear", own]}.get(story, [own] * 3)
        labels.append([said.count(name) for name in names])
    on_value = question["agreement_on_value"]
    assert on_value["kappa"] == pytest.approx(fleiss_kappa(np.array(labels, dtype=float)))
    assert on_value["units"] == 8
    confidence = of(study)["kept"]["questions"]["confidence"]
    assert confidence["agreement"]["kappa"] is None  # of a scale there is alpha alone
    assert confidence["mean"]["value"] == pytest.approx((22 * 4 + 2 + 5) / 24)


def test_workload_when_cases_are_decided_moves_items_from_open_to_adjudicated(tmp_path: Path) -> None:
    """As in Table 21: unanimous records, adjudicated records, and the judgements on both."""
    study = vote_all(record_study(tmp_path / "study", 8), SAID)
    before = of(study)["workload"]
    assert before["unanimous"] == {"items": 6, "judgements": 18, "decisions": 0}
    assert before["open"] == {"items": 2, "judgements": 6, "decisions": 0}
    who = add_adjudicator(study)
    for case in cases(study, study.standing()):
        value = case.question.choices[0].value
        line: dict[str, Json] = {"case": case.id, "value": value, "reason": "So it is."}
        event = decide(study, study.standing(), who, line, NOW)
        assert event is not None
        with VoteJournal(study.folder) as journal:
            journal.add_now(event)
    after = of(study)["workload"]
    assert after["adjudicated"] == {"items": 2, "judgements": 6, "decisions": 4}
    assert after["open"] == {"items": 0, "judgements": 0, "decisions": 0}


# -- time, changes, versions, exclusions


def toy_votes(study: Study, seat: int, qualities: Sequence[int], seconds: Sequence[float]) -> None:
    """Have the reviewer of a seat rate its items in order, each in a time of its own."""
    name = f"simulated-{seat}"
    places = study.seats[seat].places
    for number, (place, quality, spent) in enumerate(zip(places, qualities, seconds, strict=True)):
        key = f"{place.item}#{place.repeat}" if place.repeat else place.item
        timeline = [(0.0, "loaded"), (1000 * spent, "sent")]
        add_votes(
            study, name, {key: toy_answers(study, place.item, quality)}, seat=seat, begin=number == 0,
            at=f"2026-01-01T00:{number:02d}:00Z", timeline=timeline,
        )  # fmt: skip


def test_time_when_items_were_answered_is_told_by_reviewer_and_by_place_in_their_sequence(tmp_path):
    study = toy_study(tmp_path / "study", plan=Plan(raters=2, block=2))
    toy_votes(study, 1, [1, 2, 3, 1], [29, 20, 10, 10])
    toy_votes(study, 2, [1, 2, 3, 2], [20, 10, 5, 8])
    time = of(study)["time"]
    assert time["all"] == {"votes": 8, "median": 10.0, "q1": 9.5, "q3": 20.0}
    assert time["by_reviewer"]["simulated-2"]["median"] == 9.0
    assert [(each["from"], each["to"], each["median"]) for each in time["by_position"]] == [
        (1, 2, 20.0), (3, 4, 9.0),
    ]  # fmt: skip


def test_changes_when_answers_were_changed_are_counted(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study", plan=Plan(raters=1, block=4))
    toy_votes(study, 1, [1, 2, 3, 1], [9, 9, 9, 9])
    item = study.seats[1].places[0].item
    for turn in ("a", "b"):
        again, at = {item: toy_answers(study, item, 3)}, f"2026-01-02T00:00:01Z{turn}"
        add_votes(study, "simulated-1", again, seat=1, begin=False, at=at)
    assert of(study)["changed"] == {"votes": 1, "changes": 2, "of": 4}


def test_ratings_when_unclear_are_left_out_of_the_mean_and_counted(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study", plan=Plan(raters=1, block=4))
    places = study.seats[1].places
    votes = {place.item: {**toy_answers(study, place.item), "quality": quality}
             for place, quality in zip(places, (1, 3, "unclear", 3), strict=True)}  # fmt: skip
    add_votes(study, "simulated-1", votes, seat=1)
    quality = of(study)["kept"]["questions"]["quality"]
    assert quality["answers"] == {"1": 1, "2": 0, "3": 2, "unclear": 1}
    assert quality["mean"]["value"] == pytest.approx(7 / 3)


def test_preferences_when_sides_were_changed_are_turned_back(tmp_path: Path) -> None:
    """Everybody prefers the first method, wherever it stands."""
    study = toy_study(tmp_path / "study", stories=8, plan=Plan(raters=2, block=8))
    for seat in study.seats.values():
        votes = {
            place.item: {**toy_answers(study, place.item), "side": -1 if place.flip else 1}
            for place in seat.places
        }
        add_votes(study, f"simulated-{seat.number}", votes, seat=seat.number)
    assert {place.flip for seat in study.seats.values() for place in seat.places} == {False, True}
    side = of(study)["kept"]["questions"]["side"]
    assert side["answers"] == {"1": 16, "0": 0, "-1": 0}
    assert side["mean"]["value"] == 1.0


def test_results_when_the_protocol_was_amended_are_told_by_version_and_pooled(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study", plan=Plan(raters=2, block=4))
    toy_votes(study, 1, [1, 1, 1, 1], [9, 9, 9, 9])
    first = study.protocol.sha256
    changed = amended(study.protocol, {"lease_hours": 9}, who="ana", why="it is long", created_at=NOW)
    replace_protocol(study, changed)
    later = open_study(study.folder)
    toy_votes(later, 2, [3, 3, 3, 3], [9, 9, 9, 9])
    document = of(later)
    parts = document["by_version"].items()
    means = {name: part["questions"]["quality"]["mean"]["value"] for name, part in parts}
    assert means == {first: 1.0, changed.sha256: 3.0}
    assert document["kept"]["questions"]["quality"]["mean"]["value"] == 2.0
    assert [each["version"] for each in document["versions"].values()] == [1, 2]
    assert any("pooled" in line for line in lines(document))


def test_results_when_somebody_was_careless_are_told_with_and_without_them(tmp_path: Path) -> None:
    rules = Rules(attention_failures=0)
    plan, timeline = Plan(raters=3, block=8, checks=1), [(0, "loaded"), (9000, "sent")]
    study = toy_study(tmp_path / "study", stories=6, checks=1, plan=plan, rules=rules)
    for number, seat in study.seats.items():
        votes = {}
        for place in seat.places:
            quality = (1 if number == 1 else 3) if place.check else number
            votes[place.item] = toy_answers(study, place.item, quality)
        add_votes(study, f"simulated-{number}", votes, seat=number, timeline=timeline)
    document = of(study)
    assert document["all"]["questions"]["quality"]["mean"]["value"] == 2.0  # 1, 2 and 3
    assert document["kept"]["questions"]["quality"]["mean"]["value"] == 2.5  # without who failed the check
    assert (document["all"]["reviewers"], document["kept"]["reviewers"]) == (3, 2)
    assert "simulated-1" in json.dumps(document["exclusions"])
    assert any("left out by the rules" in line for line in lines(document))


def test_consistency_when_items_were_shown_again_counts_equal_answers(tmp_path: Path) -> None:
    plan = Plan(raters=1, block=6, repeats=2, gap=2)
    study = toy_study(tmp_path / "study", plan=plan)
    votes = {}
    repeats = [place for place in study.seats[1].places if place.repeat]
    for place in study.seats[1].places:
        key = f"{place.item}#{place.repeat}" if place.repeat else place.item
        votes[key] = toy_answers(study, place.item, 1 if place == repeats[0] else 2)
    add_votes(study, "simulated-1", votes, seat=1)
    # quality and valid of two items: three of four are as before
    assert of(study)["consistency"] == {"simulated-1": {"same": 3, "answers": 4}}
    assert of(study)["kept"]["votes"] == 4  # repetitions are no votes of their own


def test_results_when_nobody_has_voted_are_undefined_and_not_zero(tmp_path: Path) -> None:
    document = of(toy_study(tmp_path / "study"))
    assert document["kept"]["questions"]["quality"]["mean"]["value"] is None
    assert document["time"]["all"] == {"votes": 0, "median": None, "q1": None, "q3": None}
    assert list(lines(document))


def test_lines_when_read_say_what_was_found(study: Study) -> None:
    text = "\n".join(lines(of(study)))
    assert "results of gold: 24 votes of 3 reviewers on 8 items" in text
    assert "reviewers are simulated: these numbers say nothing of people" in text
    assert "moral_label: correct 21, corrected 2, ambiguous 1" in text
    assert "accepted: 87.5 %" in text
    assert "mean confidence of a reviewer: 3.88 to 4.00" in text
    assert "unanimous: 6 items, 18 judgements, 0 decisions" in text


def test_answers_when_too_fast_for_their_kind_are_left_out_and_others_of_the_vote_are_not(tmp_path):
    rules = Rules(min_seconds={"rating": 5.0})
    study = toy_study(tmp_path / "study", plan=Plan(raters=1, block=4), rules=rules)
    toy_votes(study, 1, [1, 3, 3, 3], [2, 9, 9, 9])
    document = of(study)
    assert document["kept"]["questions"]["quality"]["answers"] == {"1": 0, "2": 0, "3": 3}
    assert document["all"]["questions"]["quality"]["answers"] == {"1": 1, "2": 0, "3": 3}
    assert document["kept"]["questions"]["valid"]["answers"] == {"valid": 4, "invalid": 0}
    assert document["exclusions"]["lines_by_rule"] == {"min_seconds": 1}


# -- A study of preferences from its design to the tests that calibrate makes, with people of known taste

TASTE = {"Q1": (2, 1, 1, 0, -1), "Q15": (2, 2, 1, 2, 1)}
"""Criterion -> what each of five people says of every story: positive favours the first method."""


def policy(study: Study, number: int) -> Policy:
    """Return what a person says: their taste, on whatever side the first method stands."""
    flips = {place.item: place.flip for place in study.seats[number].places}

    def answer(page: Page) -> Mapping[str, Json]:
        sign = -1 if flips[page.key.partition("#")[0]] else 1
        return {asked.place: sign * TASTE.get(asked.place, (0,) * 5)[number - 1] for asked in page.fields}

    return answer


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Study, Path]:
    folder = tmp_path_factory.mktemp("preferences")
    run = storyboard_evaluation(folder / "evaluation", 4).run
    first, second = json.loads((run / "evaluation.json").read_bytes())["subject"]["methods"]
    given = {"pairs": (f"{first}:{second}",), "raters": 5, "least": 5}
    make(folder / "study", run, given, Wanted(task="preference", simulated=True))
    study = open_study(folder / "study")

    async def take_part(server: Server) -> None:
        transport = httpx.ASGITransport(app=application(server))
        for number, each in enumerate(invite(study, server.journal, NOW, 5), 1):
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
                await SimulatedReviewer(client, policy(study, number)).take_part(each.link)

    with VoteJournal(study.folder) as journal:
        asyncio.run(take_part(Server(study, journal, lambda: NOW)))
    export_files(study, folder / "votes")
    return run, study, folder / "votes"


def test_preferences_when_people_have_a_taste_end_in_the_tests_of_it(voted: tuple[Path, Study, Path]) -> None:
    run, _, votes = voted
    document = calibrate(run, votes).document
    assert document["people"]["raters"] == 5
    assert document["people"]["simulated"] == document["people"]["lines"]["preference"]
    said = {row["criterion"]: row for row in document["preferences"]}
    for criterion, taste in TASTE.items():
        values = [value for value in taste for _ in range(4)]
        assert said[criterion]["mean"]["value"] == pytest.approx(sum(values) / len(values))
        expected = wilcoxon(values, alternative="greater", zero_method="wilcox", method="approx")
        test, tests = said[criterion]["test"], said[criterion]["tests"]
        assert test["positive"] == pytest.approx(float(expected.statistic))
        assert said[criterion]["p_corrected"] == pytest.approx(min(1.0, test["p_value"] * tests))


def test_sides_when_dealt_are_turned_for_some_and_the_same_taste_comes_out(voted):
    _, study, votes = voted
    flips = [place.flip for seat in study.seats.values() for place in seat.places]
    assert 0 < sum(flips) < len(flips)
    rows = [json.loads(line) for line in (votes / "votes.jsonl").read_text("utf-8").splitlines()]
    by_rater: dict[str, set[int]] = {}
    for row in rows:
        if row["criterion"] == "Q1":
            by_rater.setdefault(row["rater"], set()).add(row["value"])
    assert sorted(next(iter(values)) for values in by_rater.values()) == sorted(TASTE["Q1"])
    assert {len(values) for values in by_rater.values()} == {1}


# -- Votes for publication: whose they are nobody can tell, and those who did not agree are not among them

AT = "2026-01-15T13:45:10.250Z"
Reply = Callable[..., Any]


def vote(study: Study, reviewer: str, seat: int, *, publish: bool = True, said: str = "because") -> None:
    """Let somebody answer a whole seat, and close it."""
    places = study.seats[seat].places
    answers = {place.item: toy_answers(study, place.item, said=said) for place in places}
    blocks = tuple(dict.fromkeys(str(place.block) for place in places))
    add_votes(study, reviewer, answers, seat=seat, at=AT, closed=blocks)
    agree(study, reviewer, publish=publish)


def agree(study: Study, reviewer: str, *, publish: bool = True) -> None:
    body = {"publish": publish, "expertise": None}
    with VoteJournal(study.folder) as journal:
        journal.add_now(Event(f"{reviewer}/x", AT, study.protocol.sha256, reviewer, "agreed", None, body))


@pytest.fixture
def published_study(tmp_path: Path) -> Study:
    made = toy_study(tmp_path / "study", plan=Plan(raters=3, block=2), simulated=False)
    vote(made, "r-aaaa1111", 1)
    vote(made, "r-bbbb2222", 2, publish=False)
    return made


def test_votes_when_somebody_did_not_agree_are_not_published_and_others_with_their_day(published_study):
    published = publish(published_study, published_study.standing())
    assert {row.rater for row in published.rows} == {public_name(published_study, "r-aaaa1111")}
    assert (published.people, published.votes) == ((1, 2), (4, 8))
    assert {row.at for row in published.rows} == {"2026-01-15T00:00:00Z"}
    assert list(published.rows) == sorted(published.rows, key=HumanRow.model_dump_json)


def test_votes_when_they_can_still_change_are_not_published(tmp_path: Path) -> None:
    made = toy_study(tmp_path / "study", plan=Plan(raters=1, block=2))
    keys = [place.item for place in made.seats[1].places]
    answers = {key: toy_answers(made, key) for key in keys[:3]}
    add_votes(made, "simulated-1", answers, seat=1, closed=[str(made.seats[1].places[0].block)])
    agree(made, "simulated-1")
    published = publish(made, made.standing())
    assert {row.item for row in published.rows if row.kind == "rating"} == {
        made.stands[key].about for key in keys[:2]
    }
    assert published.simulated
    assert all(row.simulated and row.rater.startswith("simulated-p") for row in published.rows)


def test_names_when_published_are_new_and_the_same_in_one_study_only(published_study, tmp_path):
    raters = []
    for name in ("first", "second"):
        write_published(published_study, tmp_path / name)
        content = b"".join(path.read_bytes() for path in (tmp_path / name).iterdir())
        assert b"r-aaaa1111" not in content and b"r-bbbb2222" not in content
        votes = (tmp_path / name / "votes.jsonl").read_text().splitlines()
        raters.append({json.loads(line)["rater"] for line in votes})
    assert raters[0] == raters[1]
    assert public_name(toy_study(tmp_path / "other", simulated=False), "r-aaaa1111") not in raters[0]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("because it rained", "somebody wrote it freely"), ("I am @ana_l", "it has the name of an account"),
        ("ask ana@example.org", "it looks like an address of e-mail"),
        ("see www.example.org/ana", "it has an address of the web"),
        ("call +49 170 1234567", "it has a long number"), ("unclear", None),
    ],
)  # fmt: skip
def test_texts_when_people_wrote_them_are_pointed_out(tmp_path: Path, said: str, why: str | None) -> None:
    made = toy_study(tmp_path / "study", simulated=False)
    vote(made, "r-aaaa1111", 1, said=said)
    published = publish(made, made.standing())
    assert {(flag.text, flag.why) for flag in published.flags} == ({(said, why)} if why else set())
    assert {published.rows[flag.line - 1].answer for flag in published.flags} <= {said}
    assert len(published.flags) == (4 if why else 0)


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


def test_published_votes_when_given_to_calibrate_are_taken_as_they_are(tmp_path, release, reply):
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
    questions = [each for record in release.records for each in record.questions]
    write_archive(folder, about, [reply(each.question_id, True) for each in questions])
    report = calibrate(folder, path, settings=StudySettings(resampling=Resampling(20)))
    assert json.loads(json.dumps(report.document))


def test_published_votes_when_in_a_table_are_read_alike(tmp_path: Path, release: Release) -> None:
    made = rating_study(tmp_path / "made", release)
    vote(made, "r-aaaa1111", 1)
    published = publish(made, made.standing())
    header = sorted(HumanRow.model_fields)
    values = [[row.as_json()[name] for name in header] for row in published.rows]
    cells = [["|".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row] for row in values]
    path = tmp_path / "votes.csv"
    path.write_text(csv_text(header, cells), "utf-8")
    rows = read_human(path, Known.of_records(release.records, frozenset({"m", "n"})))
    assert sorted(rows, key=HumanRow.model_dump_json) == list(published.rows)
