"""Sets of shot scripts brought in and out, with what is known of their images."""

import errno
import json
from pathlib import Path

import pytest

from fabula.errors import InputError, TargetError
from fabula.releases.shots.imports import (
    REQUESTS,
    export_requests,
    import_set,
    read_story_facts,
    with_provenance,
)
from fabula.releases.shots.requests import RequestOptions
from fabula.releases.shots.tree import read_shot_set
from fabula.testing.drawn_shots import draw_shot_set


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return draw_shot_set(tmp_path / "data")


def test_import_set_when_sound_keeps_fields_bytes_and_facts(tree: Path, tmp_path: Path) -> None:
    facts = {"story_id": "01", "style": "storybook", "culture": None, "realistic": False, "characters": {}}
    (tree / "ViStory/stories.jsonl").write_text(json.dumps(facts) + "\n")
    made = import_set(tree, tmp_path / "run")
    assert made.report.counts == {"facts-realistic": 1, "facts-word": 1}  # Mira is realistic
    again, _ = read_shot_set(tmp_path / "run")
    assert again.sha256 == made.shot_set.sha256
    name = "ViStory/01/story.json"
    assert json.loads((tmp_path / "run" / name).read_bytes()) == json.loads((tree / name).read_bytes())
    image = "ViStory/01/image/Mira/00.png"
    assert (tmp_path / "run" / image).read_bytes() == (tree / image).read_bytes()
    assert read_story_facts(again)["01"].style == "storybook"


def test_import_set_when_imported_twice_keeps_source_and_rights(tree: Path, tmp_path: Path) -> None:
    first = import_set(tree, tmp_path / "one")
    path = first.out / "ViStory/references.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0] |= {"source": "drawn for the set", "rights": "CC0-1.0"}
    lines[1] |= {"source": "somewhere", "sha256": "0" * 64}  # of another image: it says nothing of this one
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    second = import_set(first.out, tmp_path / "two")
    again, _ = read_shot_set(second.out)
    one, other, *_ = sorted(with_provenance(again), key=lambda one: (one.story_id, one.file))
    assert (one.source, one.rights) == ("drawn for the set", "CC0-1.0")
    assert other.source is None


def test_import_set_when_a_line_is_wrong_says_which(tree: Path, tmp_path: Path) -> None:
    (tree / "ViStory/stories.jsonl").write_text('{"story_id": "01", "mood": 3}\n')
    with pytest.raises(InputError, match=r"stories.jsonl:1 \$.mood"):
        import_set(tree, tmp_path / "run")


def test_import_set_when_it_fails_on_the_way_leaves_nothing(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fabula.releases.shots.imports.write_imported_run", fail)
    (tmp_path / "runs").mkdir()
    with pytest.raises(TargetError, match="No space left"):
        import_set(tree, tmp_path / "runs/vistory")
    assert list((tmp_path / "runs").iterdir()) == []


def test_export_requests_when_capped_writes_lines_and_their_images(tree: Path, tmp_path: Path) -> None:
    shot_set, _ = read_shot_set(tree)
    told = export_requests(shot_set, tmp_path / "out", RequestOptions(references=1, max_chars=40))
    lines = [json.loads(line) for line in (tmp_path / "out" / REQUESTS).read_text("utf-8").splitlines()]
    assert told["requests"] == len(lines) == 10
    assert all(len(line["references"]) <= 1 for line in lines)
    assert all((tmp_path / "out" / one["file"]).is_file() for line in lines for one in line["references"])
    with pytest.raises(TargetError, match="a folder with files"):
        export_requests(shot_set, tmp_path / "out")
