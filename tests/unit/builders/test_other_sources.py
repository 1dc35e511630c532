"""A run is never replaced by another, and a command that fails leaves run.json as it was."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.entities.building import EntityOptions, entity_request
from fabula.builders.events.building import SuiteOptions, suite_request
from fabula.builders.katha.building import BuildOptions, build_katha, build_request
from fabula.builders.shots.building import ShotOptions, shot_request
from fabula.engine.execute import RunRequest, execute
from fabula.engine.hooks import Event
from fabula.engine.pipeline import load_stage
from fabula.errors import ConfigError, FabulaError
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import ModelServer, Unauthorized

STORY = {
    "language": "en", "text": "A fox saw grapes. It jumped for them. Then it went away and called them sour.",
    "source_collection": "aesop", "rights_status": "public_domain_or_rights_compatible",
}  # fmt: skip


def stories(path: Path, items: dict[str, str]) -> Path:
    rows = [{**STORY, "id": key, "title": title} for key, title in items.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def seeds(path: Path, items: dict[str, str]) -> Path:
    prompts = [f"A {key} walks along, and then sits down." for key in items]
    path.write_text("".join(json.dumps({"prompt": text, "author": items[key]}) + "\n"
                            for key, text in zip(items, prompts, strict=True)))  # fmt: skip
    return path


def videos(path: Path, items: dict[str, str]) -> Path:
    folder = path.with_suffix("")
    for old in folder.glob("*.mp4"):
        old.unlink()
    folder.mkdir(exist_ok=True)
    for key, content in items.items():
        (folder / f"{key}.mp4").write_text(content)
    return folder


def first_stage(kind: str, source: Path, out: Path) -> RunRequest:
    """Return the request to take in sources, and to make nothing of them yet."""
    if kind == "katha":
        request = build_request(source, out, BuildOptions(workers=0))
    elif kind == "shots":
        request = shot_request(source, out, ShotOptions(workers=0))
    elif kind == "events":
        request = suite_request([source], out, SuiteOptions(workers=0))
    else:
        request = entity_request(source, out, EntityOptions(workers=0))
    stage = load_stage(request.pipeline.stages[0]).spec.name
    return replace(request, options=replace(request.options, stages=(stage,)))


WRITERS: dict[str, Callable[[Path, dict[str, str]], Path]] = {
    "katha": stories, "shots": stories, "events": seeds, "entities": videos,
}  # fmt: skip
RUN = {"cat": "One", "dog": "Two", "owl": "Three"}


@dataclass
class Told:
    """A reporter that keeps what is said about sources."""

    sources: list[Event] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        if event.kind == "sources":
            self.sources.append(event)

    def close(self) -> None:
        pass


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "run.lock"
    }


@pytest.fixture(params=WRITERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def take_in(kind: str, tmp_path: Path) -> Callable[..., Told]:
    """Take sources into the run; what is told."""

    def run(items: dict[str, str], name: str = "a.jsonl", **options: Any) -> Told:
        told, source = Told(), tmp_path / name
        source.parent.mkdir(exist_ok=True)
        request = first_stage(kind, WRITERS[kind](source, items), tmp_path / "run")
        execute(replace(request, options=replace(request.options, **options)), told)
        return told

    return run


OTHERS: dict[str, tuple[dict[str, str], str]] = {
    "one is gone": ({"cat": "One", "dog": "Two"}, "a.jsonl"),
    "one is gone and one is new": ({"cat": "One", "dog": "Two", "emu": "Four"}, "a.jsonl"),
    "all are others": ({"emu": "Four", "fox": "Five"}, "a.jsonl"),
    "in other files": ({"cat": "One", "owl": "Three"}, "b.jsonl"),
}


@pytest.mark.parametrize("others", OTHERS)
def test_build_when_items_of_the_run_are_gone_changes_nothing_and_says_what_to_do(take_in, tmp_path, others):
    take_in(RUN)
    before = content(tmp_path / "run")
    with pytest.raises(ConfigError) as refused:
        take_in(*OTHERS[others])
    assert refused.value.exit_code == 2
    assert content(tmp_path / "run") == before
    lost = sorted(RUN.keys() - OTHERS[others][0].keys())
    assert refused.value.what.startswith(f"{len(lost)} of the run's items")
    assert all(name in str(refused.value).lower() for name in lost)
    assert "--out" in refused.value.fix and "--replace-sources" in refused.value.fix
    take_in(*OTHERS[others], replace_sources=True)


def test_build_when_ids_stand_for_other_items_in_other_files_changes_nothing(take_in, kind, tmp_path):
    if kind == "events":
        pytest.skip("their ids are made from what they say")
    take_in(RUN)
    before = content(tmp_path / "run")
    with pytest.raises(ConfigError, match="3 of the run's items"):
        take_in(dict.fromkeys(RUN, "Another"), "b.jsonl")
    assert content(tmp_path / "run") == before


def test_build_when_an_item_is_corrected_or_added_goes_on_and_tells(take_in, kind: str) -> None:
    take_in(RUN)
    (told,) = take_in({**RUN, "owl": "Corrected", "emu": "Four"}).sources
    assert len(told.data["added"]) == 1
    assert len(told.data["corrected"]) == 1
    assert told.data["gone"] == ()
    assert "1 corrected" in told.data["message"] and "1 new" in told.data["message"]
    assert take_in({**RUN, "owl": "Corrected", "emu": "Four"}).sources == []


def test_build_when_settings_change_and_sources_do_not_is_the_same_run(tmp_path: Path) -> None:
    path = stories(tmp_path / "a.jsonl", RUN)
    path.write_text(path.read_text().replace('"id"', '"number"'))
    build_katha(path, tmp_path / "run", BuildOptions(workers=0, stage="load_stories"))
    other = {"load_stories.id_prefix": "tale_"}
    build_katha(path, tmp_path / "run", BuildOptions(workers=0, stage="load_stories", settings=other))


# -- commands that fail


@pytest.fixture(scope="module")
def once(katha, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("once")
    rows = (katha.samples / "stories.jsonl").read_text("utf-8").splitlines()
    (folder / "a.jsonl").write_text("\n".join(rows[:2]) + "\n", "utf-8")
    build_katha(folder / "a.jsonl", folder / "run", BuildOptions(workers=0))
    return folder


@pytest.fixture
def built(once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(once, tmp_path / "here")) / "run"


@pytest.fixture
def refusing() -> Iterator[str]:
    with ModelServer(KathaModel(), faults=lambda _: Unauthorized()) as server:
        yield f"{server.openai_url}#local"


def build_again(run: Path, sources: Sequence[Path] = (), **options: Any) -> object:
    return build_katha(
        list(sources) or run.parent / "a.jsonl", run, BuildOptions(**{"workers": 0, **options})
    )


def test_run_when_a_service_refuses_the_key_keeps_what_is_asked_for(built: Path, refusing: str) -> None:
    with pytest.raises(FabulaError):
        build_again(built, planner="model", model=refusing)
    assert json.loads((built / "run.json").read_bytes())["settings"]["draft_scenes"]["planner"] == "model"
