import json
import re

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


def test_jsonl_when_latin_1_names_the_byte_and_the_cure(katha, write_rows) -> None:
    path = write_rows({}, {"id": "two", "title": "Café"})
    good = path.read_bytes()
    write(path, good.replace("é".encode(), b"\xe9"))
    offset = path.read_bytes().index(b"\xe9")
    message = errors_of(lambda: katha.load([("stories", path)]))
    assert f"byte 0xe9 at byte {offset}" in message and ":2" in message and "iconv" in message


def test_jsonl_when_nul_bytes_refuses_them(katha, write_rows) -> None:
    path = write_rows({})
    write(path, path.read_bytes().replace(b"fox", b"f\0x"))
    assert "a NUL byte at byte" in errors_of(lambda: katha.load([("stories", path)]))


def test_jsonl_when_line_4000_has_a_trailing_comma_names_line_and_column(katha, write_rows) -> None:
    path = write_rows(*({"id": f"s{n}"} for n in range(1, 4002)))
    lines = path.read_text("utf-8").splitlines()
    lines[3999] = lines[3999].removesuffix("}") + ",}"
    path.write_text("\n".join(lines))
    message = errors_of(lambda: katha.load([("stories", path)]))
    assert re.search(r"stories.jsonl:4000: a comma stands before } .*column \d+", message)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"id": ' + "9" * 5000 + "}", "odd.jsonl:1"),
        ('{"id": NaN}', "NaN, which JSON does not have"),
        ('{"id": "a", "id": "b"}', "the key 'id' twice"),
        ("[1, 2]", "odd.jsonl[0]: expected a JSON object, found a JSON int"),
        ('"text"', "a JSON str"),
        ("null", "a JSON NoneType"),
        ('{"id": "one", "title": 7}', "a JSON int"),
        ('{"id": "one", "title": "\\ud800"}', "half of a surrogate pair"),
        ('{"id": "one", "title": "a\\u0000"}', "NUL"),
    ],
)
def test_jsonl_when_a_line_is_odd_says_what_is_wrong(katha, tmp_path, line, expected) -> None:
    path = write(tmp_path / "odd.jsonl", line.encode())
    assert expected in errors_of(lambda: katha.load([("stories", path)]))


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


def test_stories_when_their_columns_are_unknown_says_what_is_there_and_how_to_map_it(katha, tmp_path) -> None:
    path = write(tmp_path / "s.jsonl", json.dumps({"name": "Ant", "text": TALE}).encode())
    message = errors_of(lambda: katha.load([("stories", path)]))
    assert "found no title; it has name, text" in message and "--map name=title" in message
    write(tmp_path / "folder" / "a.csv", b"a,b")
    message = errors_of(lambda: katha.load([("stories", tmp_path / "folder")]))
    assert "found a.csv" in message and "name other files themselves" in message
    message = errors_of(lambda: katha.load([("stories", write(tmp_path / "a.xlsx", b"PK"))]))
    assert "expected one of .jsonl" in message and "found a file .xlsx" in message


@pytest.mark.parametrize("data", [b"", b"\n\n  \n", b"\xef\xbb\xbf"])
def test_any_file_when_empty_says_so(katha, tmp_path, data) -> None:
    assert "empty file" in errors_of(lambda: katha.load([("stories", write(tmp_path / "e.jsonl", data))]))


@pytest.mark.parametrize("second", ["one", "ONE"])
def test_ids_when_repeated_name_both_places(katha, write_rows, second) -> None:
    message = errors_of(lambda: katha.load([("stories", write_rows({}, {"id": second}))]))
    assert "stories.jsonl:2, id" in message and "used at stories.jsonl:1" in message


def test_ids_when_missing_are_numbered_in_order(katha, write_rows) -> None:
    path = write_rows({"id": ...}, {"id": "own"}, {"id": ...})
    assert list(katha.load([("stories", path)])) == ["kb25k_0001", "own", "kb25k_0002"]
    assert list(katha.load([("stories", path)], id_prefix="t-")) == ["t-0001", "own", "t-0002"]
    assert "a column id" in errors_of(lambda: katha.load([("stories", path)], id_prefix=""))


