"""The report on episodes in a real browser: quiet, offline, on a phone, in the dark, without scripts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.entities.metrics.aggregate import Definitions
from fabula.evaluation.entities.report.page import EpisodesReport, episodes_report
from fabula.evaluation.report.writing import write_report
from fabula.testing.simulated_episodes import write_run

NAMES = {
    "Ana": "<script>document.title='owned'</script>",
    "the cup": "\u05e9\u05dc\u05d5\u05dd \u202eright to left",
    "The Hall": "x" * 180,
}
METHODS = ('"><img src=x onerror="document.title=1">',)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    run = write_run(folder / "run", METHODS, ("film__<i>ep</i>",), NAMES)
    document = episodes_report(run, EpisodesReport(Definitions(resamples=0)))
    return write_report(document, folder / "page.html").files["page"]


def test_page_of_episodes_when_names_are_hostile_is_as_every_page(
    inspected: Callable[[Path], Any], file: Path
) -> None:
    page = inspected(file)
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    assert page.title().startswith("Episodes of")  # no script of a name changed it
    assert page.evaluate("document.querySelectorAll('[onerror], main b b, iframe').length") == 0
    assert page.locator("article:has(#examples-imaging_quality) .level").count() == 2


def test_page_of_episodes_when_scripts_are_off_opens_a_number_to_its_crop_and_reply(
    opened: Callable[..., Any], file: Path
) -> None:
    page = opened(file, scripts=False)
    row = page.locator("#m1-intra_face_fidelity")
    row.locator(".traces > summary").click()
    link = row.locator(".traces a").first
    target = page.locator(f"[id='{(link.get_attribute('href') or '')[1:]}']")
    assert not target.is_visible()
    link.click()
    assert target.is_visible()  # the browser opens what it leads into
    assert target.locator(".said").first.inner_text().startswith("<b>")
