"""A hidden story that leaked is found however it is encoded, wherever it stands; the work stays bounded."""

import base64
import html
import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fabula.releases.hidden.decodings import TooMuchEncoded, plain, readings
from fabula.releases.hidden.marks import Marks, marks_of
from fabula.releases.hidden.search import search
from fabula.releases.pack.packing import PackResult


def units(letter: str) -> list[bytes]:
    """The one or two numbers that JSON writes a letter with."""
    wide = letter.encode("utf-16-be")
    return [wide[start : start + 2] for start in range(0, len(wide), 2)]


INVISIBLE = "\u00ad\u2060\ufeff\u200d\ufe0f\U000e0020"
ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "invisible characters": lambda text: "\u200b".join(text),  # noqa: PLW0108 - all alike
    "invisible of all kinds": lambda text: "".join(
        one + INVISIBLE[number % len(INVISIBLE)] for number, one in enumerate(text)
    ),
    "wide letters": lambda text: text.translate({one: one + 0xFEE0 for one in range(0x21, 0x7F)}),
    "entities by name": lambda text: html.escape(text).replace(" ", "&nbsp;").replace("_", "&lowbar;"),
    "entities in decimal": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "entities in hexadecimal": lambda text: "".join(f"&#x{ord(one):x};" for one in text),
    "percent signs": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "escapes of JSON": lambda text: "".join(
        f"\\u{pair.hex()}" for one in text for pair in units(one)
    ),
    "escapes of Markdown": lambda text: text.replace("_", "\\_").replace(".", "\\."),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "base64 after letters": lambda text: f"ab{base64.b64encode(text.encode()).decode()}",
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16")).decode(),
    "base64 of UTF-16, the other order": lambda text: base64.b64encode(text.encode("utf-16-be")).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
}  # fmt: skip
FILES = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")


def place_everywhere(folder: Path, text: str) -> list[str]:
    """Write a text into every place that a public folder has for one; return the places."""
    for encoding in FILES:
        (folder / f"{encoding}.md").write_bytes(f"Some notes: {text} and more.\n".encode(encoding))
    (folder / "odd.bin").write_bytes(b"\0\x01\xfe\xff" * 4 + text.encode("utf-16-le") + b"\0")
    (folder / "notes.csv").write_text(f'1,"{text}"\n', "utf-8")
    (folder / "notes.json").write_text(json.dumps({"deep": [{"note": f"see {text}."}]}), "utf-8")
    (folder / "key.json").write_text(json.dumps({f"see {text}.": 1}), "utf-8")
    (folder / "notes.jsonl").write_text(f"{{}}\n{json.dumps({'note': text}, ensure_ascii=False)}\n", "utf-8")
    inner = pa.field("inner", pa.string(), metadata={"note": text})
    tables = {
        "column": pa.table({"a": [f"see {text}."]}),
        "bytes": pa.table({"a": [f"see {text}.".encode()]}),
        "list": pa.table({"a": [[{"b": text}]]}),
        "value": pa.table({"a": [1]}).replace_schema_metadata({"note": text}),
        "key": pa.table({"a": [1]}).replace_schema_metadata({text: "note"}),
        "field": pa.table({"a": [1]}, schema=pa.schema([pa.field("a", pa.int64(), metadata={"note": text})])),
        "inner": pa.table([pa.array([{"inner": "x"}], pa.struct([inner]))], names=["a"]),
        "name": pa.table({f"see {text}.": [1]}),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def secret(packed: PackResult) -> dict:
    assert packed.hidden is not None
    return json.loads((packed.hidden / "annotations.jsonl").read_bytes().splitlines()[0])


@pytest.fixture(scope="module")
def marks(packed: PackResult, secret: dict) -> Marks:
    assert packed.hidden is not None
    return marks_of(packed.folder, packed.hidden, [secret["story_id"]])


def found(folder: Path, marks: Marks) -> set[str]:
    return {issue.where.partition(" ")[0].partition(":")[0] for issue in search(folder, marks, None)}


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("part", ["id", "text"])
def test_a_leak_when_encoded_is_found_in_every_place(
    secret: dict, marks: Marks, tmp_path: Path, name: str, part: str
) -> None:
    text = f"id {secret['story_id']}, no more" if part == "id" else secret["story_text"][:200]
    places = place_everywhere(tmp_path, ENCODINGS[name](text))
    assert sorted(set(places) - found(tmp_path, marks)) == []


@pytest.mark.parametrize("first", ENCODINGS)
def test_a_leak_when_encoded_twice_is_found(secret: dict, marks: Marks, first: str) -> None:
    missed = []
    for second, encode in ENCODINGS.items():
        if second == "wide letters" and first not in ("as it is", "invisible characters"):
            continue  # letters of another alphabet are no code any more
        content = f"see {encode(ENCODINGS[first](secret['story_text'][:200]))}."
        if not any(marks.findings(text) for text in readings(content)):
            missed.append(second)
    assert missed == []


def test_a_leak_when_encoded_four_times_is_found(secret: dict, marks: Marks) -> None:
    text = secret["story_text"][:200]
    for name in ("base64 of UTF-16", "base64 in lines", "entities in hexadecimal", "percent signs"):
        text = ENCODINGS[name](text)
    assert any(marks.findings(one) for one in readings(text))


def test_a_leak_when_a_text_of_the_same_bytes_came_before_is_found(secret: dict, marks: Marks) -> None:
    # Two texts whose bytes in memory are the same have the same hash, and only one of them tells.
    told = secret["story_text"][:200].encode("ascii")
    other = told.decode("utf-16-le")
    contents = [other, told.decode("ascii")]
    assert hash(contents[0]) == hash(contents[1])
    assert [bool(marks.findings(plain(one))) for one in contents] == [False, True]
    assert any(marks.findings(one) for one in readings(f"{base64.b64encode(told).decode()} {told.hex()}"))


def test_public_files_when_they_hold_hashes_and_long_words_are_no_leak(
    packed: PackResult, marks: Marks
) -> None:
    assert found(packed.folder, marks) == set()


@pytest.mark.parametrize(
    "content",
    [
        "word & %20 \\u0041 " * 5_000,
        "A" * 100_000,
        "&amp;" * 20_000,
        "a\u0301\u0323" * 30_000,
        base64.b64encode(base64.b64encode(bytes(range(256)) * 200)).decode(),
        "0123456789abcdef" * 6_000,
        bytes(range(256)) * 400,
        "\u200b" * 100_000,
    ],
    ids=["mixed", "letters", "entities", "accents", "base64", "hex", "bytes", "invisible"],
)
def test_work_when_much_is_encoded_is_bounded_by_the_length(content: str | bytes) -> None:
    try:
        assert sum(map(len, readings(content))) <= 12 * len(content) + 40_000
    except TooMuchEncoded:
        return


def test_a_file_when_it_unfolds_without_end_is_named_as_not_searched(marks: Marks, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("%" + "25" * 20_000 + "41")
    (issue,) = {(one.where, one.code) for one in search(tmp_path, marks, None)}
    assert issue == ("notes.md:1", "hidden-unsearched") or issue == ("notes.md", "hidden-unsearched")


def test_text_of_percent_signs_when_an_address_is_encoded_is_read() -> None:
    assert urllib.parse.unquote("kb%5F1") in set(readings("kb%5F1"))
