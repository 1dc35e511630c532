"""What tasks draw from evaluations, releases and files; every answer becomes a line that fits them."""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fabula.engine.execute import execute
from fabula.errors import ConfigError, InputError
from fabula.evaluation.archive.archive import EVALUATION, read_archive
from fabula.evaluation.entities.archived import CRITERIA
from fabula.evaluation.events.requests import EventOptions, events_request
from fabula.kinds.making_studies import SOURCES, draw_items, source_of
from fabula.people.audits.compare import read_records
from fabula.people.audits.form import RUBRIC, units_of
from fabula.people.episodes import judged
from fabula.people.read import Known, read_human
from fabula.people.review.design import Plan
from fabula.people.review.flow import Step, human_rows
from fabula.people.review.folder import Study, StudyPlan, make_study
from fabula.people.review.items import Drawn
from fabula.people.review.plan import Rules
from fabula.people.review.serve.server import Given, Pages, Reader
from fabula.people.review.sources.source import DrawOptions, draw_methods
from fabula.people.review.standing import Reviewer
from fabula.people.review.task import UNCLEAR, Question, is_due, load_task, place_of, task_names
from fabula.releases.loading import load
from fabula.schemas.canonical import Json, jsonl_lines, write_atomic
from fabula.schemas.judgement import HumanRow
from fabula.schemas.katha import StoryRecord
from fabula.schemas.values import vocabulary
from fabula.testing.drawn_evaluations import draw_evaluation
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.drawn_storyboards import draw_outputs, numbers_in
from fabula.testing.model_server import ModelServer
from fabula.testing.review_studies import NOW, add_votes
from fabula.testing.simulated_evaluations import Simulated
from fabula.testing.stand_in_models import EventModel
from fabula.testing.study_sources import (
    EVENTS,
    METHODS,
    drawn_videos,
    episode_evaluation,
    storyboard_evaluation,
)


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return storyboard_evaluation(tmp_path_factory.mktemp("boards"), 3, bridged=METHODS[1:])


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return episode_evaluation(tmp_path_factory.mktemp("episodes") / "run")


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    return drawn_videos(tmp_path_factory.mktemp("videos"))


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    folder = tmp_path_factory.mktemp("shots")
    data = draw_shot_set(folder / "data", 2, 4)
    methods = [draw_shot_outputs(folder / name, 2, 4) for name in METHODS]
    (methods[0] / "01/shots/shot_03.png").unlink()
    return data, methods


def drawn(task: str, path: Path, **options: Any) -> tuple[Drawn, ...]:
    return draw_items(load_task(task), path, DrawOptions(**options)).items


def study_of(folder: Path, task: str, items: Sequence[Drawn], **plan: Any) -> Study:
    about = StudyPlan("drawn", "", task, Plan(raters=1, seats=1, **plan), Rules(), NOW)
    return make_study(folder, about, items)


def first_answer(question: Question) -> Json:
    if question.type == "text":
        return "a bridge"
    value = question.choices[0].value
    return [value] if question.type == "labels" else value


def answers_to(study: Study, item: str, choose: Callable[[Question], Json] = first_answer) -> dict[str, Json]:
    """Return an answer to all that is due, as a page would send it."""
    answers: dict[str, Json] = {}
    for question, part in study.task.asked(study.items[item].part_ids):
        if is_due(question, part, answers):
            answers[place_of(question.name, part)] = choose(question)
    assert study.task.problems(answers, study.items[item].part_ids) == {}
    return answers


def lines_of(study: Study, choose: Callable[[Question], Json] = first_answer) -> list[HumanRow]:
    votes = {place.item: answers_to(study, place.item, choose) for place in study.seats[1].places}
    add_votes(study, "p1", votes, seat=1)
    return human_rows(study, study.standing())


def read_back(folder: Path, rows: Sequence[HumanRow], known: Known) -> tuple[HumanRow, ...]:
    write_atomic(folder / "human.jsonl", jsonl_lines(row.as_json() for row in rows))
    return read_human(folder / "human.jsonl", known)


def page_of(study: Study, item: str, language: str) -> str:
    place = next(place for place in study.seats[1].places if place.item == item)
    return Pages(study).item(Reader(language), Reviewer("p1", seat=1), Step("item", "0", place), Given())


# Storyboards


