import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fabula.cli.common import show_findings
from fabula.errors import InputError
from fabula.evaluation.running import check_intact
from fabula.kinds.verbs import verify
from fabula.releases.katha.package import export_package
from fabula.schemas.canonical import canonical_bytes, sha256_file
from fabula.testing.katha_samples import sample_bundles


def codes(report):
    return {issue.code for issue in report.issues}


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


def test_an_added_file_is_found(release):
    (release / "data" / "stories" / "notes.txt").write_text("more")
    report = verify(release, quick=True)
    assert {"file-extra", "checksum"} <= codes(report)
    assert str(report.cause) == (
        f"{release}: 1 file was added after packing: data/stories/notes.txt\n  fix: remove what was added"
    )


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
    for refuse in (check_intact, lambda folder: export_package(folder, folder.parent / "package")):
        with pytest.raises(InputError, match=re.escape(said)):
            refuse(release)


def test_an_added_record_is_found_and_named(release):
    bundle = sample_bundles(30)[25]
    with (release / "annotations.jsonl").open("ab") as file:
        file.write(canonical_bytes(bundle["record"]) + b"\n")
    report = verify(release, quick=True)
    assert {"record-added", "file-hash", "checksum"} <= codes(report)
    assert any("kb25k_0026" in issue.message for issue in report.issues)


@pytest.mark.slow
def test_removed_swapped_and_changed_records_are_found(release):
    path = release / "annotations.jsonl"
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[1:]))
    assert "record-missing" in codes(verify(release, quick=True))
    path.write_bytes(b"".join([rows[1], rows[0], *rows[2:]]))
    assert "record-order" in codes(verify(release, quick=True))
    path.write_bytes(b"".join([rows[0].replace(b"potter", b"weaver"), *rows[1:]]))
    assert "record-hash" in codes(verify(release, quick=True))
    path.write_bytes(b"".join([rows[0].replace(b'":"', b'": "', 1), *rows[1:]]))
    assert "record-form" in codes(verify(release, quick=True))
    path.write_bytes(b"".join([b"[]\n", b"{\n", b'{"story_id":NaN}\n', *rows]))
    assert "record-unreadable" in codes(verify(release, quick=True))


def test_a_newer_format_and_another_kind_are_findings(release, helpers):
    helpers.edit_json(release / "release.json", lambda document: document.update(format=99))
    assert any("format 99" in issue.message for issue in verify(release, quick=True).issues)
    helpers.edit_json(release / "release.json", lambda document: document.update(format=1, kind="clips"))
    assert "release-document" in codes(verify(release, quick=True))


def test_a_resealed_change_of_an_answer_is_found_by_the_rules(release, helpers):
    def change(record):
        record["questions"][0]["gold_answer"] = "something else"

    helpers.edit_line(release / "annotations.jsonl", 3, change)
    helpers.reseal(release)
    found = codes(verify(release, quick=True))
    assert found
    assert not found & {"checksum", "file-hash", "record-hash"}


def test_resealed_changes_of_the_documents_are_found(release, helpers):
    (release / "README.md").write_text("---\nlicense: nobody\n---\n")
    helpers.edit_json(release / "statistics.json", lambda found: found["totals"].update(stories=99))
    helpers.edit_json(release / "source_manifest.json", lambda found: found["collections"].pop())
    helpers.edit_json(release / "croissant_metadata.json", lambda found: found.pop("url"))
    helpers.edit_json(release / "moral_balance_requirements.json", lambda found: found.update(unlabelled=4))
    (release / "LICENSE").write_text("do what you like\n")
    helpers.edit_json(release / "release.json", lambda found: found["counts"].update(scenes=1))
    helpers.reseal(release)
    found = codes(verify(release))
    assert {
        "readme", "statistics", "document", "moral-balance", "read-back",
    } <= found  # fmt: skip
    assert not found & {"checksum", "file-hash"}


@pytest.mark.slow
def test_a_resealed_table_that_says_something_else_is_found_by_both_readers(release, helpers):
    path = release / "data" / "questions" / "validation.parquet"
    table = pq.read_table(path)
    answers = table.column("gold_answer").to_pylist()
    answers[5] = "somebody changed this"
    place = table.schema.get_field_index("gold_answer")
    pq.write_table(table.set_column(place, "gold_answer", pa.array(answers)), path)

    def restate(document):
        for node in document["distribution"]:
            if node.get("contentUrl") == "data/questions/validation.parquet":
                node |= {"sha256": sha256_file(path), "contentSize": f"{path.stat().st_size} B"}

    helpers.edit_json(release / "croissant_metadata.json", restate)
    helpers.reseal(release)
    assert [issue.code for issue in verify(release, quick=True).issues] == ["table"]
    report = verify(release)
    assert codes(report) == {"read-back", "table", "document"}  # the card states the size of the file
    assert {issue.where for issue in report.issues} == {
        "data/questions/validation.parquet", "questions", "questions/validation", "README.md",
        "dataset_card.md",
    }  # fmt: skip
    assert all("row" in issue.message for issue in report.issues if issue.code != "document")


def test_tables_that_nobody_can_read_are_found(release, helpers):
    (release / "data" / "scenes" / "train.parquet").write_bytes(b"PAR1 no table PAR1")
    helpers.reseal(release)
    report = verify(release)
    assert any(
        issue.code == "read-back" and "datasets cannot read it" in issue.message for issue in report.issues
    )


@pytest.mark.slow
def test_the_hidden_folder_of_another_version_is_found(packed, tmp_path, helpers):
    release = Path(shutil.copytree(packed.folder, tmp_path / packed.folder.name))
    other = Path(shutil.copytree(packed.hidden, tmp_path / "other"))

    def change(document):
        document.update(version="9.9.9")
        document["counts"].update(stories=5)

    helpers.edit_json(other / "release.json", change)
    assert {"hidden-version", "hidden-count"} <= codes(verify(release, hidden=other))


@pytest.mark.slow
def test_a_changed_byte_of_the_hidden_folder_beside_the_release_is_found(packed, tmp_path):
    release = Path(shutil.copytree(packed.folder, tmp_path / packed.folder.name))
    hidden = Path(shutil.copytree(packed.hidden, tmp_path / packed.hidden.name))
    content = (hidden / "annotations.jsonl").read_bytes()
    (hidden / "annotations.jsonl").write_bytes(content.replace(b"the", b"The", 1))
    found = verify(release, quick=True)
    assert {"record-hash", "file-hash", "checksum"} <= codes(found)
    assert all(issue.where.startswith(f"{hidden.name}/") for issue in found.issues)


def test_a_resealed_change_in_the_hidden_folder_is_found_by_the_rules(packed, tmp_path, helpers):
    release = Path(shutil.copytree(packed.folder, tmp_path / packed.folder.name))
    hidden = Path(shutil.copytree(packed.hidden, tmp_path / packed.hidden.name))
    helpers.edit_line(
        hidden / "annotations.jsonl", 0, lambda record: record["questions"][0].update(gold_answer="else")
    )
    helpers.reseal(hidden)
    found = verify(release, quick=True)
    assert not found.ok
    assert not codes(found) & {"checksum", "file-hash", "record-hash"}
