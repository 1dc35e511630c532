"""Reports of every protocol in a real browser: short, quiet, offline, on a phone, accessible."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.entities.metrics.aggregate import Definitions as EpisodeDefinitions
from fabula.evaluation.entities.report.page import episodes_report
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.report.formats import write_report
from fabula.evaluation.report.people import write_calibration
from fabula.evaluation.report.showing import Wanted
from fabula.evaluation.shots.ratings import Definitions as ImageDefinitions
from fabula.evaluation.shots.report.page import images_report
from fabula.kinds.evaluations import calibrate
from fabula.people.recoverability import Resampling
from fabula.people.study import StudySettings
from fabula.testing.drawn_evaluations import draw_evaluation
from fabula.testing.report_documents import HOSTILE, made_report
from fabula.testing.simulated_episodes import write_run
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_images import Simulated, write_images
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_people import SimulatedPeople, write_simulated_people

pytestmark = pytest.mark.slow

BOX = """() => {
    const drawn = document.querySelector("article.story .shot:nth-child(2) img:not([alt*='copy-paste'])");
    const card = drawn.closest(".shot");
    const picture = drawn.getBoundingClientRect();
    const box = card.querySelector("rect.over.b0").getBoundingClientRect();
    const middle = box.left + box.width / 2;
    return [(middle - picture.left) / picture.width, (box.top - picture.top) / picture.height];
}"""
EXECUTED = "document.querySelectorAll('[onerror], [onclick], iframe, object, main b b').length"
ATTACK = '"><img src=x onerror="document.title=1">'
TEXTS = (
    "<script>document.title='owned'<\\script>",
    "\u05e9\u05dc\u05d5\u05dd \u202eright to left",
    "x" * 180,
)
CAST, REGISTRY = ("Mira", "Old Tomas", "The Fox"), ("Ana", "the cup", "The Hall")
PAIRS = {("alpha", "beta"): ["Q1", "a criterion with quite a long name \u05e9\u05dc\u05d5\u05dd <b>"]}
HIGHEST = {"katha": 8_000, "hostile": 8_000, "shots": 8_000, "many": 8_000, "episodes": 10_000}
"""Page -> how many pixels it may be high where the window is 1,400 wide, as it is opened."""
FEW = ImageDefinitions(resamples=50)
Opened = Callable[..., Any]


def asked(folder: Path) -> Any:
    """Return the report on a simulated evaluation that simulated people were asked about."""
    truths = (("alpha", Truth()), ("beta", Truth(image=(0.3,) * 6)), ("gamma", Truth()))
    simulated = write_simulated(folder / "simulated", 18, truths)
    who = SimulatedPeople(pairs=PAIRS)
    human = write_simulated_people(folder / "human.jsonl", simulated.items.records, who)
    settings = StudySettings(resampling=Resampling(50))
    write_calibration(simulated.run, calibrate(simulated.run, human, simulated.release, settings).document)
    return katha_report(simulated.run, simulated.release, definitions=Definitions(resamples=50))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """A page of each protocol, with hostile names and texts; nobody writes to them."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "drawn").mkdir()
    (folder / "plain").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        drawn = draw_evaluation(folder / "drawn", method=ATTACK, names=dict(zip(CAST, TEXTS, strict=True)))
        plain = draw_evaluation(folder / "plain")
    many = Simulated({f"method-{n:02d}": n / 4 for n in range(4)}, 2, 2, refused=0.1)
    registry = dict(zip(REGISTRY, TEXTS, strict=True))
    run = write_run(folder / "episodes", (ATTACK, "b"), ("film__<i>ep</i>", "y__1"), registry)
    documents = {
        "hostile": made_report(folder / "pics", HOSTILE),
        "katha": asked(folder),
        "shots": images_report(drawn, wanted=Wanted(FEW, unranked=("copy-paste",))),
        "plain": images_report(plain, wanted=Wanted(FEW, unranked=("copy-paste",))),
        "many": images_report(write_images(folder / "many", many), wanted=Wanted(FEW)),
        "episodes": episodes_report(run, Wanted(EpisodeDefinitions(resamples=0))),
    }
    yield {
        name: write_report(made, folder / f"{name}.html").files["page"] for name, made in documents.items()
    }


