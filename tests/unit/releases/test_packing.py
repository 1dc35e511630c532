import errno
import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest

from fabula.engine.lock import hold
from fabula.engine.status import ItemReport
from fabula.errors import ConfigError, InputError, RunBusy, RunError, TargetError
from fabula.kinds.verbs import pack, verify
from fabula.releases import target
from fabula.releases.loading import load
from fabula.releases.options import PackOptions
from fabula.releases.pack import packing
from fabula.schemas.canonical import canonical_bytes, digest, sha256_file
from fabula.testing.katha_folders import read_rows, rehash, write_run
from fabula.testing.katha_samples import CREATED_AT, sample_bundles, with_variant_questions
from fabula.testing.review_exports import summary_of, write_review
from fabula.tests.unit.releases.conftest import lines_of, tree
from fabula.validators.katha.field_rules import record_hashes

OPTIONS = PackOptions("0.1.0", allow_drafts=True)


def test_a_release_holds_exactly_the_files_of_the_design(packed):
    parquet = {
        f"data/{table}/{split}.parquet"
        for table in ("stories", "scenes", "transitions", "questions", "variants")
        for split in ("train", "validation", "test")
    }
    assert set(tree(packed.folder)) == parquet | {
        "annotations.jsonl", "contrastive_variants.jsonl", "producers.jsonl", "statistics.json",
        "moral_balance_requirements.json", "source_manifest.json", "croissant_metadata.json",
        "dataset_card.md", "README.md", "LICENSE", "CANARY.txt", "release.json", "SHA256SUMS",
        "eval.yaml",
    }  # fmt: skip
    assert set(tree(packed.hidden)) == {
        "annotations.jsonl", "contrastive_variants.jsonl", "producers.jsonl", "release.json", "SHA256SUMS",
        "CANARY.txt",
    }  # fmt: skip


def test_the_jsonl_files_are_what_the_run_has_canonical_and_sorted_by_id(packed):
    public = [one for one in sample_bundles(24) if one["record"]["split"] != "hidden_test"]
    variants = [variant for bundle in public for variant in bundle["variants"]]
    for name, rows in (
        ("annotations.jsonl", sorted((one["record"] for one in public), key=lambda row: row["story_id"])),
        ("contrastive_variants.jsonl", sorted(variants, key=lambda row: row["variant_id"])),
        ("producers.jsonl", sorted(lines_of(packed.folder / "producers.jsonl"), key=lambda row: row["id"])),
    ):
        content = (packed.folder / name).read_bytes()
        assert content == b"".join(canonical_bytes(row) + b"\n" for row in rows)
        assert len(rows) in (23, 46)


def test_release_json_says_what_was_packed_and_what_was_not(packed):
    document = json.loads((packed.folder / "release.json").read_bytes())
    assert (document["format"], document["kind"], document["version"]) == (1, "katha", "0.1.0")
    assert document["created_at"] == CREATED_AT
    assert document["counts"] == {
        "stories": 23, "scenes": 115, "transitions": 92, "questions": 138, "variants": 46
    }  # fmt: skip
    assert document["splits"] == {"train": 16, "validation": 4, "public_test": 3}
    first = lines_of(packed.folder / "annotations.jsonl")[0]
    assert document["records"]["annotations.jsonl"][first["story_id"]] == digest(first)
    told = {one["id"]: (one["code"], one["reason"]) for one in document["left_out"]["stories"]}
    assert told == {  # by its meaning, and never in the words of the run
        "zz_1": ("near_duplicate", "The story is nearly the same as another one."),
        "zz_2": ("timeout", "The stage could not do its work on the item."),
    }
    assert [one["name"] for one in document["left_out"]["files"]] == [
        "human_validation.jsonl", "human_gold_1k.jsonl", "strict_gold_400.jsonl"
    ]  # fmt: skip
    card = hashlib.sha256((packed.folder / "dataset_card.md").read_bytes()).hexdigest()
    assert document["files"]["dataset_card.md"]["sha256"] == card
    assert set(document["files"]) == set(tree(packed.folder)) - {"release.json", "SHA256SUMS"}
    assert document["tools"]["pyarrow"]
    assert document["run"]["settings"] == {"draft_scenes": {"scenes": 5}}
    assert document["prompts"] == {"scene_image": "1" * 64}


