""""""

import copy
import errno
import json
import os
from collections import Counter
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from fabula.errors import ConfigError, InputError, TargetError
from fabula.evaluation.judging.settings import SelectionSettings
from fabula.evaluation.katha.load_items import chosen_records
from fabula.kinds.verbs import diff, load, verify
from fabula.releases.diff.since import lines as diff_lines
from fabula.releases.katha.package import export_package
from fabula.releases.katha.package_import import ImportOptions, import_package
from fabula.schemas.paths import MORAL_BALANCE
from fabula.schemas.text import normalize_text
from fabula.testing.hub import TOKEN
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.official_packages import package_rows, write_package
from fabula.tests.unit.releases.conftest import lines_of, tree
from fabula.validators.katha.validation import statistics_of, validate

STORY = ImportOptions(fields={"source_text": "story"})


@pytest.fixture
def rows():
    return package_rows()


@pytest.fixture
def round_trip(tmp_path):
    """Write a package, import it, export it again; return both folders and the import."""

    def run(options=STORY, **package):
        source = write_package(tmp_path / "package", **package)
        imported = import_package(source, tmp_path / "imported", options)
        export_package(tmp_path / "imported", tmp_path / "exported")
        return source, tmp_path / "exported", imported

    return run


def test_package_when_exported_again_has_the_bytes_that_came(round_trip, tmp_path):
    source, exported, imported = round_trip()
    assert tree(exported) == tree(source)
    made = export_package(tmp_path / "imported", tmp_path / "again")
    lines = (source / "annotations.jsonl").read_bytes().count(b"\n")
    assert (made.files["annotations.jsonl"], made.files["LICENSE"]) == (lines, None)
    assert not any(line.startswith("  not in the package") for line in imported.lines())
    assert imported.version == "1.2.0"
    assert imported.missing == ()


def test_package_when_imported_is_as_wide_as_our_records(round_trip):
    _, _, imported = round_trip()
    release = load(imported.folder)
    wanted = [bundle["record"] for bundle in sample_bundles(6)]
    made = [record.as_json() for record in release]
    for name in ("source_text", "story_text", "language", "scenes"):
        assert [record[name] for record in made] == [record[name] for record in wanted], name
    assert [producer.fields for producer in release.producers] == [()] * 6
    report = validate(imported.folder)
    assert report.errors == (), report.errors
    assert report.checked["reviews"] == 6
    assert statistics_of(imported.folder)["totals"]["stories"] == 6
    document = json.loads((imported.folder / "release.json").read_text())
    assert (document["license"], document["created_at"]) == ("CC-BY-4.0", "2025-01-01T00:00:00Z")
    balance = json.loads((imported.folder / MORAL_BALANCE).read_text())["observed_distribution"]
    assert Counter(balance) == Counter(record["moral_label"] for record in wanted)


def test_lines_when_written_otherwise_are_read_alike_and_come_back_as_they_were(round_trip, tmp_path):
    def line(row):
        return b"\n  \n" + json.dumps(dict(reversed(row.items())), indent=None).encode() + b"\r\n"

    source, exported, imported = round_trip(line=line)
    path = source / "annotations.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().rstrip())
    again = import_package(source, tmp_path / "marked", STORY)
    plain = import_package(write_package(tmp_path / "plain"), tmp_path / "from-plain", STORY)
    assert load(imported.folder).records == load(again.folder).records == load(plain.folder).records
    assert tree(exported) == tree(tmp_path / "package") | {
        "annotations.jsonl": (exported / "annotations.jsonl").read_bytes()
    }


def test_import_when_repeated_or_of_shuffled_lines_has_the_same_records(tmp_path, rows):
    turned = {name: content if "gold" in name else content[::-1] for name, content in rows.items()}
    made = []
    for number, content in enumerate((rows, rows, turned)):
        source = write_package(tmp_path / str(number) / "package", rows=content)
        made.append(tree(import_package(source, tmp_path / str(number) / "imported", STORY).folder))
    assert made[0] == made[1]
    for name in ("annotations.jsonl", "contrastive_variants.jsonl"):
        assert made[0][name] == made[2][name]


