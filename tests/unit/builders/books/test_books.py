"""What is not plain in books, what is hostile, and what is asked of a model."""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest

from fabula.builders.books.building import BookOptions, import_books
from fabula.builders.books.load_books import _Element, _facts, epub_book
from fabula.builders.books.markup import BadBook, Book, flat, html_book, plain_blocks, text_of
from fabula.builders.books.split_book import Limits, outline
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.status import read_report
from fabula.releases.katha.selection import Composition, known_details
from fabula.testing.made_books import all_tales, as_epub, as_html, as_markdown, as_text, made_book, made_tale
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


# -- Books of known tales in every format: each tale is found with its own text, and nothing else

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


SAID = "One morning the owl walked down to the well and met a crow there."


def page(title: str, body: str = f"<p>{SAID}</p>", head: str = "") -> str:
    return f"<html><head>{head}</head><body><h2>{title}</h2>{body}</body></html>"


def archive(documents: dict[str, str | bytes], spine: str = "", kind: str = "application/xhtml+xml") -> bytes:
    """Return an EPUB of documents, by the names in the archive; the manifest names them in ``spine``."""
    names = spine.split() or list(documents)
    items = "".join(f'<item id="i{n}" href="{name}" media-type="{kind}"/>' for n, name in enumerate(names))
    order = "".join(f'<itemref idref="i{n}"/>' for n in range(len(names)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("META-INF/container.xml", '<container><rootfile full-path="O/p.opf"/></container>')
        file.writestr("O/p.opf", f"<package><manifest>{items}</manifest><spine>{order}</spine></package>")
        for name, document in documents.items():
            file.writestr(f"O/{name}", document)
    return buffer.getvalue()


def told(book: Book) -> dict[str, list[str]]:
    """Return title -> paragraphs of the tales of a book, as rules find them."""
    tales = outline(book.blocks, Limits(5, 10_000, 8.0), "whole").tales
    return {tale.title: [flat(book.blocks[number].text) for number in tale.blocks] for tale in tales}


@pytest.mark.parametrize(
    ("there", "named"),
    [
        ("caf\u00e9.xhtml", "cafe%CC%81.xhtml"),  # the manifest decomposed, as macOS writes it
        ("cafe\u0301.xhtml", "caf\u00e9.xhtml"),
        ("A%20b.xhtml", "A%20b.xhtml"),  # escaped in the archive, too
        ("A b.XHTML", "a%20B.xhtml"),
    ],
)
def test_epub_when_its_manifest_writes_names_otherwise_is_read_whole(there, named) -> None:
    book = epub_book(archive({"a.xhtml": page("The Fox"), there: page("The Owl")}, f"a.xhtml {named}"))
    assert told(book) == {"The Fox": [SAID], "The Owl": [SAID]}


def test_epub_when_parts_of_its_reading_order_are_not_there_names_them_or_is_taken_without(tmp_path) -> None:
    data = archive({"a.xhtml": page("The Fox"), "e.xhtml": " "}, "a.xhtml lost.xhtml e.xhtml")
    with pytest.raises(BadBook, match=r"O/lost\.xhtml: it is not in the archive; O/e\.xhtml: it is empty"):
        epub_book(data)
    imported(tmp_path, {"b.epub": data}, settings=("load_books.incomplete=true", "split_book.least_words=5"))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["missing"] == ["O/lost.xhtml: it is not in the archive", "O/e.xhtml: it is empty"]
    assert summary["words_left_out"] == {"heading": 2}


def test_epub_when_two_files_become_the_name_that_is_asked_for_says_so() -> None:
    one, other = "caf\u00e9\u0327.xhtml", "cafe\u0327\u0301.xhtml"  # both become U+0229 U+0301
    named = "cafe\u0301\u0327.xhtml"
    with pytest.raises(BadBook, match="two files have this name"):
        epub_book(archive({one: page("A"), other: page("B")}, named))


RUBY = (
    "<ruby>\u689f<rt>\u3075\u304f\u308d\u3046</rt></ruby>\u306f<ruby>\u5ddd<rp>(</rp><rt>\u304b\u308f</rt>"
    "<rp>)</rp></ruby><ruby>\u6f22<rt>\u304b\u3093<rb>\u5b57<rtc>x<rt>\u3058</rtc></ruby>\u3078"
)


def test_ruby_when_in_a_page_leaves_the_characters_and_counts_the_readings() -> None:
    book = html_book(page("T", f"<p>{RUBY}</p>"))
    assert (book.blocks[-1].text, book.readings) == ("\u689f\u306f\u5ddd\u6f22\u5b57\u3078", 4)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p><img alt='T'/>here was an owl.</p>", "There was an owl."),
        ("<p><img alt='T'/>HERE was an owl.</p>", "THERE was an owl."),
        ("<p><img alt='T'/>There was an owl.</p>", "There was an owl."),  # the text has the letter, too
        ("<p><span><img alt='“Th'></span>is owl.</p>", "“This owl."),
        ("<div><img alt='T'></div><p>here was an owl.</p>", "There was an owl."),
        ("<div><img alt='T'></div><p>Where was an owl?</p>", "Where was an owl?"),
        ("<p><img alt='A'/> fox was there.</p>", "A fox was there."),
        ("<p>Say <img alt='OK'> now, then go.</p>", "Say now, then go."),
        ("<p><img alt='An owl'/>here it sat.</p>", "here it sat."),
    ],
)
def test_picture_of_a_letter_when_a_word_goes_on_from_it_is_the_letter(body, text) -> None:
    assert html_book(page("T", body)).blocks[-1].text == text


