"""A headless Chromium for the tests of pages: skipped where there is none, failed where CI is set."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.review_visitor import HOLLOW

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


@pytest.fixture
def inspected(opened: Callable[..., Any]) -> Callable[[Path], Any]:
    """Open a file and check what every page keeps to; return the page, unfolded.

    At three widths nothing is wider than the window, first columns stay and have whole words, tables use
    the margins before they are cut; on paper nothing is cut, in dark
    ink on white; axe finds nothing by day and by night; nothing is asked of
    anybody; without its pictures it is light. No section is empty, as it is opened and under each filter.
    """

    def inspect(file: Path) -> Any:
        from axe_playwright_python.sync_playwright import Axe

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
            found = Axe().run(page).response
            assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == [], scheme
            assert {one["id"] for one in found["incomplete"]} <= UNDECIDED
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
