"""A headless Chromium for the tests of pages: skipped where there is none, failed where CI is set."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
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


def _note_request(page: Any, file: Path, url: str) -> None:
    if not url.startswith((file.as_uri(), "data:")):
        page.complaints.append(f"request: {url}")


def _missing(reason: str) -> None:
    if IN_CI:
        pytest.fail(f"CI is set, and there is {reason}")
    pytest.skip(reason)
