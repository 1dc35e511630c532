"""The page of a study in a real browser: quiet, offline, on a phone, by day and night, and accessible."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.experiments.tables.page import write_page
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_studies import Simulation, write_simulated_study

WIDEST = """() => [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .filter((one) => {
        for (let box = one.parentElement; box; box = box.parentElement)
            if (getComputedStyle(box).overflowX !== "visible") return false;
        return true;
    })
    .map((one) => one.outerHTML.slice(0, 120))"""
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    truth = Truth(errors=(0.1,))
    cells = {(plan, renderer): truth for plan in ("direct", "transition-aware") for renderer in ("a", "b")}
    failed = [("direct+a", "kb25k_0001", 42)]
    write_simulated_study(folder, Simulation(cells, 8, seeds=(42,)), failed=failed, pictures=True)
    return write_page(folder, Definitions(resamples=50))[0]


def test_study_page_when_opened_is_quiet_asks_for_nothing_and_fits(opened: Opened, study: Path) -> None:
    page = opened(study, width=320)
    page.evaluate(UNFOLD)
    for width in (320, 400, 768, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(WIDEST) == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    assert page.evaluate("document.images.length") > 0
    assert page.complaints == []


def test_study_page_when_its_links_are_followed_has_every_section(opened: Opened, study: Path) -> None:
    page = opened(study)
    missing = page.evaluate(
        "[...document.querySelectorAll('nav a')].filter(one => !document.querySelector(one.hash)).length"
    )
    assert missing == 0


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1200, False)])
def test_study_page_when_checked_by_axe_has_no_violation(
    opened: Opened, study: Path, width: int, dark: bool
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(study, width=width, dark=dark)
    page.evaluate(UNFOLD)
    response = Axe().run(page).response
    assert [(each["id"], each["nodes"][0]["html"]) for each in response["violations"]] == []
    assert {each["id"] for each in response["incomplete"]} <= {"color-contrast"}
