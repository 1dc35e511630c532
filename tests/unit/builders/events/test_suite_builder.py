"""Building a suite: people's prompts by rules, captions and guided prompts through the real SDK."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.events.building import SuiteOptions, build_suite
from fabula.builders.events.prompts import GradeSettings, grade, labelled
from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import validate
from fabula.releases.events.form import load_suite, suite_bytes
from fabula.testing.drawn import write_video
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.stand_in_models import answer_suite

SEEDS: list[dict[str, Any]] = [
    {"prompt": "A dog rolls over, begs for a treat, and then catches it.", "author": "ana"},
    {
        "prompt": "A lamp lights up, and then flickers.",
        "event_list": ["A lamp lights up", "And then the lamp flickers"],
        "participants": ["object"],
        "creative": True,
    },
    {"prompt": "A man opens a door, and then walks out.", "origin": "retrieval"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def build(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> Any:
    seeds = write(tmp_path / "seeds.jsonl", rows)
    given = {"workers": 0, "created_at": "2026-01-01T00:00:00Z", **options}
    report = build_suite([seeds], tmp_path / "run", SuiteOptions(**given))
    return report, load_suite(tmp_path / "run")


def with_model(server: ModelServer, **options: Any) -> dict[str, Any]:
    models = {"openai:tested": {"base_url": server.openai_url}}
    return {"model": "openai:tested", "models": models, **options}


def test_seeds_when_built_without_a_model_get_events_and_labels_by_rule(tmp_path: Path) -> None:
    _, suite = build(tmp_path, SEEDS)
    dog, lamp, man = suite.prompts.values()
    assert dog.event_list == ("A dog rolls over", "The dog begs for a treat", "And then the dog catches it")
    assert dog.labels == ("animal", "3_events")
    assert lamp.labels == ("object", "creative", "2_events")
    assert man.labels == ("human", "retrieval", "2_events")
    lines = [json.loads(line) for line in (tmp_path / "run" / "prompts.jsonl").read_text().splitlines()]
    assert lines[0]["producers"] == {"event_list": "rules@1", "prompt": "hand:ana"}
    assert lines[1]["producers"]["event_list"] == "given"


REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "A dog sleeps."}, "event_count"),
    ({"prompt": "A dog runs, jumps, sits, barks, and then sleeps."}, "event_count"),
    ({"prompt": "A girl opens a box, and then smiles."}, "facial_expression"),
    ({"prompt": "A dog barks twice.", "event_list": ["It barks", "it barks"]}, "repeated_event"),
    ({"prompt": "..."}, "no_name"), ({"prompt": "!", "event_list": ["It barks", "It runs"]}, "no_name"),
    ({"prompt": "A dog runs" + " and runs" * 30 + ", and then sleeps."}, "too_long"),
    ({"prompt": "A, b, c.", "participants": ["human", "animal", "object"]}, "too_many_participants"),
    # two people write alike: the first is kept
    ({"prompt": "The dog rolls over, begs for a treat, then catches it!"}, "near_duplicate"),
]  # fmt: skip


def test_prompts_when_they_break_a_condition_are_rejected_with_their_codes_and_the_others_stay(tmp_path):
    report, suite = build(tmp_path, [*SEEDS, *(row for row, _ in REJECTED)])
    assert [prompt.prompt for prompt in suite.prompts.values()] == [row["prompt"] for row in SEEDS]
    gone = [item for item in report.items if item.status == "rejected"]
    assert sorted(item.code for item in gone) == sorted(code for _, code in REJECTED)
    assert all(item.reason for item in gone)


@pytest.mark.parametrize(
    ("events", "code"),
    [
        (["A dog sleeps"], "event_count"),
        ([f"A dog barks {number} times" for number in range(5)], "event_count"),
        (["A dog barks", "a dog barks"], "repeated_event"),
    ],
)
def test_a_prompt_when_a_model_lists_what_breaks_a_condition_is_rejected_and_the_others_stay(
    tmp_path: Path, events: list[str], code: str
) -> None:
    def listed(asked: Asked) -> Any:
        reply: Any = answer_suite(asked)
        return {**reply, "event_list": events} if "sleeps" in asked.text else reply

    with ModelServer(listed) as server:
        report, suite = build(tmp_path, [*SEEDS, {"prompt": "A dog sleeps."}], **with_model(server))
        assert len(suite.prompts) == 3
        assert [(item.status, item.code) for item in report.items] == [("rejected", code)]
        assert server.count == 3, "nothing was asked again"


@pytest.mark.parametrize("events", [["The wheel turns"], [f"The wheel turns {n} times" for n in range(5)]])
def test_a_video_when_it_shows_one_event_or_five_is_rejected_by_its_caption(tmp_path, events):
    write_video(tmp_path / "wheel.mp4", frames=12)

    def captioned(asked: Asked) -> Any:
        reply: Any = answer_suite(asked)
        return {**reply, "event_list": events}

    with ModelServer(captioned) as server:
        report, suite = build(tmp_path, [SEEDS[1], {"video": "wheel.mp4"}], **with_model(server))
    assert len(suite.prompts) == 1
    assert [(item.status, item.code) for item in report.items] == [("rejected", "event_count")]


def test_prompts_when_a_model_writes_them_add_to_the_seeds_and_differ(tmp_path: Path) -> None:
    with ModelServer(answer_suite) as server:
        options = with_model(server, generate=9, most=8)
        report, suite = build(tmp_path, SEEDS, **options)
        asked = Counter("list" if "You list" in one.asked.system else "write" for one in server.log)
        examples = [one.asked.text.count(">>>") for one in server.log if "You write" in one.asked.system]
    assert asked == {"write": 9, "list": 2}  # one seed has its events
    assert min(examples) >= len(SEEDS)
    assert len(suite.prompts) == 8
    assert {row["prompt"] for row in SEEDS} <= {prompt.prompt for prompt in suite.prompts.values()}
    codes = Counter(item.code for item in report.items if item.status == "rejected")
    assert sum(codes.values()) == 4
    assert set(codes) <= {"near_duplicate", "not_chosen"}
    origins = [json.loads(line) for line in (tmp_path / "run" / "prompts.jsonl").read_text().splitlines()]
    made = [row for row in origins if row["origin"] == "guided"]
    assert all(
        row["producers"]["prompt"].startswith("openai:tested via events/write_prompt@") for row in made
    )


def test_a_creative_share_when_stated_is_kept_to(tmp_path: Path) -> None:
    with ModelServer(answer_suite) as server:
        options = with_model(
            server, generate=10, settings=["load_seeds.creative_share=0.3", "select_prompts.near=100"]
        )
        build(tmp_path, SEEDS, **options)
        wanted = [
            "impossible" in one.asked.messages[-1].parts[-1]
            for one in server.log
            if "You write" in one.asked.system
        ]
    assert (len(wanted), sum(wanted)) == (10, 3)


def test_a_real_video_when_captioned_shows_its_frames_and_is_a_retrieval_prompt(tmp_path: Path) -> None:
    write_video(tmp_path / "wheel.mp4", 40)
    with ModelServer(answer_suite) as server:
        _, suite = build(tmp_path, [{"video": "wheel.mp4", "origin": "retrieval"}], **with_model(server))
        assert [len(one.asked.images) for one in server.log] == [16]
        assert "wheel.mp4" not in server.log[0].asked.text
    (prompt,) = suite.prompts.values()
    assert prompt.labels == ("object", "retrieval", "2_events")


def test_seeds_when_several_lines_are_wrong_list_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    rows = ["{", '{"prompt": 3}', '{"origin": "moon"}', "{}", json.dumps(SEEDS[0]), json.dumps(SEEDS[0])]
    path.write_text("\n".join(rows))
    with pytest.raises(InputError) as caught:
        build_suite([path], tmp_path / "run", SuiteOptions(workers=0))
    assert len(caught.value.problems) == 5


def test_a_suite_when_results_come_later_is_graded_by_the_same_run(tmp_path: Path) -> None:
    build(tmp_path, SEEDS)
    dog, lamp, man = sorted(load_suite(tmp_path / "run").prompts)
    results = {"x": {dog: 1.0, lamp: 0.0, man: 0.5}}
    graded = ("grade_prompts.easy=1", "grade_prompts.hard=1")
    report, suite = build(tmp_path, SEEDS, results=results, settings=graded)
    assert suite.prompts[dog].labels == ("animal", "easy", "3_events")
    assert [suite.prompts[name].labels[-2] for name in (lamp, man)] == ["hard", "medium"]
    ran = {stage.name: stage.ran for stage in report.stages}
    assert ran == {
        "load_seeds": 3, "write_prompts": 0, "list_events": 0, "check_conditions": 0, "select_prompts": 0,
        "grade_prompts": 3, "settle_prompts": 3,
    }  # fmt: skip
    _, again = build(tmp_path, SEEDS, settings=graded)  # the results stay in the run
    assert again == suite
    silent = {name: {dog: None, lamp: 0.5, man: 1.0} for name in "xyz"}
    report, suite = build(tmp_path, SEEDS, results=silent, settings=graded)
    assert [(item.id, item.code) for item in report.items] == [(dog.removesuffix(".mp4"), "silent")]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"rates": {}, "people": {}}', '{"rates": {"x": {"a": 2}}, "people": {}}', "\xff"]
)
def test_results_when_damaged_are_refused(tmp_path: Path, content: str) -> None:
    build(tmp_path, SEEDS)
    (tmp_path / "run" / "results.json").write_text(content, "latin-1")
    with pytest.raises(InputError, match=r"results\.json"):
        build(tmp_path, SEEDS)


# -- A suite that is given to a build comes back as it was, but for what the conditions take out unless told


def entry(prompt: str, *labels: str, events: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "prompt": prompt, "event_list": list(events or ("Something begins", "And then it ends")),
        "class": list(labels), **more,
    }  # fmt: skip


SOUND = {
    "zebra.mp4": entry("  A zebra  runs,\tand then\nstops. ", "2_events", "hard", "mine", "animal"),
    "A lamp glows.mov": entry("A lamp glows, and then fades.", note={"by": ["x", None, 1.5]}, source="é𠮷"),
    "An_odd_one.mp4": entry(
        "A café's snowman melts.", "object", "creative", "human", "easy", "2_events",
        events=("The snowman  drips", " And then it is gone "),
    ),
}  # fmt: skip
BROKEN = {
    "Two.mp4": entry("A LAMP glows, and  then fades!", "object"),
    "One.mp4": entry("A dog sleeps.", events=("The dog sleeps",)),
    "Five.mp4": entry("A dog barks often.", events=tuple(f"It barks, {n}" for n in range(5))),
    "Same.mp4": entry("A cat meows twice.", events=("It meows", "it meows")),
    "Face.mp4": entry("A girl wins.", events=("A girl runs", "And then she smiles")),
    "Long.mp4": entry("A river flows" + " on" * 60),
    "Three.mp4": entry("Everybody dances.", "object", "animal", "human"),
    "Nothing.mp4": entry("..."),
    "Empty.mp4": entry(""),
}
ODD = {**dict(reversed(BROKEN.items())), **SOUND, "Alike.mp4": entry("Zebra stops, runs.")}


def given_write(path: Path, document: dict[str, Any]) -> Path:
    path.write_bytes(suite_bytes(document) + b"\n")
    return path


def given_build(tmp_path: Path, document: dict[str, Any], *more: Path, **options: Any) -> tuple[Any, Path]:
    given = {"workers": 0, "created_at": "2026-01-01T00:00:00Z", **options}
    suite = given_write(tmp_path / "given.json", document)
    report = build_suite([suite, *more], tmp_path / "run", SuiteOptions(**given))
    return report, tmp_path / "run" / "all_prompts.json"


def _file(item_id: str) -> str:
    return item_id if item_id in ODD else f"{item_id}.mp4"


def test_a_suite_when_it_meets_the_conditions_comes_back_byte_for_byte(tmp_path: Path) -> None:
    report, written = given_build(tmp_path, SOUND)
    assert written.read_bytes() == (tmp_path / "given.json").read_bytes()
    assert report.items == ()


def test_prompts_when_they_break_conditions_are_rejected_as_validate_says_and_the_others_keep_their_order(
    tmp_path: Path,
) -> None:
    report, written = given_build(tmp_path, ODD)
    found = validate(tmp_path / "given.json")
    rejected = {(_file(item.id), item.code.replace("_", "-")) for item in report.items}
    assert rejected == {(one.path.split("'")[1], one.code) for one in found.issues}
    assert {name for name, _ in rejected} == ODD.keys() - json.loads(written.read_text()).keys()
    assert [name for name in ODD if name in json.loads(written.read_text())] == list(
        load_suite(written).prompts
    )
    clean = validate(tmp_path / "run")
    assert clean.counts == {}


def test_a_suite_when_a_model_is_named_is_not_asked_about_and_stands_before_what_the_model_adds(
    tmp_path: Path,
) -> None:
    seeds = tmp_path / "seeds.jsonl"
    seeds.write_text(json.dumps({"prompt": "A boat drifts, and then sinks."}) + "\n")
    with ModelServer(answer_suite) as server:
        models = {"openai:tested": {"base_url": server.openai_url}}
        _, written = given_build(
            tmp_path, ODD, seeds, keep_all=True, model="openai:tested", models=models, generate=2
        )
        assert server.count == 3  # two prompts to write, and the events of the one seed
    found = json.loads(written.read_bytes())
    assert list(found.items())[: len(ODD)] == list(ODD.items())
    assert len(found) > len(ODD)


def test_a_suite_when_graded_by_results_changes_in_the_difficulty_alone(tmp_path: Path) -> None:
    rates = {"x": {name: place / 3 for place, name in enumerate(SOUND)}}
    numbers = ("grade_prompts.easy=1", "grade_prompts.hard=1")
    _, written = given_build(tmp_path, SOUND, results=rates, settings=numbers)
    found = json.loads(written.read_bytes())
    assert list(found) == list(SOUND)
    assert [row["class"] for row in found.values()] == [
        ["2_events", "hard", "mine", "animal"], ["medium"],
        ["object", "creative", "human", "easy", "2_events"],
    ]  # fmt: skip
    assert [{**row, "class": 0} for row in found.values()] == [{**row, "class": 0} for row in SOUND.values()]


@pytest.mark.parametrize("damage", ["\\ud800", "NaN"])
def test_a_suite_when_it_cannot_be_written_again_is_refused_at_once(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "given.json"
    value = f'"{damage}"' if "\\" in damage else damage
    path.write_text(json.dumps({"A.mp4": entry("A dog runs.")}).replace('"Something begins"', value))
    with pytest.raises(InputError, match="a readable JSON file"):
        build_suite([path], tmp_path / "run", SuiteOptions(workers=0))


# Filters that need results, and difficulty: both thresholds of the paper, and no number without a method.

SIX = tuple(f"{name}.mp4" for name in "abcdef")
RATES = {
    "one": {"a.mp4": 1.0, "b.mp4": 0.5, "c.mp4": 0.5, "d.mp4": 0.0, "e.mp4": 0.0, "f.mp4": None},
    "two": {"a.mp4": 1.0, "b.mp4": 1.0, "c.mp4": 0.5, "d.mp4": 0.5, "e.mp4": None, "f.mp4": None},
    "weak": {"a.mp4": 0.0, "b.mp4": 0.0, "c.mp4": 0.5, "d.mp4": 0.0, "e.mp4": None, "f.mp4": None},
}


def test_a_suite_when_graded_takes_the_methods_above_the_average() -> None:
    found = grade(SIX, RATES, GradeSettings(easy=2, hard=1))
    # f has no answer by three methods. Of the others, over one and two: a 1, b 3/4, c 1/2, d 1/4, e 0.
    assert found.dropped == {"f.mp4": ("silent", "no answer for 3 methods (more_than_two)")}
    assert found.methods == ("one", "two")
    assert found.means == {"a.mp4": 1, "b.mp4": 0.75, "c.mp4": 0.5, "d.mp4": 0.25, "e.mp4": 0}
    assert list(found.levels.values()) == ["easy", "easy", "medium", "medium", "hard"]
    assert labelled(("human", "easy", "2_events"), "hard") == ("human", "hard", "2_events")


def test_the_second_filter_when_named_after_the_appendix_drops_more() -> None:
    found = grade(SIX, RATES, GradeSettings(silent="at_least_two", easy=1, hard=1))
    assert set(found.dropped) == {"e.mp4", "f.mp4"}
    exempt = grade(SIX, RATES, GradeSettings(silent="at_least_two", exempt=("weak",), easy=1, hard=1))
    assert set(exempt.dropped) == {"f.mp4"}
    assert grade(SIX, RATES, GradeSettings(silent="off", easy=1, hard=1)).dropped == {}


def test_a_grading_when_it_cannot_be_made_says_why() -> None:
    with pytest.raises(ConfigError, match=r"grade_prompts\.above"):
        grade(SIX, RATES, GradeSettings(above=0.9, easy=1, hard=1))
    with pytest.raises(ConfigError, match=r"grade_prompts\.easy"):
        grade(SIX, RATES, GradeSettings())
