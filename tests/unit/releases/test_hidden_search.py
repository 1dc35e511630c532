import gzip
import json
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import verify
from fabula.releases.hidden.marks import (
    check_commitments,
    check_promises,
    marks_of,
    plain,
    read_salt,
    search,
    search_rows,
)
from fabula.releases.katha.form import _retold, check_hidden
from fabula.schemas.canonical import Json, canonical_bytes, pretty_bytes
from fabula.schemas.paths import RELEASE
from fabula.testing.katha_folders import write_jsonl
from fabula.testing.katha_samples import sample_bundles


class Pair:
    """Copies of a public release and its hidden folder, with the salt beside them."""

    def __init__(self, packed, folder: Path) -> None:
        self.public = Path(shutil.copytree(packed.folder, folder / packed.folder.name))
        self.hidden = Path(shutil.copytree(packed.hidden, folder / packed.hidden.name))
        beside = f"{packed.hidden.name}.salt"
        self.salt = Path(shutil.copy(packed.hidden.with_name(beside), folder / beside))
        self.secret = json.loads((self.hidden / "annotations.jsonl").read_bytes().splitlines()[0])

    @property
    def document(self):
        return json.loads((self.public / RELEASE).read_bytes())

    def leaks(self) -> list[str]:
        """The findings of the search, with the salt."""
        found = check_hidden(self.public, self.document, self.hidden, read_salt(self.salt))
        return [
            f"{issue.code} {issue.where}: {issue.message}" for issue in (*found, *search_rows(self.public))
        ]


@pytest.fixture
def pair(packed, tmp_path):
    return Pair(packed, tmp_path)


def table(path: Path, columns) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_a_packed_pair_when_searched_has_no_leak(pair):
    assert pair.leaks() == []


def place_everywhere(folder: Path, text: str) -> set[str]:
    """Write a text into every place that a public folder has for one; return the places."""
    folder.mkdir()
    for encoding in ("utf-8", "utf-8-sig"):
        (folder / f"{encoding}.md").write_bytes(f"Some notes: {text} and more.\n".encode(encoding))
    (folder / "odd.bin").write_bytes(b"\0\x01\xfe\xff" * 4 + text.encode() + b"\0")
    (folder / "notes.csv").write_text(f'1,"{text}"\n', "utf-8")
    (folder / "notes.json").write_text(json.dumps({"deep": [{"note": f"see {text}."}]}), "utf-8")
    (folder / "key.json").write_text(json.dumps({f"see {text}.": 1}), "utf-8")
    (folder / "notes.jsonl").write_text(f"{{}}\n{json.dumps({'note': text})}\n", "utf-8")
    inner = pa.field("inner", pa.string(), metadata={"note": text})
    tables = {
        "value": pa.table({"a": [1]}).replace_schema_metadata({"note": text}),
        "key": pa.table({"a": [1]}).replace_schema_metadata({text: "note"}),
        "field": pa.table({"a": [1]}, schema=pa.schema([pa.field("a", pa.int64(), metadata={"note": text})])),
        "inner": pa.table([pa.array([{"inner": "x"}], pa.struct([inner]))], names=["a"]),
        "name": pa.table({f"see {text}.": [1]}),
    }
    for name, made in tables.items():
        pq.write_table(made, folder / f"{name}.parquet")
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("part", ["id", "text", "Greek text", "another form of Unicode"])
def test_a_leak_when_it_stands_anywhere_in_a_public_folder_is_found(packed, tmp_path, part):
    secret = json.loads((packed.hidden / "annotations.jsonl").read_bytes().splitlines()[0])
    marks = marks_of(packed.folder, packed.hidden, [secret["story_id"]])
    greek = "\u0391\u03bd\u03ac\u03b3\u03ba\u03b7 " * 12
    text = {"id": f"id {secret['story_id']}, no more", "text": secret["story_text"][:200]}.get(part, greek)
    if text == greek:
        marks = replace(marks, quotes=frozenset({plain(greek).strip()}))
    if part == "another form of Unicode":
        text = unicodedata.normalize("NFD", greek)
    places = place_everywhere(tmp_path / "public", text)
    found = {issue.where.split(" ")[0].split(":")[0] for issue in search(tmp_path / "public", marks, None)}
    assert found == places


def test_a_text_when_it_is_a_book_of_accents_is_compared_in_time_that_grows_with_its_length():
    assert len(plain("a" + "\u0301\u0323" * 200_000)) > 200_000  # two minutes, if sorted as one run


