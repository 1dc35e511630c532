"""Which folder holds which story: by outputs.json, by id, by title; and where there is none."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import InputError
from fabula.evaluation.katha.requests import EvaluateOptions, estimate_evaluation, evaluate_katha
from fabula.evaluation.outputs.layout import title_key
from fabula.evaluation.outputs.named import read_manifest
from fabula.evaluation.outputs.story_folders import find_story_folders
from fabula.evaluation.outputs.storyboards import OutputsManifest, Storyboards, check_outputs
from fabula.schemas.katha import StoryRecord
from fabula.testing.drawn import write_outputs, write_storyboard
from fabula.testing.drawn_storyboards import draw_panel, drawn_release
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer

Records = tuple[StoryRecord, ...]


def titled(records: Records, *titles: str) -> Records:
    return tuple(one.model_copy(update={"title": title}) for one, title in zip(records, titles, strict=False))


def places(folder: Path, records: Records) -> dict[str, str]:
    found = find_story_folders(folder, read_manifest(folder, OutputsManifest).folders, records).places
    return {story_id: place.relative_to(folder.resolve()).as_posix() for story_id, place in found.items()}


def codes(report: Storyboards) -> dict[str, str]:
    return {issue.where: issue.code for issue in report.issues if issue.code != "missing"}


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("The Fox and the Grapes", "the fox and the grapes"),
        ("The Fox and the Grapes", "The_Fox_and_the_Grapes"),
        ("The Fox and the Grapes", "the-fox-and-the-grapes"),
        ("The Fox, and: the Grapes!", "The Fox and the Grapes"),
        ("Aesop\u2019s Fox", "Aesop's Fox"),
        ("Aesop's Fox", "Aesops-Fox"),
        ("Aesop's Fox", "Aesop-s-Fox"),
        ("Das Rätsel", unicodedata.normalize("NFD", "Das Rätsel")),
        ("Das Rätsel", "Das-Ratsel"),
        ("Straße", "STRASSE"),
        ("桃太郎", "桃太郎"),
        ("ﬁne fox", "Fine Fox"),
        ("𠮷野家の話", "𠮷野家の話"),
        ("İstanbul", "istanbul"),
    ],
)
def test_a_folder_when_called_like_a_title_is_taken(
    tmp_path: Path, records: Records, title: str, name: str
) -> None:
    if not title_key(title):
        pytest.skip("no letters")
    (tmp_path / name).mkdir()
    found = places(tmp_path, titled(records[:2], title, "Another"))
    assert list(found) == ["kb25k_0001"], (title_key(title), title_key(name))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("The Fox", "The Foxes"),
        ("The Fox", "Fox"),
        ("Das Rätsel", "Das Rutsel"),
        ("???", "!!!"),
        ("The Fox & the Grapes", "The Fox and the Grapes"),
        ("Story 1", "Story 11"),
        ("桃太郎", "金太郎"),
    ],
)
def test_a_folder_when_called_nearly_like_a_title_is_not_taken(
    tmp_path: Path, records: Records, title: str, name: str
) -> None:
    (tmp_path / name).mkdir()
    assert places(tmp_path, titled(records[:1], title)) == {}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"methd": "x"}, "unknown key 'methd'\n  fix: did you mean 'method'?"),
        ({"weather": "x"}, "unknown key 'weather'\n  fix: remove it; the known keys are"),
        ({"seeds": "x"}, "expected a value that is allowed"),
    ],
)
def test_manifest_when_a_key_is_not_known_names_the_one_that_was_meant(
    tmp_path: Path, document: dict[str, Any], said: str
) -> None:
    (tmp_path / "outputs.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(InputError) as caught:
        read_manifest(tmp_path, OutputsManifest)
    assert said in str(caught.value)


def test_a_title_when_two_stories_bear_it_is_not_guessed(tmp_path: Path, records: Records) -> None:
    twins = titled(records, "The Fox", "the FOX!", "The Cat")
    write_outputs(tmp_path / "m", ["The Fox", "kb25k_0003"])
    report = check_outputs(tmp_path / "m", twins[:1], known=twins)
    assert codes(report)["The Fox"] == "ambiguous-title"
    (issue,) = [one for one in report.issues if one.code == "ambiguous-title"]
    assert "2 stories bear this title (kb25k_0001, kb25k_0002): not guessed" in issue.message
    assert not report.valid


def test_an_id_when_a_title_says_otherwise_wins(tmp_path: Path, records: Records) -> None:
    named = titled(records, "kb25k_0002", "The Cat", "The Hen")
    write_outputs(tmp_path / "m", ["kb25k_0002", "The Cat"])
    assert places(tmp_path / "m", named) == {"kb25k_0002": "kb25k_0002"}
    assert codes(check_outputs(tmp_path / "m", named))["The Cat"] == "unknown-story"


def test_outputs_json_when_it_maps_stories_goes_before_names(tmp_path: Path, records: Records) -> None:
    folders = {"kb25k_0001": "b/one", "kb25k_0002": "b/two"}
    folder = write_outputs(tmp_path / "m", ["b/one", "b/two", "kb25k_0003", "kb25k_0001"])
    (folder / "outputs.json").write_text(json.dumps({"folders": folders, "method": "x"}))
    report = check_outputs(folder, records)
    assert places(folder, records) == {**folders, "kb25k_0003": "kb25k_0003"}
    assert codes(report) == {"kb25k_0001": "unknown-story"} and len(report.valid) == 3


HOSTILE: dict[str, tuple[Any, str]] = {
    "absolute": ({"folders": {"kb25k_0001": "/etc"}}, "'/etc' is not a folder below this one"),
    "parent": ({"folders": {"kb25k_0001": "../elsewhere"}}, "is not a folder below this one"),
    "hidden parent": ({"folders": {"kb25k_0001": "a/../../elsewhere"}}, "is not a folder below this one"),
    "itself": ({"folders": {"kb25k_0001": "."}}, "is not a folder below this one"),
    "empty": ({"folders": {"kb25k_0001": ""}}, "is not a folder below this one"),
    "backslash": ({"folders": {"kb25k_0001": "..\\elsewhere"}}, "is not a folder below this one"),
    "null byte": ({"folders": {"kb25k_0001": "a\0b"}}, "is not a folder below this one"),
    "link out": ({"folders": {"kb25k_0001": "link"}}, "'link' is a link that leads out of this folder"),
    "file": ({"folders": {"kb25k_0001": "file.txt"}}, "there is no folder 'file.txt'"),
    "missing": ({"folders": {"kb25k_0001": "nowhere"}}, "there is no folder 'nowhere'"),
    "too long": ({"folders": {"kb25k_0001": "x" * 5000}}, "there is no folder"),
    "twice": (
        {"folders": {"kb25k_0001": "a", "kb25k_0002": "./a"}},
        "is also the folder of kb25k_0001",
    ),
    "unknown id": ({"folders": {"kb25k_9999": "a"}}, "kb25k_9999 is not a story of the release"),
    "number": ({"folders": {"kb25k_0001": 7}}, "a value that is allowed"),
    "list": ({"folders": ["a"]}, "a value that is allowed"),
    "no JSON": ("{folders", "a JSON object"),
    "key twice": ('{"folders": {"kb25k_0001": "a", "kb25k_0001": "b"}}', "the key 'kb25k_0001' twice"),
    "deep": ("[" * 100_000, "a JSON object"),
    "no UTF-8": (b"\xff\xfe{", "a JSON object"),
}


@pytest.mark.parametrize(("content", "said"), HOSTILE.values(), ids=HOSTILE)
def test_outputs_json_when_hostile_gets_an_error_that_says_what_is_wrong(
    tmp_path: Path, records: Records, content: Any, said: str
) -> None:
    folder, elsewhere = tmp_path / "m", tmp_path / "elsewhere"
    write_storyboard(elsewhere)
    write_storyboard(folder / "a")
    (folder / "link").symlink_to(elsewhere)
    (folder / "file.txt").write_text("")
    data = content if isinstance(content, str | bytes) else json.dumps(content)
    (folder / "outputs.json").write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(InputError) as caught:
        check_outputs(folder, records)
    assert said in str(caught.value) and "outputs.json" in str(caught.value)


SEEN: dict[str, tuple[Callable[[Path, Records], Any], str, str]] = {
    "methods": (
        lambda folder, records: [
            write_outputs(folder / name, [one.story_id for one in records]) for name in ("a", "b", "c")
        ],
        "this folder holds the outputs of 3 methods",
        "give one of: a, b, c",
    ),
    "one method": (
        lambda folder, records: write_outputs(folder / "a", [records[0].title]),
        "this folder holds the outputs of 1 method",
        "give one of: a",
    ),
    "one story": (
        lambda folder, _: write_storyboard(folder),
        "this folder holds the pictures of one storyboard",
        "give the folder above it",
    ),
    "other names": (
        lambda folder, _: write_outputs(folder, ["Once upon", "a time"]),
        "no folder is called like a story that is judged: Once upon, a time",
        '{"folders": {"kb25k_0001": "Once upon"}}',
    ),
    "nothing": (
        lambda folder, _: folder.mkdir(),
        "no folder of a story is in this folder",
        "give the folder of one method",
    ),
}


@pytest.mark.parametrize(("make", "message", "cure"), SEEN.values(), ids=SEEN)
def test_evaluation_when_no_storyboard_is_there_asks_nobody_and_says_what_it_saw(
    tmp_path: Path, make: Callable[[Path, Records], Any], message: str, cure: str
) -> None:
    release = drawn_release(tmp_path / "release")
    records = tuple(sorted(release.records, key=lambda one: one.story_id))
    make(tmp_path / "outputs", records)
    report = check_outputs(tmp_path / "outputs", records, known=release)
    (issue,) = [one for one in report.issues if one.code == "nothing-found"]
    assert (issue.message, issue.level) == (message, "error") and cure in issue.cure
    with ModelServer(JudgeModel(release.records)) as server:
        options = EvaluateOptions(judges=(f"{server.openai_url}#one",), workers=0)
        for run in (evaluate_katha, estimate_evaluation):
            with pytest.raises(InputError) as caught:
                run(release.path, tmp_path / "outputs", tmp_path / "run", options)
            assert message in str(caught.value) and cure in str(caught.value)
        assert server.count == 0
    assert caught.value.exit_code == 1


def test_evaluation_when_one_of_two_methods_has_storyboards_goes_on(tmp_path: Path) -> None:
    release = drawn_release(tmp_path / "release")
    story = release.records[0]
    board = tmp_path / "good" / story.title
    board.mkdir(parents=True)
    for panel in range(1, len(story.scenes) + 1):
        (board / f"Scene{panel}.png").write_bytes(draw_panel(0, panel))
    (tmp_path / "empty").mkdir()
    with ModelServer(JudgeModel(release.records)) as server:
        options = EvaluateOptions(judges=(f"{server.openai_url}#one",), workers=0, limit=1)
        evaluate_katha(release.path, [tmp_path / "good", tmp_path / "empty"], tmp_path / "run", options)
        assert server.count > 0
