"""The kinds there are, what looking them up loads, and kinds that a package of a user adds."""

import subprocess
import sys
from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.kinds.registry import OURS, foreign_sections, kind_with, kinds, run_kinds


def test_kinds_when_listed_have_their_runs() -> None:
    assert [kind.name for kind in OURS] == ["katha", "events", "shots", "entities"]
    for kind in OURS:
        assert [run.pipeline.name for run in run_kinds(kind)] == [*kind.runs]
        for run in (*kind.runs, *kind.imported):
            assert kind_with(run) is kind
    assert kind_with("films") is None


def test_kinds_when_listed_in_a_fresh_process_load_no_stage() -> None:
    code = (
        "import sys, fabula.kinds.registry as registry; registry.kinds();"
        "print([name for name in sys.modules if name.startswith(('fabula.builders', 'fabula.evaluation',"
        " 'fabula.releases', 'fabula.validators'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


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