def test_questions_when_drawn_are_asked_once_of_the_text_and_once_of_every_storyboard(boards):
    items = drawn("recoverability", boards.run)
    assert Counter((item.condition, item.methods) for item in items) == {
        ("text", ()): 3, ("image", ("model-a",)): 3, ("image", ("model-b",)): 3,
        ("text_image", ("model-a",)): 3, ("text_image", ("model-b",)): 3,
    }  # fmt: skip
    records = {record.story_id: record for record in boards.items.records}
    for item in items:
        record = records[item.story]
        assert (item.texts == {}) == (item.condition == "image")
        assert [len(side) for side in item.sides] == (
            [] if item.condition == "text" else [len(record.scenes) + (item.methods == ("model-b",))]
        )
        if item.texts:
            assert item.texts["scenes"] == [scene.scene_text for scene in record.scenes]
        asked = {part.id for name in ("questions", "label_questions") for part in item.parts[name]}
        assert asked == {question.question_id for question in record.questions}
        assert all(not part.detail and not part.values for listed in item.parts.values() for part in listed)
    first = next(item for item in items if item.condition == "image" and item.story == "kb25k_0002")
    assert [numbers_in(file.read_bytes())[0] for file in first.sides[0]] == [1] * len(first.sides[0])


def test_questions_when_answered_are_lines_that_an_evaluation_is_compared_with(boards, tmp_path):
    items = drawn("recoverability", boards.run, methods=("model-a",), stories=("kb25k_0001",))
    rows = []
    for condition in ("text", "image", "text_image"):
        some = [item for item in items if item.condition == condition]
        study = study_of(tmp_path / condition, "recoverability", some, apart=True)
        rows += lines_of(study)
    known = Known.of_records(boards.items.records, frozenset(METHODS))
    assert read_back(tmp_path, rows, known) == tuple(rows)
    assert Counter((row.kind, row.condition, row.method) for row in rows) == {
        ("answer", "text", None): 6, ("answer", "image", "model-a"): 6,
        ("answer", "text_image", "model-a"): 6,
        ("moral_label", "text", None): 1, ("moral_label", "image", "model-a"): 1,
        ("moral_label", "text_image", "model-a"): 1,
    }  # fmt: skip
    assert {row.confidence for row in rows if row.answer == "a bridge"} == {"low"}
    moral = {q.question_id for q in boards.items.records[0].questions if q.question_type == "moral"}
    assert moral and {row.answer for row in rows if row.item in moral} == {"compassion"}


def test_questions_when_a_story_has_no_moral_label_are_asked_without_one(boards, monkeypatch):
    from fabula.people.review.sources import storyboards

    def without(release: Any, options: DrawOptions) -> tuple[StoryRecord, ...]:
        return tuple(record.model_copy(update={"moral_label": None}) for record in release.records)

    monkeypatch.setattr(storyboards, "chosen_records", without)
    assert all("moral" not in item.parts for item in drawn("recoverability", boards.run))


def test_questions_when_a_release_has_no_outputs_are_asked_of_texts_alone(boards, tmp_path):
    items = drawn("recoverability", boards.release)
    assert {item.condition for item in items} == {"text"} and len(items) == 3
    with pytest.raises(InputError, match="no pictures of storyboards"):
        drawn("recoverability", boards.release, conditions=("image",))
    outputs = draw_outputs(tmp_path / "model-z", boards.items.records)
    shown = drawn("recoverability", boards.release, outputs=(outputs,), conditions=("image",))
    assert {item.methods for item in shown} == {("model-z",)}


def test_methods_when_drawn_for_each_story_are_those_of_the_videos_sample(boards: Simulated) -> None:
    items = drawn("ratings", boards.run, per_prompt=1, seed=7)
    there = {record.story_id: METHODS for record in boards.items.records}
    assert [(item.story, item.methods[0]) for item in items] == draw_methods(there, 1, random.Random(7))


def test_ratings_when_drawn_show_the_label_only_beside_the_story(boards: Simulated, tmp_path: Path) -> None:
    items = drawn("ratings", boards.run, conditions=("image", "text_image"))
    labels = {record.story_id: record.moral_label for record in boards.items.records}
    for item in items:
        assert item.texts.get("moral") == (None if item.condition == "image" else labels[item.story])
    rows = lines_of(study_of(tmp_path / "s", "ratings", [i for i in items if i.condition == "image"]))
    assert {row.criterion for row in rows} == {"NCS", "MAS", "EES", "visual", "overall"}
    assert read_back(tmp_path, rows, Known.of_records(boards.items.records, frozenset(METHODS)))


