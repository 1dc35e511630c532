"""The kinds there are, what looking them up loads, and kinds that a package of a user adds."""

import subprocess
import sys
from pathlib import Path

import pytest

from fabula.builders.drafting import Drafting
from fabula.engine.running import RunKind
from fabula.errors import ConfigError
from fabula.evaluation.protocol import Protocol, Scoring
from fabula.evaluation.running import Evaluating
from fabula.kinds.registry import OURS, every_run_kind, foreign_sections, kind_with, kinds, run_kinds
from fabula.kinds.studies import SOURCES
from fabula.people.review.sources.source import Source
from fabula.people.study import Study
from fabula.releases.form import ReleaseForm
from fabula.validators.rules import RuleSet


def test_kinds_when_listed_have_their_runs() -> None:
    assert [kind.name for kind in OURS] == ["katha", "events", "shots", "entities"]
    for kind in OURS:
        assert [run.pipeline.name for run in run_kinds(kind)] == [*kind.runs]
        for run in (*kind.runs, *kind.imported):
            assert kind_with(run) is kind
    assert kind_with("films") is None


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