def test_the_hidden_split_when_copied_as_a_table_is_found_without_the_hidden_folder(pair):
    table(pair.public / "data" / "stories" / "more.parquet", {"split": ["train", "hidden_test"]})
    shutil.rmtree(pair.hidden)
    assert [issue.where for issue in search_rows(pair.public)] == ["data/stories/more.parquet"]


@pytest.mark.parametrize("line", [b'{"split":"hidden_test"}', b'{ "subset" : "hidden_test" }', b'["split"]'])
def test_rows_of_the_hidden_split_when_a_file_holds_them_are_found(pair, line):
    (pair.public / "more.jsonl").write_bytes(line + b"\n")
    assert [issue.where for issue in search_rows(pair.public)] == ["more.jsonl"][: b"hidden" in line]


def in_table(values: Callable[[Json], Any]) -> Callable[[Pair], object]:
    return lambda pair: table(pair.public / "data/stories/more.parquet", {"extra": values(pair.secret)})


def in_file(name: str, content: Callable[[Json], bytes]) -> Callable[[Pair], object]:
    return lambda pair: (pair.public / name).write_bytes(content(pair.secret))


def retold(secret: Json, step: int = 40) -> str:
    """The story with a few other words."""
    words = secret["story_text"].split()
    words[::step] = ["perhaps"] * len(words[::step])
    return " ".join(words)


def retold_in_public(pair: Pair) -> None:
    rows = [json.loads(line) for line in (pair.public / "annotations.jsonl").read_bytes().splitlines()]
    rows[0]["story_text"] = retold(pair.secret, 60)
    write_jsonl(pair.public / "annotations.jsonl", rows)


def salted(form: Callable[[bytes], bytes]) -> Callable[[Pair], object]:
    padding = b"." * (1 << 20)
    return lambda pair: (pair.public / "notes.bin").write_bytes(padding + form(read_salt(pair.salt)) + b"..")


IN_TABLES: dict[str, Callable[[Json], Any]] = {
    "id": lambda secret: [secret["story_id"]], "text": lambda secret: [secret["story_text"]],
    "upper case": lambda secret: [secret["story_text"].upper()],
    "scenes": lambda secret: [[scene["scene_text"] for scene in secret["scenes"]]],
    "deep": lambda secret: [{"deep": [{"er": secret["scenes"][2]["scene_text"]}]}],
    "bytes": lambda secret: [secret["story_text"].encode()],
    "dictionary": lambda secret: pa.array(["x", secret["story_text"]]).dictionary_encode(),
}  # fmt: skip
LEAKS: dict[str, tuple[Callable[[Pair], object], tuple[str, ...], str]] = {
    **{f"a table, {name}": (in_table(values), ("data/stories/more.parquet extra",), "")
       for name, values in IN_TABLES.items()},
    **{f"retold in {name}": (in_file(name, told), (name,), "the hidden story")
       for names, told in (
           (("notes.md", "notes.txt", "notes", "notes.csv"), lambda secret: retold(secret).encode()),
           (("notes.json", "notes.jsonl"), lambda secret: canonical_bytes({"note": retold(secret)})),
       ) for name in names},
    "a longer text": (in_file("notes.jsonl", lambda secret: canonical_bytes(
        {"note": secret["story_text"].lower() + " ".join(f"and {number}" for number in range(400))})),
        ("notes.jsonl",), "holds most of the hidden story"),
    "a public story": (retold_in_public, ("annotations.jsonl:1",), "a text like the hidden story"),
    "the whole folder": (
        lambda pair: shutil.copytree(pair.hidden, pair.public / "old"),
        tuple(f"old/{name}.jsonl" for name in ("annotations", "contrastive_variants", "producers")),
        ""),
    "the salt": (salted(bytes), ("notes.bin",), "holds the salt"),
    "the salt in hexadecimal": (salted(lambda salt: salt.hex().encode()), ("notes.bin",), "holds the salt"),
}  # fmt: skip
"""What is done to the public folder, where it is found, and what is said of it."""


@pytest.mark.parametrize("case", LEAKS)
def test_what_is_hidden_when_a_public_file_holds_it_is_found(pair, case):
    spoil, places, words = LEAKS[case]
    spoil(pair)
    leaks = pair.leaks()
    assert all(any(place in leak and words in leak for leak in leaks) for place in places), leaks