def test_preferences_when_sides_are_turned_favour_the_first_method_by_positive_values(boards, tmp_path):
    items = drawn("preference", boards.run, pairs=("model-b:model-a",))
    assert all(item.methods == ("model-b", "model-a") and not item.texts for item in items)
    study = study_of(tmp_path / "s", "preference", items)
    flips = {study.stands[place.item].about: place.flip for place in study.seats[1].places}
    assert len(set(flips.values())) == 2  # of three, one or two are turned
    rows = lines_of(study)  # always Left, clearly
    assert {(row.item, row.value) for row in rows} == {
        (item, -2 if flip else 2) for item, flip in flips.items()
    }
    assert {(row.method, row.baseline) for row in rows} == {("model-b", "model-a")}
    known = Known.of_records(boards.items.records, frozenset(METHODS))
    assert read_back(tmp_path, rows, known) == tuple(rows)
    undecided = lines_of(study_of(tmp_path / "t", "preference", items), lambda question: UNCLEAR)
    assert {(row.value, row.answer) for row in undecided} == {(None, "unclear")}


def test_the_question_about_a_bridge_when_none_is_shown_is_not_asked(boards, tmp_path):
    bridged = drawn("preference", boards.run, pairs=("model-b:model-a",))
    assert {item.stratum for item in bridged} == {"bridge"}
    rows = lines_of(study_of(tmp_path / "s", "preference", bridged[:1]))
    assert [row.criterion for row in rows] == [f"Q{number}" for number in range(1, 16)]
    plain = storyboard_evaluation(_new(tmp_path / "plain"), 2)
    items = drawn("preference", plain.run, pairs=("model-a:model-b",))
    asked = {row.criterion for row in lines_of(study_of(tmp_path / "t", "preference", items))}
    assert asked == {f"Q{number}" for number in range(1, 16)} - {"Q14"}


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_pairs_when_they_cannot_be_drawn_say_what_to_give(boards, refusals, snapshot):
    pairs = {"pairs": ("model-a:model-b",)}
    assert refusals(lambda given: drawn("preference", boards.run, **given), [
        {}, {"pairs": ("model-a:model-c",)}, {"pairs": ("model-a:model-a",)}, {**pairs, "stories": ("x",)},
        {**pairs, "count": 3}, {**pairs, "methods": ("z",)}, {**pairs, "splits": ("z",)},
    ]) == snapshot  # fmt: skip


def test_pairs_when_a_method_has_no_board_of_a_story_leave_it_out_and_say_so(tmp_path: Path) -> None:
    made = storyboard_evaluation(tmp_path, 3)
    lines = (made.run / "frames.jsonl").read_text().splitlines()
    broken = json.loads(lines[0]) | {"frames": [], "scenes": [], "invalid": "missing"}
    (made.run / "frames.jsonl").write_text("\n".join([json.dumps(broken), *lines[1:]]) + "\n")
    drawing = draw_items(load_task("preference"), made.run, DrawOptions(pairs=("model-a:model-b",)))
    assert len(drawing.items) == 2
    assert drawing.short == ("model-a and model-b: 2 of 3 stories have boards of both",)


def test_an_evaluation_when_its_release_is_not_known_asks_for_it_and_refuses_another(tmp_path: Path) -> None:
    made = storyboard_evaluation(_new(tmp_path / "a"), 2)
    manifest = json.loads((made.run / EVALUATION).read_text())
    manifest["environment"].pop("sources")
    (made.run / EVALUATION).write_text(json.dumps(manifest))
    with pytest.raises(ConfigError, match="does not say where the release is"):
        drawn("ratings", made.run)
    assert drawn("ratings", made.run, release=made.release)
    other = storyboard_evaluation(_new(tmp_path / "b"), 3)
    with pytest.raises(InputError, match="this is not the release that was judged"):
        drawn("ratings", made.run, release=other.release)


# Shots, videos, episodes


