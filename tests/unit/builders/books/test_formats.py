"""Books of known tales in every format: each tale is found with its own text, and nothing else."""

import json
from pathlib import Path

import pytest

from fabula.builders.books.building import BookOptions, import_books
from fabula.testing.made_books import all_tales, as_epub, as_html, as_markdown, as_text, made_book

BOOK = made_book(14, frames=2)
FORMATS = {
    "text.txt": as_text(BOOK).encode(),
    "markdown.md": as_markdown(BOOK).encode(),
    "page.html": as_html(BOOK).encode(),
    "book.epub": as_epub(BOOK),
}


def imported(folder: Path, files: dict[str, bytes], **options: object) -> list[dict]:
    """Split books; return the rows of their stories."""
    (folder / "books").mkdir()
    for name, data in files.items():
        (folder / "books" / name).write_bytes(data)
    chosen = BookOptions(workers=0, created_at="2026-01-01T00:00:00Z", **options)
    import_books(folder / "books", folder / "run", chosen)
    return rows(folder / "run" / "stories.jsonl")


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", FORMATS)
def test_book_when_its_tales_are_known_gives_each_with_its_own_text(name, tmp_path) -> None:
    found = imported(tmp_path, {name: FORMATS[name]})
    titles = {row["id"]: row["title"].casefold() for row in found}
    frames = [(row["title"].casefold(), titles.get(row["frame"])) for row in found]
    assert frames == [(tale.title.casefold(), frame and frame.casefold()) for tale, frame in all_tales(BOOK)]
    assert [row["text"].split() for row in found] == [tale.text.split() for tale, _ in all_tales(BOOK)]
    assert {row["language"] for row in found} == {"en"}


@pytest.mark.parametrize("name", FORMATS)
def test_book_when_split_accounts_for_all_that_is_in_no_story(name, tmp_path) -> None:
    imported(tmp_path, {name: FORMATS[name]})
    left = rows(tmp_path / "run" / "left_out.jsonl")
    usual = {"heading", "caption", "note"}
    reasons = {
        "text.txt": {"licence", "contents", "front_or_back_matter", *usual},
        "markdown.md": {"front_or_back_matter", "heading", "caption"},
    }
    assert {row["reason"] for row in left} == reasons.get(name, usual)
    assert all(row["words"] and row["text"] for row in left)


def test_book_when_it_has_a_hundred_thousand_words_is_split_whole(tmp_path) -> None:
    book = made_book(500, frames=20)
    text = as_text(book)
    assert len(text.split()) > 100_000
    found = imported(tmp_path, {"long.txt": text.encode()})
    assert [row["text"].split() for row in found] == [tale.text.split() for tale, _ in all_tales(book)]
