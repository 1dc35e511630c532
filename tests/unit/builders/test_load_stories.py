"""Stories, records and edits as they are read from files; what is refused, with its message whole."""

import json
import re
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from fabula.builders.katha.drafts import author_of
from fabula.builders.rows import Settings, guessed_languages, unmarked_titles
from fabula.errors import InputError

GIVEN = {"story_id": "one", "scenes": [{"scene_text": "A fox ran."}, {"scene_text": "A crow flew."}]}


def errors_of(call) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return "\n".join(str(problem) for problem in caught.value.problems)


def write(path, data: bytes):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_jsonl_when_sound_keeps_the_text_untouched_beside_its_normal_form(katha, write_rows) -> None:
    text = "A  fox\r\nran. \u200dCafe\u0301 crow\tflew.\n"
    story = katha.load([("stories", write_rows({"text": text}))])["one"]["story"]
    assert story["text"] == text
    assert story["normalized_text"] == "A fox ran. \u200dCafé crow flew."


def test_jsonl_when_bom_and_crlf_reads_as_without(katha, write_rows, tmp_path) -> None:
    plain = write_rows({}, {"id": "two"})
    data = b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n")
    assert katha.load([("stories", write(tmp_path / "b.jsonl", data))]) == katha.load([("stories", plain)])


GOOD = {
    "id": "one", "title": "A Tale", "language": "en", "text": "A fox ran. A crow flew.",
    "source_collection": "aesop", "rights_status": "public_domain_or_rights_compatible",
}  # fmt: skip


def jsonl(*rows: Any) -> bytes:
    """Return rows as lines: changes of a sound row, or lines as they are."""
    lines = [row if isinstance(row, str) else json.dumps({**GOOD, **row}, ensure_ascii=False) for row in rows]
    return "\n".join(lines).encode()


REFUSED: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    # in bytes and as JSON
    "Latin-1": ("s.jsonl", jsonl({}, {"id": "two", "title": "Café"}).replace("é".encode(), b"\xe9"), {}),
    "a NUL byte": ("s.jsonl", jsonl({}).replace(b"fox", b"f\0x"), {}),
    "a comma on line 4000": (
        "s.jsonl", jsonl(*({"id": f"s{n}"} for n in range(1, 4000)), '{"id": "s4000",}', {}), {},
    ),
    "too deep": ("s.jsonl", b"[" * 200_000, {}), "NaN": ("s.jsonl", b'{"id": NaN}', {}),
    "a key twice": ("s.jsonl", b'{"id": "a", "id": "b"}', {}), "a list": ("s.jsonl", b"[1, 2]", {}),
    "a text": ("s.jsonl", b'"text"', {}), "null": ("s.jsonl", b"null", {}),
    "a number as title": ("s.jsonl", jsonl({"title": 7}), {}),
    "half of a pair": ("s.jsonl", b'{"id": "one", "title": "\\ud800"}', {}),
    "NUL in a title": ("s.jsonl", b'{"id": "one", "title": "a\\u0000"}', {}),
    "empty": ("s.jsonl", b"", {}), "blank": ("s.jsonl", b"\n\n  \n", {}),
    "a mark alone": ("s.jsonl", b"\xef\xbb\xbf", {}),
    # as a table
    "no title": ("s.jsonl", b'{"name": "Ant", "text": "A thirsty ant."}', {}),
    "another folder": ("folder/a.csv", b"a,b", {}), "another form": ("a.xlsx", b"PK", {}),
    "a column twice": ("s.csv", b"title,text,title\na,b,c\n", {}),
    "semicolons": ("s.csv", b"title;text\na;b\n", {}), "tabs": ("s.csv", b"title\ttext\na\tb\n", {}),
    "Windows": ("s.csv", b"title\nFox \x96\n", {}),
    # in what rows say
    "an id twice": ("s.jsonl", jsonl({}, {}), {}),
    "an id in capitals": ("s.jsonl", jsonl({}, {"id": "ONE"}), {}),
    "no id and no prefix": ("s.jsonl", jsonl({"id": None}), {"id_prefix": ""}),
    "a misspelt column": ("s.jsonl", jsonl({"morale_label": "wisdom"}), {}),
    **{f"unknown {name}": ("s.jsonl", jsonl({name: "bogus"}), {})
       for name in ("moral_label", "narrative_type", "rights_status")},
    "several": (
        "s.jsonl",
        jsonl({"id": "a b", "moral_label": "x"}, {"text": "  "}, {"id": "ok", "language": "e n"}), {},
    ),
    **{f"over {name}": ("s.jsonl", jsonl({}, {"id": "two"}), {name: least}) for name, least in
       (("max_file_bytes", 10), ("max_story_characters", 10), ("max_stories", 1))},
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_stories_when_refused_are_told_all_that_is_wrong_and_what_to_do(katha, tmp_path, case, snapshot):
    name, data, settings = REFUSED[case]
    path = write(tmp_path / name, data)
    stories = path if path.parent == tmp_path else path.parent
    message = errors_of(lambda: katha.load([("stories", stories)], **settings))
    places = re.sub(r"\(column \d+, .*\)", "(column N)", message)  # versions of Python count otherwise
    assert places.replace(str(tmp_path), "...") == snapshot


