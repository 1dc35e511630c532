"""Loading a pipeline finds what does not fit before the first item."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabula.engine.config import resolve_config
from fabula.engine.execute import RunRequest, execute
from fabula.engine.pipeline import (
    Pipeline,
    dependencies,
    library_versions,
    load_pipeline,
    prompt_hashes,
)
from fabula.engine.stage import StageSpec
from fabula.errors import ConfigError, MissingRequirement
from fabula.prompts.loader import load_prompt
from fabula.testing import toy_pipeline as toys
from fabula.testing.toy_pipeline import HERE, toy


def with_stage(monkeypatch: pytest.MonkeyPatch, name: str, /, **changes: object) -> Pipeline:
    spec = replace(getattr(toys, name).SPEC, **changes)  # type: ignore[arg-type]
    monkeypatch.setattr(toys, name, SimpleNamespace(SPEC=spec, run=getattr(toys, name).run))
    return toy()


def test_load_pipeline_when_all_fits_knows_stages_and_outputs() -> None:
    loaded = load_pipeline(toy())
    assert loaded.names() == ("read_lines", "work", "count", "number", "shorten", "assemble")
    assert loaded.outputs == ("line",)
    assert loaded.needed_after(3) == {"text", "count", "number", "short", "line"}
    assert loaded.needed_after(5) == {"line"}


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("SHORTEN", {"reads": ("texxt",)}, "fields written by an earlier stage, found texxt"),
        ("SHORTEN", {"reads": ("line",)}, "fields written by an earlier stage, found line"),
        ("SHORTEN", {"reads": ("sources",)}, "fields written by an earlier stage, found sources"),
        ("SHORTEN", {"name": "work"}, "a name of its own"),
        ("SHORTEN", {"name": "sources"}, "a name of its own"),
        ("SHORTEN", {"writes": ("text",)}, "found text, written before"),
        ("SHORTEN", {"writes": ()}, "fields that no other stage writes"),
        ("SHORTEN", {"shape": "reduce"}, "one of the shapes expand, map, gather, group"),
        ("SHORTEN", {"stateful": True}, "stateful gathers only"),
    ],
)
def test_load_pipeline_when_a_stage_does_not_fit_says_why(
    monkeypatch: pytest.MonkeyPatch, name: str, changes: dict[str, object], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_pipeline(with_stage(monkeypatch, name, **changes))


@pytest.mark.parametrize(
    ("stages", "finish", "expected"),
    [
        ((), f"{HERE}:finish", "at least one stage"),
        (("fabula.no_such_module",), f"{HERE}:finish", "no module fabula.no_such_module"),
        ((f"{HERE}:NOPE",), f"{HERE}:finish", "an attribute NOPE"),
        (("fabula.engine.codec",), f"{HERE}:finish", "a SPEC and a function run"),
        ((f"{HERE}:READ",), f"{HERE}:nope", "an attribute nope"),
    ],
)
def test_load_pipeline_when_something_cannot_be_loaded_says_what(
    stages: tuple[str, ...], finish: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_pipeline(Pipeline("p", stages, finish))


def test_dependencies_when_prompts_are_declared_hold_their_hashes() -> None:
    sha256 = load_prompt("scene_image").sha256
    assert dependencies(toys.WORK_WITH_PROMPT.SPEC) == {"prompt scene_image": sha256}
    assert prompt_hashes(toys.WORK_WITH_PROMPT.SPEC) == {"scene_image": sha256}
    with pytest.raises(ConfigError, match=r"a prompt: .*scene_image.*, found nope"):
        dependencies(StageSpec("s", 1, "map", (), ("a",), prompts=("nope",)))


def test_library_versions_when_one_is_not_installed_says_how_to_install_it() -> None:
    assert set(library_versions(toys.WORK_WITH_LIBRARY.SPEC)) == {"filelock"}
    with pytest.raises(MissingRequirement, match="pip install no-such-thing"):
        library_versions(StageSpec("s", 1, "map", (), ("a",), libraries=("no-such-thing",)))


def test_run_when_a_library_is_not_installed_leaves_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pipeline = with_stage(monkeypatch, "WORK", libraries=("no-such-thing",))
    with pytest.raises(MissingRequirement):
        execute(RunRequest(tmp_path / "run", pipeline, resolve_config(pipeline)))
    assert not (tmp_path / "run").exists()