def test_findings_when_a_hidden_story_leaked_hold_a_few_words_of_it_at_most(pair, helpers):
    def damage(record):  # rules quote what they find
        record["questions"][0]["gold_answer"] = record["scenes"][0]["scene_text"]

    secret = pair.secret
    helpers.edit_line(pair.hidden / "annotations.jsonl", 0, damage)
    helpers.reseal(pair.hidden)
    copied = json.loads((pair.hidden / "annotations.jsonl").read_bytes())
    with (pair.public / "annotations.jsonl").open("ab") as lines:
        lines.write(canonical_bytes({**copied, "split": "train"}) + b"\n")
    table(pair.public / "more.parquet", {"extra": [secret["story_text"]]})
    (pair.public / "notes.md").write_text(secret["story_text"])
    report = verify(pair.public, quick=True, hidden=pair.hidden)
    found = [(issue.where.partition(" ")[0], issue.code) for issue in report.issues]
    hidden = f"{pair.hidden.name}/annotations.jsonl:1"
    for one in (("annotations.jsonl:24", "answer-not-accepted"), (hidden, "answer-not-accepted")):
        assert one in found
    for place in ("annotations.jsonl:24", "more.parquet", "notes.md"):
        assert (place, "hidden-leak") in found
    told = "\n".join([*map(str, report.issues), report.summary(), json.dumps(report.as_json())])
    words = secret["story_text"].split()
    assert not [start for start in range(len(words) - 3) if " ".join(words[start : start + 4]) in told]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("more.gz", gzip.compress(b"x", mtime=0)),
        ("more.zip", b"PK\x03\x04rest"),
        ("more.parquet", b"PAR1 and nothing else"),
    ],
)
def test_a_file_when_it_cannot_be_searched_is_named(pair, name, content):
    (pair.public / name).write_bytes(content)
    assert [leak.split(":")[0] for leak in pair.leaks()] == [f"hidden-unsearched {name}"]


def as_table(text: str) -> bytes:
    made = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": [text]}), made)
    return made.getvalue().to_pybytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "written"),
    [
        (".gitattributes", str.encode),
        (".git/COMMIT_EDITMSG", str.encode),
        (".git/lfs/objects/ab/cd/abcd", as_table),
        (".cache/huggingface/download/x.incomplete", str.encode),
    ],
)
def test_what_a_clone_has_beside_a_release_when_it_tells_is_found_and_no_file_too_many(pair, name, written):
    (pair.public / name).parent.mkdir(parents=True, exist_ok=True)
    (pair.public / name).write_bytes(written("nothing"))
    assert pair.leaks() == []
    (pair.public / name).write_bytes(written(pair.secret["story_text"]))
    leaks = pair.leaks()
    assert leaks
    assert all(leak.startswith(f"hidden-leak {name}") for leak in leaks)
    codes = {issue.code for issue in verify(pair.public, quick=True).issues}
    assert codes == {"hidden-leak"}


def test_what_git_packed_when_a_clone_has_it_is_named_once_as_not_searched(pair):
    for name in ("pack/p.pack", "ab/0123", "ab/4567"):
        (pair.public / ".git/objects" / name).parent.mkdir(parents=True, exist_ok=True)
        (pair.public / ".git/objects" / name).write_bytes(b"PACK\0\0\0\2rest")
    assert [leak.split(":")[0] for leak in pair.leaks()] == ["hidden-unsearched .git/objects"]


def test_files_when_they_are_odd_stop_no_search(pair):
    (pair.public / "empty.txt").write_bytes(b"")
    (pair.public / "zeros.bin").write_bytes(bytes(5000))
    (pair.public / "half.jsonl").write_bytes(b'{"a": "\xff\xfe' + b"x" * 5000)
    (pair.public / "deep.json").write_bytes(b"[" * 5000)
    assert pair.leaks() == []


def test_statistics_when_they_tell_more_than_counts_of_hidden_stories_are_found(pair, helpers):
    def tell(document) -> None:
        document["hidden_test"]["moral_labels"] = {"kindness": 1}
        document["moral_labels"]["kindness"]["count"] += 1

    helpers.edit_json(pair.public / "statistics.json", tell)
    helpers.reseal(pair.public)
    codes = {issue.path for issue in verify(pair.public, quick=True).issues if issue.code == "statistics"}
    assert codes == {"$.hidden_test.moral_labels", "$.moral_labels.kindness.count"}


def promises(pair) -> list[str]:
    salt = read_salt(pair.salt)
    return [issue.message for issue in check_commitments(pair.document, pair.hidden, salt)]


def test_hidden_stories_when_nothing_changed_are_those_committed_to(pair):
    assert promises(pair) == []
    assert verify(pair.public, quick=True).checked["commitments"] == 1


@pytest.mark.parametrize("name", ["annotations.jsonl", "contrastive_variants.jsonl"])
def test_a_hidden_story_when_one_letter_changed_is_not_the_one_committed_to(pair, name):
    path = pair.hidden / name
    path.write_bytes(path.read_bytes().replace(b"the", b"thE", 1))
    assert promises(pair) == ["none of the 1 commitments of version 0.1.0 fits stories and salt"]