def test_number_when_too_long_to_be_read_is_told_with_its_line(katha, tmp_path) -> None:
    path = write(tmp_path / "s.jsonl", b'{"id": ' + b"9" * 5000 + b"}")
    assert "s.jsonl:1" in errors_of(lambda: katha.load([("stories", path)]))


def test_problems_of_several_files_are_all_in_one_error(katha, tmp_path) -> None:
    paths = [write(tmp_path / "s.jsonl", jsonl({"text": "  "})), tmp_path / "missing.jsonl"]
    message = errors_of(lambda: katha.load([("stories", path) for path in paths]))
    assert "s.jsonl:1, text" in message and "missing.jsonl" in message


TALE = "A thirsty ant climbed down to the spring, slipped, and was swept away. A dove dropped a leaf for her."


@pytest.mark.parametrize("form", ["list.json", "table.parquet", "lines.jsonl"])
def test_stories_when_columns_have_other_names_are_read_from_every_form(katha, tmp_path, form) -> None:
    rows = [
        {"name": "Ant", "body": TALE, "key": "a"},
        {"name": "Dove", "body": TALE + " Yes.", "key": "b"},
    ]
    path = tmp_path / form
    if form.endswith(".parquet"):
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text(
            json.dumps(rows, indent=1) if form == "list.json" else "\n".join(map(json.dumps, rows))
        )
    found = katha.load([("stories", path)], columns=("name=title", "body=text", "key=id"))
    story = found["b"]["story"]
    assert (story["title"], story["text"], story["language"]) == ("Dove", TALE + " Yes.", "en")
    assert (story["source_collection"], story["rights_status"]) == ("unknown", "unresolved")
    assert guessed_languages([path], Settings(columns=("body=text",))) == {"en": 2}
    assert guessed_languages([path], Settings(columns=("body=text",), language="de")) == {}


def test_ids_when_missing_are_numbered_in_order(katha, write_rows) -> None:
    path = write_rows({"id": ...}, {"id": "own"}, {"id": ...})
    assert list(katha.load([("stories", path)])) == ["kb25k_0001", "own", "kb25k_0002"]
    assert list(katha.load([("stories", path)], id_prefix="t-")) == ["t-0001", "own", "t-0002"]


def test_folder_when_files_have_front_matter_reads_them_in_name_order(katha, tmp_path) -> None:
    folder = tmp_path / "tales"
    (folder / "sub").mkdir(parents=True)
    common = "language: en\nsource: aesop\nrights_status: unresolved\n"
    (folder / "b.txt").write_text(f"---\ntitle: Bee\nid: 007\n{common}---\nA bee flew.\n")
    (folder / "sub" / "a.md").write_text(f"---\n{common}---\n\n# The Ant\n\nAn ant ran.\n")
    (folder / "c.txt").write_text("# The Red Kite\n\nA kite rose.\n")
    (folder / "d.txt").write_text("The Red Kite\n\nA kite rose.\n")
    (folder / ".hidden.txt").write_text("x")
    (folder / "notes.pdf").write_text("x")
    found = katha.load([("stories", folder)], language="en", source_collection="aesop")
    assert list(found) == ["007", "c", "d", "a"]
    kites = [(found[key]["story"]["title"], found[key]["story"]["normalized_text"]) for key in "cd"]
    assert kites == [("The Red Kite", "A kite rose."), ("D", "The Red Kite A kite rose.")]
    assert unmarked_titles([folder], Settings()) == ["tales/d.txt"]
    assert found["a"]["story"]["title"] == "The Ant"
    assert found["a"]["story"]["normalized_text"] == "An ant ran."


