"""Somebody who opens the pages of a study in a browser, and notes what a reviewer should never see."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

KEPT = "() => JSON.parse(localStorage.getItem('fabula-review-waiting') ?? '[]').length"
ONLINE = "() => { dispatchEvent(new Event('online')); }"
HOLLOW = (files(__package__) / "hollow.js").read_text("utf-8")
"""Headings below which nothing is to be seen."""
MOST_TABS = 80


def follow(page: Any, link: Any) -> None:  # noqa: ANN401 - Playwright's
    """Click what leads to another page, and wait until that page has loaded: a click alone does not wait."""
    with page.expect_navigation():
        link.click()


class Visitor:
    """A browser of one person.

    Args:
        chromium: a running Chromium, driven by Playwright.
        settings: of its context, such as ``java_script_enabled``.

    Attributes:
        page: the page that is open.
        complaints: what the page wrote to the console, threw, or could not load.
        hosts: whom it asked for anything.
    """

    def __init__(self, chromium: Any, **settings: Any) -> None:  # noqa: ANN401 - Playwright's
        self.context = chromium.new_context(viewport={"width": 1280, "height": 900}, **settings)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    # -- where one is

    def agree(self, link: str) -> None:
        """Open a personal link, agree, and wait for what comes next."""
        self.page.goto(link)
        self.page.locator("#agreeing input[value=none]").check()
        self.page.locator("#agreeing [type=submit]").click()
        self.page.locator("#agreeing").wait_for(state="detached")

    def ready(self) -> None:
        """Wait until the item that is open can be answered."""
        self.page.locator("#save[aria-disabled=false]").wait_for()

    @property
    def heading(self) -> str:
        """What the page is called."""
        return str(self.page.locator("h1").inner_text())

    @property
    def said(self) -> str:
        """What the page says beside its button."""
        return str(self.page.locator("#said").inner_text())

    @property
    def kept(self) -> int:
        """How many answers wait on the device."""
        return int(self.page.evaluate(KEPT))

    # -- what one does

    def answer_all(self, but: tuple[str, ...] = ()) -> None:
        """Answer the questions of the item that is open, whatever they ask; some may be left out by name."""
        for question in self.page.locator("fieldset.question:visible").all():
            if question.get_attribute("data-name") in but:
                continue
            boxes = question.locator("input[type=radio], [data-unclear]")
            (boxes.last if question.get_attribute("data-type") in ("text", "labels") else boxes.first).check()

    def save(self, then: Callable[[], None] | None = None) -> None:
        """Save the answers and wait until the page has moved on."""
        before = self.key
        self.page.locator("#save").click()
        if then is not None:
            then()
        self.page.locator(f'#questions[data-key="{before}"]').wait_for(state="detached")

    @property
    def key(self) -> str:
        """The item that is open."""
        return str(self.page.locator("#questions").get_attribute("data-key"))

    def tab_to(self, selector: str) -> None:
        """Go to an element with the tabulator alone."""
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            if self.page.locator(selector).evaluate_all("(all) => all.includes(document.activeElement)"):
                return
        raise AssertionError(f"{selector} cannot be reached with the tabulator")

    def close(self) -> None:
        """Close the browser of this person."""
        self.context.close()
