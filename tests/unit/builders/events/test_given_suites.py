"""A suite that is given to a build comes back as it was, but for what the conditions take out unless told."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.events.building import SuiteOptions, build_suite
from fabula.builders.events.grade_prompts import grade, labelled
from fabula.builders.events.settings import GradeSettings
from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import validate
from fabula.releases.events.form import load_suite, suite_bytes
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import answer_suite


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


def write(path: Path, document: dict[str, Any]) -> Path:
    path.write_bytes(suite_bytes(document) + b"\n")
    return path


def build(tmp_path: Path, document: dict[str, Any], *more: Path, **options: Any) -> tuple[Any, Path]:
    given = {"workers": 0, "created_at": "2026-01-01T00:00:00Z", **options}
    suite = write(tmp_path / "given.json", document)
    report = build_suite([suite, *more], tmp_path / "run", SuiteOptions(**given))
    return report, tmp_path / "run" / "all_prompts.json"


def _file(item_id: str) -> str:
    return item_id if item_id in ODD else f"{item_id}.mp4"


def test_a_suite_when_it_meets_the_conditions_comes_back_byte_for_byte(tmp_path: Path) -> None:
    report, written = build(tmp_path, SOUND)
    assert written.read_bytes() == (tmp_path / "given.json").read_bytes()
    assert report.items == ()


def test_prompts_when_they_break_conditions_are_rejected_as_validate_says_and_the_others_keep_their_order(
    tmp_path: Path,
) -> None:
    report, written = build(tmp_path, ODD)
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    seeds = tmp_path / "seeds.jsonl"
    seeds.write_text(json.dumps({"prompt": "A boat drifts, and then sinks."}) + "\n")
    with ModelServer(answer_suite) as server:
        models = {"openai:tested": {"base_url": server.openai_url}}
        _, written = build(
            tmp_path, ODD, seeds, keep_all=True, model="openai:tested", models=models, generate=2
        )
        assert server.count == 3  # two prompts to write, and the events of the one seed
    found = json.loads(written.read_bytes())
    assert list(found.items())[: len(ODD)] == list(ODD.items())
    assert len(found) > len(ODD)


def test_a_suite_when_graded_by_results_changes_in_the_difficulty_alone(tmp_path: Path) -> None:
    rates = {"x": {name: place / 3 for place, name in enumerate(SOUND)}}
    numbers = ("grade_prompts.easy=1", "grade_prompts.hard=1")
    _, written = build(tmp_path, SOUND, results=rates, settings=numbers)
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
