"""The pages of `fabula view` in a browser: quiet, accessible, as wide as the window, by day and night."""

import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.viewing.serving import HOST, Server
from fabula.viewing.shelf import open_shelf
from fabula.viewing.site import Site

REPLAYS = Path(__file__).parents[1] / "golden" / "replays"


@pytest.fixture(scope="module", params=["evaluate-katha", "entities-model"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("run")
    with tarfile.open(REPLAYS / f"{request.param}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    with open_shelf(folder / "run") as shelf, Server(0, Site(shelf)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://{HOST}:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("dark", [False, True])
def test_pages_when_walked_through_are_accessible_quiet_and_fit(
    chromium: Any, address: str, dark: bool
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = chromium.new_context(
        viewport={"width": 400, "height": 800}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: complaints.append(request.url) if address not in request.url else None)
    page.goto(address)
    for step in ("first", "unit", "calls", "call"):
        assert Axe().run(page).response["violations"] == [], step
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, step
        if step == "first":
            page.locator('tbody a:is([href^="/unit/"], [href^="/row/"])').first.click()
        elif step == "unit":
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            assert Axe().run(page).response["violations"] == [], "unfolded"
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, "unfolded"
            assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth)")
            page.get_by_role("link", name="calls of models").click()
        elif step == "calls":
            page.locator("tbody a").first.click()
    assert complaints == []
    context.close()
