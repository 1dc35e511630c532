import copy
import json
from collections import Counter

import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.judging.settings import SelectionSettings
from fabula.evaluation.katha.load_items import chosen_records
from fabula.kinds.verbs import diff, load, verify
from fabula.releases.diff.render import lines as diff_lines
from fabula.releases.katha.package import export_package
from fabula.releases.katha.package_import import ImportOptions, import_package
from fabula.schemas.layout import MORAL_BALANCE
from fabula.schemas.text import normalize_text
from fabula.testing.hub import TOKEN, HubServer
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.official_packages import package_rows, write_package
from fabula.validators.katha.validation import statistics_of, validate

STORY = ImportOptions(fields={"source_text": "story"})


def contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


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


def test_package_when_exported_again_has_the_bytes_that_came(round_trip):
    source, exported, imported = round_trip()
    assert contents(exported) == contents(source)
    assert imported.version == "1.2.0"
    assert imported.missing == ()


def test_package_when_imported_is_as_wide_as_our_records(round_trip):
    _, _, imported = round_trip()
    release = load(imported.folder)
    wanted = [bundle["record"] for bundle in sample_bundles(6)]
    assert [record.source_text for record in release] == [record["source_text"] for record in wanted]
    assert [record.story_text for record in release] == [record["story_text"] for record in wanted]
    assert {record.language for record in release} == {"en"}
    assert [record.scenes for record in release] == [
        type(release.records[0]).model_validate(record).scenes for record in wanted
    ]
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
    assert contents(exported) == contents(tmp_path / "package") | {
        "annotations.jsonl": (exported / "annotations.jsonl").read_bytes()
    }


def test_lines_when_shuffled_import_to_the_same_records(tmp_path, rows):
    one = import_package(write_package(tmp_path / "a" / "p", rows=rows), tmp_path / "a" / "i", STORY)
    turned = {name: content if "gold" in name else content[::-1] for name, content in rows.items()}
    two = import_package(write_package(tmp_path / "b" / "p", rows=turned), tmp_path / "b" / "i", STORY)
    for name in ("annotations.jsonl", "contrastive_variants.jsonl"):
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()


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
    assert contents(exported) == contents(source)
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
    assert contents(exported) == contents(source)
    wanted = sample_bundles(6)[0]["record"]["provenance"]
    made = load(imported.folder).by_id[record["story_id"]]
    assert made.scenes[0].emotion is None
    assert (made.scenes[0].story_id, made.scenes[1].scene_index) == (record["story_id"], 2)
    assert made.provenance.as_json() == wanted  # filled in, they are what our builder would have put there


def test_story_text_when_the_package_has_none_is_made_of_the_scenes_and_not_written_back(round_trip, rows):
    for record in rows["annotations.jsonl"]:
        del record["story"]
    source, exported, imported = round_trip(rows=rows, options=ImportOptions(language="hi"))
    assert contents(exported) == contents(source)
    record = load(imported.folder).records[0]
    assert record.source_text == " ".join(scene.scene_text for scene in record.scenes)
    assert record.story_text == normalize_text(record.source_text)
    assert record.language == "hi"


def test_hidden_test_rows_when_in_the_package_stay_and_are_marked(round_trip):
    source, exported, imported = round_trip()
    hidden = [row["story_id"] for row in lines(source / "annotations.jsonl") if row["split"] == "hidden_test"]
    document = json.loads((imported.folder / "release.json").read_bytes())
    assert imported.hidden == len(hidden) == 1
    assert document["imported"]["hidden_in_place"] == {"stories": 1, "ids": hidden}
    assert document["visibility"] == "whole"
    assert [record.story_id for record in load(imported.folder).splits["hidden_test"]] == hidden
    assert hidden[0] in (exported / "annotations.jsonl").read_text("utf-8")


def test_other_files_when_there_are_any_are_kept_byte_for_byte(tmp_path, round_trip):
    extra = {
        "README.md": b"---\r\n---",
        "docs/raw bytes": b"\xff\x00",
        "notes.jsonl": b'{"b": 1}\r\n',
        ".gitattributes": b"x",
    }
    _, exported, imported = round_trip(documents=extra)
    found = contents(exported)
    assert {name: (exported / name).read_bytes() for name in extra if name != ".gitattributes"} == {
        name: content for name, content in extra.items() if name != ".gitattributes"
    }
    assert ".gitattributes" not in found
    assert imported.skipped == (".gitattributes",)
    assert set(imported.missing) >= {"statistics.json", "LICENSE"}


def test_import_when_repeated_gives_the_same_bytes(tmp_path):
    source = write_package(tmp_path / "package")
    for name in ("one", "two"):
        import_package(source, tmp_path / name, STORY)
    files = sorted(
        path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()
    )
    assert all(
        (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes() for path in files
    )


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
    with pytest.raises(InputError, match="size or hash"):
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


def test_hashes_and_spans_when_defined_otherwise_are_warnings_in_an_import(tmp_path, rows):
    record = rows["annotations.jsonl"][0]
    record["provenance"]["source_prompt_hash"] = "of another definition"
    record["scenes"][0]["scene_text"] = "The scene, described."
    record["transitions"][0]["to_scene"] = 9
    imported = import_package(write_package(tmp_path / "package", rows=rows), tmp_path / "imported", STORY)
    levels = {issue.code: issue.level for issue in validate(imported.folder).issues}
    assert levels["hash"] == levels["scene-span"] == "warning"
    assert levels["transition-link"] == "error"


@pytest.fixture
def hub(monkeypatch):
    """A Hub that the client finds through its environment."""
    with HubServer() as server:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def published(hub, tmp_path):
    """An official package in a repository, with the tag v1; return the commit."""
    from huggingface_hub import HfApi

    source = write_package(tmp_path / "package")
    api = HfApi(endpoint=hub.url, token=TOKEN)
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
