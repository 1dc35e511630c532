import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fabula.cli.common import show_findings
from fabula.errors import InputError
from fabula.kinds.verbs import load, verify
from fabula.releases.katha.package import export_package
from fabula.releases.verify.files import check_intact
from fabula.schemas.canonical import Json, canonical_bytes, sha256_file
from fabula.testing.katha_samples import sample_bundles
from fabula.tests.unit.releases.conftest import edit_json, edit_line, reseal


@pytest.mark.slow
@pytest.mark.fresh
def test_a_packed_release_is_sound(packed):
    report = verify(packed.folder)
    assert report.issues == ()
    assert report.ok
    assert report.checked["files"] == 29
    assert report.checked["stories under rules"] == 23
    assert report.checked["hidden files"] == 6
    assert report.checked["hidden stories under rules"] == 1
    # 23 stories, 115 scenes, 92 transitions, 138 questions and 46 variants
    assert report.checked["rows read back twice"] == 414
    assert "\nthe release is sound" in report.summary()
    assert json.loads(json.dumps(report.as_json()))["ok"] is True


def test_a_changed_release_is_told_by_what_was_changed_in_the_same_words_everywhere(release, capsys):
    annotations = release / "annotations.jsonl"
    annotations.write_bytes(annotations.read_bytes().replace(b'"title":"', b'"title":"New ', 1))
    (release / "LICENSE").unlink()
    said = (
        f"{release}: 1 file was changed after packing: annotations.jsonl; "
        "1 file was removed after packing: LICENSE\n"
        "  fix: fetch or pack the release again; corrections are made in its run (`fabula edit`)"
    )
    assert show_findings(verify(release, quick=True), as_json=False) == 1
    output = capsys.readouterr().out
    assert output.startswith(f"error: {said}\nerror: annotations.jsonl:")
    assert "[record-hash]" in output and "[checksum]" not in output
    assert "more findings because of this; --all prints them\n" in output
    for refuse in (check_intact, load, lambda folder: export_package(folder, folder.parent / "package")):
        with pytest.raises(InputError, match=re.escape(said)):
            refuse(release)


def test_a_release_with_a_file_of_the_same_size_is_refused_where_loading_is_to_verify_it(release):
    annotations = release / "annotations.jsonl"
    annotations.write_bytes(re.sub(rb'(?<="title":").', b"_", annotations.read_bytes(), count=1))
    load(release)
    with pytest.raises(InputError, match="1 file was changed after packing"):
        load(release, verify=True)


# -- Damages: what each is called, file by file, and what is said of the release as a whole

Damage = Callable[[Path], object]
ANNOTATIONS, HIDDEN = "annotations.jsonl", "fables-0.1.0-hidden"


def lines_of(change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    """A change of the lines of the records."""

    def damage(release: Path) -> None:
        path = release / ANNOTATIONS
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return damage


def in_document(name: str, change: Callable[[Json], object]) -> Damage:
    return lambda release: edit_json(release / name, change)


def in_record(number: int, change: Callable[[Json], object], folder: str = ".") -> Damage:
    return lambda release: edit_line(release / folder / ANNOTATIONS, number, change)


def another_answer(record: Json) -> None:
    record["questions"][0]["gold_answer"] = "something else"


def all_documents(release: Path) -> None:
    (release / "README.md").write_text("---\nlicense: nobody\n---\n")
    (release / "LICENSE").write_text("do what you like\n")
    for name, change in (
        ("statistics.json", lambda found: found["totals"].update(stories=99)),
        ("source_manifest.json", lambda found: found["collections"].pop()),
        ("croissant_metadata.json", lambda found: found.pop("url")),
        ("moral_balance_requirements.json", lambda found: found.update(unlabelled=4)),
        ("release.json", lambda found: found["counts"].update(scenes=1)),
    ):
        edit_json(release / name, change)


def other_cell(release: Path) -> None:
    """Change a cell of a table, and what Croissant says of its file."""
    path = release / "data" / "questions" / "validation.parquet"
    table = pq.read_table(path)
    answers = table.column("gold_answer").to_pylist()
    answers[5] = "somebody changed this"
    place = table.schema.get_field_index("gold_answer")
    pq.write_table(table.set_column(place, "gold_answer", pa.array(answers)), path)

    def restate(document: Json) -> None:
        for node in document["distribution"]:
            if node.get("contentUrl") == "data/questions/validation.parquet":
                node |= {"sha256": sha256_file(path), "contentSize": f"{path.stat().st_size} B"}

    edit_json(release / "croissant_metadata.json", restate)


DAMAGES: dict[str, Damage] = {
    "a file added": lambda release: (release / "data/stories/notes.txt").write_text("more"),
    "a record added": lines_of(
        lambda rows: [*rows, canonical_bytes(sample_bundles(30)[25]["record"]) + b"\n"]),
    "a record removed": lines_of(lambda rows: rows[1:]),
    "records swapped": lines_of(lambda rows: [rows[1], rows[0], *rows[2:]]),
    "a record changed": lines_of(lambda rows: [rows[0].replace(b"potter", b"weaver"), *rows[1:]]),
    "a record of another form": lines_of(lambda rows: [rows[0].replace(b'":"', b'": "', 1), *rows[1:]]),
    "lines that are no records": lines_of(lambda rows: [b"[]\n", b"{\n", b'{"story_id":NaN}\n', *rows]),
    "a newer format": in_document("release.json", lambda document: document.update(format=99)),
    "another kind": in_document("release.json", lambda document: document.update(kind="clips")),
    "a byte of the hidden folder": lambda release: lines_of(
        lambda rows: [rows[0].replace(b"the", b"The", 1)])(release.with_name(HIDDEN)),
    "the hidden folder of another version": lambda release: edit_json(
        release.with_name(HIDDEN) / "release.json",
        lambda document: document.update(version="9.9.9", counts={**document["counts"], "stories": 5})),
}  # fmt: skip
SEALED: dict[str, Damage] = {
    "an answer": in_record(3, another_answer), "documents": all_documents,
    "a hidden answer": in_record(0, another_answer, f"../{HIDDEN}"),
    "a table that nobody can read": lambda release: (release / "data/scenes/train.parquet").write_bytes(
        b"PAR1 no table PAR1"),
}  # fmt: skip
"""Damages after which every checksum is made true again."""
READ_BACK = ("documents", "a table that nobody can read")
"""What the libraries of users find as well."""


def found(release: Path, **how: bool) -> str:
    """The codes of each file, and what is said of the release as a whole."""
    report = verify(release, **how)
    places = {f"{issue.where.split(' ')[0].split(':')[0]}: {issue.code}" for issue in report.issues}
    return "\n".join([*sorted(places), f"cause: {report.cause}"]).replace(str(release.parent), "")


@pytest.mark.parametrize("case", [*DAMAGES, *SEALED])
def test_a_damaged_release_is_found_out_by_what_was_damaged(packed, tmp_path, snapshot, case):
    release = Path(shutil.copytree(packed.folder, tmp_path / packed.folder.name))
    if "hidden" in case:
        shutil.copytree(packed.hidden, tmp_path / packed.hidden.name)
    {**DAMAGES, **SEALED}[case](release)
    if case in SEALED:
        reseal(release.with_name(HIDDEN) if "hidden" in case else release)
    assert found(release, quick=case not in READ_BACK) == snapshot


@pytest.mark.slow
def test_a_resealed_table_that_says_something_else_is_found_by_both_readers(release, snapshot):
    other_cell(release)
    reseal(release)
    assert [issue.code for issue in verify(release, quick=True).issues] == ["table"]
    assert found(release) == snapshot
