"""The file of a task, and what it says of answers."""

import copy
import json
import re
import tarfile
from pathlib import Path

import pytest

from fabula.builders.edit_files import Correction
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.edits import run_ids
from fabula.engine.manifest import read_manifest
from fabula.errors import ConfigError, InputError, RunError
from fabula.evaluation.archive.archive import release_sha256
from fabula.kinds.making_studies import draw_items, material_of
from fabula.kinds.verbs import correct, pack
from fabula.people.review.design import Place
from fabula.people.review.flow import human_rows, open_places
from fabula.people.review.folder import open_study, replace_protocol
from fabula.people.review.items import Drawn, Value, problem_of, values_of, wrong_corrections
from fabula.people.review.protocol import amended, versions
from fabula.people.review.results import results
from fabula.people.review.serve.server import Pages, Reader, Shown
from fabula.people.review.sources.records import Story, draw_records, drawn_record
from fabula.people.review.sources.source import DrawOptions
from fabula.people.review.task import Question, load_task, read_task, task_names
from fabula.releases.options import PackOptions
from fabula.schemas.canonical import Json, digest
from fabula.schemas.katha import StoryRecord, Variant
from fabula.schemas.paths import get_at
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_studies import NOW, TASK, add_votes, task_of, toy_answers, toy_study
from fabula.testing.reviewed_records import answers_of, edit, item_of, record_study
from fabula.validators.katha.review_tables import UNITS, seen_content, seen_sha256

PARTS = {"questions": ("p1", "p2")}
GOOD = {"quality": 2, "said/p1": "because", "valid/p1": "valid", "said/p2": "unclear", "valid/p2": "valid"}


@pytest.mark.parametrize(
    ("place", "answer"),
    [
        ("quality", 4), ("quality", "2"), ("quality", True), ("quality", 2.0), ("quality", None), ("side", 2),
        ("labels", []), ("labels", ["kindness", "kindness"]), ("labels", ["kindness", "nonsense"]),
        ("labels", "kindness"), ("labels", ["kindness", "wisdom", "honesty", "courage"]), ("said/p1", ""),
        ("said/p1", "x" * 5000), ("said/p1", 3), ("valid/p1", "unclear"), ("other", 1), ("said/p9", "x"),
        ("said", "x"), ("fixed/p1", [{"path": "$", "new": 1}]),
    ],
)  # fmt: skip
def test_answer_when_not_one_of_those_asked_for_is_a_problem(tmp_path, place, answer):
    assert list(task_of(tmp_path).problems({**GOOD, place: answer}, PARTS)) == [place]  # type: ignore[dict-item]


def test_answers_when_whole_missing_or_not_asked_for_have_the_problems_that_they_have(tmp_path: Path) -> None:
    task, invalid = task_of(tmp_path), {"valid/p1": "invalid"}
    fixed = {"fixed/p1": [{"path": "$.questions[0].gold_answer", "new": "since"}]}
    assert task.problems(GOOD, PARTS) == task.problems({**GOOD, **invalid, **fixed}, PARTS) == {}
    assert task.problems({**GOOD, "labels": ["kindness", "wisdom", "honesty"]}, PARTS) == {}
    assert task.problems({"quality": 1}, PARTS).keys() == GOOD.keys() - {"quality"}
    assert list(task.problems({**GOOD, **fixed}, PARTS)) == ["fixed/p1"], "its condition does not hold"
    assert list(task.problems({**GOOD, **invalid, "fixed/p1": [{"path": 1}]}, PARTS)) == ["fixed/p1"]


def test_task_when_its_file_is_wrong_names_the_fault(refusals, snapshot):
    def read(change: tuple[str, str]) -> None:
        read_task(TASK.replace(*change).encode("utf-8", "surrogateescape"), "toy.j2")

    assert refusals(read, [
        ("{#---", "{#--"), ("version: 1", "version: 0"), ("most: 3", "most: 0"),
        ("type: labels", "type: labelled"), ("words: moral_label", "words: null"),
        ("name: side", "name: quality"), ("when: {valid: [invalid]}", "when: {missing: [invalid]}"),
        ("{en: left}", "{fr: gauche}"),
    ]) == snapshot  # fmt: skip
    for change in (("source: made", "source: [made"), (TASK, "\udcff\udcfe")):  # in the words of libraries
        with pytest.raises(InputError, match="not the file of a task"):
            read(change)