def test_unknown_fields_when_anywhere_are_kept_reported_and_written_back(round_trip, rows):
    odd = {"a/b": {"~": [1.5, None, "\u0130\u0303 é"]}, "": 0, "$ref": "x"}
    record = rows["annotations.jsonl"][2]
    record |= {"notes": odd, "": "empty key"}
    record["scenes"][1]["camera angle"] = "low"
    record["questions"][0]["distractors"] = ["a", "b"]
    record["provenance"]["edition"] = {"perry": 1}
    rows["contrastive_variants.jsonl"][0]["score"] = 1e-7
    rows["human_validation.jsonl"][0]["votes"] = {"r1": "ok"}
    rows["annotations.jsonl"].append(rows["annotations.jsonl"].pop(0))
    source, exported, imported = round_trip(rows=rows)
    assert tree(exported) == tree(source)
    assert {(one["file"], one["field"], one["count"]) for one in imported.fields} == {
        ("annotations.jsonl", "/notes", 1), ("annotations.jsonl", "/", 1),
        ("annotations.jsonl", "/scenes/*/camera angle", 1),
        ("annotations.jsonl", "/questions/*/distractors", 1),
        ("annotations.jsonl", "/provenance/edition", 1), ("contrastive_variants.jsonl", "/score", 1),
        ("human_validation.jsonl", "/votes", 1),
    }  # fmt: skip


def test_optional_fields_when_absent_or_null_stay_what_they_were(round_trip, rows):
    record = rows["annotations.jsonl"][0]
    del record["scenes"][0]["emotion"], record["scenes"][0]["story_id"], record["scenes"][1]["scene_index"]
    record["scenes"][1]["emotion"] = None
    del record["transitions"][0]["from_scene"], record["questions"][0]["target_scene"]
    record["questions"][1]["target_scene"] = None
    for name in ("contrastive_variant_ids", "source_prompt_hash", "source_contrastives_sha256"):
        del record["provenance"][name]
    source, exported, imported = round_trip(rows=rows)
    assert tree(exported) == tree(source)
    wanted = sample_bundles(6)[0]["record"]["provenance"]
    made = load(imported.folder).by_id[record["story_id"]]
    assert made.scenes[0].emotion is None
    assert (made.scenes[0].story_id, made.scenes[1].scene_index) == (record["story_id"], 2)
    assert made.provenance.as_json() == wanted  # filled in, they are what our builder would have put there


def test_story_text_when_the_package_has_none_is_made_of_the_scenes_and_not_written_back(round_trip, rows):
    for record in rows["annotations.jsonl"]:
        del record["story"]
    source, exported, imported = round_trip(rows=rows, options=ImportOptions(language="hi"))
    assert tree(exported) == tree(source)
    record = load(imported.folder).records[0]
    assert record.source_text == " ".join(scene.scene_text for scene in record.scenes)
    assert record.story_text == normalize_text(record.source_text)
    assert record.language == "hi"


def test_hidden_test_rows_when_in_the_package_stay_and_are_marked(round_trip):
    source, exported, imported = round_trip()
    rows = lines_of(source / "annotations.jsonl")
    hidden = [row["story_id"] for row in rows if row["split"] == "hidden_test"]
    document = json.loads((imported.folder / "release.json").read_bytes())
    assert imported.hidden == len(hidden) == 1
    assert document["imported"]["hidden_in_place"] == {"stories": 1, "ids": hidden}
    assert document["visibility"] == "whole"
    assert [record.story_id for record in load(imported.folder).splits["hidden_test"]] == hidden
    assert hidden[0] in (exported / "annotations.jsonl").read_text("utf-8")


def test_other_files_when_there_are_any_are_kept_byte_for_byte(tmp_path, round_trip):
    extra = {
        "README.md": b"---\r\n---", "docs/raw bytes": b"\xff\x00", "notes.jsonl": b'{"b": 1}\r\n',
        ".gitattributes": b"x",
    }  # fmt: skip
    _, exported, imported = round_trip(documents=extra)
    found = tree(exported)
    assert {name: found.get(name) for name in extra} == {**extra, ".gitattributes": None}
    assert imported.skipped == (".gitattributes",)
    assert set(imported.missing) >= {"statistics.json", "LICENSE"}
    assert f"  not in the package: {', '.join(imported.missing)}" in imported.lines()


def test_release_of_our_own_when_exported_and_imported_holds_the_same_records(packed, tmp_path):
    export_package(packed.folder, tmp_path / "package")
    import_package(tmp_path / "package", tmp_path / "imported", ImportOptions())
    ours, back = load(packed.folder), load(tmp_path / "imported")
    assert (ours.records, ours.variants, ours.producers) == (back.records, back.variants, back.producers)
    assert back.info["imported"]["fields"] == []
    assert back.info["hidden_test"] == ours.info["hidden_test"]
    assert [str(one) for one in validate(tmp_path / "imported").issues] == []