def test_the_source_manifest_counts_references_and_rights_per_collection(packed):
    manifest = json.loads((packed.folder / "source_manifest.json").read_bytes())
    assert "no licence" in manifest["rights_scope"]
    assert sum(one["stories"] for one in manifest["collections"]) == 23
    aesop = next(one for one in manifest["collections"] if one["collection"] == "aesop")
    assert aesop["references"] == sorted(aesop["references"])
    assert aesop["rights_status"] == {"public_domain_or_rights_compatible": aesop["stories"]}


def test_nothing_of_a_hidden_story_is_in_a_public_file(packed, run):
    hidden = [one for one in sample_bundles(24) if one["record"]["split"] == "hidden_test"]
    assert [one["record"]["story_id"] for one in hidden] == ["kb25k_0005"]
    needles = {hidden[0]["record"][name] for name in ("story_id", "title", "story_text")}
    needles |= {hidden[0]["record"]["scenes"][0]["characters"][0]}
    needles |= {one["contrastive_story_text"] for one in hidden[0]["variants"]}
    needles |= {one["question"] for one in hidden[0]["record"]["questions"][:2]}
    needles |= set(record_hashes(hidden[0]["record"], hidden[0]["variants"]).values())
    hashes = json.loads((packed.hidden / "release.json").read_bytes())["records"]
    needles |= {value for table in hashes.values() for value in table.values()}
    for path in packed.folder.rglob("*"):
        if path.suffix == ".parquet":
            content = json.dumps(list(read_rows(path)), ensure_ascii=False)
        elif path.is_file():
            content = path.read_text("utf-8")
        for needle in needles:
            assert needle not in content, path.name


@pytest.mark.slow
def test_a_hidden_story_that_is_no_longer_made_is_counted_in_public_and_named_nowhere(make_run, tmp_path):
    bundles = sample_bundles(24)
    hidden = bundles.pop(4)["record"]
    assert hidden["split"] == "hidden_test"
    found = f"expected the old value, found {hidden['questions'][0]['gold_answer']!r}"
    for number, also in enumerate(((), sample_bundles(5)[4:])):
        name = "kb25k_9999" if also else hidden["story_id"]
        failed = ItemReport(name, "apply_edits", "failed", "bad_edit", found, "No.")
        packed = sorted((*bundles, *also), key=lambda one: one["record"]["story_id"])
        run = write_run(tmp_path / f"run{number}", packed, (failed,), {name: "hidden_test"})
        out = tmp_path / f"out{number}"
        result = pack(run, out, OPTIONS)
        assert [one.id for one in result.left_out] == [failed.id]
        document = json.loads((out / "release.json").read_bytes())
        assert document["left_out"]["stories"] == []
        assert document["left_out"]["hidden_test_stories"] == 1
        assert failed.id.encode() not in b"".join(tree(out).values())
        assert verify(out).ok
    secret = json.loads((tmp_path / "out1-hidden" / "release.json").read_bytes())
    assert secret["left_out"]["stories"] == [
        {"id": "kb25k_9999", "code": "bad_edit", "reason": "No.", "stage": "apply_edits", "status": "failed"}
    ]


def test_an_item_that_was_given_a_public_split_earlier_is_named(make_run, tmp_path):
    run = make_run(sample_bundles(4), splits={"zz_1": "train", "zz_2": "hidden_test"})
    result = pack(run, tmp_path / "out", OPTIONS)
    document = json.loads((tmp_path / "out/release.json").read_bytes())
    assert [one["id"] for one in document["left_out"]["stories"]] == ["zz_1"]
    assert [one.id for one in result.left_out] == ["zz_1", "zz_2"]


def test_a_run_that_forgot_what_it_assigned_is_refused(make_run, tmp_path):
    run = make_run(sample_bundles(4))
    for path in run.glob("journal.sqlite*"):
        path.unlink()
    with pytest.raises(RunError, match=r"journal\.sqlite"):
        pack(run, tmp_path / "out", OPTIONS)


def test_hidden_stories_are_packed_beside_the_release(packed):
    records = lines_of(packed.hidden / "annotations.jsonl")
    assert [one["split"] for one in records] == ["hidden_test"]
    document = json.loads((packed.hidden / "release.json").read_bytes())
    assert (document["visibility"], document["counts"]["stories"]) == ("hidden", 1)
    statistics = json.loads((packed.folder / "statistics.json").read_bytes())
    assert statistics["hidden_test"]["stories"] == 1
    assert statistics["totals"]["stories"] == 24


