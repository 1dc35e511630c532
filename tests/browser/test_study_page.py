"""The page of a study in a real browser: quiet, offline, on a phone, by day and night, and accessible."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.studies.experiments.tables.page import write_page
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_studies import Simulation, write_simulated_study

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    truth = Truth(errors=(0.1,))
    cells = {(plan, renderer): truth for plan in ("direct", "transition-aware") for renderer in ("a", "b")}
    failed = [("direct+a", "kb25k_0001", 42)]
    write_simulated_study(folder, Simulation(cells, 8, seeds=(42,)), failed=failed, pictures=True)
    return write_page(folder, Definitions(resamples=50))[0]


def test_study_page_when_inspected_is_as_every_page(inspected: Callable[[Path], Any], study: Path) -> None:
    page = inspected(study)
    assert page.title() == "release 0.1.0: Study simulated"
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    assert page.evaluate("document.images.length") > 0


def test_study_page_when_its_links_are_followed_has_every_section(opened: Opened, study: Path) -> None:
    page = opened(study)
    missing = page.evaluate(
        "[...document.querySelectorAll('nav a')].filter(one => !document.querySelector(one.hash)).length"
    )
    assert missing == 0