def test_a_hidden_story_when_it_was_added_or_dropped_is_told(pair):
    line = (pair.hidden / "annotations.jsonl").read_bytes()
    record = {**pair.secret, "story_id": "kb25k_0999"}
    (pair.hidden / "annotations.jsonl").write_bytes(line + canonical_bytes(record) + b"\n")
    told = "kb25k_0999 is not as version 0.1.0 committed to it, or not one of its stories"
    assert promises(pair) == [told]
    (pair.hidden / "annotations.jsonl").write_bytes(b"")
    assert promises(pair) == ["1 of 1 commitments of version 0.1.0 fit no story"]


def test_what_reviewers_say_of_a_hidden_story_when_it_changes_keeps_the_commitment(pair):
    record = {**pair.secret, "validation_status": "human_review_complete"}
    (pair.hidden / "annotations.jsonl").write_bytes(canonical_bytes(record) + b"\n")
    assert promises(pair) == []


def test_another_salt_when_given_proves_nothing(pair):
    pair.salt.write_text("5a" * 32 + "\n")
    report = verify(pair.public, quick=True)
    assert [issue.code for issue in report.issues] == ["commitment"]


def test_a_release_document_alone_when_of_an_older_version_is_enough_for_the_proof(pair, tmp_path):
    old = tmp_path / "old.json"
    old.write_bytes(pretty_bytes({**pair.document, "version": "0.0.9"}))
    report = verify(old, hidden=pair.hidden, salt=pair.salt)
    assert report.issues == ()
    assert report.checked["commitments"] == 1
    assert verify(old, hidden=pair.hidden).ok  # the salt lies beside the hidden folder
    without = {name: value for name, value in pair.document.items() if name != "commitments"}
    old.write_bytes(pretty_bytes(without))
    (issue,) = verify(old, hidden=pair.hidden, salt=pair.salt).issues
    assert issue.message == "version 0.1.0 has no commitments to hidden stories"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"version": "1", "commitments": 7}'])
def test_a_release_document_when_damaged_is_told(pair, tmp_path, content):
    (tmp_path / "old.json").write_bytes(content)
    try:
        report = verify(tmp_path / "old.json", hidden=pair.hidden)
    except InputError as error:
        assert "old.json" in str(error)
    else:
        assert not report.ok


def test_a_proof_when_hidden_folder_or_salt_is_missing_says_which(pair, tmp_path):
    with pytest.raises(ConfigError, match="--hidden"):
        verify(pair.public / RELEASE)
    with pytest.raises(ConfigError, match="nowhere"):
        verify(pair.public / RELEASE, hidden=tmp_path / "nowhere", salt=pair.salt)
    with pytest.raises(ConfigError, match="--hidden"):
        verify(shutil.copytree(pair.public, tmp_path / "alone"), salt=pair.salt, quick=True)
    pair.salt.unlink()
    with pytest.raises(ConfigError, match="--salt"):
        verify(pair.public / RELEASE, hidden=pair.hidden)
    with pytest.raises(InputError, match=r"hidden\.salt"):
        verify(pair.public, salt=pair.salt, quick=True)
    assert verify(pair.public, quick=True).issues == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda part: part["values"].append("0" * 64),
        lambda part: part["values"].clear(),
        lambda part: part.update(scheme="md5/1"),
    ],
)
def test_commitments_when_they_are_malformed_are_told_without_the_hidden_folder(pair, change):
    document = pair.document
    change(document["commitments"])
    assert [issue.code for issue in check_promises(document)] == ["commitment"]
    assert list(check_promises(pair.document)) == []


@pytest.mark.parametrize(
    ("shared", "code", "by"),
    [
        (("title",), "split-twin", "title"),
        (("story_text",), "split-retelling", "text"),
        (("story_text", "title"), "split-retelling", "text and title"),
        ((), None, ""),
    ],
)
def test_public_story_when_it_is_like_a_hidden_one_is_named_with_what_is_alike(tmp_path, shared, code, by):
    first, second, hidden = (bundle["record"] for bundle in sample_bundles(3))
    rows = {"public": [first, second], "hidden": [{**hidden, **{name: first[name] for name in shared}}]}
    for name, records in rows.items():
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "annotations.jsonl", records)
    found = [(issue.code, issue.message) for issue in _retold(tmp_path / "public", tmp_path / "hidden")]
    assert found == ([(code, f"kb25k_0001 is like a hidden story by its {by}")] if code else [])