def test_folder_when_files_are_plain_takes_id_and_title_from_their_names(katha, tmp_path) -> None:
    folder = tmp_path / "tales"
    folder.mkdir()
    for name in ("the fox_one.txt", "Çrow & owl.txt", "狐狸.txt"):
        (folder / name).write_text("A fox ran to the well.", encoding="utf-8")
    defaults = {"language": "en", "source_collection": "aesop"}
    found = katha.load([("stories", folder)], **defaults, rights_status="public_domain_or_rights_compatible")
    titles = {key: fields["story"]["title"] for key, fields in found.items()}
    assert titles == {"the-fox_one": "The fox one", "Crow-owl": "Çrow & owl", "kb25k_0001": "狐狸"}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_folder_when_files_are_read_keeps_every_line_end_of_the_text(katha, tmp_path, end) -> None:
    front = b"---\ntitle: T\nlanguage: en\nsource: aesop\nrights_status: unresolved\n---\n"
    body = b"\nA bee flew.\n---\n\nIt stung.\n\n".replace(b"\n", end)
    write(tmp_path / "fronted" / "plain.txt", front.replace(b"\n", end) + body)
    write(
        tmp_path / "fronted" / "heading.md",
        front.replace(b"title: T\n", b"").replace(b"\n", end) + b"# T" + end + body,
    )
    found = katha.load([("stories", tmp_path / "fronted")])
    assert {fields["story"]["text"] for fields in found.values()} == {body.decode()}
    assert {fields["story"]["title"] for fields in found.values()} == {"T"}
    settings = {"language": "en", "source_collection": "aesop", "rights_status": "unresolved"}
    write(tmp_path / "bare" / "none.md", b"# T" + end + body)
    bare = katha.load([("stories", tmp_path / "bare")], **settings)
    assert bare["none"]["story"]["text"] == body.decode()


def test_records_when_given_are_attached_with_ids_filled_in(katha, write_rows, tmp_path) -> None:
    path = write(tmp_path / "gold.jsonl", json.dumps(GIVEN).encode())
    given = katha.load([("stories", write_rows({})), ("records", path)])["one"]["given"]
    assert given["author"] == "unnamed" and author_of(given) == "hand:unnamed"
    assert [scene["scene_index"] for scene in given["scenes"]] == [1, 2]


def test_records_when_their_scenes_are_said_to_narrate_need_not_be_the_text(
    katha, write_rows, tmp_path
) -> None:
    scenes = [{"scene_text": "A cow flew."}, {"scene_text": "It fell."}]
    path = write(
        tmp_path / "gold.jsonl", json.dumps({"story_id": "one", "narrated": True, "scenes": scenes}).encode()
    )
    given = katha.load([("stories", write_rows({})), ("records", path)])["one"]["given"]
    assert given["narrated"] is True
    assert [scene["scene_text"] for scene in given["scenes"]] == ["A cow flew.", "It fell."]


FOX, CROW, COW = ({"scene_text": text} for text in ("A fox ran.", "A crow flew.", "A cow flew."))
UNFIT: dict[str, dict[str, Any]] = {
    "of nobody": {"story_id": "nobody"}, "another text": {"scenes": [FOX, COW]},
    "a number as text": {"scenes": [FOX, {"scene_text": 3}]}, "two transitions": {"transitions": [{}, {}]},
    "questions alone": {"scenes": None, "questions": [{}]},
    "no answer": {"questions": [{"question": "Why?"}]}, "an unknown label": {"moral_label": "zeal"},
    "a misspelt field": {"sceens": []}, "no list": {"scenes": "none"},
    "narrated by a word": {"narrated": "yes"},
    "narrated without scenes": {"narrated": True, "scenes": None},
    "narrated in part": {"narrated": True, "scenes": [COW, {}]},
}  # fmt: skip


@pytest.mark.parametrize("case", UNFIT)
def test_records_when_wrong_are_refused_with_what_is_wrong(katha, tmp_path, case, snapshot) -> None:
    stories = write(tmp_path / "s.jsonl", jsonl({}))
    path = write(tmp_path / "gold.jsonl", json.dumps({**GIVEN, **UNFIT[case]}).encode())
    message = errors_of(lambda: katha.load([("stories", stories), ("records", path)]))
    assert message.replace(str(tmp_path), "...") == snapshot


def test_edits_when_for_unknown_ids_or_without_reason_are_refused(katha, write_rows, tmp_path) -> None:
    edit = {"id": "two", "path": "$.title", "old": "a", "new": "b", "who": "ann", "why": "typo"}
    lines = [edit, {**edit, "id": "one", "why": ""}]
    path = write(tmp_path / "edits.jsonl", "\n".join(map(json.dumps, lines)).encode())
    message = errors_of(lambda: katha.load([("stories", write_rows({})), ("edits", path)]))
    assert "'two'" in message and "edits.jsonl:2" in message