def test_export_when_the_import_was_changed_is_refused(tmp_path):
    import_package(write_package(tmp_path / "package"), tmp_path / "imported", STORY)
    kept = tmp_path / "imported" / "official" / "annotations.jsonl"
    kept.write_bytes(kept.read_bytes() + b"\n")
    with pytest.raises(
        InputError, match=r"1 file was changed after packing: official.*\n  fix: import the package"
    ):
        export_package(tmp_path / "imported", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_export_when_the_document_names_files_elsewhere_is_refused(tmp_path, helpers):
    (tmp_path / "secret").write_bytes(b"x")
    import_package(write_package(tmp_path / "package"), tmp_path / "imported", STORY)

    def lead_out(document):
        document["imported"]["files"]["../../secret"] = copy.copy(document["imported"]["files"]["LICENSE"])

    helpers.edit_json(tmp_path / "imported" / "release.json", lead_out)
    helpers.reseal(tmp_path / "imported")
    with pytest.raises(InputError, match="imported"):
        export_package(tmp_path / "imported", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_imported_package_when_used_is_verified_compared_and_chosen_from_like_a_release(tmp_path, rows):
    old = import_package(write_package(tmp_path / "a" / "kb", rows=rows), tmp_path / "a" / "imported", STORY)
    rows["annotations.jsonl"][1]["questions"][0]["gold_answer"] = "another answer"
    rows["annotations.jsonl"][1]["notes"] = "set aside"
    options = ImportOptions(fields=STORY.fields, version="2.0.0")
    new = import_package(
        write_package(tmp_path / "b" / "kb", rows=rows), tmp_path / "b" / "imported", options
    )

    report = verify(old.folder)
    assert [issue.code for issue in report.issues] == ["review-unbound"], report.summary()
    found = diff(old.folder, new.folder)
    assert found.problem is None
    assert "$.questions[0].gold_answer" in "\n".join(diff_lines(found))
    chosen = chosen_records(load(new.folder), SelectionSettings(subset="strict_gold_400"))
    assert [record.story_id for record in chosen] == ["kb25k_0001", "kb25k_0002"]


def test_hashes_and_spans_when_defined_otherwise_are_warnings_in_an_import(imports, rows):
    record = rows["annotations.jsonl"][0]
    record["provenance"]["source_prompt_hash"] = "of another definition"
    record["scenes"][0]["scene_text"] = "The scene, described."
    record["transitions"][0]["to_scene"] = 9
    imported = imports(rows)
    levels = {issue.code: issue.level for issue in validate(imported.folder).issues}
    assert levels["hash"] == levels["scene-span"] == "warning"
    assert levels["transition-link"] == "error"


@pytest.fixture
def published(on_hub, tmp_path):
    """An official package in a repository, with the tag v1; return the commit."""
    from huggingface_hub import HfApi

    source = write_package(tmp_path / "package")
    api = HfApi(endpoint=on_hub.url, token=TOKEN)
    api.create_repo("user/package", repo_type="dataset")
    commit = api.upload_folder(repo_id="user/package", repo_type="dataset", folder_path=source).oid
    api.create_tag("user/package", repo_type="dataset", tag="v1", revision=commit)
    return commit


def test_package_when_on_a_hub_imports_by_tag_as_from_a_folder(published, tmp_path):
    told = []
    imported = import_package("user/package@v1", tmp_path / "imported", STORY, told.append)
    local = import_package(tmp_path / "package", tmp_path / "local", STORY)
    export_package(imported.folder, tmp_path / "exported")
    for path in (tmp_path / "package").iterdir():
        assert (tmp_path / "exported" / path.name).read_bytes() == path.read_bytes()
    for name in ("annotations.jsonl", "official/annotations.jsonl", "official/LICENSE"):
        assert (imported.folder / name).read_bytes() == (local.folder / name).read_bytes()
    document = json.loads((imported.folder / "release.json").read_bytes())
    assert document["imported"]["from"] == f"user/package@{published}"
    assert document["about"]["name"] == "package"
    assert imported.skipped == (".gitattributes",)
    assert any("user/package" in line for line in told)


def test_package_when_its_version_is_not_on_the_hub_names_those_there(published, tmp_path):
    with pytest.raises(ConfigError, match="v1"):
        import_package("user/package@v2", tmp_path / "imported", STORY)
    assert not (tmp_path / "imported").exists()


@pytest.fixture
def source(tmp_path):
    return write_package(tmp_path / "package")


@pytest.fixture
def imports(tmp_path):
    """Import a package of these rows."""
    return lambda rows: import_package(
        write_package(tmp_path / "package", rows=rows), tmp_path / "imported", STORY
    )


@pytest.fixture
def refused(tmp_path):
    """Import a package that must be refused, leaving nothing behind; return the problems."""

    def run(folder, options=STORY):
        before = sorted(tmp_path.iterdir())
        with pytest.raises(InputError) as error:
            import_package(folder, tmp_path / "out", options)
        assert sorted(tmp_path.iterdir()) == before
        return [str(problem) for problem in error.value.problems]

    return run


def change_first(change):
    rows = package_rows()
    change(rows["annotations.jsonl"][0])
    return rows


def test_source_when_it_is_no_package_says_what_is_there(tmp_path, refused, packed):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("{}")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Annotations.json").write_text("{}")
    found = {name: refused(tmp_path / name)[0] for name in ("nothing", "empty", "file", "other")}
    assert "found nothing there" in found["nothing"]
    assert "found no annotations.jsonl (no file)" in found["empty"]
    assert "found a file" in found["file"]
    assert "found no annotations.jsonl (Annotations.json)" in found["other"]
    assert "a release of Fabula" in refused(packed.folder)[0]


def test_annotations_when_they_cannot_be_read_without_loss_are_refused(source, tmp_path, refusals, snapshot):
    def read(content: bytes) -> None:
        (source / "annotations.jsonl").write_bytes(content)
        import_package(source, tmp_path / "out", STORY)

    assert refusals(read, [
        b"", b"\n\n", b'{"story_id": "a"', "{}\n".encode("utf-16"), b"PAR1\x00\x01\x02",
        '{"story_id": "Pu\u00f1yasena"}\n'.encode("latin-1"), b'{"story_id": "a", "x": NaN}\n',
        b'{"story_id": "a", "x": "\\ud800"}\n',
        b'{"story_id": "a", "title": "x", "title": "y"}\n', b'["story_id"]\n',
        b'{"story_id": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b'{"story_id": "a", "x": ' + b"[" * 200 + b"]" * 200 + b"}\n",
        b'{"story_id": 7}\n', b'{"title": "x"}\n', b'{"story_id": ""}\n',
    ]) == snapshot  # fmt: skip
    with pytest.raises(InputError, match="not JSON compliant"):  # the words of Python differ by version
        read(b'{"story_id": "a", "x": 1e999}\n')
    assert not (tmp_path / "out").exists()


def test_record_when_a_value_cannot_be_held_says_where(tmp_path, refusals, snapshot):
    def read(case: tuple[Any, ...]) -> None:
        rows = package_rows()
        *steps, last, value = case
        part = reduce(getitem, steps, rows["annotations.jsonl"][0])
        if value == "gone":
            del part[last]
        else:
            part[last] = value
        import_package(write_package(tmp_path / "package", rows=rows), tmp_path / "out", STORY)

    assert refusals(read, [
        ("title", "gone"), ("title", None), ("title", ["x"]), ("scenes", "gone"), ("scenes", {"1": {}}),
        ("scenes", ["a text"]), ("evidence_status", "ok"), ("scenes", 0, "scene_index", 0),
        ("scenes", 0, "scene_index", "1"), ("scenes", 0, "scene_index", True),
        ("scenes", 0, "characters", [1]), ("questions", 0, "accepted_answers", "gone"),
        ("provenance", "created_at", "gone"),
    ]) == snapshot  # fmt: skip


def test_problems_when_there_are_many_are_all_listed(tmp_path, refused):
    rows = package_rows()
    for record in rows["annotations.jsonl"]:
        del record["title"]
    del rows["contrastive_variants.jsonl"][3]["semantic_delta"]
    rows["human_validation.jsonl"][1]["story_id"] = rows["human_validation.jsonl"][0]["story_id"]
    rows["annotations.jsonl"].append(rows["annotations.jsonl"][0] | {"title": "again"})
    problems = refused(write_package(tmp_path / "package", rows=rows))
    assert [problem.split(" ")[0] for problem in problems] == [
        "contrastive_variants.jsonl:4", *(f"annotations.jsonl:{line}" for line in range(1, 7)),
        "annotations.jsonl:7:", "human_validation.jsonl:2:",
    ]  # fmt: skip
    assert "'kb25k_0001', as annotations.jsonl:1 has" in problems[7]


def test_line_when_it_belongs_to_a_repeated_id_of_a_bad_one_is_still_named(source, refused):
    path = source / "contrastive_variants.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    assert "each variant_id once" in refused(source)[0]


@pytest.mark.parametrize("make", ["link out", "folder link", "broken link", "pipe"])
def test_file_when_it_is_none_is_refused(tmp_path, source, refused, make):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("x")
    place = source / "more"
    if make == "pipe":
        os.mkfifo(place)
    else:
        targets = {"link out": "elsewhere/secret", "folder link": "elsewhere", "broken link": "nowhere"}
        place.symlink_to(tmp_path / targets[make])
    assert "a link that leads out of the package" in refused(source)[0]


def test_package_when_it_lies_in_the_cache_of_the_hub_is_read_through_its_links(tmp_path, source):
    snapshot = tmp_path / "repo" / "snapshots" / "0123"
    (tmp_path / "repo" / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, path in enumerate(sorted(source.iterdir())):
        path.rename(tmp_path / "repo" / "blobs" / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    assert import_package(snapshot, tmp_path / "out", STORY).counts["stories"] == 6


def test_options_when_wrong_are_named_before_anything_is_read(tmp_path, source, refusals, snapshot):
    assert refusals(lambda given: import_package(source, tmp_path / "out", ImportOptions(**given)), [
        {"fields": {"text": "story"}}, {"fields": {"title": "split"}}, {"fields": {"title": ""}},
        {"language": "not a tag"}, {"version": "1.0"}, {"name": "../up"},
    ]) == snapshot  # fmt: skip


def test_target_when_it_is_taken_or_inside_is_refused(tmp_path, source):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    for out in (tmp_path / "full", source / "inside", source, tmp_path / "full" / "x"):
        with pytest.raises(TargetError):
            import_package(source, out, STORY)
    import_package(source, tmp_path / "imported", STORY)
    for out in (tmp_path / "full", tmp_path / "imported" / "inside"):
        with pytest.raises(TargetError):
            export_package(tmp_path / "imported", out)


def test_disk_when_it_fills_leaves_nothing_behind(tmp_path, source, monkeypatch):
    def full(file, copy):
        copy.write(file.read(1))
        raise OSError(errno.ENOSPC, "No space left on device", str(copy.name))

    monkeypatch.setattr("fabula.releases.katha.package.shutil.copyfileobj", full)
    with pytest.raises(TargetError, match="No space left on device"):
        import_package(source, tmp_path / "out", STORY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["package"]


def test_export_when_the_folder_is_no_public_release_is_refused(tmp_path, source, packed):
    for folder, found in (
        (source, "release.json"),
        (packed.hidden, "the hidden test"),
        (tmp_path / "no", "nothing there"),
    ):
        with pytest.raises(InputError, match=found):
            export_package(folder, tmp_path / "out")


def test_document_when_it_is_damaged_or_huge_is_kept_as_it_is(tmp_path, source):
    (source / "statistics.json").write_bytes(b'{"hidden_test": {"stories": [')
    (source / "croissant_metadata.json").write_bytes(
        b'{"version": "9.9.9", "creator": "me", "x": "' + b"a" * 17_000_000
    )
    imported = import_package(source, tmp_path / "imported", STORY)
    assert imported.version == "0.0.0"
    export_package(tmp_path / "imported", tmp_path / "out")
    for name in ("statistics.json", "croissant_metadata.json"):
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()


def test_keys_when_hostile_are_shown_on_one_plain_line(imports):
    odd = {"\x1b[31m\n\u202e": 1, **{f"k{n}": n for n in range(80)}}
    imported = imports(change_first(lambda record: record.update(odd)))
    shown = list(imported.lines())
    assert all(line.isprintable() for line in shown)
    assert any(r"/\x1b[31m\n\u202e (1)" in line for line in shown)
    assert any("more fields; release.json lists them all" in line for line in shown)
    assert len(imported.as_json()["fields"]) > 80


def test_ids_when_hostile_name_no_files(imports):
    imported = imports(change_first(lambda record: record.update(story_id="../../etc/passwd\n\u202e")))
    assert not any("passwd" in path.name for path in imported.folder.rglob("*"))
    assert lines_of(imported.folder / "annotations.jsonl")[0]["story_id"].startswith("..")


def test_gold_line_when_its_id_is_no_text_is_a_finding(imports, rows):
    rows["human_gold_1k.jsonl"][0] = {"story_id": ["kb25k_0001"]}
    imported = imports(rows)
    assert [(one.code, one.where) for one in validate(imported.folder).errors] == [
        ("review-unproven", "human_gold_1k.jsonl:1")
    ]
