"""Every rule about suites: a sound suite breaks none, a changed one breaks the rule meant."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.kinds.verbs import validate
from fabula.models.keys import MARK
from fabula.releases.events.form import suite_bytes
from fabula.schemas.events import SuiteRecord, video_name
from fabula.validators.events.rules import suite_statistics

GOLDEN = Path(__file__).parents[3] / "golden" / "validators" / "suites"
SUITE = "all_prompts.json"
Document = dict[str, Any]


def sound() -> Document:
    return {
        "A_dog_runs.mp4": {
            "prompt": "A dog runs, and then sleeps.",
            "event_list": ["A dog runs", "And then the dog sleeps"],
            "class": ["animal", "2_events"],
        },
        "A_lamp_glows.mp4": {
            "prompt": "A lamp glows, flickers, and then fades.",
            "event_list": ["A lamp glows", "The lamp flickers", "And then the lamp fades"],
            "class": ["object", "creative", "hard", "3_events"],
            "note": "mine",
        },
    }


def lines(document: Document) -> list[Document]:
    about = {"origin": "brainstorm", "producers": {"prompt": "author"}}
    return [{"unit": name, "entry": entry, **about} for name, entry in document.items()]


def write(folder: Path, document: Document, rows: list[Document] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / SUITE).write_bytes(suite_bytes(document) + b"\n")
    if rows is None:
        return folder / SUITE
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


def changed(folder: Path, **fields: Any) -> Path:
    document = sound()
    document["A_dog_runs.mp4"].update(
        {"class" if name == "labels" else name: fields[name] for name in fields}
    )
    return write(folder, document)


def _form(folder: Path) -> Path:
    document = {
        **sound(),
        "../x.mp4": {**sound()["A_dog_runs.mp4"], "prompt": "A bird sings."},
        "none": 3,
        "A few.mp4": {"prompt": 5, "class": "x", "event_list": []},
    }
    del document["A_lamp_glows.mp4"]["event_list"]
    return write(folder, document)


def _history(folder: Path) -> Path:
    first, second = lines(sound())
    first["entry"]["prompt"] = "A dog runs away."
    return write(folder, sound(), [first, {**second, "unit": "Another.mp4"}])


def _secret(folder: Path) -> Path:
    document = sound()
    document["A_dog_runs.mp4"]["prompt"] = f"A {MARK} runs, and then sleeps."
    document["A_lamp_glows.mp4"][MARK] = ["x", {"y": MARK}]
    rows = lines(document)
    rows[0]["producers"]["prompt"] = MARK
    return write(folder, document, rows)


def _alike(folder: Path) -> Path:
    document = sound()
    return write(
        folder, {**document, "B.mp4": {**document["A_dog_runs.mp4"], "prompt": "The DOG runs; sleeps"}}
    )


def _event_elsewhere(folder: Path) -> Path:
    document = sound()
    document["A_dog_runs.mp4"]["event_list"] = ["A dog runs", "And then a plane lands at sea"]
    rows = lines(document)
    rows[1]["producers"] = {"prompt": "author", "event_list": "given"}
    document["A_lamp_glows.mp4"]["event_list"] = rows[1]["entry"]["event_list"] = [
        "It is on",
        "It is off",
        "Dark",
    ]
    return write(folder, document, rows)


def _unit_name(folder: Path) -> Path:
    prompts = ("A dog naps, and then eats.", "A man waves, and then leaves.", "A lamp glows, and then fades.")
    entries = {video_name(one): {"prompt": one, "event_list": ["x", "y"], "class": []} for one in prompts}
    entries["A_lamp_glows_and_then_fades.mp4"]["prompt"] = "A lamp falls, and then breaks."
    return write(folder, entries)


CASES: dict[str, Callable[[Path], Path]] = {
    "form": _form,
    "history": _history,
    "secret-removed": _secret,
    "no-name": lambda folder: changed(folder, prompt="…!"),
    "event-count": lambda folder: changed(folder, event_list=["A dog runs"], labels=["animal", "1_events"]),
    "repeated-event": lambda folder: changed(folder, event_list=["A dog runs", "a DOG runs"]),
    "event-label": lambda folder: changed(folder, labels=["animal", "4_events", "2_events"]),
    "too-long": lambda folder: changed(folder, prompt="A dog runs" + " on" * 60),
    "too-many-participants": lambda folder: changed(folder, labels=["object", "human", "animal"]),
    "facial-expression": lambda folder: changed(folder, event_list=["A dog runs", "And then it grins"]),
    "event-elsewhere": _event_elsewhere,
    "unit-name": _unit_name,
    "near-duplicate": _alike,
}


@pytest.mark.parametrize("code", CASES)
def test_validate_when_one_rule_is_broken_reports_the_pinned_issues(code: str, tmp_path: Path) -> None:
    report = validate(CASES[code](tmp_path / "data"))
    text = "".join(f"{issue.level}: {issue}\n" for issue in report.issues)
    golden = GOLDEN / f"{code}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(text, "utf-8")
    assert report.counts.keys() == {code}
    assert text == golden.read_text("utf-8")


def test_statistics_when_a_suite_has_two_prompts_count_their_classes_events_and_words() -> None:
    records = [SuiteRecord.model_validate(line) for line in lines(sound())]
    whole, half = {"count": 2, "share": 1.0}, {"count": 1, "share": 0.5}
    assert suite_statistics(records) == {
        "kind": "events",
        "totals": {"prompts": 2, "events": 5},
        "classes": dict.fromkeys(("animal", "object", "creative", "hard", "2_events", "3_events"), half),
        "events_per_prompt": {"2": half, "3": half},
        "words_per_prompt": {"least": 6, "most": 7, "mean": 6.5},
        "origins": {"brainstorm": whole},
        "producers": {"prompt: author": 2},
    }
    empty = suite_statistics([])
    assert empty["words_per_prompt"] == {"least": 0, "most": 0, "mean": 0.0}
    assert empty["totals"] == {"prompts": 0, "events": 0}


def test_a_sound_suite_breaks_no_rule_alone_and_in_a_folder(tmp_path: Path) -> None:
    for place in (write(tmp_path, sound()), write(tmp_path, sound(), lines(sound()))):
        report = validate(place)
        assert (report.counts, report.checked) == ({}, {"prompts": 2, "events": 5})


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"A.mp4": {}, "A.mp4": {}}', b'{"A": "\\ud800"}'],
)
def test_a_file_when_it_is_no_suite_is_a_finding(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "my suite.json"
    path.write_bytes(content)
    report = validate(path)
    assert {(issue.where, issue.code) for issue in report.issues} == {("my suite.json", "form")}


def test_a_folder_when_its_files_are_damaged_names_each(tmp_path: Path) -> None:
    write(tmp_path, sound(), lines(sound()))
    (tmp_path / SUITE).unlink()
    (tmp_path / "prompts.jsonl").write_text("{\n")
    report = validate(tmp_path)
    assert [(issue.where, issue.code) for issue in report.issues] == [
        (SUITE, "form"),
        ("prompts.jsonl:1", "form"),
    ]