def test_shots_when_drawn_stand_beside_their_scripts_and_are_rated_from_0_to_4(shots, tmp_path):
    data, methods = shots
    items = drawn("shots", data, outputs=tuple(methods))
    assert [(item.about, item.methods) for item in items] == [
        ("01", ("model-a",)), ("01", ("model-b",)), ("02", ("model-a",)), ("02", ("model-b",))
    ]  # fmt: skip
    listed = items[0].texts["shots"]
    assert [shot["picture"] for shot in listed] == [0, 1, None, 2] and len(items[0].sides[0]) == 3
    assert listed[0]["plot"] == {"en": "Part 1 of the tale.", "zh": "故事的第1部分。"}
    assert listed[1]["characters"] == {"en": "Mira, Old Tomas", "zh": "米拉, 老托马斯"}
    study = study_of(tmp_path / "s", "shots", items)
    rows = lines_of(study)
    known = Known(pictures=frozenset(("01", "02")), methods=frozenset(METHODS), rating=(0, 4))
    assert read_back(tmp_path, rows, known) == tuple(rows)
    assert {(row.criterion, row.value) for row in rows} == {
        ("character_consistency", 0), ("environment_consistency", 0), ("aesthetics", 0)
    }  # fmt: skip
    item = next(name for name, stands in study.stands.items() if stands.methods == ("model-a",)
                and stands.about == "01")  # fmt: skip
    assert "There is no picture of this shot." in page_of(study, item, "en")
    assert "故事的第1部分。" in page_of(study, item, "zh")


def test_shots_when_no_outputs_are_given_say_so(shots: tuple[Path, list[Path]]) -> None:
    with pytest.raises(InputError, match="--outputs FOLDER"):
        drawn("shots", shots[0])


def test_videos_when_drawn_are_the_sample_of_the_paper_with_the_events_in_order(videos, tmp_path):
    suite, methods = videos
    items = drawn("events", suite, outputs=tuple(methods), per_prompt=1, seed=3)
    there = dict.fromkeys(EVENTS, METHODS)
    assert [(item.about, item.methods[0]) for item in items] == draw_methods(there, 1, random.Random(3))
    every = drawn("events", suite, outputs=tuple(methods))
    study = study_of(tmp_path / "s", "events", every)
    rows = lines_of(study)
    known = Known(events={name: len(events) for name, events in EVENTS.items()}, methods=frozenset(METHODS))
    assert read_back(tmp_path, rows, known) == tuple(rows)
    assert {(row.item, row.completion) for row in rows} == {("cup.mp4", (1, 1)), ("dog.mp4", (1, 1, 1))}
    for item, stands in study.stands.items():
        page = page_of(study, item, "en")
        places = [page.index(event) for event in EVENTS[stands.about]]
        assert places == sorted(places)
        assert stands.about not in page and stands.methods[0] not in page


def test_videos_when_one_is_missing_are_refused_by_name(videos, tmp_path):
    empty = _new(tmp_path / "model-c")
    with pytest.raises(InputError, match="the video of a drawn prompt is missing") as caught:
        drawn("events", videos[0], outputs=(*videos[1], empty))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(("task", "kind", "asked"), [("appearances", "fidelity", ("present", "overall")),
                                                     ("pairs", "pair", ("same", "similarity"))])  # fmt: skip
def test_instances_when_answered_are_what_the_judge_of_episodes_is_compared_with(
    episodes: Path, tmp_path: Path, task: str, kind: str, asked: tuple[str, str]
) -> None:
    drawing = draw_items(load_task(task), episodes, DrawOptions(count=12))
    items = drawing.items
    assert Counter(item.texts["type"] for item in items).keys() == CRITERIA.keys()
    study = study_of(tmp_path / "s", task, items)
    rows = lines_of(study, lambda question: question.choices[-1].value)
    answers = judged(read_archive(episodes))
    known = Known(
        methods=frozenset(METHODS), asked={item: answer.asked for (_, item), answer in answers.items()}
    )
    assert read_back(tmp_path, rows, known) == tuple(rows)
    for item in items:
        own = [row for row in rows if (row.item, row.method) == (item.about, item.methods[0])]
        assert {row.criterion for row in own} == {*asked, *CRITERIA[item.texts["type"]]}
        assert {row.value for row in own} == {0, 10}
        assert item.stratum.startswith(kind)
    wanted = sum(part["wanted"] for part in drawing.source["strata"])
    assert wanted == 12 and bool(drawing.short) == (len(items) < 12)


# Answers, drafts


