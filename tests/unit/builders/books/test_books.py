"""What is not plain in books, what is hostile, and what is asked of a model."""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest

from fabula.builders.books.building import BookOptions, import_books
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.status import read_report
from fabula.releases.katha.composition import Composition, known_details
from fabula.testing.made_books import as_epub, as_text, made_book, made_tale
from fabula.testing.model_server import Asked, ModelServer

RIGHTS = {"rights": "public_domain_or_rights_compatible", "rights_reason": "the translator died in 1900"}


def split(folder: Path, data: bytes | str, name: str = "book.txt", **options: object) -> list[dict]:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    chosen = BookOptions(workers=0, created_at="2026-01-01T00:00:00Z", **options)
    import_books(path, folder / "run", chosen)
    return rows(folder / "run" / "stories.jsonl")


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def tale(number: int) -> str:
    return "\n\n".join(made_tale(number).paragraphs)


def test_numbers_when_they_are_the_only_headings_begin_tales(tmp_path) -> None:
    found = split(
        tmp_path, "\n\n".join(f"{number}.\n\n{tale(n)}" for n, number in enumerate(("I", "II", "III")))
    )
    assert [(row["title"], row["catalogue_number"]) for row in found] == [
        ("book.txt I", "I"), ("book.txt II", "II"), ("book.txt III", "III"),
    ]  # fmt: skip


def test_numbers_when_they_stand_in_a_titled_tale_are_its_parts(tmp_path) -> None:
    text = f"THE FOX\n\nI\n\n{tale(1)}\n\nII\n\n{tale(2)}\n\nTHE CRANE\n\nI\n\n{tale(3)}\n\nII\n\n{tale(4)}"
    found = split(tmp_path, text)
    assert [row["title"] for row in found] == ["The Fox", "The Crane"]
    assert len(found[1]["text"].split()) == sum(len(tale(n).split()) for n in (3, 4))


def test_tales_when_a_line_says_in_which_one_they_are_told_name_it(tmp_path) -> None:
    text = f"THE KING\n\n{tale(1)}\n\nTHE CRANE\n\n(Told in: The King)\n\n{tale(2)}"
    first, second = split(tmp_path, text)
    assert (first["frame"], second["frame"]) == (None, first["id"])
    assert "Told in" not in second["text"]


def test_sources_when_given_or_said_stand_in_each_story_and_the_rest_is_counted(tmp_path) -> None:
    front = "---\nedition: Old Press\nyear: 1894\nurl: https://example.org/b\n---\n"
    body = f"# The Fox (Perry 15)\n\n[Pg 12] {tale(1)}\n\n# The Crane\n\n{tale(2)} [Pg 13]"
    first, second = split(tmp_path, front + body, "b.md", language="en", collection="aesop", **RIGHTS)
    assert (first["catalogue_number"], first["page"], first["source_reference"]) == (
        "Perry 15",
        "12",
        "Perry 15, p. 12",
    )
    assert {row["edition"] for row in (first, second)} == {"Old Press"}
    assert (second["year"], second["rights_reason"]) == ("1894", RIGHTS["rights_reason"])
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["not_known"]["translator"] == 2 and summary["not_known"]["edition"] == 0
    assert summary["rights_unresolved"] == 0


def test_model_when_asked_says_by_numbers_where_tales_begin(tmp_path) -> None:
    parts = [made_tale(n).paragraphs for n in range(3)]
    sizes = [len(part) for part in parts]

    def answer(asked: Asked) -> object:
        assert re.search(rf"\[{sum(sizes)}\] ", asked.text)
        starts = [(sizes[0] + 1, "inner_story"), (sizes[0] + sizes[1] + 1, "frame_again")]
        return {"boundaries": [{"paragraph": number, "starts": what} for number, what in starts]}

    text = "\n\n".join("\n\n".join(part) for part in parts)
    with ModelServer(answer) as server:
        outer, inner = split(tmp_path, text, model=f"{server.openai_url}#m")
        again = split(tmp_path, text, model=f"{server.openai_url}#m")
        assert len(server.log) == 1
    assert again == [outer, inner]
    assert inner["frame"] == outer["id"] and "books/split_book" in inner["split_by"]
    assert outer["text"].split() == [
        word for part in (parts[0], parts[2]) for text in part for word in text.split()
    ]


