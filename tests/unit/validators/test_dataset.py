"""Opening and reading data sets: what is recognised, what is refused, what becomes an issue with its line."""

import json
from pathlib import Path

import pytest

from fabula.errors import RunError, UserError
from fabula.schemas.canonical import canonical_bytes, jsonl_lines, pretty_bytes
from fabula.schemas.values import Issue
from fabula.testing.katha_folders import write_jsonl, write_release, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.dataset import iter_bundles, open_dataset
from fabula.validators.katha.validation import validate


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


def test_open_dataset_when_run_is_not_finished_names_the_command_to_see_what_is_left(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", sample_bundles(1))
    (run / "records.jsonl").unlink()
    with pytest.raises(UserError, match="fabula run status"):
        open_dataset(run)


@pytest.mark.parametrize("writer", [write_run, write_release])
def test_open_dataset_when_folder_is_of_a_newer_version_refuses(writer, tmp_path: Path) -> None:
    folder = writer(tmp_path / "folder", sample_bundles(1))
    manifest = folder / ("run.json" if writer is write_run else "release.json")
    manifest.write_bytes(pretty_bytes({**json.loads(manifest.read_bytes()), "format": 2}))
    with pytest.raises(UserError, match=r"format 2 is .*; this version reads up to 1"):
        open_dataset(folder)


@pytest.mark.parametrize("content", [None, b"{", b"[]", b'{"format": 1}'])
def test_open_dataset_when_the_manifest_of_a_run_is_gone_or_damaged_refuses(content, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "folder", sample_bundles(1))
    (folder / "run.json").unlink()
    if content is not None:
        (folder / "run.json").write_bytes(content)
    with pytest.raises(RunError, match=r"run\.json"):
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
