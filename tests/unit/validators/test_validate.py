"""The report as a whole: sound data has no findings, nothing stops early, bounds and sums hold."""

import json
from pathlib import Path

import pytest

from fabula.schemas.canonical import pretty_bytes
from fabula.testing.katha_folders import rehash, write_jsonl, write_release, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.validation import statistics_of, validate
from fabula.validators.record_rules import check_story, incomplete_reason


@pytest.mark.parametrize("writer", [write_run, write_release])
@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_validate_when_data_is_sound_finds_nothing(writer, count: int, tmp_path: Path) -> None:
    report = validate(writer(tmp_path / "data", sample_bundles(count)))
    assert report.issues == ()
    assert report.ok
    assert "no findings" in report.summary()


def test_validate_when_many_things_are_wrong_reports_all_of_them_in_one_pass(tmp_path: Path) -> None:
    bundles = sample_bundles(3)
    bundles[0]["record"]["moral_label"] = "thrift"
    bundles[1]["record"]["scenes"][2]["scene_index"] = 7
    bundles[2]["variants"][0]["changed_scene_id"] = "four"
    del bundles[2]["record"]["title"]
    run = write_run(tmp_path / "run", bundles)
    with (run / "records.jsonl").open("ab") as handle:
        handle.write(b"{broken\n")
    report = validate(run)
    assert {
        "unlisted-value",
        "moral-target",
        "variant-moral",
        "scene-order",
        "hash",
        "schema",
        "json",
    } <= set(report.counts)
    assert not report.ok
    assert [issue.where.split(" ")[0] for issue in report.issues] == sorted(
        issue.where.split(" ")[0] for issue in report.issues
    )


def test_check_story_when_one_field_is_broken_still_runs_the_rules_that_do_not_read_it() -> None:
    bundle = sample_bundles(1)[0]
    bundle["record"]["scenes"][0]["action"] = 3
    bundle["record"]["language"] = "?"
    bundle["record"]["provenance"]["source_rights_status"] = "restricted"
    codes = {issue.code for issue in check_story(bundle["record"], bundle["variants"])}
    assert codes == {"schema", "language-tag", "rights"}


def test_check_story_when_only_some_rules_are_chosen_runs_these_and_the_schema() -> None:
    bundle = sample_bundles(1)[0]
    bundle["record"]["language"] = "?"
    assert [issue.code for issue in check_story(bundle["record"], bundle["variants"], ["language"])] == [
        "language-tag"
    ]
    assert check_story(bundle["record"], bundle["variants"], ["scenes"]) == []


def test_incomplete_when_strings_are_missing_is_a_warning_in_a_run_and_an_error_in_a_release(
    tmp_path: Path,
) -> None:
    bundles = sample_bundles(2)
    bundles[0]["record"]["scenes"][0]["state"] = " "
    rehash(bundles[0])
    reason = incomplete_reason(bundles[0]["record"], bundles[0]["variants"])
    assert reason == "missing: $.scenes[0].state"
    assert incomplete_reason(bundles[1]["record"], bundles[1]["variants"]) is None
    run = validate(write_run(tmp_path / "run", bundles))
    release = validate(write_release(tmp_path / "release", bundles))
    assert [(issue.code, issue.level) for issue in run.issues] == [("incomplete", "warning")]
    assert [(issue.code, issue.level) for issue in release.issues] == [("incomplete", "error")]
    assert run.ok and not release.ok


def test_optional_strings_when_null_do_not_make_a_record_incomplete() -> None:
    bundle = sample_bundles(1)[0]
    for scene in bundle["record"]["scenes"]:
        scene |= {"emotion": None, "visual_evidence": None}
    for transition in bundle["record"]["transitions"]:
        transition |= {"emotion": None, "intention": None}
    assert incomplete_reason(bundle["record"], bundle["variants"]) is None


def test_validate_when_hidden_stories_are_left_out_judges_split_sizes_with_their_count(
    tmp_path: Path,
) -> None:
    release = write_release(tmp_path / "release", sample_bundles(200))
    assert validate(release).issues == ()
    statistics = json.loads((release / "statistics.json").read_bytes())
    assert statistics["hidden_test"]["stories"] == 10
    (release / "statistics.json").write_bytes(pretty_bytes({**statistics, "hidden_test": {"stories": 90}}))
    assert "split-size" in validate(release).counts


def test_validate_when_variants_file_is_emptied_reports_every_story(tmp_path: Path) -> None:
    release = write_release(tmp_path / "release", sample_bundles(2))
    (release / "contrastive_variants.jsonl").write_bytes(b"")
    counts = validate(release).counts
    assert set(counts) == {"hash", "statistics", "variant-reference"}
    assert counts["hash"] == counts["variant-reference"] == 2


def test_statistics_of_when_stories_are_broken_leaves_them_out_and_counts_them(tmp_path: Path) -> None:
    bundles = sample_bundles(3)
    del bundles[1]["record"]["scenes"][0]["objects"]
    document = statistics_of(write_run(tmp_path / "run", bundles))
    assert document["totals"]["stories"] == 2
    assert document["not_counted"] == 1
    assert document["producers"] == {"rules@1": 2}


def test_hidden_folder_when_it_holds_one_split_has_no_sizes_to_check(tmp_path: Path) -> None:
    bundles = [bundle for bundle in sample_bundles(500) if bundle["record"]["split"] == "hidden_test"]
    folder = tmp_path / "hidden"
    folder.mkdir()
    write_jsonl(folder / "annotations.jsonl", [bundle["record"] for bundle in bundles])
    write_jsonl(folder / "contrastive_variants.jsonl", [v for bundle in bundles for v in bundle["variants"]])
    assert len(bundles) == 25
    assert {found.code for found in validate(folder).issues} == {"split-size"}
    write_jsonl(folder / "release.json", [{"format": 1, "visibility": "hidden"}])
    assert {found.code for found in validate(folder).issues} == {"missing-file"}  # the producers