def test_task_when_unknown_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="expected one of"):
        load_task("nothing")
    with pytest.raises(ConfigError, match="no file"):
        load_task("nothing.j2")


@pytest.mark.parametrize("name", task_names())
def test_task_when_ours_has_every_text_in_english_and_chinese(name: str) -> None:
    card = load_task(name).card
    texts = [card.title, card.instructions, *card.sections.values(), *card.texts.values()]
    for question in card.questions:
        texts += [question.title, *([question.help] if question.help else [])]
        texts += [option.text for option in question.options]
    assert [dict(text) for text in texts if not {"en", "zh"} <= set(text)] == []
    assert card.id == name


# -- A protocol is frozen: what it says cannot be changed unseen, and an amendment is a version of its own


def test_protocol_when_amended_is_a_new_version_that_names_the_one_before(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    first = study.protocol
    second = amended(first, {"consensus": True}, who="ana", why="agreed", created_at=NOW)
    replace_protocol(study, second)
    assert (second.version, second.amends, second.consensus) == (2, first.sha256, True)
    assert second.sha256 != first.sha256
    assert [protocol.sha256 for protocol in versions(study.folder)] == [first.sha256, second.sha256]
    assert open_study(study.folder).protocol == second


def test_amendment_when_it_makes_another_study_or_says_no_reason_is_refused(tmp_path, refusals, snapshot):
    protocol = toy_study(tmp_path / "study").protocol
    assert refusals(lambda case: amended(protocol, case[0], who="ana", why=case[1], created_at=NOW), [
        ({"seed": 1}, "so"), ({"plan": {}}, "so"), ({"task": "x"}, "so"), ({"nothing": 1}, "so"),
        ({"created_at": NOW}, "so"), ({"consensus": False}, "so"), ({"consensus": True}, " "),
        ({"lease_hours": 0}, "so"), ({"lease_hours": "soon"}, "so"),
    ]) == snapshot  # fmt: skip


@pytest.mark.parametrize("name", ["protocol.json", "items.jsonl", "key.jsonl", "task.j2", "protocols/1.json"])
def test_study_when_a_frozen_file_was_changed_is_not_opened(tmp_path: Path, name: str) -> None:
    path = toy_study(tmp_path / "study").folder / name
    content = path.read_text("utf-8")
    path.write_text(
        content.replace('"en"', '"fr"').replace("toy", "tow").replace("kb25k", "kb26k").replace("64", "65")
    )
    assert path.read_text("utf-8") != content
    with pytest.raises(InputError, match=r"damaged|not what was frozen|not the protocol"):
        open_study(tmp_path / "study")


@pytest.mark.parametrize(
    "name", ["protocol.json", "items.jsonl", "key.jsonl", "seats.json", "secret.key", "task.j2"]
)
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"{", b"[" * 5000])
def test_study_when_a_file_is_gone_or_garbage_says_so(tmp_path, name, content):
    path = toy_study(tmp_path / "study").folder / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises((InputError, ConfigError)):
        open_study(tmp_path / "study")


