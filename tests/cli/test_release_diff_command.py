"""fabula release diff, and pack --since, as a user types them; in this process."""

import copy
import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.kinds.verbs import pack
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles


def fabula(*args: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in args])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release ``old``, the run of a second version ``run`` with one corrected answer, and its release."""
    place = tmp_path_factory.mktemp("versions")
    pack(
        write_run(place / "first", sample_bundles(6)),
        place / "old",
        PackOptions("0.1.0", name="fables", allow_drafts=True),
    )
    bundles = copy.deepcopy(sample_bundles(6))
    bundles[0]["record"]["questions"][1]["accepted_answers"].append("dread")
    rehash(bundles[0])
    write_run(place / "run", bundles)
    done = fabula(
        "release",
        "pack",
        place / "run",
        "--allow-drafts",
        "--version",
        "auto",
        "--since",
        place / "old",
        "--out",
        place / "new",
    )
    assert done.exit_code == 0, done.output
    assert "packed version 0.2.0" in done.stdout and "a major step from 0.1.0: 1 story changed" in done.stdout
    return place


def test_diff_when_typed_tells_the_change_and_the_step(folder: Path) -> None:
    done = fabula("release", "diff", folder / "old", folder / "new")
    assert done.exit_code == 0, done.output
    assert 'kb25k_0001 $.questions[1].accepted_answers[2] added "dread"' in done.stdout
    assert "step due: major" in done.stdout and "next version: 0.2.0 or higher" in done.stdout


def test_diff_when_compared_exits_by_the_version_and_never_by_what_differs(folder: Path) -> None:
    same, other = (
        fabula("release", "diff", folder / "old", folder / name, "--json") for name in ("old", "new")
    )
    assert [(one.exit_code, json.loads(one.stdout)["step"]["due"]) for one in (same, other)] == [
        (0, "none"), (0, "major"),
    ]  # fmt: skip
    swapped = fabula("release", "diff", folder / "new", folder / "old", "--json")
    assert swapped.exit_code == 1 and "swapped" in json.loads(swapped.stdout)["step"]["problem"]
    neither = fabula("release", "diff", folder / "new", folder / "run", "--json")
    assert neither.exit_code == 2 and json.loads(neither.stdout)["error"]["exit_code"] == 2


def test_pack_when_the_version_is_too_low_exits_with_2_and_says_which_is_due(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = fabula(
        "release", "pack", folder / "run", "--version", "0.1.1", "--since", folder / "old", "--allow-drafts",
        "--out", out,
    )  # fmt: skip
    assert done.exit_code == 2
    assert "so that 0.2.0 or higher is due" in done.output and not out.exists()
    done = fabula("release", "pack", folder / "run", "--version", "auto", "--out", out)
    assert done.exit_code == 2 and "with --since" in done.output
