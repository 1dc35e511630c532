"""Inputs of seven generators: what the public scripts of ViStoryBench write, and what we write."""

import importlib.util
import json
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.releases.shots.imports import export_inputs
from fabula.releases.shots.requests import RequestOptions
from fabula.releases.shots.tree import read_shot_set
from fabula.testing.drawn_shots import draw_shot_set

pytestmark = pytest.mark.parity

Files = dict[str, Any]
SCRIPTS = "data_process/dataset_process"


@pytest.fixture
def public(reference: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Return what loads a public module; libraries that these parts do not use are stubs."""
    root = reference / "official/vistorybench"
    for name in ("pandas", "natsort"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["natsort"].natsorted = sorted  # type: ignore[attr-defined]

    def load(name: str) -> Any:
        place = root / ("vistorybench/dataset_loader" if name == "dataset_load" else SCRIPTS) / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    yield load


def read(folder: Path, drop: str) -> Files:
    """Return the content of every file below a folder; paths in it begin where the data set begins."""
    found: Files = {}
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        if path.suffix in (".json", ".txt", ".jsonl", ".py"):
            text = content.decode().replace(drop, "")
            if path.suffix == ".py":
                space: Files = {}
                exec(text, space)
                found[name] = {key: value for key, value in space.items() if key != "__builtins__"}
            elif path.suffix == ".jsonl":
                lines = [json.loads(line) for line in text.splitlines()]
                found[name] = sorted(lines, key=lambda line: str(line.get("story_name")))
            else:
                found[name] = json.loads(text)
        else:
            found[name] = content
    return found


def run_script(public: Callable[[str], Any], name: str, root: Path, out: Path, language: str) -> Path:
    """Do what the public script does when it is run, for one language; return the folder with its files."""
    loader, script = public("dataset_load"), public(f"adapt2{name}")
    dataset = loader.StoryDataset(str(root))
    script.dataset, script.dataset_name = dataset, "ViStory"  # as the script's main block has them
    stories = dataset.get_story_name_list()
    data = dataset.load_stories(stories, language)
    if name in ("animdirector", "storygen"):
        converter = script.StoryConverter(str(root), str(out), name, "ViStory", language)
        converter.output_results_base = "outputs"
        converter.convert(stories, data)
        return out / name / f"ViStory_{language}"
    more = (dataset,) if name == "vlogger" else ()
    converter = script.StoryConverter(str(root), str(out), *more)
    converter.convert(stories, data)
    if name == "seedstory":
        converter.merge_json(stories)
    return out


NAMES = ("animdirector", "seedstory", "storyadapter", "storydiffusion", "storygen", "uno", "vlogger")


@pytest.mark.filterwarnings("ignore")  # the public modules have invalid escapes
@pytest.mark.parametrize("language", ["en", "ch"])
@pytest.mark.parametrize("name", NAMES)
def test_inputs_when_written_by_the_public_script_and_by_us_are_the_same_field_by_field(
    public: Callable[[str], Any], tmp_path: Path, name: str, language: str
) -> None:
    root = draw_shot_set(tmp_path / "data", 2) / "ViStory"
    theirs = read(run_script(public, name, root, tmp_path / "theirs", language), f"{root}/")
    shot_set, _ = read_shot_set(root)
    values: dict[str, str | int | float] = {}
    if name == "storydiffusion":
        values["negative_prompt"] = theirs["examples.py"]["examples"][0][7]
    made = export_inputs(shot_set, tmp_path / "ours", name, RequestOptions(language=language), values)
    ours = {path: content for path, content in read(tmp_path / "ours", "\0").items() if path in made.files}
    pictures = {path: content for path, content in theirs.items() if isinstance(content, bytes)}
    written = {path: content for path, content in theirs.items() if path not in pictures}
    if name == "animdirector":  # the public script lists places as a set, in an order that is not fixed
        written, ours = _sorted_places(written), _sorted_places(ours)
    assert ours == written
    for path, content in pictures.items():
        assert (tmp_path / "ours" / path).read_bytes() == content
    assert bool(pictures) == (name == "vlogger")


def _sorted_places(files: Files) -> Files:
    document = files["stories.json"]
    for story in document.values():
        for field in ("segment", "final_answer"):
            head, _, rest = story["segment2prompt"][field].partition("\nSettings:\n")
            places, _, scenes = rest.partition("\nScenes:\n")
            story["segment2prompt"][field] = [head, sorted(places.split("\n")), scenes]
    return files
