"""Opening and reading data sets: what is recognised, what is refused, what becomes an issue with its line."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.errors import RunError, UserError
from fabula.schemas.canonical import canonical_bytes, jsonl_lines, pretty_bytes
from fabula.schemas.export import json_schema
from fabula.schemas.paths import format_path, get_at, replace_at
from fabula.schemas.values import Issue, vocabulary
from fabula.testing.katha_folders import rehash, write_jsonl, write_release, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.dataset import iter_bundles, open_dataset
from fabula.validators.katha.scene_rules import check_story, incomplete_reason
from fabula.validators.katha.validation import statistics_of, validate
from fabula.validators.lines import check_schema
from fabula.validators.statistics import HiddenCounts, StatisticsCollector, distribution, moral_balance


def test_open_dataset_when_run_folder_streams_bundles_with_their_variants(tmp_path: Path) -> None:
    bundles = sample_bundles(3)
    dataset = open_dataset(write_run(tmp_path / "run", bundles))
    assert dataset.kind == "run"
    assert [story.bundle for story in dataset.stories(pytest.fail)] == bundles
    assert list(iter_bundles(tmp_path / "run")) == bundles


def test_open_dataset_when_release_folder_joins_variants_of_another_file(tmp_path: Path) -> None:
    bundles = sample_bundles(4)
    release = write_release(tmp_path / "release", bundles)
    write_jsonl(release / "contrastive_variants.jsonl", reversed([v for b in bundles for v in b["variants"]]))
    stories = list(open_dataset(release).stories(pytest.fail))
    assert [len(story.variants) for story in stories] == [2, 2, 2, 2]
    assert stories[0].variants[0].where == "contrastive_variants.jsonl:7 kb25k_0001_v2"
    assert stories[0].variants[0].data == bundles[0]["variants"][1]


@pytest.mark.parametrize("shape", ["records", "bundles", "envelopes", "mixed"])
def test_validate_when_bare_file_holds_stories_in_any_shape_finds_nothing(shape: str, tmp_path: Path) -> None:
    bundles = sample_bundles(2)
    records = [bundle["record"] for bundle in bundles]
    rows = {
        "records": records,
        "bundles": bundles,
        "envelopes": [
            {"kind": "katha", "schema_version": "1", "id": bundle["record"]["story_id"], "payload": bundle}
            for bundle in bundles
        ],
        "mixed": [*bundles[0]["variants"], bundles[1], records[0]],
    }
    report = validate(write_jsonl(tmp_path / "stories.jsonl", rows[shape]))
    assert (report.issues, report.checked["stories"], report.kind) == ((), 2, "file")
    assert report.checked["variants"] == (0 if shape == "records" else 4)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda path: None, "nothing there"),
        (lambda path: path.write_bytes(b""), "an empty file"),
        (lambda path: path.write_bytes(b" \n\n\t\n"), "an empty file"),
        (lambda path: path.mkdir(), "an empty folder"),
        (lambda path: (path.mkdir(), (path / "notes.txt").touch()), "a folder with none of their files"),
    ],
)
def test_open_dataset_when_there_is_no_data_says_what_was_found(make, found: str, tmp_path: Path) -> None:
    make(tmp_path / "data")
    with pytest.raises(UserError) as caught:
        open_dataset(tmp_path / "data")
    assert caught.value.what.endswith(f": {found}")
    assert "fabula build" in caught.value.fix


@pytest.mark.parametrize("writer", [write_run, write_release])
def test_open_dataset_when_folder_is_of_a_newer_version_refuses(writer, tmp_path: Path) -> None:
    folder = writer(tmp_path / "folder", sample_bundles(1))
    manifest = folder / ("run.json" if writer is write_run else "release.json")
    manifest.write_bytes(pretty_bytes({**json.loads(manifest.read_bytes()), "format": 2}))
    with pytest.raises(UserError, match=r"format 2 is .*; this version reads up to 1"):
        open_dataset(folder)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("records.jsonl", None, "fabula run status"),
        *(("run.json", content, r"run\.json") for content in (None, b"{", b"[]", b'{"format": 1}')),
    ],
)
def test_open_dataset_when_records_or_manifest_of_a_run_are_gone_or_damaged_refuses(
    name, content, words, tmp_path
):
    folder = write_run(tmp_path / "folder", sample_bundles(1))
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(UserError if name == "records.jsonl" else RunError, match=words):
        open_dataset(folder)


def test_validate_when_lines_end_in_crlf_or_are_blank_counts_lines_as_an_editor_does(tmp_path: Path) -> None:
    lines = [canonical_bytes(bundle["record"]) for bundle in sample_bundles(2)]
    (tmp_path / "a.jsonl").write_bytes(lines[0] + b"\r\n\r\n" + lines[1] + b"\r\n{]\r\n")
    assert [issue.where for issue in validate(tmp_path / "a.jsonl").issues] == ["a.jsonl:4"]


def test_validate_when_ids_are_hostile_keeps_every_issue_on_its_lines(tmp_path: Path) -> None:
    for story_id in ("../x", "a/b", "a b", "\u2764", "x" * 300, "a\nb", "\u202eabc", "", "a\u0000b"):
        bundle = sample_bundles(1)[0]
        bundle["record"]["story_id"] = story_id
        report = validate(write_jsonl(tmp_path / "a.jsonl", [bundle]))
        assert "id-form" in report.counts
        for issue in report.issues:
            assert len(str(issue).splitlines()) == 2
            assert len(issue.where) < 120


def test_stories_when_a_line_is_broken_gives_the_good_ones_and_reports_the_others(tmp_path: Path) -> None:
    good = list(jsonl_lines(bundle["record"] for bundle in sample_bundles(2)))
    (tmp_path / "a.jsonl").write_bytes(good[0] + b"{\n" + good[1] + b"[]\n")
    problems: list[Issue] = []
    seen = [story.record["story_id"] for story in open_dataset(tmp_path / "a.jsonl").stories(problems.append)]
    assert seen == ["kb25k_0001", "kb25k_0002"]
    assert [problem.where for problem in problems] == ["a.jsonl:2", "a.jsonl:4"]


def test_file_of_variants_only_when_validated_counts_them_and_finds_repeated_ids(tmp_path: Path) -> None:
    variants = [variant for bundle in sample_bundles(2) for variant in bundle["variants"]]
    path = tmp_path / "contrastive_variants.jsonl"
    rows = [*variants, {**variants[0], "contrastive_scene_text": "Something else."}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    report = validate(path)
    assert report.checked["variants"] == len(rows)
    assert [issue.code for issue in report.issues if issue.code == "id-repeated"] == ["id-repeated"]


# The report as a whole: sound data has no findings, nothing stops early, bounds and sums hold.


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
    wanted = {"unlisted-value", "moral-target", "variant-moral", "scene-order", "hash", "schema", "json"}
    assert wanted <= set(report.counts)
    assert not report.ok
    places = [issue.where.split(" ")[0] for issue in report.issues]
    assert places == sorted(places)


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


def test_incomplete_when_strings_are_missing_is_a_warning_in_a_run_and_an_error_in_a_release(tmp_path):
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
        transition |= {"causality": None, "emotion": None, "intention": None}
    assert incomplete_reason(bundle["record"], bundle["variants"]) is None


@pytest.mark.slow
def test_validate_when_hidden_stories_are_left_out_judges_split_sizes_with_their_count(tmp_path):
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


def test_release_when_its_files_hold_other_things_or_are_gone_names_them(tmp_path: Path) -> None:
    release = write_release(tmp_path / "release", sample_bundles(2))
    with (release / "contrastive_variants.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"name": "x"}\n{"variant_id": "v", "base_story_id": "nobody"}\n')
    strange = {(found.where, found.code) for found in validate(release).issues}
    assert {("contrastive_variants.jsonl:5", "kind"), ("contrastive_variants.jsonl:6 v", "schema")} <= strange
    (release / "annotations.jsonl").unlink()
    assert ("annotations.jsonl", "missing-file") in {
        (found.where, found.code) for found in validate(release).issues
    }


# -- The fast schema validator agrees with the reference implementation, and never leaves the machine

RECORD = sample_bundles(1)[0]["record"]
VARIANT = sample_bundles(1)[0]["variants"][0]
REVIEW = {
    "story_id": "kb25k_0001", "decision": "accepted", "validation_status": "human_review_complete",
    "evidence_source": "text", "protocol_complete": True, "annotator_ids": ["a"], "adjudicator_id": None,
    "resolution": "unanimous", "final_moral_label": "courage", "correction_flags": [],
    "signed_at": "2025-02-01T10:00:00+01:00",
}  # fmt: skip
INSTANCES = {"katha_record": RECORD, "katha_variant": VARIANT, "katha_human_validation": REVIEW}
VALUES = st.sampled_from(
    [None, True, 0, 1, -1, 1.0, 1.5, 2**70, "", "x", "2025-01-01", "2025-01-01T00:00:00Z", [], ["x"], [1, 2],
     [1, 2, 3], {}, {"a": 1}, [[]], [None], "2025-13-01T00:00:00Z", "2025-01-01T24:00:00Z"]
)  # fmt: skip


def paths(node: Any, steps: tuple[str | int, ...] = ()) -> list[str]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [format_path(steps), *(path for key, value in children for path in paths(value, (*steps, key)))]


def reference_paths(name: str, instance: Any) -> set[str]:
    """Where the reference implementation finds errors; unknown fields are the business of a warning."""
    schema = json_schema(name)
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
    return {
        format_path(list(error.absolute_path))
        for error in validator.iter_errors(instance)
        if error.validator != "additionalProperties"
    }


def fast_paths(name: str, instance: Any) -> set[str]:
    return {
        finding.issue.path
        for finding in check_schema(name, instance, "x")
        if finding.issue.code != "unknown-field"
    }


@pytest.mark.parametrize("name", INSTANCES)
def test_check_schema_when_instance_is_valid_agrees_with_the_reference(name: str) -> None:
    assert fast_paths(name, INSTANCES[name]) == reference_paths(name, INSTANCES[name]) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTANCES)
@given(data=st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_check_schema_when_instance_is_corrupted_finds_what_the_reference_finds(name, data):
    instance = INSTANCES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        instance = replace_at(instance, data.draw(st.sampled_from(paths(instance))), data.draw(VALUES))
    assert fast_paths(name, instance) == reference_paths(name, instance)


@pytest.mark.parametrize("name", INSTANCES)
def test_check_schema_when_any_field_is_missing_names_it(name: str) -> None:
    for field in INSTANCES[name]:
        instance = {key: value for key, value in INSTANCES[name].items() if key != field}
        (finding,) = check_schema(name, instance, "x")
        assert finding.issue.message == f"expected a field {field!r}, found none"
        assert finding.broken == field


def test_check_schema_when_fields_are_unknown_warns_and_breaks_nothing() -> None:
    instance = replace_at(RECORD, "$.scenes[1]", {**RECORD["scenes"][1], "camera": 1})
    findings = list(check_schema("katha_record", {**instance, "a b": 2}, "x"))
    assert {item.issue.path for item in findings} == {"$.scenes[1].camera", "$.a b"}
    assert {item.issue.level for item in findings} == {"warning"}
    assert all(item.broken is None for item in findings)


def test_check_schema_when_time_is_not_rfc_3339_has_a_code_of_its_own() -> None:
    instance = replace_at(RECORD, "$.provenance.created_at", "2025-01-01 noon")
    (finding,) = check_schema("katha_record", instance, "x")
    assert (finding.issue.code, finding.broken) == ("timestamp", "provenance.created_at")
    assert get_at(RECORD, "$.provenance.created_at").endswith("Z")


# Counts and distributions against numbers worked out by hand, and against the published tables.


def statistics_over(bundles, hidden=None):
    counts = StatisticsCollector()
    for bundle in bundles:
        counts.add_record(bundle["record"])
        for variant in bundle["variants"]:
            counts.add_variant(variant)
    return counts.result(hidden or HiddenCounts())


def test_statistics_when_two_stories_equal_the_counts_by_hand() -> None:
    bundles = sample_bundles(2)
    bundles[1]["record"]["transitions"][0] |= {"intention": "to sell pots", "transition_type": None}
    document = statistics_over(bundles)
    assert document["totals"] == {
        "stories": 2, "scenes": 10, "transitions": 8, "questions": 12, "variants": 4,
    }  # fmt: skip
    assert document["splits"] == {"train": 1, "validation": 0, "public_test": 1, "hidden_test": 0, "test": 1}
    # Each story has 2 cause_effect, 1 consequence_reveal, 1 moral_choice; one cause_effect is taken away.
    types = document["transition_types"]
    assert {name: entry["count"] for name, entry in types.items()} == {
        "cause_effect": 3, "moral_choice": 2, "consequence_reveal": 2, "none": 1,
    }  # fmt: skip
    # 3 of 8 is 0.375, the target 2 of 4 is 0.5.
    assert types["cause_effect"] == {"count": 3, "share": 0.375, "target_share": 0.5, "deviation": -0.125}
    assert types["none"] == {"count": 1, "share": 0.125}
    assert document["transition_field_coverage"]["intention"] == {"count": 1, "share": 0.125}
    assert document["transition_field_coverage"]["moral_target"] == {"count": 2, "share": 0.25}
    assert document["source_mix"]["kathasaritasagara"] == {"count": 1, "share": 0.5}
    assert document["languages"] == {"en": {"count": 2, "share": 1.0}}
    assert document["change_types"]["remove_consequence"]["count"] == 2
    assert document["review"]["resolution"]["not_reviewed"] == {"count": 2, "share": 1.0}


def test_statistics_when_hidden_stories_exist_count_them_and_nothing_else() -> None:
    hidden = HiddenCounts(stories=3, scenes=15, transitions=12, questions=18, variants=6)
    with_hidden, without = statistics_over(sample_bundles(2), hidden), statistics_over(sample_bundles(2))
    assert with_hidden["totals"]["stories"] == 5
    assert with_hidden["public"] == without["totals"]
    assert with_hidden["splits"] == {
        "train": 1, "validation": 0, "public_test": 1, "hidden_test": 3, "test": 4,
    }  # fmt: skip
    changed = {name for name in without if with_hidden[name] != without[name]}
    assert changed == {"totals", "hidden_test", "splits"}


def test_statistics_when_there_is_nothing_have_every_key_and_no_division() -> None:
    document = statistics_over([])
    assert document.keys() == statistics_over(sample_bundles(1)).keys()
    assert document["moral_labels"]["courage"]["share"] == 0.0


def test_distribution_when_counts_are_the_published_ones_deviates_nowhere() -> None:
    for name in ("narrative_type", "moral_label", "question_type"):
        table = distribution(name, vocabulary(name).targets)
        assert {entry["deviation"] for entry in table.values()} == {0.0}, name


def test_moral_balance_when_labels_are_the_published_ones_is_within_tolerance() -> None:
    # Table 12: 5,000 stories over 12 labels, 416 or 417 each; the uniform target is 416.6667.
    targets = vocabulary("moral_label").targets
    audit = moral_balance(label for label, count in targets.items() for _ in range(count))
    assert audit["target_distribution"]["courage"] == 416.6667
    assert audit["observed_distribution"] == targets
    assert audit["per_label_deviation"]["courage"] == 0.3333
    assert audit["per_label_deviation"]["wisdom"] == -0.6667
    assert audit["tolerance_status"] == "within_tolerance"
    assert audit["automatic_relabeling"] is False


@pytest.mark.parametrize(("extra", "status"), [(8, "within_tolerance"), (10, "outside_tolerance")])
def test_moral_balance_when_one_label_has_too_many_uses_the_larger_bound(extra: int, status: str) -> None:
    # 12 x 417 + extra: the target is 417 + extra / 12, the bound 2 % of it, about 8.35.
    names = vocabulary("moral_label").values
    labels = [name for name in names for _ in range(417)] + ["courage"] * extra
    audit = moral_balance(labels)
    assert audit["per_label_status"]["courage"] == status
    assert audit["tolerance_status"] == status


def test_moral_balance_when_labels_are_missing_or_unknown_counts_them_apart() -> None:
    audit = moral_balance(["courage", None, None, "thrift"])
    assert (audit["unlabelled"], audit["unlisted"]) == (2, {"thrift": 1})
    assert audit["target_distribution"]["courage"] == 0.0833
