"""The report on shot images in a real browser: quiet, offline, on a phone, without scripts, accessible."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.report.writing import write_report
from fabula.evaluation.shots.definitions import Definitions
from fabula.evaluation.shots.report.page import ImageReport, images_report
from fabula.testing.drawn_evaluations import draw_evaluation
from fabula.testing.simulated_images import Simulated, write_images

pytestmark = pytest.mark.slow

BOX = """() => {
    const card = document.querySelector("article.story .shot:nth-child(2)");
    const picture = card.querySelector("img").getBoundingClientRect();
    const box = card.querySelector("rect.over.b0").getBoundingClientRect();
    const middle = box.left + box.width / 2;
    return [(middle - picture.left) / picture.width, (box.top - picture.top) / picture.height];
}"""
FEW = Definitions(resamples=50)
NAMES = {
    "Mira": "<script>document.title='owned'<\\script>",
    "Old Tomas": "\u05e9\u05dc\u05d5\u05dd \u202eright to left",
    "The Fox": "x" * 180,
}

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Drawn stories with plain and with hostile names, and many methods that nobody drew."""
    made: dict[str, Path] = {}
    with pytest.MonkeyPatch.context() as patch:
        for kind, names in (("plain", {}), ("hostile", NAMES)):
            folder = tmp_path_factory.mktemp(kind)
            patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
            method = "model-a" if kind == "plain" else '"><img src=x onerror="document.title=1">'
            run = draw_evaluation(folder, method=method, names=names)
            wanted = ImageReport(FEW, excluded=("copy-paste",))
            made[kind] = write_report(images_report(run, wanted=wanted), folder / "page.html").files["page"]
    folder = tmp_path_factory.mktemp("many")
    simulated = Simulated({f"method-{n:02d}": n / 4 for n in range(4)}, 2, 2, refused=0.1)
    document = images_report(write_images(folder / "run", simulated), wanted=ImageReport(FEW))
    made["many"] = write_report(document, folder / "page.html").files["page"]
    yield made


@pytest.mark.parametrize("kind", ["hostile", "many"])
def test_page_of_shots_when_inspected_is_as_every_page(
    inspected: Callable[[Path], Any], pages: dict[str, Path], kind: str
) -> None:
    page = inspected(pages[kind])
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    assert page.title().startswith("Shot images of")  # no script of a name changed it
    assert page.evaluate("document.querySelectorAll('[onerror], iframe, object').length") == 0
    assert page.locator("script").count() == 1


def test_boxes_when_drawn_lie_over_the_figures(opened: Opened, pages: dict[str, Path]) -> None:
    page = opened(pages["plain"])
    across, down = page.evaluate(BOX)
    assert across == pytest.approx(0.25, abs=0.02)  # Mira is the first of two, side by side
    assert down == pytest.approx(60 / 180, abs=0.03)  # a figure is 120 of 180 pixels high
    assert page.locator("article.story").count() == 3
    assert page.get_by_text("no picture was generated").count() >= 1


def test_page_of_shots_when_scripts_are_off_shows_everything(opened: Opened, pages: dict[str, Path]) -> None:
    page = opened(pages["plain"], scripts=False)
    assert page.locator("table.leaders:visible").count() == 1
    assert page.locator("svg.polar:visible").count() == 2
    summary = page.locator("details.fold summary").first
    summary.click()
    assert page.locator(".wallrow:visible").count() == 3
    assert page.locator("th button").count() == 0
    assert page.complaints == []


def test_leaderboard_when_sorted_puts_methods_in_order_of_a_score(
    opened: Opened, pages: dict[str, Path]
) -> None:
    page = opened(pages["many"])
    table = page.locator("table.leaders")
    heading = table.locator("thead th", has_text="Scene")
    column = heading.evaluate("one => one.cellIndex + 1")

    def values() -> list[float]:
        cells = table.locator(f"tbody tr > :nth-child({column})")
        return [float(one) for one in cells.evaluate_all("all => all.map((one) => one.dataset.value)")]

    heading.locator("button").press("Enter")
    assert values() == sorted(values(), reverse=True)
    heading.locator("button").press("Enter")
    assert values() == sorted(values())
    assert page.locator("table.leaders .rank").count() >= 1
