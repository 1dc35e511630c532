"""Options of scoring that say nothing about the kind of evaluation at hand are refused, not passed over."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.errors import ConfigError, FabulaError
from fabula.evaluation.archive.archive import write_manifest
from fabula.evaluation.events.scoring import definitions_of as event_definitions
from fabula.evaluation.events.scoring import suite_of
from fabula.evaluation.events.votes import Definitions as EventDefinitions
from fabula.evaluation.katha.scoring import definitions_of as katha_definitions
from fabula.evaluation.protocol import Chosen
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.kinds.evaluations import compare, make_report, score
from fabula.schemas.judgement import EvaluationManifest

GIVEN = {"split": ("train",), "matcher": "exact", "voting": "average", "partial": None, "suite": None}


@pytest.fixture
def evaluation(tmp_path: Path) -> Callable[[str], Path]:
    def make(kind: str) -> Path:
        document = {"kind": kind, "protocol": {}, "subject": {}, "environment": {}}
        write_manifest(tmp_path, EvaluationManifest.model_validate(document))
        return tmp_path

    return make


def test_options_when_they_are_for_storyboards_are_refused_for_videos_by_name(
    evaluation: Callable[[str], Path],
) -> None:
    folder = evaluation("events")
    for verb in (score, lambda folder, given: compare(folder, folder, given)):
        with pytest.raises(ConfigError) as refused:
            verb(folder, GIVEN)
        assert refused.value.where == "--split, --matcher"
        assert "storyboards (katha)" in str(refused.value) and "--voting" in refused.value.fix
        assert refused.value.fix.endswith("and --resamples, --seed, --interval, --correction")


def test_options_when_they_are_for_videos_are_refused_for_storyboards(
    evaluation: Callable[[str], Path],
) -> None:
    with pytest.raises(ConfigError, match=r"--voting: only for an evaluation of videos \(events\)"):
        score(evaluation("katha"), GIVEN)


def test_options_of_a_page_when_they_are_for_shots_are_refused_for_others(
    evaluation: Callable[[str], Path],
) -> None:
    shown = {"define": ("cids=code",), "megabytes": 3.0, "stories": (), "methods": ("x",)}
    message = r"--define, --pictures-mb, --method: only for an evaluation of shots \(images\); this is one"
    for kind in ("katha", "events"):
        with pytest.raises(ConfigError, match=message):
            make_report(evaluation(kind), options=shown)


@pytest.mark.parametrize("kind", ["katha", "events"])
def test_options_when_none_or_shared_ones_are_given_are_taken(
    kind: str, evaluation: Callable[[str], Path]
) -> None:
    shared = {"matcher": None, "split": (), "voting": None, "release": Path("x"), "seed": 1}
    with pytest.raises(FabulaError, match=r"judgements\.jsonl|not a release"):
        score(evaluation(kind), shared)


def test_definitions_when_nothing_is_given_are_the_defaults() -> None:
    assert katha_definitions(Chosen({"seed": 42, "resamples": 10_000})) == Definitions()
    assert event_definitions(Chosen({"interval": "by-size", "define": ()})) == EventDefinitions()
    assert event_definitions(Chosen({"nonresponse": "incorrect"})).nonresponse == "zero"


def test_suite_when_given_twice_is_refused() -> None:
    assert suite_of(Chosen({"release": Path("release")})) == Path("release")
    with pytest.raises(ConfigError, match="both"):
        suite_of(Chosen({"suite": Path("suite"), "release": Path("release")}))
