"""The pages of a leaderboard in a browser: nothing is loaded, nothing sticks out, rows can be filtered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.leaderboard.making import BoardOptions, init
from fabula.leaderboard.site import build
from fabula.leaderboard.submission import SubmitOptions, submit
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth

Opened = Callable[..., Any]
ALL = {
    "authors": ("A. Author",), "model": "m", "model_version": "1", "model_date": "2026", "ran_by": "us",
    "prompt_rewriting": "none", "training_overlap": "none",
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a row that declares everything, one that does not, and one that holds nothing."""
    base = tmp_path_factory.mktemp("leaderboard")
    board = base / "board"
    for number, name in enumerate(("declared", "undeclared"), 1):
        (base / name).mkdir()
        made = write_simulated(base / name, 36, [(name, Truth())], seed=number)
        if number == 1:
            options = BoardOptions(
                like=made.run, release=made.release, resamples=100, published=("kathabench",)
            )
            init(board, options)
        given = ALL if name == "declared" else {}
        submit(made.run, board, SubmitOptions(name=name, date="2026-01-01", **given))
    (board / "submissions" / "empty").mkdir()
    build(board, base / "site")
    return base / "site"


@pytest.mark.parametrize("name", ["index.html", "methods/declared.html"])
def test_leaderboard_when_inspected_is_as_every_page(
    inspected: Callable[[Path], Any], site: Path, name: str
) -> None:
    assert "storyboards (katha) 0.1.0" in inspected(site / name).title()


def test_leaderboard_when_filtered_shows_the_rows_that_declare_everything(opened: Opened, site: Path) -> None:
    page = opened(site / "index.html")
    rows = page.locator("table.ranking tbody tr")
    assert rows.count() == 2
    page.select_option("#declared", "all")
    assert [row.is_visible() for row in rows.all()].count(True) == 1
    assert page.get_by_text("declaration", exact=True).count() == 1
    page.get_by_role("link", name="declared", exact=True).first.click()
    assert page.locator("h1").inner_text() == "declared"