def test_study_when_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fabula review init"):
        open_study(tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        open_study(tmp_path / "gone")


def test_study_when_made_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    folder = toy_study(tmp_path / "study").folder
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*"))} == {0}


def test_study_when_made_twice_from_one_seed_deals_the_same_under_other_names(tmp_path: Path) -> None:
    first, second = toy_study(tmp_path / "first"), toy_study(tmp_path / "second")

    def dealt(study: object) -> list[list[tuple[str, int, int, bool]]]:
        return [
            [(study.stands[place.item].about, place.block, place.repeat, place.flip) for place in seat.places]
            for seat in study.seats.values()
        ]

    assert dealt(first) == dealt(second)
    assert not first.items.keys() & second.items.keys()
    assert not first.owner_of_media.keys() & second.owner_of_media.keys()


def test_votes_when_the_protocol_is_amended_keep_their_own(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    items = [place.item for place in study.seats[1].places]
    add_votes(study, "simulated-1", {items[0]: toy_answers(study, items[0])}, seat=1)
    replace_protocol(study, amended(study.protocol, {"consensus": True}, who="a", why="b", created_at=NOW))
    again = open_study(study.folder)
    later = {"at": "2026-01-02T00:00:00Z", "begin": False}
    add_votes(again, "simulated-1", {items[1]: toy_answers(study, items[1])}, seat=1, **later)
    protocols = [event.protocol for event in again.events() if event.kind == "voted"]
    assert protocols == [study.protocol.sha256, again.protocol.sha256]
    assert json.loads((study.folder / "protocols/2.json").read_text())["amends"] == study.protocol.sha256


def test_study_when_an_earlier_version_made_it_opens_with_its_hash_its_seats_and_its_votes(tmp_path):
    """It was dealt by another rule, for a recruitment platform; one of its two seats is half answered."""
    with tarfile.open(Path(__file__).parents[3] / "golden" / "studies" / "earlier.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    study = open_study(tmp_path / "earlier")
    first, second = versions(study.folder)
    assert second.sha256 == "cb79927f8cb1f94d92c7b9bfad1fc83d8690be1469fc1909dcc0ad10a5b57b99"
    assert (second.amends, second.lease_hours) == (first.sha256, 72)
    written = json.loads((study.folder / "protocol.json").read_bytes())
    assert second.as_json() == written
    assert written["participant"] == "PROLIFIC_PID"
    assert [[place.item[:3] for place in seat.places] for seat in study.seats.values()] == [
        ["ie0", "i9c", "i15", "i52", "i9c"], ["ibb", "i15", "i52", "ie0", "ibb"],
    ]  # fmt: skip
    standing = study.standing()
    rows = [row.as_json() for row in human_rows(study, standing)]
    assert digest(rows) == "6f5904a5713169b09c511b1a370ba35adac213cfff8a24995fa2f0b32872437f"
    assert results(study, standing)["kept"]["questions"]["quality"]["answers"] == {"1": 3, "2": 1, "3": 0}
    # what is left of the seat that was begun: its check (of whoever takes over) and two items
    assert [place.item[:3] for place in open_places(study, standing, 2)] == ["i15", "i52", "ie0"]
    again = amended(second, {"lease_hours": 24}, who="ana", why="faster", created_at=NOW)
    replace_protocol(study, again)
    assert open_study(study.folder).protocol == again
    with pytest.raises(ConfigError, match="not there"):
        amended(again, {"participant": "workerId"}, who="ana", why="so", created_at=NOW)


# -- What reviewers of records see and are asked; every path that they may correct is one of the run's draft

FIRST = "kb25k_0001"
TABLE_18 = {
    "narrative_category": ("correct", "incorrect", "ambiguous"),
    "moral_label": ("correct", "corrected", "ambiguous"),
    "scene_sequence": ("valid", "flawed", "unusable"),
    "transition_annotation": ("valid", "corrected", "ambiguous"),
    "recoverability_qa": ("valid", "needs_edit", "invalid"),
    "contrastive_variant": ("valid", "invalid", "ambiguous"),
}


def words(question: Question) -> tuple[Json, ...]:
    return tuple(option.value for option in question.options)


def test_task_when_read_asks_the_units_of_the_form_with_their_words() -> None:
    asked = {question.name: question for question in load_task("record").card.questions}
    assert {name: words(asked[name]) for name in TABLE_18} == TABLE_18
    assert words(asked["safety"]) == ("ok", "unsafe", "rights_uncertain")
    assert words(asked["confidence"]) == (1, 2, 3, 4, 5)
    for name in (*TABLE_18, "safety"):
        assert (asked[name].row, asked[name].adjudicated) == ("review", True)
    assert {name: unit.words for name, unit in UNITS.items()} == {
        name: words(asked[name]) for name in UNITS
    }  # what a release counts is what was asked


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    run = write_run(folder / "run", sample_bundles(6))
    pack(run, folder / "release", PackOptions("0.1.0", allow_drafts=True))
    return folder / "release"


def test_records_when_drawn_from_a_release_are_its_stories_with_their_hashes(release: Path) -> None:
    drawing = draw_items(load_task("record"), release)
    info = json.loads((release / "release.json").read_text("utf-8"))
    assert {item.about: item.digest for item in drawing.items} == info["records"]["annotations.jsonl"]
    assert drawing.source["release_sha256"] == release_sha256(release)
    assert drawing.source["kind"] == "release"
    item = drawing.items[0]
    assert {name: len(parts) for name, parts in item.parts.items()} == {
        "transitions_in_order": 4, "questions_in_order": 6, "variants_in_order": 2,
    }  # fmt: skip
    assert [part.id for part in item.parts["transitions_in_order"]] == ["1-2", "2-3", "3-4", "4-5"]


def test_records_when_chosen_are_those(release: Path) -> None:
    record = load_task("record")
    chosen = draw_items(record, release, DrawOptions(stories=("kb25k_0002", "kb25k_0004"), limit=1))
    assert [item.about for item in chosen.items] == ["kb25k_0002"]
    with pytest.raises(ConfigError, match="no story kb25k_9999"):
        draw_items(record, release, DrawOptions(stories=("kb25k_9999",)))
    with pytest.raises(ConfigError, match="--method"):
        draw_items(record, release, DrawOptions(methods=("a",)))


def test_records_when_the_path_is_no_release_of_stories_say_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give a release of stories, or a finished run"):
        draw_items(load_task("record"), tmp_path)


def test_records_when_shown_tell_nothing_of_how_they_came_about(release: Path) -> None:
    secrets = ("rules@1", "auto_checked", "producer", "provenance", "split", "train", "test", "not_reviewed")
    for item in draw_items(load_task("record"), release).items:
        parts = [part.as_json() for listed in item.parts.values() for part in listed]
        shown = json.dumps([dict(item.texts), parts, [value.as_json() for value in item.values]])
        assert [secret for secret in secrets if secret in shown] == []


def test_page_when_rendered_shows_story_and_record_and_escapes_them(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1)
    item = study.items[item_of(study, FIRST)]
    marked = item.model_copy(update={"texts": {**item.texts, "title": "<script>x</script>"}})
    shown = Shown(marked, Place(item.item, 0), item.parts, study.task.card, "draw")
    for language, heading in (("en", "The story"), ("zh", "故事")):
        page = Pages(study).evidence(Reader(language), shown)
        text = re.sub(r"<[^>]+>", "", page)
        assert heading in text
        assert all(scene in text for scene in item.texts["scenes"])
        assert "&lt;script&gt;" in page and "<script>" not in page
        assert "self_control" in text


# -- corrections


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two stories of the project and what people wrote about them."""
    folder = tmp_path_factory.mktemp("run")
    samples = Path(__file__).parents[4] / "builders" / "katha" / "samples"
    for name in ("stories.jsonl", "gold.jsonl"):
        rows = (samples / name).read_bytes().splitlines(keepends=True)[:2]
        (folder / name).write_bytes(b"".join(rows))
    options = BuildOptions(
        created_at=NOW, workers=0, records=folder / "gold.jsonl", settings=["run.threshold=0.1"]
    )
    build_katha(folder / "stories.jsonl", folder / "run", options)
    return folder / "run"


def all_values(item: Drawn) -> list[Value]:
    parts = [part for listed in item.parts.values() for part in listed]
    return [*item.values, *(value for part in parts for value in part.values)]


def other(value: Value) -> Json:
    """Return a value that may stand in the place of another."""
    if value.options:
        return next(option for option in value.options if option != value.value)
    others = {"text": ["other"], "number": [2, 3], "texts": [["other"]], "numbers": [[1, 2], [2, 3]]}
    return next(other for other in others[value.takes] if other != value.value)


def test_paths_when_drawn_from_a_run_are_those_that_its_editing_takes(built: Path) -> None:
    drawing = draw_records(material_of(built, DrawOptions()))
    assert drawing.source["run"] in run_ids(read_manifest(built))
    rows = [json.loads(line)["payload"] for line in (built / "records.jsonl").read_text("utf-8").splitlines()]
    drafts = {row["record"]["story_id"]: {**row["record"], "variants": row["variants"]} for row in rows}
    item = drawing.items[0]
    for value in all_values(item):
        assert get_at(drafts[item.about], value.path) == value.value
    one_of_each: dict[str, Value] = {}
    for value in all_values(item):
        one_of_each.setdefault(re.sub(r"\d+", "0", value.path), value)
    assert len(one_of_each) >= 30
    for value in one_of_each.values():
        assert problem_of([value], [{"path": value.path, "new": other(value)}]) is None, value.path
    of_field = {re.split(r"[.\[]", value.path)[1]: value for value in one_of_each.values()}
    for value in of_field.values():
        new = other(value)
        made = correct(built, item.about, value.path, new, who="ana", why="to see")
        assert isinstance(made, Correction)
        assert made.edit.new == new


def test_records_when_the_run_has_corrections_to_apply_are_not_drawn(built: Path) -> None:
    """Runs after the test before it, whose corrections wait."""
    with pytest.raises(RunError, match="not up to date"):
        draw_records(material_of(built, DrawOptions()))


def test_variants_when_more_than_nine_keep_the_order_of_the_draft() -> None:
    bundle = sample_bundles(1)[0]
    numbers = (1, 10, 11, *range(2, 10))  # as records keep them, by id
    names = [{"variant_id": f"{FIRST}_v{number}", "pair_id": f"{FIRST}_p{number}"} for number in numbers]
    variants = tuple(Variant.model_validate({**bundle["variants"][0], **name}) for name in names)
    item = drawn_record(Story(StoryRecord.model_validate(bundle["record"]), variants, "0"))
    parts = item.parts["variants_in_order"]
    assert [part.id for part in parts] == [f"{FIRST}_v{number}" for number in range(1, 12)]
    assert parts[9].values[0].path.startswith("$.variants[9].")


TEXT = Value(path="$.a", label="a", value="x")
KINDS = [
    (TEXT, "y", None), (TEXT, " x ", "what stands there"), (TEXT, "", "a text is expected"),
    (TEXT, None, "something has to stand there"), (TEXT, 3, "a text is expected"), (TEXT, ["y"], "a text"),
    (TEXT, "y" * 30_000, "at most"), (TEXT.model_copy(update={"optional": True}), None, None),
    (Value(path="$.a", label="a", value=None, takes="number", optional=True), 3, None),
    (Value(path="$.a", label="a", value=3, takes="number"), True, "a number is expected"),
    (Value(path="$.a", label="a", value=3, takes="number"), 2.5, "a number is expected"),
    (Value(path="$.a", label="a", value=["x"], takes="texts"), ["y", "z"], None),
    (Value(path="$.a", label="a", value=["x"], takes="texts"), ["y", " "], "a list of texts"),
    (Value(path="$.a", label="a", value=["x"], takes="texts"), "y", "a list of texts"),
    (Value(path="$.a", label="a", value=["x"], takes="texts"), [], "something has to stand there"),
    (Value(path="$.a", label="a", value=None, takes="numbers", optional=True), [1, 2], None),
    (Value(path="$.a", label="a", value="x", options=("x", "y", None)), None, None),
    (Value(path="$.a", label="a", value="x", options=("x", "y")), "z", "one of x, y is expected"),
    (Value(path="$.a", label="a", value="x", options=("x", "y")), ["y"], "one of x, y is expected"),
    (Value(path="$.a", label="a", value=True, options=(True, False)), 0, "one of True, False"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "new", "fault"), KINDS)
def test_correction_when_given_has_to_fit_its_place(value: Value, new: Json, fault: str | None) -> None:
    problem = problem_of([value], [{"path": "$.a", "new": new}])
    assert (problem is None) == (fault is None), problem
    assert fault is None or fault in str(problem)


def test_correction_when_of_another_field_or_given_twice_is_refused() -> None:
    assert "not among the fields" in str(problem_of([TEXT], [{"path": "$.b", "new": "y"}]))
    assert "twice" in str(problem_of([TEXT], [{"path": "$.a", "new": "y"}, {"path": "$.a", "new": "z"}]))


def test_answers_when_corrections_are_wrong_say_which(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1)
    item = study.items[item_of(study, FIRST)]
    corrected, flawed = {"moral_label": "corrected"}, {"scene_sequence": "flawed"}
    fits, other_field = edit("$.moral_label", "wisdom"), edit("$.narrative_type", "social_interaction")
    label, scenes = "moral_label_correction", "scene_sequence_correction"
    for changes, places in (
        ({}, []), (corrected, [label]), ({**corrected, label: []}, [label]), ({**corrected, label: fits}, []),
        ({**corrected, label: other_field}, [label]),
        (flawed, []),  # a note will do
        ({**flawed, scenes: fits}, [scenes]),
    ):  # fmt: skip
        answers = answers_of(study, item.item, changes)
        wrong = study.task.problems(answers, item.part_ids) or wrong_corrections(study.task, item, answers)
        assert list(wrong) == places, changes


def test_values_when_offered_are_those_of_the_question_and_part(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1)
    item = study.items[item_of(study, FIRST)]
    asked = {question.name: question for question in study.task.card.questions}

    def fields(name: str, part: str = "") -> set[str]:
        return {re.sub(r"scenes\[\d\]", "scenes", value.path) for value in values_of(item, asked[name], part)}

    assert fields("moral_label_correction") == {"$.moral_label"}
    told = fields("scene_sequence_correction")
    shown = ("action", "characters", "emotion", "objects", "state", "visual_evidence", "visual_must_show")
    assert told == {f"$.scenes.{name}" for name in shown}
    third = fields("qa_correction", item.parts["questions_in_order"][2].id)
    assert third and all(path.startswith("$.questions[2].") for path in third)


def fields_of(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the places of single values in a record; a list of texts or numbers is one."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if is_parts(value) else None
    return (
        [path] if parts is None else [place for key, part in parts for place in fields_of(part, (*path, key))]
    )


def is_parts(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def another(value: Json) -> Json:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case list():
            return [value[0] + 1, *value[1:]] if value and isinstance(value[0], int) else [*value, "more"]
    return f"{value} else"


@pytest.mark.slow
def test_hash_of_what_was_shown_when_a_field_changes_changes_exactly_where_the_form_shows_it() -> None:
    bundle = sample_bundles(1)[0]
    whole = {"record": bundle["record"], "variants": bundle["variants"]}

    def shown(changed: Json) -> tuple[str, Json]:
        record = StoryRecord.model_validate(changed["record"])
        variants = tuple(map(Variant.model_validate, changed["variants"]))
        drawn = drawn_record(Story(record, variants, ""))
        form = [drawn.texts, drawn.values, drawn.parts]
        return seen_sha256("a", seen_content(changed["record"], changed["variants"])), form

    before = shown(whole)
    told = set()
    for place in fields_of(whole):
        changed = copy.deepcopy(whole)
        holder = changed
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = another(holder[place[-1]])
        after = shown(changed)
        counts = place[-1] == "scene_index"  # the pages count the scenes themselves
        assert (after[0] != before[0]) == (after[1] != before[1] or counts), place
        told.add(after[0] != before[0])
    assert told == {True, False}
