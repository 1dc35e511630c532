"""The page of episodes in a real browser: quiet, offline, on a phone, accessible, and drawn."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.releases.entities.page import write_page
from fabula.releases.entities.tree import read_entity_set, statistics_of_set
from fabula.testing.report_documents import HOSTILE
from fabula.testing.written_episodes import write_episodes

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two episodes, one of which has hostile texts wherever there is a text."""
    folder = tmp_path_factory.mktemp("episodes")
    data = write_episodes(folder / "data")
    path = data / "scripts" / "ep_b.json"
    document = json.loads(path.read_bytes())
    sound = [text for text in HOSTILE if not any("\ud800" <= char <= "\udfff" for char in text)]
    document["story_overview"] = sound[0]
    document["entity_descriptions"]["Character 1"]["description"] = sound[1]
    document["entity_descriptions"]["Object 1"]["name"] = sound[2]
    document["entity_schedule"]["1:2"]["objects"] = [sound[2]]
    document["scenes"][0]["action_descriptions"] = [
        f"Ben and {sound[0]}",
        f"{sound[2]} {sound[3]} {sound[5]}",
    ]
    document["scenes"][0]["video_prompts"] = document["scenes"][0]["action_descriptions"]
    path.write_text(json.dumps(document), "utf-8")
    entity_set, _ = read_entity_set(data)
    write_page(folder / "page.html", entity_set, statistics_of_set(entity_set))
    return folder / "page.html"


def unfolded(page: Any) -> Any:
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    return page


def test_episode_page_when_inspected_is_as_every_page(
    inspected: Callable[[Path], Any], page_file: Path
) -> None:
    page = inspected(page_file)
    assert page.locator("details.episode").count() == 2
    assert page.title() == "Episodes: 2 in all"


def test_episode_page_when_it_is_narrow_breaks_no_word(opened: Opened, page_file: Path) -> None:
    page = unfolded(opened(page_file, width=400))
    widths = page.locator("#e1 tbody th, #e1 tbody td").evaluate_all("all => all.map(one => one.clientWidth)")
    assert min(widths) > 100


def test_episode_page_when_it_is_dark_is_light_on_dark(opened: Opened, page_file: Path) -> None:
    page = opened(page_file, dark=True)
    ground, ink = (
        sum(int(part) for part in page.evaluate(f"getComputedStyle(document.body).{name}")[4:-1].split(","))
        for name in ("backgroundColor", "color")
    )
    assert ground < 150 < 600 < ink


def test_episode_page_when_looked_at_has_plots_strips_and_tinted_mentions(
    opened: Opened, page_file: Path
) -> None:
    page = unfolded(opened(page_file, scripts=True))
    assert page.locator("svg.plot").count() == 4
    assert page.locator("#e1 svg.strip path.character").count() == 2
    assert page.locator("#e1 svg.strip path.scene").count() == 1
    assert page.locator("#e1 mark.object").first.text_content() == "the red cup"
    assert page.locator("#e1 tr.cut").count() == 2
    shots = page.locator("#e1 tr", has_text="the red cup").first.locator("td").nth(1).text_content()
    assert shots == "1, 5"
    assert page.locator("script, img").count() == 0
