"""Texts that YAML, JSON, Markdown or HTML could take for something else, in the metadata of all kinds."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

import fabula
from fabula.errors import InputError
from fabula.kinds.verbs import pack, verify
from fabula.models.keys import MARK
from fabula.releases.entities.form import import_episodes
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import PackResult, front_matter_text
from fabula.releases.parquet import parse_front_matter
from fabula.releases.target import markdown
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.made_runs import CREATED, shots_run, suite_run
from fabula.testing.written_episodes import write_episodes

PLAIN = {"text", "text_special", "softbreak"}
ASTRAL = "東京&𠮷 😀 \U0010fffd"
LINES = (
    ASTRAL, "---", "--- |", "null", "yes", "1.0", "0x1F", "2026-01-01", "@at", "%percent", "`tick`",
    "```", "~~~", "- item", "1. first", "# head #", "> quote", "a | b \\| c", "[x](http://127.0.0.1)",
    "![x](y)", "<b>x</b>", "<!-- x -->", "&amp; &#65; & &c", "*a* _b_ __c__ a_b", "~~gone~~",
    "http://127.0.0.1 www.example.org", "$x$", "key: value # not", "'one' \"two\"", "{{ 1 }} {% x %}",
    "!!python/object:x", "&anchor *alias", "? [", "\\", "\\*", "<https://127.0.0.1>", "===", "a  b",
    "\u202eright", "\ufeffmark", "]](", "| |", "%%", ": :",
)  # fmt: skip
"""One line each, as a title may be."""
TEXTS = (
    *LINES, "next\x85line", "a\u2028b\u2029c", "a\nb", "tab\there", "\x1b[31mred", "\x7f\x80", "-\n-",
    "\u0301",
)  # fmt: skip
"""What any other field may hold, too."""
ALL = " / ".join(TEXTS)


def one_line(text: str) -> str:
    return " ".join(text.split())


def stories(folder: Path, text: str) -> Path:
    bundles = sample_bundles(3)
    for bundle in bundles:
        record = bundle["record"]
        record["title"] = text
        record["provenance"] |= {"source_dataset": text, "source_reference": text}
        record["scenes"][0] |= {"objects": [text], "action": text, "emotion": text}
        bundle["producers"].append({"path": "$.title", "producer": f"hand:{text}"})
        rehash(bundle)
    return write_run(folder / "run", bundles)


def prompts(folder: Path, text: str) -> Path:
    return suite_run(folder, [{"prompt": "A man opens a door, and then walks out.", "author": text}])


def episodes(folder: Path, text: str) -> Path:
    data = write_episodes(folder / "data")
    for path in (data / "scripts").glob("*.json"):
        document = json.loads(path.read_bytes())
        document["story_overview"] = text
        document["note"] = {text: text}
        path.write_text(json.dumps(document), "utf-8")
    return import_episodes(data, folder / "run", CREATED).out


def scripts(folder: Path, text: str) -> Path:
    source = draw_shot_set(folder / "data")
    for path in source.rglob("story.json"):
        document = json.loads(path.read_bytes())
        document["Story_type"] = {"en": text, "ch": text}
        document["Shots"][0]["Plot Correspondence"] = {"en": text, "ch": text}
        path.write_text(json.dumps(document), "utf-8")
    return shots_run(source, folder / "run", source=text)


KINDS: dict[str, Callable[[Path, str], Path]] = {
    "katha": stories, "events": prompts, "entities": episodes, "shots": scripts
}  # fmt: skip


def packed(run: Path, out: Path, title: str) -> PackResult:
    flat = json.loads((run / "run.json").read_bytes())["kind"] != "katha"
    who = {"title": title, "creators": (title, f"B {title}"), "contact": ALL, "license": "CC-BY-4.0"}
    languages = ("en",) if flat else ()
    return pack(run, out, PackOptions("0.1.0", **who, languages=languages, allow_drafts=True))


def heading(card: str) -> str:
    tokens = MarkdownIt().parse(card.split("\n---\n", 1)[1])
    at = next(number for number, token in enumerate(tokens) if token.type == "heading_open")
    return text_of(tokens[at + 1])


def text_of(token: Any) -> str:
    """Return what a reader sees; anything but plain text shows that something was taken for markup."""
    assert {child.type for child in token.children} <= PLAIN, token.children
    return "".join("\n" if child.type == "softbreak" else child.content for child in token.children)


@pytest.mark.parametrize("kind", KINDS)
def test_release_when_every_field_holds_hostile_text_packs_verifies_and_loads(kind, tmp_path):
    title = " / ".join(one for one in LINES if one.isprintable())
    result = packed(KINDS[kind](tmp_path, ALL), tmp_path / "dist", title)
    report = verify(result.folder)
    assert report.ok, [str(issue) for issue in report.issues]
    assert len(fabula.load(result.folder)) > 0
    card = (result.folder / "README.md").read_text("utf-8")
    assert parse_front_matter(card)["pretty_name"] == title
    assert heading(card) == one_line(title)
    metadata = json.loads((result.folder / "croissant_metadata.json").read_bytes())
    assert [one["name"] for one in metadata["creator"]] == [title, f"B {title}"]
    assert one_line(title) in (result.folder / "LICENSE").read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_pack_when_a_secret_was_taken_out_of_a_text_refuses_and_writes_nothing(kind, tmp_path):
    run, out = KINDS[kind](tmp_path, f"a {MARK} b"), tmp_path / "dist"
    with pytest.raises(InputError, match="rule secret-removed"):
        packed(run, out, "A title")
    assert not out.exists()


def test_front_matter_when_a_title_looks_like_yaml_reads_back_as_the_title() -> None:
    for title in LINES:
        card = f"---\n{front_matter_text({'pretty_name': title, 'tags': [title]})}---\n"
        assert parse_front_matter(card) == {"pretty_name": title, "tags": [title]}


def test_collections_when_they_look_like_markup_are_cells_of_their_table(tmp_path: Path) -> None:
    bundles = sample_bundles(len(TEXTS))
    for bundle, text in zip(bundles, TEXTS, strict=True):
        bundle["record"]["provenance"]["source_dataset"] = text
        bundle["record"]["split"] = "train"
        for variant in bundle["variants"]:
            variant["subset"] = "train"
        rehash(bundle)
    folder = packed(write_run(tmp_path / "run", bundles), tmp_path / "dist", "Fables").folder
    assert verify(folder, quick=True).ok
    tokens = MarkdownIt().enable("table").parse((folder / "README.md").read_text("utf-8"))
    cells = [
        tokens[number + 2]
        for number, token in enumerate(tokens)
        if token.type == "tr_open" and tokens[number + 1].type == "td_open"
    ]
    shown = {text_of(cell) for cell in cells if {child.type for child in cell.children} <= PLAIN}
    assert {one_line(text) for text in TEXTS} <= shown


@pytest.mark.parametrize("form", ["{}", "# {}", "- {}", "| {} |\n|---|\n| {} |", "word\n{}", "> {}"])
def test_markdown_when_a_text_stands_anywhere_shows_it_as_it_is(form: str) -> None:
    parser = MarkdownIt("gfm-like", {"linkify": False})
    for text in TEXTS:
        tokens = parser.parse(form.replace("{}", markdown(text)))
        lines = "\n".join(text_of(token) for token in tokens if token.type == "inline").split("\n")
        assert [line for line in lines if line != "word"] == [one_line(text)] * form.count("{}")