def test_model_when_it_names_no_paragraph_of_the_book_leaves_it_unsure(tmp_path) -> None:
    wrong = {"boundaries": [{"paragraph": 999, "starts": "story"}]}
    with ModelServer(lambda asked: wrong) as server:
        assert split(tmp_path, tale(1), model=f"{server.openai_url}#m") == []
    assert rows(tmp_path / "run" / "left_out.jsonl")[0]["reason"].startswith("unsure")


def bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/container.xml", b" " * (2**28 + 1))
    return buffer.getvalue()


def entities() -> bytes:
    head = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 20 if n else "lol"}">' for n in range(20))
    container = f"<!DOCTYPE c [{head}]><container><rootfile full-path='&e19;'/></container>"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("META-INF/container.xml", container)
    return buffer.getvalue()


HOSTILE = {
    "empty.txt": (b"", "no_text"),
    "blank.html": (b"<html><body><p> </p></body></html>", "no_text"),
    "latin.txt": ("Der B\u00e4r".encode("latin-1"), "wrong_encoding"),
    "nul.txt": (b"A fox\0 saw", "wrong_encoding"),
    "front.md": (b"---\n[: {\n---\ntext", "front_matter"),
    "cut.epub": (as_epub(made_book(6))[:-400], "damaged"),
    "middle.epub": (as_epub(made_book(6)).replace(b"PK\x01\x02", b"PK\x01\x03"), "damaged"),
    "text.epub": (b"no archive at all", "damaged"),
    "bomb.epub": (bomb(), "too_large"),
    "entities.epub": (entities(), "damaged"),
}


def test_books_when_hostile_fail_each_with_its_reason_and_harm_no_other(tmp_path) -> None:
    (tmp_path / "books").mkdir()
    for name, (data, _) in HOSTILE.items():
        (tmp_path / "books" / name).write_bytes(data)
    (tmp_path / "books" / "good.txt").write_text(as_text(made_book(6)), "utf-8")
    chosen = BookOptions(workers=0, settings=("run.threshold=0",))
    import_books(tmp_path / "books", tmp_path / "run", chosen)
    codes = {item.id: item.code for item in read_report(tmp_path / "run").items}
    assert codes == {name.partition(".")[0]: code for name, (_, code) in HOSTILE.items()}
    assert len(rows(tmp_path / "run" / "stories.jsonl")) == 6


def test_markup_when_tags_are_wild_is_read_all_the_same(tmp_path) -> None:
    body = (
        f"<h2>The Fox</h2><p>{tale(1)}</b></i></p><div><p>unclosed {'<div>' * 3000}<h2>The Crane<p>{tale(2)}"
    )
    page = f"<html><body>{body}"
    assert [row["title"] for row in split(tmp_path, page, "wild.html")] == ["The Fox", "The Crane"]


@pytest.mark.slow
def test_release_when_packed_says_where_each_public_story_is_from(tmp_path) -> None:
    split(
        tmp_path, as_text(made_book(30, frames=2)), collection="panchatantra", edition="Old Press", **RIGHTS
    )
    settings = ("assemble_records.license=CC-BY-4.0", "screen_stories.min_event_share=0")
    build_katha(
        tmp_path / "run" / "stories.jsonl", tmp_path / "built", BuildOptions(workers=0, settings=settings)
    )
    told = {row["id"]: row for row in rows(tmp_path / "built" / "sources.jsonl")}
    assert {row["edition"] for row in told.values()} == {"Old Press"}
    assert any(row["frame"] for row in told.values())
    composition = Composition(details=known_details(told.values(), "id", set(told) - {"book-001"}))
    for line in rows(tmp_path / "built" / "records.jsonl"):
        composition.add_record(line["payload"]["record"])
    (entry,) = composition.manifest()
    sources = {row["story_id"]: row for row in entry["sources"]}
    assert "book-001" not in sources and all(row["frame"] != "book-001" for row in sources.values())
    assert sources["book-003"]["rights_reason"] == RIGHTS["rights_reason"]