def test_incomplete_records_are_left_out_and_named(make_run, tmp_path):
    bundles = sample_bundles(6)
    for number in (1, 4):  # the second of them is the hidden one
        bundles[number]["record"]["scenes"][0]["action"] = None
        rehash(bundles[number])
    rows = [summary_of(bundle) for number, bundle in enumerate(bundles) if number not in (1, 4)]
    reviews = write_review(tmp_path.parent / "review", rows)
    result = pack(make_run(bundles, not_made=()), tmp_path / "out", PackOptions("0.1.0", reviews=reviews))
    assert {one.id: one.code for one in result.left_out} == dict.fromkeys(
        ("kb25k_0002", "kb25k_0005"), "incomplete"
    )
    document = json.loads((tmp_path / "out/release.json").read_bytes())
    assert [one["id"] for one in document["left_out"]["stories"]] == ["kb25k_0002"]
    assert document["left_out"]["hidden_test_stories"] == 1
    assert b"kb25k_0005" not in b"".join(tree(tmp_path / "out").values())
    assert result.notes[0] == (
        "2 stories left out of the release (2 incomplete); release.json names all but 1 of the hidden test"
    )
    assert result.hidden is None


def test_records_without_releasable_rights_are_left_out(make_run, tmp_path):
    bundles = sample_bundles(4)
    bundles[2]["record"]["provenance"]["source_rights_status"] = "unresolved"
    result = pack(make_run(bundles, not_made=()), tmp_path / "out", OPTIONS)
    assert [(one.id, one.code) for one in result.left_out] == [("kb25k_0003", "rights")]
    assert result.counts["stories"] == 3


def test_odd_texts_survive(make_run, tmp_path):
    bundles = sample_bundles(3)
    record = bundles[0]["record"]
    record["source_text"] = "\ufeff" + record["source_text"].replace("\n", "\r\n\u2028") + "\x00"
    record["title"] = '| "quoted" <b> \u0641\u0640 \u30ad\u30c4\u30cd \U0001f98a \\'
    record["provenance"]["source_reference"] = "00123 | <i>"
    rehash(bundles[0])
    pack(make_run(bundles), tmp_path / "out", OPTIONS)
    assert lines_of(tmp_path / "out/annotations.jsonl")[0] == record
    rows = [row for path in (tmp_path / "out/data/stories").iterdir() for row in read_rows(path)]
    assert (record["source_text"], record["title"]) in [(row["source_text"], row["title"]) for row in rows]


def test_questions_of_variants_are_packed_into_a_table_of_their_own_and_read_back(make_run, tmp_path):
    bundles = [with_variant_questions(bundle) for bundle in sample_bundles(1)]
    for bundle in bundles:
        rehash(bundle)
    out = pack(make_run(bundles), tmp_path / "out", OPTIONS).folder
    assert verify(out, quick=True).issues == ()
    wanted = [question for bundle in bundles for part in bundle["variants"] for question in part["questions"]]
    assert [
        question for row in lines_of(out / "contrastive_variants.jsonl") for question in row["questions"]
    ] == wanted
    assert [each.as_json() for part in load(out).variants for each in part.questions or ()] == wanted
    rows = [row for path in (out / "data/variant_questions").iterdir() for row in read_rows(path)]
    assert sorted(rows, key=lambda row: row["question_id"]) == wanted
    sets = {
        node["name"]: node for node in json.loads((out / "croissant_metadata.json").read_bytes())["recordSet"]
    }
    assert {"variant_questions/story_id", "variant_questions/gold_answer"} <= {
        field["@id"] for field in sets["variant_questions"]["field"]
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Kolkata", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "77", "TZ": "America/New_York", "LC_ALL": "tr_TR.UTF-8", "SOURCE_DATE_EPOCH": "1"},
    ],
)
def test_another_process_packs_the_same_bytes(packed, run, tmp_path, environment):
    program = (
        "import sys; from pathlib import Path; from fabula import PackOptions, pack;"
        "pack(Path(sys.argv[1]), Path(sys.argv[2]), PackOptions('0.1.0', allow_drafts=True))"
    )
    os.utime(run / "records.jsonl", (0, 0))
    subprocess.run(
        [sys.executable, "-P", "-c", program, str(run), str(tmp_path / "again")],
        env={**os.environ, **environment},
        check=True,
    )
    assert tree(tmp_path / "again") == tree(packed.folder)
    assert tree(tmp_path / "again-hidden") == tree(packed.hidden)