def test_answers_when_drawn_are_different_ones_with_controls_that_do_not_show(boards, tmp_path):
    said = {"kind": "answer", "rater": "p1", "condition": "image", "method": "model-a"}
    question = boards.items.records[0].questions[0]
    people = [
        said | {"item": question.question_id, "answer": answer, "rater": f"p{number}"}
        for number, answer in enumerate(("A falling star!", "a falling star", "A falling star!", "Unclear"))
    ]
    human = tmp_path / "people.jsonl"
    write_atomic(human, jsonl_lines(people))
    drawing = draw_items(load_task("equivalence"), boards.run, DrawOptions(human=human, controls=0.25))
    kinds = Counter(item.stratum for item in drawing.items)
    assert kinds["control"] == pytest.approx(kinds["unmatched"] / 3, abs=1) and kinds["control"] > 0
    stars = [item for item in drawing.items if "star" in str(item.texts["answer"])]
    assert [(item.about, item.texts["answer"]) for item in stars] == [
        (question.question_id, "A falling star!")
    ]
    assert not any("unclear" in str(item.texts["answer"]).lower() for item in drawing.items)
    for item in drawing.items:
        assert item.texts["accepted"] and item.texts["answer"] not in item.texts["accepted"]
        assert not item.expected  # else it would be taken for a check
    study = study_of(tmp_path / "s", "equivalence", drawing.items)
    rows = lines_of(study, lambda question: 0)
    assert {(row.item, row.answer) for row in rows} == {
        (item.about, item.texts["answer"]) for item in drawing.items
    }
    assert {row.value for row in rows} == {0} and {row.kind for row in rows} == {"equivalence"}


def test_parts_of_drafts_when_found_unsound_have_the_reason_that_the_rubric_has(boards, tmp_path):
    drawing = draw_items(load_task("audit"), boards.release, DrawOptions(count=2))
    units = {unit.key: unit for unit in units_of(read_records(boards.release))}
    assert Counter(item.stratum for item in drawing.items).keys() == RUBRIC.keys()
    study = study_of(tmp_path / "s", "audit", drawing.items)
    rows = lines_of(study, lambda question: 0 if question.name == "sound" else question.choices[0].value)
    for row in rows:
        unit = units[str(row.item)]
        assert (row.kind, row.value, row.criterion) == ("audit", 0, unit.kind)
        assert row.answer == next(iter(RUBRIC[unit.kind]))
    sound = lines_of(study_of(tmp_path / "t", "audit", drawing.items), lambda question: 1)
    assert {(row.value, row.answer) for row in sound} == {(1, None)}


# All tasks


def test_tasks_when_ours_draw_from_a_source_that_there_is() -> None:
    assert {load_task(name).card.draws for name in task_names()} <= SOURCES.keys()
    for name in task_names():
        assert source_of(load_task(name)).options


def test_words_when_tasks_offer_them_are_those_of_vocabularies_rubric_and_criteria() -> None:
    labels = vocabulary("moral_label").values
    asked = {question.name: question for question in load_task("recoverability").card.questions}
    for name in ("answer_label", "moral"):
        assert [option.value for option in asked[name].options] == list(labels)
    assert set(labels) <= load_task("ratings").card.texts.keys()
    reasons = {q.each: q for q in load_task("audit").card.questions if q.name.startswith("reason")}
    assert reasons.keys() == RUBRIC.keys()
    for kind, question in reasons.items():
        assert [option.value for option in question.options] == list(RUBRIC[str(kind)])
    every = [name for names in CRITERIA.values() for name in names]
    for task in ("appearances", "pairs"):
        criteria = [q for q in load_task(task).card.questions if q.each is not None]
        assert [(q.name, q.each, q.criterion) for q in criteria] == [(name, name, name) for name in every]
    preference = load_task("preference").card
    assert preference.evidence == "image"
    assert sorted(q.name for q in preference.questions) == sorted(f"Q{n}" for n in range(1, 16))
    assert all([o.value for o in q.options] == [2, 1, 0, -1, -2] and q.unclear for q in preference.questions)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("task", ["recoverability", "preference", "ratings", "equivalence", "audit"])
