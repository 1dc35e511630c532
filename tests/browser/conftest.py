"""A headless Chromium for the tests of pages: skipped where there is none, failed where CI is set.

And drawn studies: all types of questions, two storyboards side by side, a video to watch.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.people.review.design import Plan
from fabula.people.review.folder import StudyPlan, make_study
from fabula.people.review.items import Drawn, Part, Value
from fabula.people.review.plan import Rules
from fabula.testing.drawn import draw_panel, write_video
from fabula.testing.review_visitor import HOLLOW, Visitor

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDTHS = (400, 800, 1400)
PAPER = 700
MOST_BYTES = 1_000_000
"""Of a page without its pictures."""
WIDEST = """() => [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .filter((one) => {
        for (let box = one.parentElement; box; box = box.parentElement)
            if (getComputedStyle(box).overflowX !== "visible") return false;
        return true;
    })
    .map((one) => one.outerHTML.slice(0, 120))"""
LOOSE = """() => [...document.querySelectorAll(".scroll")].filter((frame) => {
    const cell = frame.querySelector("tbody tr > :first-child:not([colspan])");
    if (!cell || frame.scrollWidth <= frame.clientWidth + 1) return false;
    frame.scrollLeft = frame.scrollWidth;
    const moved = cell.getBoundingClientRect().left - frame.getBoundingClientRect().left;
    frame.scrollLeft = 0;
    return Math.abs(moved) > 2;
}).map((frame) => frame.outerHTML.slice(0, 120))"""
UNDECIDED = {"color-contrast", "th-has-data-cells"}
"""What axe may leave to us: text over several layers, and headings of tables whose cells hold pictures."""
NARROW = """() => [...document.querySelectorAll("section > .scroll, section > .table > .scroll")]
    .filter((frame) => frame.scrollWidth > frame.clientWidth + 1)
    .filter((frame) => frame.getBoundingClientRect().width < Math.min(innerWidth * .85, 1500))
    .map((frame) => frame.outerHTML.slice(0, 120))"""
"""Tables that are cut while the margins beside them are empty."""
TORN = """() => [...document.querySelectorAll("tbody th")].flatMap((head) => {
    const texts = document.createTreeWalker(head, NodeFilter.SHOW_TEXT), torn = [];
    for (let text; (text = texts.nextNode()); ) for (const word of text.data.matchAll(/[^\\s>-]+/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (word[0].length <= 12 && range.getClientRects().length > 1) torn.push(word[0]);
    }
    return torn;
})"""
"""Words of first columns that go on in the next line."""
EMPTY = """() => [...document.querySelectorAll("main section")].filter((one) => one.checkVisibility())
    .filter((section) => ![...section.querySelectorAll(":scope *")].some((one) =>
        !one.closest("h2, .filter") && one.checkVisibility() && one.getBoundingClientRect().height > 0
        && (/^(img|svg)$/i.test(one.tagName)
            || [...one.childNodes].some((text) => text.nodeType === 3 && text.data.trim()))))
    .map((section) => section.outerHTML.slice(0, 120))"""
"""Sections in which nothing is to be seen besides heading and filter."""
CARDS = """() => [...document.querySelectorAll("main section:not(:has(.filter))")]
    .map((one) => [...one.querySelectorAll("article")].filter((card) => card.checkVisibility()).length)"""
"""How many cards are to be seen in each section that no filter is about."""
INKS = """() => {
    const seen = {};
    for (const element of document.querySelectorAll("body *")) {
        const {color, fontSize, fontWeight} = getComputedStyle(element);
        const ink = [element.tagName, color, fontSize, fontWeight];
        for (let box = element; box; box = box.parentElement) {
            const {backgroundColor, backgroundImage, opacity} = getComputedStyle(box);
            ink.push(backgroundColor, backgroundImage, opacity);
        }
        const says = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (says && element.checkVisibility()) seen[ink] = (seen[ink] ?? 0) + 1;
        element.toggleAttribute("data-ink", says && seen[ink] <= 3);
    }
    return Object.keys(seen).length;
}"""
"""Marks three elements of each sort of text: contrast follows from ink, size, and what lies behind."""
WRONG = {"resultTypes": ["violations", "incomplete"]}
CONTRAST = {**WRONG, "runOnly": ["color-contrast"]}
OTHERS = {**WRONG, "rules": {"color-contrast": {"enabled": False}}}
REVIEW_WIDTHS = (320, 375, 768, 1440)
REVIEW_UNDECIDED = frozenset(("color-contrast", "heading-order", "skip-link"))
"""Of pages of reviews: text over layers, parts of pages, where a skip link leads."""
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
LIGHT = """(name) => getComputedStyle(document.body)[name].match(/[0-9.]+/g).slice(0, 3)
    .reduce((sum, part) => sum + Number(part), 0)"""
IN_CI = bool(os.environ.get("CI"))


@pytest.fixture(scope="module")  # longer, and Playwright's event loop would run under everybody's tests
def chromium() -> Iterator[Any]:
    """A running Chromium, driven by Playwright."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        _missing("no Chromium here: the pages are not looked at in a browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("Playwright is not installed: the pages are not looked at in a browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open a file as a page whose ``complaints`` are what it wrote, threw, or asked the network for."""
    contexts = []

    def open_page(file: Path, *, width: int = 1200, dark: bool = False, scripts: bool = True) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
        )
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: page.complaints.append(f"error: {error}"))
        page.on("request", lambda request: _note_request(page, file, request.url))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def axe_finds(page: Any, *, contrast_only: bool = False) -> tuple[list[Any], set[str]]:
    """Return what axe finds wrong, as rule and element, and the rules that it leaves undecided.

    Nine tenths of its time went to the contrast of thousands of texts that look alike.
    """
    from axe_playwright_python.sync_playwright import Axe

    runs = [] if contrast_only else [Axe().run(page, options=OTHERS).response]
    if page.evaluate(INKS):
        runs.append(Axe().run(page, {"include": [["[data-ink]"]]}, CONTRAST).response)
    wrong = [(rule["id"], rule["nodes"][0]["html"]) for run in runs for rule in run["violations"]]
    return wrong, {rule["id"] for run in runs for rule in run["incomplete"]}


@pytest.fixture(scope="session")
def axe_found() -> Callable[[Any], list[Any]]:
    """Return what axe finds wrong in a page."""
    return lambda page: axe_finds(page)[0]


class Inspector(Visitor):
    """A visitor who checks what every page of a review keeps to."""

    def check(self, *, may_doubt: frozenset[str] = REVIEW_UNDECIDED) -> None:
        """Check a page for everybody: no violation in two widths by day and night; none scrolls or is empty.

        Day and night differ in colours only, so that each width is checked whole in one of them.
        """
        for scheme, width, contrast_only in (
            ("light", 375, False), ("dark", 1280, False), ("dark", 375, True), ("light", 1280, True),
        ):  # fmt: skip
            self.page.emulate_media(color_scheme=scheme)
            self.page.set_viewport_size({"width": width, "height": 900})
            wrong, doubts = axe_finds(self.page, contrast_only=contrast_only)
            assert wrong == [], (self.heading, width, scheme, wrong)
            assert doubts <= may_doubt, (self.heading, width, scheme, doubts)
        assert self.page.evaluate(HOLLOW) == [], self.heading
        for width in REVIEW_WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            assert self.page.evaluate(WIDEST) == [], (self.heading, width)
            assert self.page.evaluate("() => document.documentElement.scrollWidth") <= width
        self.page.set_viewport_size({"width": 1280, "height": 900})


@pytest.fixture
def inspected(opened: Callable[..., Any]) -> Callable[[Path], Any]:
    """Open a file and check what every page keeps to; return the page, unfolded.

    At three widths nothing is wider than the window, first columns stay and have whole words, tables use
    the margins before they are cut; on paper nothing is cut, in dark
    ink on white; axe finds nothing by day and by night; nothing is asked of
    anybody; without its pictures it is light. No section is empty, as it is opened and under each filter.
    """

    def inspect(file: Path) -> Any:
        bare = re.sub(rb"data:image/[a-z]+;base64,[A-Za-z0-9+/=]*", b"", file.read_bytes())
        assert len(bare) < MOST_BYTES
        page = opened(file, width=1400)
        _look_at_sections(page)
        page.evaluate(UNFOLD)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(WIDEST) == [], width
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(LOOSE) == [], width
            assert page.evaluate(NARROW) == [], width
            assert page.evaluate(TORN) == [], width
        for scheme, width in (("light", 1400), ("dark", 400)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            wrong, undecided = axe_finds(page)
            assert wrong == [], scheme
            assert undecided <= UNDECIDED
        page.emulate_media(color_scheme="dark", media="print")
        page.set_viewport_size({"width": PAPER, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= PAPER
        assert page.evaluate(LIGHT, "backgroundColor") > 700 > 150 > page.evaluate(LIGHT, "color")
        page.emulate_media(color_scheme="light", media="screen")
        assert page.locator("h1").count() == 1 and page.locator("header .kind").count() == 1
        assert page.complaints == []
        return page

    return inspect


def _look_at_sections(page: Any) -> None:
    """Check that each section shows something, and that a filter hides nothing outside of its own."""
    assert page.evaluate(EMPTY) == page.evaluate(HOLLOW) == []
    cards = page.evaluate(CARDS)
    for choice in page.locator("form.filter select:visible").all():
        for number in range(choice.locator("option").count()):
            choice.select_option(index=number)
            left = page.locator("section:has(.filter) article.case:visible").count()
            assert page.locator("form.filter output").inner_text().startswith(f"{left} of ")
            assert page.evaluate(CARDS) == cards
            assert left == 0 or page.evaluate(EMPTY) == page.evaluate(HOLLOW) == []
        choice.select_option(index=0)


def _note_request(page: Any, file: Path, url: str) -> None:
    if not url.startswith((file.as_uri(), "data:")):
        page.complaints.append(f"request: {url}")


def _missing(reason: str) -> None:
    if IN_CI:
        pytest.fail(f"CI is set, and there is {reason}")
    pytest.skip(reason)


@pytest.fixture
def visiting(chromium: Any) -> Iterator[Callable[..., Inspector]]:
    """Open browsers of people; all are closed at the end."""
    visitors: list[Inspector] = []

    def visit(**settings: Any) -> Inspector:
        visitors.append(Inspector(chromium, **settings))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.close()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return the folder of a study of each kind; each is made once."""
    known: dict[str, Path] = {}

    def study(task: str, **settings: Any) -> Path:
        name = repr((task, settings))
        if name not in known:
            known[name] = draw_study(tmp_path_factory.mktemp("drawn"), task, **settings)
        return known[name]

    return study


SCENES = (
    "A crow flew over dry fields. It had not drunk since the morning.",
    "It found a jar, and there was a little water at the bottom. Its beak did not reach it.",
    "The crow looked about. Pebbles lay on the path.",
    "One by one it dropped them into the jar, until the water had risen to the rim.",
)
CONSENT = {
    "en": "We ask how well picture stories tell a story.\n\nYour answers are kept under a pseudonym.",
    "zh": "我们想了解图片故事讲得好不好。\n\n您的回答会以化名保存。",
}
EXPERTISE = {
    "none": {"en": "None", "zh": "没有"},
    "some": {"en": "I have done such work before", "zh": "做过类似的工作"},
}


def draw_study(
    folder: Path, task: str, *, items: int = 3, training: int = 1, block: int = 20, settings: Any = None
) -> Path:
    """Make a study of drawn pictures below a folder; return it."""
    path = Path(__file__).parent / "tasks" / f"{task}.j2"
    draw = {"all-types": _story, "compared": _pair, "watched": _film}[task]
    listed = [draw(folder, number) for number in range(1, items + 1)]
    taught = [replace(draw(folder, items + number), **_TAUGHT[task]) for number in range(1, training + 1)]
    fields = {"consent": CONSENT, "expertise": EXPERTISE, **(settings or {})}
    plan = StudyPlan(
        "drawn", "Which pictures tell the story?", str(path), Plan(seed=42, raters=2, least=2, block=block),
        Rules(), "2026-01-01T00:00:00Z", settings=fields,
    )  # fmt: skip
    return make_study(folder / "study", plan, listed, taught).folder


_TAUGHT: Mapping[str, Mapping[str, Any]] = {
    "all-types": {
        "expected": {"sound": ("yes",), "quality": (4, 5)},
        "explained": {"en": "The record says what the story says.", "zh": "记录与故事一致。"},
    },
    "compared": {"expected": {"better": (1, 2)}},
    "watched": {},
}


def _pictures(folder: Path, number: int, count: int, side: str = "") -> tuple[Path, ...]:
    paths = []
    for turn in range(1, count + 1):
        path = folder / f"{number:02}{side}-{turn}.png"
        draw_panel(turn + number, (320, 240)).save(path)
        paths.append(path)
    return tuple(paths)


def _story(folder: Path, number: int) -> Drawn:
    return Drawn(
        f"kb25k_{number:04}", f"story-{number}",
        texts={"scenes": list(SCENES), "record": [
            ["Title", f"The Crow and the Jar {number}"], ["Setting", "dry fields"],
            ["Characters", ["a crow"]], ["Scenes", len(SCENES)], ["Moral", None],
        ]},
        sides=(_pictures(folder, number, 4),),
        parts={"questions": (
            Part(id=f"q-{number}-1", text="Why did the crow want to drink?", detail=("Cause",)),
            Part(id=f"q-{number}-2", text="What did the crow do with the pebbles?"),
        )},
        values=(
            Value(path="/title", label="Title", value=f"The Crow and the Jar {number}"),
            Value(path="/scenes", label="Number of scenes", value=len(SCENES), takes="number"),
            Value(path="/characters", label="Characters", value=["a crow"], takes="texts"),
            Value(path="/turns", label="Turning points", value=[2], takes="numbers", optional=True),
            Value(path="/moral", label="Moral", value=None, options=(None, "patience", "wisdom")),
        ),
    )  # fmt: skip


def _pair(folder: Path, number: int) -> Drawn:
    sides = (_pictures(folder, number, 3, "a"), _pictures(folder, number + 3, 3, "b"))
    return Drawn(f"kb25k_{number:04}", f"story-{number}", sides=sides, methods=("plain", "planned"))


def _film(folder: Path, number: int) -> Drawn:
    path = write_video(folder / f"{number:02}.mp4", 6, fps=8, size=(320, 240))
    return Drawn(f"film_{number:04}", f"story-{number}", sides=((path,),), methods=("plain",))