def test_a_pack_that_fails_leaves_nothing(run, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "dataset_card.md")

    monkeypatch.setattr(packing, "render_card", full)
    with pytest.raises(TargetError, match="No space left on device"):
        pack(run, tmp_path / "out", OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_pack_left_is_removed_by_the_next(run, tmp_path):
    finished = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    abandoned = tmp_path / f".out.packing-{int(finished.stdout)}"
    abandoned.mkdir()
    (abandoned / "annotations.jsonl").write_text("half")
    in_work = tmp_path / f".out.packing-{os.getppid()}"
    in_work.mkdir()
    pack(run, tmp_path / "out", OPTIONS)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        in_work.name, "out", "out-hidden", "out-hidden.salt",
    ]  # fmt: skip


KILLED_BEFORE_A_RENAME = """
import os, signal, sys
from pathlib import Path
from fabula.releases.options import PackOptions
from fabula.kinds.verbs import pack
out, left, rename = Path(sys.argv[2]), [int(sys.argv[3])], Path.replace
def rename_or_die(draft, target):
    if Path(target).parent == out.parent:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
    return rename(draft, target)
Path.replace = rename_or_die
pack(Path(sys.argv[1]), out, PackOptions("0.1.0", allow_drafts=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("renames", [1, 2])  # of the salt; of the hidden folder, too
def test_a_pack_that_is_killed_leaves_no_folder_in_part_and_the_next_goes_on(
    run, packed, tmp_path, starter, renames
):
    out = tmp_path / "out"
    done = starter.run_code(KILLED_BEFORE_A_RENAME, run, out, renames)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not out.exists() or verify(out, quick=True, hidden=f"{out}-hidden").ok
    pack(run, out, OPTIONS)
    assert tree(tmp_path / "out-hidden") == tree(packed.hidden)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-hidden", "out-hidden.salt"]


def test_hidden_stories_whose_release_was_moved_away_are_never_removed(run, tmp_path):
    pack(run, tmp_path / "out", OPTIONS)
    (tmp_path / "out").rename(tmp_path / "published")
    with pytest.raises(TargetError, match="out-hidden"):
        pack(run, tmp_path / "out", OPTIONS)
    assert (tmp_path / "out-hidden" / "annotations.jsonl").is_file()


def test_when_the_release_cannot_be_renamed_the_hidden_folder_is_taken_back(run, tmp_path, monkeypatch):
    rename = target.Path.replace

    def refuse(draft, place):
        if place.name == "out":
            raise OSError(errno.EACCES, "Permission denied", str(place))
        return rename(draft, place)

    monkeypatch.setattr(target.Path, "replace", refuse)
    with pytest.raises(TargetError, match="Permission denied"):
        pack(run, tmp_path / "out", OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_a_filled_folder_a_file_and_a_link_are_refused(run, tmp_path):
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled/note.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("filled", "file", "link"):
        with pytest.raises(TargetError, match="choose another folder"):
            pack(run, tmp_path / name, OPTIONS)
    assert (tmp_path / "filled/note.txt").read_text() == "mine"
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "version", ["1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0 ", "", "1.0.x"]
)
def test_a_version_that_is_not_semantic_is_refused(run, tmp_path, version):
    with pytest.raises(ConfigError, match="semantic version"):
        pack(run, tmp_path / "out", PackOptions(version, allow_drafts=True))


@pytest.mark.parametrize(
    "options",
    [{"name": "a b"}, {"name": ""}, {"title": " "}, {"title": "two\nlines"}, {"creators": ()},
     {"creators": ("",)}, {"url": "no address"}],
)  # fmt: skip
def test_options_of_a_wrong_form_are_refused(options):
    with pytest.raises(ConfigError):
        PackOptions("1.0.0", **options).checked()


def test_records_under_two_licences_are_refused(make_run, tmp_path):
    bundles = sample_bundles(3)
    bundles[1]["record"]["provenance"]["dataset_license"] = "CC0-1.0"
    with pytest.raises(ConfigError, match=r"2 under CC-BY-4\.0, 1 under CC0-1\.0"):
        pack(make_run(bundles), tmp_path / "out", OPTIONS)


def test_a_run_with_findings_is_refused_with_all_of_them(make_run, tmp_path):
    bundles = sample_bundles(3)
    bundles[0]["record"]["scenes"][1]["scene_index"] = 7
    bundles[2]["record"]["provenance"]["source_prompt_hash"] = "0" * 64
    with pytest.raises(InputError) as error:
        pack(make_run(bundles), tmp_path / "out", OPTIONS)
    places = {problem.where.split()[1] for problem in error.value.problems}
    assert {"kb25k_0001", "kb25k_0003"} <= places
    assert not (tmp_path / "out").exists()


def test_a_run_without_a_releasable_story_is_refused_with_the_reasons(make_run, tmp_path, helpers):
    bundles = sample_bundles(5)
    for bundle in bundles[:3]:
        bundle["record"]["scenes"][0]["state"] = None
        rehash(bundle)
    bundles[3]["record"]["provenance"]["source_rights_status"] = "restricted"
    with pytest.raises(InputError) as error:
        pack(make_run(bundles), tmp_path / "out", PackOptions("0.1.0"))
    found = error.value.problems[0].found
    assert found == (
        "no record can be released: none is complete, in a public split and with rights that allow it "
        "(1 failed by draft_scenes: timeout; "
        "1 in the hidden test split; "
        "3 left out by packing: incomplete, such as kb25k_0001: missing: $.scenes[0].state; "
        "1 left out by packing: rights, such as kb25k_0004: its rights status is restricted, which does not "
        "allow release; "
        "1 rejected by screen_stories: near_duplicate)"
    )


def edited(name, **changes):
    return lambda folder, helpers: helpers.edit_json(folder / name, lambda found: found.update(changes))


def ending_in(name, content):
    def change(folder, helpers):
        with (folder / name).open("ab") as file:
            file.write(content)

    return change


def written(name, content):
    return lambda folder, helpers: (folder / name).write_text(content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edited("run.json", settings={}), r"run\.json changed.*fabula run retry"),
        *((ending_in(name, b"\n"), rf"{name} is not the one that report\.json names.*fabula run retry")
          for name in ("records.jsonl", "assignments.jsonl", "balance.json")),
        (edited("report.json", manifest_sha256=None, outputs={}), "fabula run retry"),
        (ending_in("edits.jsonl", b"one\n"), r"corrections in edits\.jsonl.*fabula run retry"),
        (edited("run.json", format=2), "format 2"),
        (edited("run.json", kind="clips"), "kind 'clips'"),
        *((written("run.json", text), "the manifest of a run") for text in ("[1]", "{", '{"format": 1}')),
    ],
)  # fmt: skip
def test_a_run_that_is_not_as_it_was_finished_or_of_another_kind_is_refused(
    make_run, tmp_path, helpers, change, words
):
    folder = make_run(sample_bundles(2))
    change(folder, helpers)
    with pytest.raises(RunError, match=f"(?s){words}"):
        pack(folder, tmp_path / "out", OPTIONS)


def test_a_run_that_was_finished_with_its_corrections_is_packed_until_they_are_others(
    make_run, tmp_path, helpers
):
    folder = make_run(sample_bundles(2))
    edits = folder / "edits.jsonl"
    edits.write_text("one\n")
    applied = {"role": "edits", "name": "edits.jsonl", "path": "edits.jsonl", "sha256": sha256_file(edits)}
    helpers.edit_json(folder / "run.json", lambda found: found["sources"].append(applied))
    helpers.settle(folder)
    assert pack(folder, tmp_path / "applied", OPTIONS).counts["stories"] == 2
    for change in (ending_in("edits.jsonl", b"two\n"), lambda *_: edits.unlink()):
        change(folder, helpers)
        with pytest.raises(RunError, match="corrections"):
            pack(folder, tmp_path / "out", OPTIONS)


def test_a_run_that_somebody_works_on_is_refused_and_left_free_afterwards(make_run, tmp_path):
    folder = make_run(sample_bundles(2))
    with hold(folder), pytest.raises(RunBusy, match=f"process {os.getpid()}"):
        pack(folder, tmp_path / "out", OPTIONS)
    pack(folder, tmp_path / "out", OPTIONS)
    with hold(folder):
        pass
