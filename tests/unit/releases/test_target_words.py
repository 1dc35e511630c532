"""Errors about a place to write say what is made there, not that it is a release."""

from pathlib import Path

import pytest

from fabula.errors import TargetError
from fabula.releases.entities.imports import import_episodes
from fabula.releases.katha.package_import import import_package
from fabula.releases.shots.imports import import_set
from fabula.releases.shots.tree import read_shot_set, write_shot_set
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.official_packages import write_package
from fabula.testing.written_episodes import write_episodes

MAKERS = {
    "import katha": lambda folder, out: import_package(write_package(folder), out),
    "import vistory": lambda folder, out: import_set(draw_shot_set(folder), out, "2026-01-01T00:00:00Z"),
    "import entitybench": lambda folder, out: import_episodes(
        write_episodes(folder), out, "2026-01-01T00:00:00Z"
    ),
    "export vistory": lambda folder, out: write_shot_set(read_shot_set(draw_shot_set(folder))[0], out),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("place", ["filled", "a file", "below a file"])
def test_import_and_export_when_the_place_is_taken_speak_of_no_release(
    tmp_path: Path, name: str, place: str
) -> None:
    out = tmp_path / "out"
    if place == "filled":
        out.mkdir()
        (out / "mine.txt").write_text("kept")
    else:
        out.write_text("kept")
    with pytest.raises(TargetError) as caught:
        MAKERS[name](tmp_path / "given", out / "deeper" if place == "below a file" else out)
    assert not {"release", "version", "pack"} & set(str(caught.value).lower().replace(":", " ").split())
    assert (out / "mine.txt" if place == "filled" else out).read_text() == "kept"
