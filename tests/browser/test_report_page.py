"""The report in a real browser: quiet, offline, on a phone, without JavaScript, and accessible."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.report.model import Example, Examples
from fabula.evaluation.report.people import write_calibration
from fabula.evaluation.report.writing import write_report
from fabula.kinds.evaluations import calibrate
from fabula.people.participants import Resampling
from fabula.people.study import StudySettings
from fabula.testing.report_documents import HOSTILE, made_report
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_people import SimulatedPeople, write_simulated_people

pytestmark = pytest.mark.slow

WIDEST = """() => [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .filter((one) => {
        for (let box = one.parentElement; box; box = box.parentElement)
            if (getComputedStyle(box).overflowX !== "visible") return false;
        return true;
    })
    .map((one) => one.outerHTML.slice(0, 120))"""
Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose stories, questions and replies are hostile texts; nobody writes to it."""
    folder = tmp_path_factory.mktemp("hostile")
    write_report(made_report(folder / "pics", HOSTILE), folder / "report.html")
    return folder / "report.html"


def test_page_when_inspected_is_as_every_page(inspected: Callable[[Path], Any], report: Path) -> None:
    page = inspected(report)
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate(WIDEST) == []
    assert page.title() == "Made-up evaluation of three storyboards"  # no script of a text changed it
    assert page.locator("script").count() == 1
    assert page.evaluate("document.querySelectorAll('[onerror], [onclick], iframe, object').length") == 0
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")


def test_page_when_scripts_are_off_shows_everything_but_the_filter(opened: Opened, report: Path) -> None:
    page = opened(report, scripts=False)
    assert page.locator("article.case:visible").count() == 6
    assert page.locator("table.sortable:visible").count() > 4
    assert page.locator("svg.plot:visible").count() == 1
    assert page.locator("form:visible").count() == 0
    assert page.locator("th button").count() == 0
    summary = page.locator("details.item summary").nth(1)
    summary.click()  # details open without scripts
    assert page.locator("details.item").nth(1).locator("table:visible").count() == 1
    assert page.complaints == []


def test_tables_when_a_heading_is_pressed_are_sorted_both_ways(opened: Opened, report: Path) -> None:
    page = opened(report)
    table = page.locator("table.headline")
    heading = table.locator("thead th").nth(3)

    def column() -> list[str]:
        return [one.strip() for one in table.locator("tbody tr td:nth-child(4) .v").all_inner_texts()]

    assert column() == ["+29.0", "+38.0", "+47.0"]
    heading.locator("button").press("Enter")  # by keyboard
    assert column() == ["+47.0", "+38.0", "+29.0"]
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").click()
    assert column() == ["+29.0", "+38.0", "+47.0"]
    assert heading.get_attribute("aria-sort") == "ascending"
    table.locator("thead th").nth(4).locator("button").click()  # undefined values come last
    assert table.locator("tbody tr").last.locator("td").nth(3).inner_text().startswith("undefined")
    assert page.complaints == []


def test_filter_when_it_is_used_hides_no_card_of_another_section(opened: Opened, tmp_path: Path) -> None:
    levels = ("low", "middle", "high")
    shown = tuple(Example(level=level, value=value / 2, text=level) for value, level in enumerate(levels))
    examples = Examples(name="gap", label="Gap", note="What is lost.", total=9, shown=shown)
    document = made_report().model_copy(update={"examples": (examples,)})
    write_report(document, tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    others = page.locator("section:not([aria-labelledby=cases]) article.case")
    assert others.count() == 1 and others.first.is_visible()
    assert page.locator("form output").inner_text() == "6 of 6 shown"
    page.fill("input[name=words]", "no case says this")
    assert page.locator("form output").inner_text() == "0 of 6 shown"
    assert others.first.is_visible()


def test_cases_when_filtered_are_those_that_fit(opened: Opened, report: Path) -> None:
    page = opened(report)
    shown, count = page.locator("article.case:visible"), page.locator("form output")
    assert count.inner_text() == "6 of 6 shown"
    page.select_option("select[name=why]", "typical")
    assert shown.count() == 3 and count.inner_text() == "3 of 6 shown"
    page.select_option("select[name=method]", "sdxl + planner")
    assert shown.count() == 1
    page.select_option("select[name=group]", "causal")
    assert page.locator("details.item:visible").count() == 1
    page.select_option("select[name=wrong]", "text")
    assert shown.count() == 0 and count.inner_text() == "0 of 6 shown"
    for name in ("why", "method", "group", "wrong"):
        page.select_option(f"select[name={name}]", "")
    page.fill("input[name=words]", "KB25K_0004")
    assert shown.count() == 1
    assert page.complaints == []


PAIRS = {("alpha", "beta"): ["Q1", "a criterion with quite a long name \u05e9\u05dc\u05d5\u05dd <b>"]}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on a simulated evaluation that simulated people were asked about."""
    folder = tmp_path_factory.mktemp("asked")
    truths = (("alpha", Truth()), ("beta", Truth(image=(0.3,) * 6)), ("gamma", Truth()))
    simulated = write_simulated(folder / "simulated", 18, truths)
    who = SimulatedPeople(pairs=PAIRS)
    human = write_simulated_people(folder / "human.jsonl", simulated.items.records, who)
    settings = StudySettings(resampling=Resampling(50))
    write_calibration(simulated.run, calibrate(simulated.run, human, simulated.release, settings).document)
    document = katha_report(simulated.run, simulated.release, definitions=Definitions(resamples=50))
    return write_report(document, folder / "report.html").files["page"]


def test_page_with_people_when_inspected_is_as_every_page(
    inspected: Callable[[Path], Any], asked: Path
) -> None:
    page = inspected(asked)
    assert page.title() == "release 0.1.0: How much of the story 3 methods show"
    assert page.locator("#figure-gaps svg.plot").count() == 1
    assert page.locator("#figure-gap_ridges polygon.ridge").count() == 3
    assert page.locator("#figure-gap_strips rect.cell").count() == 12
    assert page.locator("#figure-people-judges svg.spot").count() > 3
    assert page.locator("svg[role=img]").count() == 4


def test_warning_of_simulated_people_when_opened_stands_above_the_results(
    opened: Opened, asked: Path
) -> None:
    page = opened(asked, scripts=False)
    warning = page.locator(".warnings li", has_text="come from simulated people")
    assert warning.count() == 1 and warning.is_visible()
    assert warning.bounding_box()["y"] < page.locator("#results").bounding_box()["y"]
    shown = page.locator("table.headline").locator("thead th")
    labels = [text.partition("\n")[0].strip() for text in shown.all_inner_texts()]
    assert labels[1] == "Visual" and labels[-1] == "Human Score"
    cell = page.locator("table.headline tbody tr").nth(2).locator("td").first
    assert cell.inner_text().split("\n")[0] == "\N{EN DASH}" and "not asked" in cell.inner_text()