@pytest.mark.parametrize("name", HIGHEST)
def test_report_when_inspected_is_as_every_page(inspected, opened, pages, name):
    as_opened = opened(pages[name], width=1400)
    assert as_opened.evaluate("document.documentElement.scrollHeight") <= HIGHEST[name]
    page = inspected(pages[name])
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    title = page.evaluate("document.querySelector('h1').innerText.replace(/\\\\s+/g, ' ')")
    assert page.title() == title  # no script of a text changed it
    assert page.locator("script").count() == 1 and page.evaluate(EXECUTED) == 0


def test_report_when_scripts_are_off_shows_everything_but_the_filter(opened, pages):
    page = opened(pages["hostile"], scripts=False)
    assert page.locator("article.case:visible").count() == 6
    assert page.locator("svg.plot:visible").count() == 1
    assert page.locator("form:visible").count() == page.locator("th button").count() == 0
    page.locator("article.case > details > summary").nth(
        1
    ).click()  # cards and questions open without scripts
    page.locator("details.item summary:visible").first.click()
    assert page.locator("details.item table:visible").count() == 1
    shots = opened(pages["plain"], scripts=False)
    assert shots.locator("table.leaders:visible").count() == shots.locator("svg.plot:visible").count() == 1
    shots.locator("details.fold summary").first.click()
    assert shots.locator(".wallrow:visible").count() == 3
    assert page.complaints == shots.complaints == []


def test_tables_when_a_heading_is_pressed_are_sorted_both_ways(opened, pages):
    page = opened(pages["hostile"])
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
    table.locator("thead th").nth(4).locator("button").click()  # undefined values come last
    assert table.locator("tbody tr").last.locator("td").nth(3).inner_text().startswith("undefined")


def test_cases_when_filtered_are_those_that_fit(opened: Opened, pages: dict[str, Path]) -> None:
    page = opened(pages["hostile"])
    shown, count = page.locator("article.case:visible"), page.locator("form output")
    page.select_option("select[name=why]", "typical")
    assert shown.count() == 3 and count.inner_text() == "3 of 6 shown"
    page.select_option("select[name=method]", "sdxl + planner")
    assert shown.count() == 1
    page.select_option("select[name=wrong]", "text")
    assert shown.count() == 0 and count.inner_text() == "0 of 6 shown"
    for name in ("why", "method", "wrong"):
        page.select_option(f"select[name={name}]", "")
    page.fill("input[name=words]", "KB25K_0004")
    assert shown.count() == 1
    assert page.complaints == []


def test_report_with_people_when_opened_warns_first_and_has_one_picture_per_question(opened, pages):
    page = opened(pages["katha"], scripts=False)
    figures = page.locator("figure.chart").evaluate_all("all => all.map((one) => one.id)")
    assert figures == [f"figure-{name}" for name in ("gaps", "gap_ridges", "gap_strips", "people-judges")]
    warning = page.locator(".warnings li", has_text="come from simulated people")
    assert warning.bounding_box()["y"] < page.locator("#results").bounding_box()["y"]
    labels = [
        text.partition("\n")[0].strip() for text in page.locator(".headline thead th").all_inner_texts()
    ]
    assert labels[1] == "Visual" and labels[-1] == "Human Score"
    cell = page.locator("table.headline tbody tr").nth(2).locator("td").first
    assert cell.inner_text().split("\n")[0] == "\N{EN DASH}" and "not asked" in cell.inner_text()


def test_boxes_when_drawn_lie_over_the_figures(opened: Opened, pages: dict[str, Path]) -> None:
    page = opened(pages["plain"])
    across, down = page.evaluate(BOX)
    assert across == pytest.approx(0.25, abs=0.02)  # Mira is the first of two, side by side
    assert down == pytest.approx(60 / 180, abs=0.03)  # a figure is 120 of 180 pixels high


def test_episodes_when_one_is_opened_show_a_table_that_scrolls_in_itself_down_to_replies(opened, pages):
    page = opened(pages["episodes"], width=400, scripts=False)
    assert page.locator("article:has(.registry) > details[open]").count() == 1
    assert "3 entities" in page.locator("article:has(.registry) .meta").last.inner_text()
    frame = page.locator(".scroll:has(> .registry)").first
    assert frame.evaluate("one => one.scrollWidth > one.clientWidth && one.clientHeight <= innerHeight")
    cell = page.locator(".registry .cell").first
    cell.locator("summary").click()
    assert cell.locator(".said").first.inner_text().startswith("<b>")
