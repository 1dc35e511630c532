"""One broken input per code; the whole output of each is pinned in tests/golden/validators.

Run with UPDATE_GOLDEN=1 to write the pinned files anew, then read the difference.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from fabula.models.keys import MARK
from fabula.schemas.canonical import canonical_bytes, pretty_bytes
from fabula.testing.katha_folders import rehash, write_jsonl, write_records, write_release, write_run
from fabula.testing.katha_samples import sample_bundles, with_variant_questions
from fabula.validators.katha.validation import validate
from fabula.validators.report import CODES

GOLDEN = Path(__file__).parents[2] / "golden" / "validators"
Bundles = list[dict[str, Any]]
Files = dict[str, list[dict[str, Any]]]
GONE = object()
BUNDLE = sample_bundles(1)[0]
RECORD = BUNDLE["record"]
LINE = canonical_bytes(BUNDLE) + b"\n"
TEXTS = [scene["scene_text"] for scene in RECORD["scenes"]]
NOBODY = "Then nobody came."
RAW: dict[str, bytes] = {
    "encoding": canonical_bytes(RECORD) + '\n{"title": "Fuchs und Kränich"}\n'.encode("latin-1"),
    "byte-order-mark": b"\xef\xbb\xbf" + LINE,
    "json": b'{"a": "\x00"}\n{"a": [1, 2,]}\n{"a": NaN}\n{"a": "\\ud800"}\n' + b"[" * 100_000 + b"\n",
    "truncated": LINE + canonical_bytes(RECORD)[:100],
    "json-object": b'["a", "list"]\n"text"\nnull\n',
    "repeated-key": LINE.replace(b'"record":{', b'"record":{"title":"other",', 1),
    "kind": b'{"name": "a", "value": 1}\n{"kind": "shots", "payload": {}}\n',
    "text-encoding": LINE.replace(b'"scenes":[{', b'"scenes":[{"weight":1e999,', 1),
}
"""Code -> a file of stories."""

EDITS: dict[str, dict[str, Any]] = {
    "timestamp": {"0.record.provenance.created_at": "1 January 2025"},
    "unknown-field": {"0.record.mood": "calm", "0.record.scenes.2.camera": {"lens": 35}},
    "id-form": {
        "0.record.questions.0.question_id": "../../etc/passwd", "0.variants.1.pair_id": "pair \u2764",
    },
    "story-reference": {
        "0.record.scenes.1.story_id": "kb25k_0002", "0.variants.0.base_story_id": "kb25k_0002",
    },
    "language-tag": {"0.record.language": "English (US)"},
    "unlisted-value": {
        "0.record.questions.0.question_type": "casual", "0.record.transitions.0.transition_type": "miracle",
    },
    "unfamiliar-value": {"0.record.provenance.source_dataset": "Grimm"},
    "scene-order": {"0.record.scenes.3.scene_index": 5},
    "scene-empty": {"0.record.scenes.4.scene_text": " \n"},
    "moral-target": {
        "0.record.transitions.0.moral_target": "honesty", "1.record.transitions.3.moral_target": None,
    },
    "question-scene": {
        "0.record.questions.0.target_scene": 6, "0.record.questions.1.evidence_scenes": [0, 3],
    },
    "question-transition": {
        "0.record.questions.0.target_transition": [2, 4], "0.record.questions.1.target_transition": [5, 6],
        "1.record.questions.0.target_transition": [0, 1], "1.record.questions.1.target_transition": [4, 5],
    },
    "question-evidence": {
        "0.record.questions.0.evidence_scenes": [], "0.record.questions.1.evidence_scenes": [3, 3],
    },
    "answer-not-accepted": {"0.record.questions.0.gold_answer": "bad luck"},
    "answer-leak": {"0.record.questions.1.question": "Who was afraid, and why?"},
    "variant-scene": {"0.variants.0.changed_scene_id": 9},
    "variant-delta": {"0.variants.0.semantic_delta": " "},
    "variant-context": {
        "0.variants.0.subset": "validation", "0.variants.1.narrative_type": "social_interaction",
    },
    "secret-removed": {"0.record.scenes.1.action": f"The {MARK} waits.", "1.variants.0.semantic_delta": MARK},
    "rights-notice": {
        "0.record.source_text": "Copyright 1931 by A. Writer. All rights reserved.\nISBN 978-3-16-148410-0",
        "1.record.source_text": "Copyright 1911, 1930 by B. Teller in 2005. Published by Heron House Press, "
        "London, 1901, 1987.",
    },
    "rights": {"0.record.provenance.source_rights_status": "unresolved"},
    "license": {"0.record.provenance.dataset_license": ""},
    "review-mismatch": {
        "0.record.evidence_status": {"human_evidence_accepted": True, "resolution": "not_reviewed"},
        "1.record.evidence_status.resolution": "unanimous",
    },
    "check-mismatch": {"0.checks.0.passed": False, "1.checks.0.passed": None},
    "producer-path": {"0.producers.0.path": "scenes", "1.producers.0.path": "$.shots[*]"},
    "scene-count": {
        "0.record.source_text": TEXTS[0], "0.record.story_text": TEXTS[0], "0.record.moral_label": None,
        "0.record.scenes": lambda scenes: scenes[:1], "0.record.transitions": [], "0.record.questions": [],
        "0.variants": [],
    },
    "scene-span": {
        "0.record.scenes.1.scene_text": lambda text: text + " And more.",
        "1.record.scenes.4": GONE, "1.record.transitions.3": GONE,
    },
    "story-text": {"0.record.source_text": lambda text: text + "The moral: be kind.\n"},
    "character-unknown": {"0.record.scenes.0.characters": lambda names: [*names, "the Wolf"]},
    "transition-link": {"0.record.transitions.1.to_scene": 4, "1.record.transitions.0": GONE},
    "answer-repeated": {
        "0.record.questions.1.accepted_answers": lambda known: [*known, f"  {known[0].upper()}!"]
    },
    "answer-empty": {"0.record.questions.0.accepted_answers": lambda known: [*known, "?!", "Something."]},
    "moral-answer": {
        f"{number}.{place}": label
        for number, label in enumerate(("honesty", None))
        for place in (
            "record.moral_label", "record.transitions.3.moral_target",
            "variants.0.original_moral", "variants.1.original_moral",
        )
    },
    "temporal-order": {
        "0.record.questions.4.gold_answer": "came home safe",
        "0.record.questions.4.accepted_answers": ["came home safe"],
    },
    "variant-reference": {"0.record.provenance.contrastive_variant_ids": lambda names: names[:-1]},
    "variant-same": {
        "0.variants.0.contrastive_scene_text": TEXTS[3],
        "0.variants.0.contrastive_story_text": RECORD["story_text"],
    },
    "variant-text": {
        "0.variants.0.contrastive_story_text": lambda text: text.replace("One morning", "One night")
    },
    "entity-lost": {
        "0.variants.0.contrastive_scene_text": NOBODY,
        "0.variants.0.contrastive_story_text": " ".join([*TEXTS[:3], NOBODY, TEXTS[4]]),
    },
    "variant-moral": {
        "0.variants.0.original_moral": "honesty", "0.variants.1.contrastive_moral": RECORD["moral_label"],
    },
    "hash": {
        "0.record.language": "en-GB", "0.record.scenes.0.objects": ["a sword"],
        "0.variants.0.semantic_delta": "something else changes",
    },
    "incomplete": {
        **{f"0.record.scenes.{number}.generation_prompt": None for number in range(5)},
        "1.record.narrative_type": None,
        "1.variants.0.narrative_type": None, "1.variants.1.narrative_type": None,
    },
    "split-twin": {"0.record.title": "The Fox and the Crow", "1.record.title": "Crow and Fox"},
}  # fmt: skip
"""Code -> what is put where, in two sample bundles; a function makes it of what was there."""

STALE = ("variant-reference", "hash")
"""Codes of runs whose hashes stay as they were."""

DOCUMENTS: dict[str, tuple[Callable[..., Path], int, str, dict[str, Any]]] = {
    "statistics": (write_release, 20, "statistics.json", {"totals.stories": 5000}),
    "moral-balance": (
        write_release, 20, "moral_balance_requirements.json",
        {"tolerance_status": "within_tolerance", "automatic_relabeling": 0},
    ),
    "balance": (
        write_run, 2, "balance.json",
        {
            "moral_labels.courage.observed": 2, "moral_labels.courage.deviation": 0,
            "strata": lambda strata: dict([*strata.items()][:-1]),
        },
    ),
}  # fmt: skip
"""Code -> where so many sample bundles are written, and what is put where in which document."""


def review(story_id: str, moral: str, **changes: Any) -> dict[str, Any]:
    return {
        "story_id": story_id, "decision": "accepted", "validation_status": "human_adjudicator_accepted",
        "evidence_source": "story text", "protocol_complete": True, "annotator_ids": ["a1", "a2", "a3"],
        "adjudicator_id": None, "resolution": "unanimous", "final_moral_label": moral,
        "correction_flags": [], "signed_at": "2025-02-01T00:00:00Z", **changes,
    }  # fmt: skip


KIND, BRAVE = ("kb25k_0001", "compassion"), ("kb25k_0002", "courage")
REVIEWS: dict[str, tuple[int, Files]] = {
    "review-unproven": (
        2, {"human_validation.jsonl": [review(*KIND)], "strict_gold_400.jsonl": [review(*BRAVE)]},
    ),
    "review-unbound": (1, {"human_validation.jsonl": [review(*KIND)]}),
    "review-stale": (
        1, {"human_validation.jsonl": [review(*KIND, seen_sha256="0" * 64, content_sha256="0" * 64)]},
    ),
    "review-differs": (
        2,
        {
            "human_validation.jsonl": [
                review("kb25k_0001", "honesty"),
                review(*BRAVE, resolution="human_adjudicated", annotator_ids=["a1", "a1"]),
            ]
        },
    ),
    "simulated-unmarked": (
        2,
        {
            "human_validation.jsonl": [
                review(*KIND), review(*BRAVE, annotator_ids=["a1", "simulated-2", "a3"]),
            ]
        },
    ),
}  # fmt: skip
"""Code -> how many reviewed bundles a release has, and its files of reviews."""


def put(document: Any, edits: dict[str, Any]) -> None:
    for path, value in edits.items():
        *above, last = (int(part) if part.isdigit() else part for part in path.split("."))
        holder = reduce(lambda inner, part: inner[part], above, document)
        if value is GONE:
            del holder[last]
        else:
            holder[last] = value(holder[last]) if callable(value) else value


def changed_document(path: Path, edits: dict[str, Any]) -> None:
    document = json.loads(path.read_bytes())
    put(document, edits)
    path.write_bytes(pretty_bytes(document))


def run_of(folder: Path, bundles: Bundles, *, again: bool = True) -> Path:
    """Write a run; ``again`` brings the hashes of its bundles up to date before."""
    for bundle in bundles if again else ():
        rehash(bundle)
    return write_run(folder / "run", bundles)


def broken_by_data(code: str, folder: Path) -> Path:
    """Write what a table above says of a code."""
    if code in RAW:
        (folder / "stories.jsonl").write_bytes(RAW[code])
        return folder / "stories.jsonl"
    if code in EDITS:
        bundles = sample_bundles(2)
        put(bundles, EDITS[code])
        return run_of(folder, bundles, again=code not in STALE)
    if code in DOCUMENTS:
        writer, count, name, edits = DOCUMENTS[code]
        written = writer(folder / "data", sample_bundles(count))
        changed_document(written / name, edits)
        return written
    count, files = REVIEWS[code]
    bundles = sample_bundles(count)
    for bundle in bundles:
        bundle["record"]["validation_status"] = "human_review_complete"
        bundle["record"]["evidence_status"] = {"human_evidence_accepted": True, "resolution": "unanimous"}
    release = write_release(folder / "release", bundles)
    for name, rows in files.items():
        write_jsonl(release / name, rows)
    return release


CASES: dict[str, Callable[[Path], Path]] = {}
Build = Callable[[Path], Path]


def case(code: str) -> Callable[[Build], Build]:
    """Register a function that writes a broken data set and returns its path."""

    def register(build: Build) -> Build:
        CASES[code] = build
        return build

    return register


@case("line-length")
def _(folder: Path) -> Path:
    (folder / "stories.jsonl").write_bytes(b'{"a": "' + b"x" * (64 * 1024 * 1024) + b'"}\n')
    return folder / "stories.jsonl"


@case("missing-file")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(2))
    for name in ("contrastive_variants.jsonl", "statistics.json", "moral_balance_requirements.json"):
        (release / name).unlink()
    return release


@case("schema")
def _(folder: Path) -> Path:
    run, bundles = write_run(folder / "run", sample_bundles(2)), sample_bundles(2)
    record = bundles[0]["record"]
    del record["title"]
    record["scenes"][0]["scene_index"] = 0
    record["scenes"][1]["action"] = 7
    record["questions"] = "none"
    bundles[0]["variants"][0]["changed_scene_id"] = True
    bundles[1]["checks"][0]["passed"] = "yes"
    write_records(run / "records.jsonl", bundles)
    return run


@case("empty")
def _(folder: Path) -> Path:
    return write_run(folder / "run", [])


@case("envelope")
def _(folder: Path) -> Path:
    run = write_run(folder / "run", sample_bundles(1))
    envelope = json.loads((run / "records.jsonl").read_bytes())
    write_jsonl(run / "records.jsonl", [{**envelope, "id": "kb25k_0009", "schema_version": "2"}])
    return run


@case("id-repeated")
def _(folder: Path) -> Path:
    bundles = sample_bundles(2)
    bundles.append(json.loads(json.dumps(bundles[0])))
    return run_of(folder, bundles)


@case("variant-answer")
def _(folder: Path) -> Path:
    bundles = sample_bundles(2)
    variants = with_variant_questions(bundles[0])["variants"]
    told = ["so Dekilomu came home safe", "in safety at home"]
    variants[0]["questions"][0] |= {"gold_answer": told[0], "accepted_answers": told}
    asked = bundles[0]["record"]["questions"][0]
    variants[1]["questions"][0] |= {"question": asked["question"].upper()}
    variants[1]["questions"][0]["accepted_answers"] += asked["accepted_answers"]
    return run_of(folder, bundles)


@case("orphan")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(2))
    variants = release / "contrastive_variants.jsonl"
    stray = {**json.loads(variants.read_bytes().splitlines()[0]), "base_story_id": "kb25k_0100"}
    write_jsonl(variants, [*map(json.loads, variants.read_bytes().splitlines()), stray])
    return release


@case("vote")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(2))
    vote = {"kind": "review", "rater": "r1", "item": "kb25k_0001", "criterion": "moral_label"}
    rows = [
        {**vote, "answer": "correct"},
        {**vote, "answer": "correct"},
        {**vote, "answer": "fine"},
        {**vote, "item": "kb25k_0009", "rater": "r2", "answer": "correct"},
        {**vote, "criterion": "recoverability_qa", "part": "kb25k_0001_q99", "answer": "valid"},
        {**vote, "kind": "review", "rater": "r3"},
    ]
    write_jsonl(release / "votes.jsonl", rows)
    return release


def same_text(bundles: Bundles, source: int, target: int) -> None:
    """Give one story the text of another; scenes and variants follow, ids stay."""
    texts = [scene["scene_text"] for scene in bundles[source]["record"]["scenes"]]
    record = bundles[target]["record"]
    record["source_text"] = bundles[source]["record"]["source_text"].upper()
    record["story_text"] = bundles[source]["record"]["story_text"].upper()
    for scene, text in zip(record["scenes"], texts, strict=True):
        scene |= {"scene_text": text.upper(), "characters": []}
    for variant in bundles[target]["variants"]:
        changed = [text.upper() for text in texts]
        changed[variant["changed_scene_id"] - 1] = variant["contrastive_scene_text"]
        variant["contrastive_story_text"] = " ".join(changed)


@case("near-duplicate")
def _(folder: Path) -> Path:
    bundles = sample_bundles(8)
    same_text(bundles, 0, 7)
    return run_of(folder, bundles)


@case("split-leak")
def _(folder: Path) -> Path:
    bundles = sample_bundles(2)
    same_text(bundles, 0, 1)
    return run_of(folder, bundles)


@case("split-retelling")
def _(folder: Path) -> Path:
    bundles = sample_bundles(2)
    same_text(bundles, 0, 1)
    record = bundles[1]["record"]
    scene = record["scenes"][4]
    scene["scene_text"] = "At last the people of that country sang until the stars came out over the hills."
    texts = [one["scene_text"] for one in record["scenes"]]
    record["source_text"], record["story_text"] = "\n\n".join(texts) + "\n", " ".join(texts)
    for variant in bundles[1]["variants"]:
        at = variant["changed_scene_id"] - 1
        changed = [*texts[:at], variant["contrastive_scene_text"], *texts[at + 1 :]]
        variant["contrastive_story_text"] = " ".join(changed)
    return run_of(folder, bundles)


def moved(bundles: Bundles, split: str) -> None:
    for bundle in bundles:
        bundle["record"]["split"] = split
        for variant in bundle["variants"]:
            variant["subset"] = split


@case("split-size")
def _(folder: Path) -> Path:
    bundles = sample_bundles(40)
    moved(bundles[:10], "validation")
    return run_of(folder, bundles)


@case("split-strata")
def _(folder: Path) -> Path:
    bundles = sample_bundles(40)
    for bundle in bundles:
        narrative = "counterfactual_pair" if bundle["record"]["split"] != "train" else "moral_semantic"
        bundle["record"]["narrative_type"] = narrative
        for variant in bundle["variants"]:
            variant["narrative_type"] = narrative
    return run_of(folder, bundles)


@case("assignment")
def _(folder: Path) -> Path:
    run = write_run(folder / "run", sample_bundles(3))
    first, second, _ = map(json.loads, (run / "assignments.jsonl").read_bytes().splitlines())
    rows = [{**first, "split": "validation"}, {**second, "stratum": "moral_semantic/*"}]
    write_jsonl(run / "assignments.jsonl", [*rows, second, {**first, "id": "kb25k_0009"}])
    return run


@case("producer-missing")
def _(folder: Path) -> Path:
    release = write_release(folder / "release", sample_bundles(3))
    first, second, _ = map(json.loads, (release / "producers.jsonl").read_bytes().splitlines())
    second["fields"][0]["path"] = "$.plot"
    write_jsonl(
        release / "producers.jsonl", [second, second, {**first, "id": "kb25k_0009"}, {"id": "x", "fields": 5}]
    )
    return release


@case("manifest")
def _(folder: Path) -> Path:
    bundles = sample_bundles(5)
    bundles[0]["record"]["provenance"]["created_at"] = "2025-01-02T00:00:00Z"
    release = write_release(folder / "release", bundles)
    changed_document(release / "release.json", {"visibility": "hidden"})
    return release


WORDED_BY_PYTHON = ("json", "text-encoding")
"""Their texts quote the interpreter, whose wording changes between versions."""


@pytest.mark.parametrize("code", sorted(CODES))
def test_validate_when_input_breaks_one_rule_reports_the_pinned_issues(code: str, tmp_path: Path) -> None:
    report = validate(CASES[code](tmp_path) if code in CASES else broken_by_data(code, tmp_path))
    text = "".join(f"{issue.level}: {issue}\n" for issue in report.issues)
    golden = GOLDEN / f"{code}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(text, "utf-8")
    assert code in report.counts
    if code in WORDED_BY_PYTHON and sys.version_info[:2] != (3, 11):
        return
    assert text == golden.read_text("utf-8")


def test_cases_when_listed_cover_every_code_and_nothing_else() -> None:
    assert sorted([*CASES, *RAW, *EDITS, *DOCUMENTS, *REVIEWS]) == sorted(CODES)
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CODES)
