"""The kinds there are, what looking them up loads, and kinds that a package of a user adds."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from packaging.metadata import Metadata, RawMetadata

import fabula
from fabula.builders.drafting import Drafting
from fabula.engine.running import RunKind
from fabula.errors import ConfigError, RunError
from fabula.evaluation.protocol import Protocol, Scoring
from fabula.evaluation.running import Evaluating
from fabula.kinds.making_studies import SOURCES
from fabula.kinds.registry import (
    OURS,
    every_run_kind,
    foreign_sections,
    kind_with,
    kinds,
    run_kind_of,
    run_kinds,
)
from fabula.people.review.sources.source import Source
from fabula.people.study import Study
from fabula.releases.form import ReleaseForm
from fabula.validators.report import RuleSet


def test_kinds_when_listed_have_their_runs() -> None:
    assert [kind.name for kind in OURS] == ["katha", "events", "shots", "entities"]
    for kind in OURS:
        assert [run.pipeline.name for run in run_kinds(kind)] == [*kind.runs]
        for run in (*kind.runs, *kind.imported):
            assert kind_with(run) is kind
    assert kind_with("films") is None


def test_run_when_of_a_kind_that_nobody_knows_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[1] / "golden/replays/shots-rules.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    assert run_kind_of(tmp_path / "run").pipeline.name == "shots"
    manifest = (tmp_path / "run/run.json").read_text("utf-8")
    (tmp_path / "run/run.json").write_text(manifest.replace('"kind": "shots"', '"kind": "songs"'), "utf-8")
    with pytest.raises(RunError, match=r"a run of kind songs, which Fabula does not know; it knows .*shots"):
        run_kind_of(tmp_path / "run")


@pytest.mark.slow
def test_kinds_when_listed_in_a_fresh_process_load_no_stage() -> None:
    code = (
        "import sys, fabula.kinds.registry as registry; registry.kinds();"
        "print([name for name in sys.modules if name.startswith(('fabula.builders', 'fabula.evaluation',"
        " 'fabula.releases', 'fabula.validators'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_parts_of_kinds_and_sources_of_studies_when_loaded_are_what_their_names_say() -> None:
    for kind in OURS:
        assert kind.rules is not None
        loaded: list[tuple[object, type]] = [
            (kind.release(), ReleaseForm), (kind.drafting(), Drafting), (kind.rules(), RuleSet)
        ]  # fmt: skip
        for judging in kind.judging:
            assert judging.study is not None
            assert judging.evaluating is not None
            loaded += [(judging.protocol(), Protocol), (judging.scored(), Scoring)]
            loaded += [(judging.study(), Study), (judging.evaluating(), Evaluating)]
        assert [type(value) for value, _ in loaded] == [wanted for _, wanted in loaded]
        assert kind.release().kind == kind.name
    assert all(isinstance(source(), Source) for source in SOURCES.values())
    assert all(isinstance(run, RunKind) for _, run in every_run_kind())


def test_foreign_sections_when_asked_for_are_the_stages_of_all_kinds_and_the_judges() -> None:
    assert {"judges", "draft_scenes", "plan_shots", "load_seeds", "detect_shots", "judge_events"} <= (
        foreign_sections()
    )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    info = tmp_path / "comic_pages-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: comic-pages\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fabula.kinds]\ncomics = comic_pages_kind:KIND\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "comic_pages_kind", raising=False)
    kinds.cache_clear()
    return tmp_path / "comic_pages_kind.py"


@pytest.fixture(autouse=True)
def _forgets() -> object:
    yield None
    kinds.cache_clear()


def test_kinds_when_a_package_adds_one_have_it_last(package: Path) -> None:
    package.write_text(
        "from fabula.kinds.kind import Kind\nfrom fabula.kinds.events import KIND as EVENTS\n"
        "KIND = Kind('comics', EVENTS.release, EVENTS.drafting, imported=('import-comics',))\n"
    )
    assert [kind.name for kind in kinds()] == ["katha", "events", "shots", "entities", "comics"]
    found = kind_with("import-comics")
    assert found is not None
    assert found.name == "comics"


@pytest.mark.parametrize(
    "text",
    [
        "KIND = 'comics'\n",
        "from fabula.kinds.katha import KIND\n",
        "from fabula.kinds.kind import Kind\nKIND = Kind('comics', id, id, imported=('import-shots',))\n",
    ],
)
def test_kinds_when_a_package_adds_what_is_none_or_is_taken_say_so(package: Path, text: str) -> None:
    package.write_text(text)
    with pytest.raises(ConfigError, match="entry point comics"):
        kinds()


# -- What others build on: the action for pull requests, hook, citation, image, workflow of releases

ROOT = Path(fabula.__file__).parent
ACTION = ROOT / ".github" / "actions" / "check-benchmark"
REPLAYS = Path(__file__).parents[1] / "golden" / "replays"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    with tarfile.open(REPLAYS / "katha-rules.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "release"


@pytest.fixture
def checked(typed: str) -> Callable[[Path, Path], tuple[int, str]]:
    """What the action does with the data of a branch, and with those of the branch before."""

    def check(data: Path, base: Path) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", ACTION / "check.sh", data, base],
            env={**os.environ, "PATH": typed}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    return check


@pytest.mark.skipif(
    not ACTION.is_dir(), reason="the suite runs against a wheel, which has no files of the repository"
)
def test_action_when_the_release_is_sound_says_so_and_compares_it(release, tmp_path, checked):
    code, comment = checked(release, tmp_path / "nothing")
    assert code == 0, comment
    assert "### Rules: fine" in comment and "### Release: fine" in comment
    assert "no release to compare with" in comment
    shutil.copytree(release, tmp_path / "same")
    assert "is that of the base branch" in checked(release, tmp_path / "same")[1]


@pytest.mark.skipif(
    not ACTION.is_dir(), reason="the suite runs against a wheel, which has no files of the repository"
)
def test_action_when_data_were_changed_by_hand_fails_and_says_where(release, tmp_path, checked):
    shutil.copytree(release, tmp_path / "base")
    (release / "annotations.jsonl").write_bytes(b"{}\n")
    code, comment = checked(release, tmp_path / "base")
    assert code == 1
    assert "### Release: findings" in comment and "annotations.jsonl" in comment


@pytest.mark.skipif(
    not ACTION.is_dir(), reason="the suite runs against a wheel, which has no files of the repository"
)
def test_action_when_read_runs_the_script_that_is_there() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))
    assert any("check.sh" in step.get("run", "") for step in action["runs"]["steps"])
    used = {name for step in action["runs"]["steps"] for name in re.findall(r"inputs\.(\w+)", str(step))}
    assert used == action["inputs"].keys()


@pytest.mark.skipif(
    not ACTION.is_dir(), reason="the suite runs against a wheel, which has no files of the repository"
)
def test_hook_when_a_file_is_committed_takes_those_that_are_validated() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["entry"] == "fabula validate"
    wanted = ("annotations.jsonl", "runs/mine/records.jsonl", "data/scripts.jsonl", "suite/all_prompts.json")
    assert [name for name in wanted if not re.search(hook["files"], name)] == []
    assert not re.search(hook["files"], "stories.jsonl")


@pytest.mark.skipif(
    not ACTION.is_dir(), reason="the suite runs against a wheel, which has no files of the repository"
)
def test_files_of_a_release_when_read_name_this_version_and_known_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == project["version"] == fabula.__version__
    assert citation["license"] == project["license"]
    image = (ROOT / "Dockerfile").read_text("utf-8")
    named = {extra for group in re.findall(r"whl\)\[([\w,]+)\]", image) for extra in group.split(",")}
    assert named and named <= project["optional-dependencies"].keys()
    stages = re.findall(r"^FROM (\S+) AS (\w+)$", image, flags=re.MULTILINE)
    assert {"slim", "full"} <= {name for _, name in stages}


@pytest.mark.skipif(
    not ACTION.is_dir(), reason="the suite runs against a wheel, which has no files of the repository"
)
def test_workflow_of_releases_when_run_puts_into_the_wheel_where_it_runs(tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    (step,) = (one for one in workflow["jobs"]["build"]["steps"] if "[project.urls]" in one.get("run", ""))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    at = {
        "GITHUB_SERVER_URL": "https://git.example",
        "GITHUB_REPOSITORY": "us/fabula",
        "GITHUB_REF_NAME": "v1",
    }
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env={**os.environ, **at}, check=True)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = RawMetadata(metadata_version="2.4", name="fabula", version="1", project_urls=project["urls"])
    urls = Metadata.from_raw(metadata).project_urls
    assert urls == {
        "Source": "https://git.example/us/fabula",
        "Documentation": "https://git.example/us/fabula/tree/v1/docs",
        "Changelog": "https://git.example/us/fabula/blob/v1/CHANGELOG.md",
        "Issues": "https://git.example/us/fabula/issues",
    }
    assert project["name"] == "fabula" and "dev" in project["optional-dependencies"]


@pytest.mark.skipif(
    not ACTION.is_dir(), reason="the suite runs against a wheel, which has no files of the repository"
)
@pytest.mark.parametrize("file", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_files_of_the_repository_when_read_are_yaml(file: Path) -> None:
    assert isinstance(yaml.safe_load(file.read_text("utf-8")), dict)