def test_a_page_when_made_from_a_drawn_item_names_neither_method_nor_story(boards, tmp_path, task, language):
    given: dict[str, Any] = {"pairs": ("model-a:model-b",)} if task == "preference" else {}
    items = drawn(task, boards.release if task == "audit" else boards.run, **given)
    chosen = random.Random(1).sample(items, 2)
    study = study_of(tmp_path / "s", task, chosen)
    for item in study.items:
        page = page_of(study, item, language)
        assert not any(word in page for word in (*METHODS, "kb25k_"))
        about = study.stands[item]
        if about.condition in ("image", "text_image"):
            assert page.count("/media/") == sum(map(len, study.items[item].sides))


def test_a_task_when_it_cannot_be_made_from_a_path_says_what_to_give(boards, tmp_path, refusals, snapshot):
    (tmp_path / "file.jsonl").write_text("{}\n")
    places = {"run": boards.run, "release": boards.release, "nothing": tmp_path / "x", "folder": tmp_path,
              "file": tmp_path / "file.jsonl"}  # fmt: skip
    said = refusals(lambda case: drawn(case[0], places[case[1]]), [
        ("events", "run"), ("shots", "release"), ("pairs", "release"), ("audit", "run"),
        ("ratings", "nothing"), ("ratings", "folder"), ("equivalence", "file"),
    ])  # fmt: skip
    assert said.replace(str(boards.run.parent), "") == snapshot


def test_items_when_drawn_again_are_the_same_and_name_what_they_come_from(boards: Simulated) -> None:
    first = draw_items(load_task("recoverability"), boards.run)
    assert first == draw_items(load_task("recoverability"), boards.run)
    assert first.source["release_sha256"] and first.source["judgements_sha256"]
    assert load(boards.release).records[0].story_id == first.items[0].about
    assert len({item.named for item in first.items}) == len(first.items)


# -- Items drawn from evaluations that were run: what was looked at is what people see, and nothing else

CREATED = "2026-01-01T00:00:00Z"


@pytest.mark.slow
def test_shots_when_drawn_from_an_evaluation_are_its_pictures_and_no_others(tmp_path: Path) -> None:
    run = draw_evaluation(tmp_path, 2, 3)
    shots = load_task("shots")
    drawing = draw_items(shots, run, DrawOptions(stories=("02",)))
    assert [(item.about, item.methods, len(item.sides[0])) for item in drawing.items] == [
        ("02", ("copy-paste",), 3), ("02", ("model-a",), 2)  # shot 3 of story 02 is missing
    ]  # fmt: skip
    assert drawing.source["release_sha256"] == json.loads((run / "evaluation.json").read_text())["protocol"][
        "release"]["sha256"]  # fmt: skip
    Image.new("RGB", (64, 64)).save(tmp_path / "model-a/01/shots/shot_01.png")
    with pytest.raises(InputError, match="not the picture that was evaluated") as caught:
        draw_items(shots, run)
    assert len(caught.value.problems) == 1
    assert len(draw_items(shots, run, DrawOptions(methods=("copy-paste",))).items) == 2
    (run / "run.json").unlink()  # only a copy of the archive is there
    with pytest.raises(InputError, match="give the run folder of the evaluation"):
        draw_items(shots, run)


def test_videos_when_drawn_from_an_evaluation_are_judged_ones_as_they_were(tmp_path: Path) -> None:
    suite, folders = drawn_videos(tmp_path / "videos")
    (folders[1] / "cup.mp4").write_bytes(b"no video")
    with ModelServer(EventModel({})) as server:
        judge = f"{server.openai_url}#one"
        options = EventOptions(judges=[judge], models={judge: {"attempts": 2}}, workers=0, created_at=CREATED)
        execute(events_request(suite, folders, tmp_path / "run", options))
    events = load_task("events")
    drawing = draw_items(events, tmp_path / "run")
    assert {(item.about, item.methods[0]) for item in drawing.items} == {
        ("cup.mp4", "model-a"), ("dog.mp4", "model-a"), ("dog.mp4", "model-b")
    }  # fmt: skip
    assert drawing.short == ("1 of 2 prompts have judged videos of fewer methods",)
    (folders[0] / "dog.mp4").write_bytes((folders[1] / "dog.mp4").read_bytes())
    with pytest.raises(InputError, match="these are not the videos that were judged"):
        draw_items(events, tmp_path / "run")
    with pytest.raises(InputError, match="these are not the videos"):
        draw_items(events, tmp_path / "run", DrawOptions(outputs=(folders[0],)))