def test_columns_when_misspelt_name_the_right_one(katha, write_rows) -> None:
    message = errors_of(lambda: katha.load([("stories", write_rows({"morale_label": "wisdom"}))]))
    assert "rename it to moral_label" in message


@pytest.mark.parametrize(
    ("field", "count"), [("moral_label", 12), ("narrative_type", 8), ("rights_status", 4)]
)
def test_words_when_unknown_list_all_that_exist(katha, write_rows, field, count) -> None:
    message = errors_of(lambda: katha.load([("stories", write_rows({field: "bogus"}))]))
    listed = message.split("one of: ")[1].split(", found")[0]
    assert len(listed.split(", ")) == count and "'bogus'" in message


def test_problems_when_several_are_all_in_one_error(katha, write_rows) -> None:
    path = write_rows({"id": "a b", "moral_label": "x"}, {"text": "  "}, {"id": "ok", "language": "e n"})
    message = errors_of(lambda: katha.load([("stories", path), ("stories", path.with_name("missing.jsonl"))]))
    for part in (":1, id", ":1, moral_label", ":2, text", ":3, language", "missing.jsonl"):
        assert part in message


def test_sizes_when_over_the_settings_are_refused(katha, write_rows) -> None:
    path = write_rows({}, {"id": "two"})
    assert "max_file_bytes" in errors_of(lambda: katha.load([("stories", path)], max_file_bytes=10))
    assert "max_story_characters" in errors_of(
        lambda: katha.load([("stories", path)], max_story_characters=10)
    )
    assert "max_stories" in errors_of(lambda: katha.load([("stories", path)], max_stories=1))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"title,text,title\na,b,c\n", "columns are there twice: 'title'\n  fix: keep one of each"),
        (b"title;text\na;b\n", "semicolons separate its columns\n  fix: save it with commas"),
        (b"title\ttext\na\tb\n", "tabs separate its columns"),
        (b"title\nFox \x96\n", "iconv -f windows-1252"),
    ],
)
def test_csv_when_a_column_is_there_twice_or_it_is_of_another_form_says_so(katha, tmp_path, data, reason):
    assert reason in errors_of(lambda: katha.load([("stories", write(tmp_path / "s.csv", data))]))


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


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"story_id": "nobody"}, "the id of a story of this run"),
        (
            {"scenes": [{"scene_text": "A fox ran."}, {"scene_text": "A cow flew."}]},
            "in order, are the story",
        ),
        ({"scenes": [{"scene_text": "A fox ran."}, {"scene_text": 3}]}, "$[0].scene_text"),
        ({"transitions": [{}, {}]}, "$.transitions: expected 1, found 2"),
        ({"scenes": None, "questions": [{}]}, "$.questions"),
        ({"questions": [{"question": "Why?"}]}, "gold_answer"),
        ({"moral_label": "zeal"}, "zeal"),
        ({"sceens": []}, "an unknown field"),
        ({"scenes": "none"}, "a list of objects"),
        ({"narrated": "yes"}, "$.narrated: expected true or false"),
        ({"narrated": True, "scenes": None}, "$.narrated: expected scenes beside it"),
        ({"narrated": True, "scenes": [{"scene_text": "A cow flew."}, {}]}, "in order, are the story"),
    ],
)
def test_records_when_wrong_are_refused(katha, write_rows, tmp_path, change, expected) -> None:
    path = write(tmp_path / "gold.jsonl", json.dumps({**GIVEN, **change}).encode())
    message = errors_of(lambda: katha.load([("stories", write_rows({})), ("records", path)]))
    assert expected.replace("$[0].scene_text", "scene_text") in message


def test_edits_when_for_unknown_ids_or_without_reason_are_refused(katha, write_rows, tmp_path) -> None:
    edit = {"id": "two", "path": "$.title", "old": "a", "new": "b", "who": "ann", "why": "typo"}
    lines = [edit, {**edit, "id": "one", "why": ""}]
    path = write(tmp_path / "edits.jsonl", "\n".join(map(json.dumps, lines)).encode())
    message = errors_of(lambda: katha.load([("stories", write_rows({})), ("edits", path)]))
    assert "'two'" in message and "edits.jsonl:2" in message