@pytest.mark.parametrize(
    "body", ["<p>The Tin Owl</p>", "<p>I.</p><p>The Tin Owl</p>", "<p>I. The Tin Owl.</p>", ""]
)
def test_title_when_a_chapter_says_it_again_is_not_its_first_sentence(body) -> None:
    assert told(html_book(page("I. The Tin Owl", f"{body}<p>{SAID}</p>"))) == {"The Tin Owl": [SAID]}
    assert told(html_book(f"<html><title>A Book</title><p>{SAID}</p></html>")) == {"whole": [SAID]}


CAFE, FOX = "Caf\u00e9 \u2013", "\u72d0\u2460"
XML = '<?xml version="1.0" encoding="{}"?>'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (page(CAFE, head="<meta charset=windows-1252>").encode("cp1252"), CAFE),
        (page(CAFE, head="<meta charset='iso-8859-1'>").encode("cp1252"), CAFE),
        (page(CAFE, head=f"<style>{'x{}' * 9000}</style><meta charset='latin1'>").encode("cp1252"), CAFE),
        (page(FOX, head="<meta http-equiv=x content='text/html; charset=x-sjis'>").encode("cp932"), FOX),
        (page(FOX, head="<meta charset='gb2312'>").encode("gb18030"), FOX),
        ((XML.format("koi8-r") + page("\u043b\u0438")).encode("koi8-r"), "\u043b\u0438"),
        ((XML.format("utf-16") + page(CAFE)).encode("utf-16-be"), CAFE),
        (page(CAFE, head="<!-- <meta charset=koi8-r> --><meta charset='utf-16'>").encode(), CAFE),
    ],
)
def test_encoding_when_a_page_states_it_is_that_one(data, expected) -> None:
    assert html_book(text_of(data, markup=True)).blocks[0].text == expected
    assert epub_book(archive({"a.xhtml": data})).blocks[0].text == expected


def test_encoding_when_latin_1_is_said_of_bytes_that_it_has_no_letters_for_is_windows_1252() -> None:
    data = "crow \u2013 \u201ccaf\u00e9\u201d".encode("cp1252")
    assert text_of(data, "latin-1", markup=False) == data.decode("cp1252")
    stated = b"Character set encoding: ISO-8859-1\r\n\r\n" + data
    assert text_of(stated, markup=False).endswith(data.decode("cp1252"))
    with pytest.raises(BadBook, match=r"it is not utf-8 at byte 5; .*load_books.encoding=windows-1252"):
        text_of(data, markup=False)


def test_encoding_when_given_goes_before_what_is_stated_in_an_epub_too() -> None:
    data = archive({"a.xhtml": page(CAFE, head="<meta charset='utf-8'>").encode("cp1252")})
    with pytest.raises(BadBook, match=r"O/a\.xhtml: it is not utf-8 at byte"):
        epub_book(data)
    assert epub_book(data, "windows-1252").blocks[0].text == CAFE


TALE = "THE FOX\n\nHe came on the twenty-\nfirst--\nand late\u2014\nso he said - \nand left."
SMALL_PRINT = (
    "***START**THE SMALL PRINT!**FOR PUBLIC DOMAIN ETEXTS**START***\n\nWhy is it here?\n\n*BEFORE!* YOU"
    " USE IT\n\nBy reading it you agree.\n\n*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*"
)


@pytest.mark.parametrize(
    "around",
    [
        f"An Etext\n\nWELCOME TO ETEXTS\n\n{SMALL_PRINT}\n\nTALE",
        f"TALE\n\n{SMALL_PRINT}",
        "***START** SMALL PRINT! for ALL\n\nWHY\n\n*END THE SMALL PRINT! FOR ALL*Ver.10/04/01*END*\n\nTALE",
        "*** START OF THE PROJECT GUTENBERG ETEXT **\n\nTALE\n\nEnd of this Project Gutenberg Etext\n\nMORE",
        "TALE\n\n[Transcriber's Note: spelling was kept.\n\nAS IT STOOD.]",
        "TALE\n\n[TRANSCRIBER\u2019S NOTE: spelling was kept.]",
        "TALE\n\ntranscriber's note: spelling was kept.",
        "Transcriber's Notes:\n\nThe spelling was kept as in print.\n\nTALE",
        "TALE\n\n[Illustration:\n\nTHE OWL\n\nat home]",
        "TALE\n\n[Footnote 1: so it is told.\n\nAnd told again.]",
    ],
)  # fmt: skip
def test_text_when_licence_and_notes_stand_around_a_tale_has_the_tale_alone(around) -> None:
    book = Book(list(plain_blocks(around.replace("TALE", f"{TALE}\n\n{TALE[9:]}", 1))))
    text = "He came on the twenty-first--and late\u2014so he said - and left."
    assert told(book) == {"THE FOX": [text, text]}


def test_facts_of_a_book_when_read_leave_out_what_is_empty_and_who_only_helped() -> None:
    said = [
        ("title", "Fables", {}), ("creator", "Aesop", {}), ("creator", "V. S. Vernon Jones", {"role": "trl"}),
        ("contributor", "A. Rackham", {"role": "ill"}), ("language", " ", {}), ("date", "1912-10-01", {}),
        ("identifier", "urn:1", {}), ("source", "https://example.org/11339", {}),
    ]  # fmt: skip
    assert _facts([_Element(tag=tag, text=text, attrs=attrs) for tag, text, attrs in said]) == {
        "title": "Fables", "author": "Aesop", "translator": "V. S. Vernon Jones", "year": "1912",
        "url": "https://example.org/11339",
    }  # fmt: skip
