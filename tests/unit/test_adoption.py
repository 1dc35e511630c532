"""What others build on: the action for pull requests, hook, citation, image, workflow of releases."""

import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from packaging.metadata import Metadata, RawMetadata

import fabula

ROOT = Path(fabula.__file__).parent
ACTION = ROOT / ".github" / "actions" / "check-benchmark"
REPLAYS = Path(__file__).parents[1] / "golden" / "replays"

pytestmark = pytest.mark.skipif(
    not ACTION.is_dir(), reason="the suite runs against a wheel, which has no files of the repository"
)


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


def test_action_when_the_release_is_sound_says_so_and_compares_it(
    release: Path, tmp_path: Path, checked: Callable[[Path, Path], tuple[int, str]]
) -> None:
    code, comment = checked(release, tmp_path / "nothing")
    assert code == 0, comment
    assert "### Rules: fine" in comment and "### Release: fine" in comment
    assert "no release to compare with" in comment
    shutil.copytree(release, tmp_path / "same")
    assert "is that of the base branch" in checked(release, tmp_path / "same")[1]


def test_action_when_data_were_changed_by_hand_fails_and_says_where(
    release: Path, tmp_path: Path, checked: Callable[[Path, Path], tuple[int, str]]
) -> None:
    shutil.copytree(release, tmp_path / "base")
    (release / "annotations.jsonl").write_bytes(b"{}\n")
    code, comment = checked(release, tmp_path / "base")
    assert code == 1
    assert "### Release: findings" in comment and "annotations.jsonl" in comment


def test_action_when_read_runs_the_script_that_is_there() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))
    assert any("check.sh" in step.get("run", "") for step in action["runs"]["steps"])
    used = {name for step in action["runs"]["steps"] for name in re.findall(r"inputs\.(\w+)", str(step))}
    assert used == action["inputs"].keys()


def test_hook_when_a_file_is_committed_takes_those_that_are_validated() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["entry"] == "fabula validate"
    wanted = ("annotations.jsonl", "runs/mine/records.jsonl", "data/scripts.jsonl", "suite/all_prompts.json")
    assert [name for name in wanted if not re.search(hook["files"], name)] == []
    assert not re.search(hook["files"], "stories.jsonl")


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


@pytest.mark.parametrize("file", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_files_of_the_repository_when_read_are_yaml(file: Path) -> None:
    assert isinstance(yaml.safe_load(file.read_text("utf-8")), dict)
