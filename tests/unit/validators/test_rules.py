"""Borders of single rules: what must not be reported, beside what must."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fabula.schemas.canonical import pretty_bytes
from fabula.schemas.text import normalize_text
from fabula.testing.katha_folders import rehash, write_jsonl, write_release, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.field_rules import record_hashes
from fabula.validators.katha.scene_rules import without_article
from fabula.validators.katha.set_rules import RunBalance
from fabula.validators.katha.validation import validate
from fabula.validators.record_rules import check_story


def codes(bundle: Any, only: Sequence[str] | None = None) -> list[str]:
    rehash(bundle)
    return [issue.code for issue in check_story(bundle["record"], bundle["variants"], only)]


def with_question(position: int, **fields: Any) -> Any:
    (bundle,) = sample_bundles(1)
    bundle["record"]["questions"][position] |= fields
    return bundle


def retold(texts: Sequence[str], names: Sequence[str]) -> Any:
    """Return a bundle with other scene texts and characters, and no variants."""
    (bundle,) = sample_bundles(1)
    record = bundle["record"]
    record["source_text"] = "\n".join(texts)
    record["story_text"] = normalize_text(record["source_text"])
    for scene, text in zip(record["scenes"], texts, strict=True):
        scene |= {"scene_text": text, "characters": list(names)}
    bundle["variants"] = []
    return bundle


@pytest.mark.parametrize(
    ("question", "leaks"),
    [
        ("Was the potter afraid?", True),
        ("Was the potter AFRAID?", True),
        ("Was the potter unafraid?", False),
        ("What did the potter feel?", False),
    ],
)
def test_answer_leak_when_answer_is_in_the_question_needs_whole_words(question: str, leaks: bool) -> None:
    assert ("answer-leak" in codes(with_question(1, question=question))) is leaks


def test_answer_leak_when_a_moral_question_lists_labels_is_a_choice() -> None:
    listed = "Which lesson: courage, compassion, honesty or wisdom?"
    assert codes(with_question(2, question=listed)) == []
    assert codes(with_question(2, question="Is compassion the lesson?")) == ["answer-leak"]


def test_answer_leak_when_a_temporal_question_names_two_events_is_a_choice() -> None:
    choice = "Which came first: the fox went to market, or the heron came?"
    assert codes(with_question(4, question=choice)) == []
    assert codes(with_question(4, question="Who went to market before the flood?")) == ["answer-leak"]


@pytest.mark.parametrize(
    ("gold", "evidence", "found"),
    [
        ("went to market", [2, 4], False),
        ("came home safe", [4, 5], False),
        ("came home safe", [2, 4], True),
        ("came home safe", [4], False),
        ("the potter walked", [2, 4], False),
    ],
)
def test_temporal_order_when_answer_is_found_compares_with_the_latest_evidence(
    gold: str, evidence: list[int], found: bool
) -> None:
    bundle = with_question(4, gold_answer=gold, accepted_answers=[gold], evidence_scenes=evidence)
    assert ("temporal-order" in codes(bundle)) is found


def test_scene_span_when_only_white_space_differs_holds() -> None:
    (bundle,) = sample_bundles(1)
    for scene in bundle["record"]["scenes"]:
        scene["scene_text"] = "\n " + scene["scene_text"].replace(" ", "  ") + " "
    assert codes(bundle) == []


def test_rules_when_story_is_in_another_script_hold() -> None:
    texts = [
        "\u72d0\u306f\u68ee\u306b\u4f4f\u3093\u3067\u3044\u305f\u3002",
        "\u9db4\u304c\u6765\u305f\u3002",
        "\u72d0\u306f\u7b11\u3063\u305f\u3002",
        "\u9db4\u306f\u6ce3\u3044\u305f\u3002",
        "\u4e8c\u4eba\u306f\u53cb\u306b\u306a\u3063\u305f\u3002",
    ]
    assert codes(retold(texts, ["\u72d0", "\u9db4"]), ["scenes", "spans", "story-text", "characters"]) == []
    hindi = ["\u0932\u094b\u092e\u0921\u093c\u0940 \u091c\u0902\u0917\u0932 \u092e\u0947\u0902\u0964"] * 5
    assert (
        codes(retold(hindi, ["\u0932\u094b\u092e\u0921\u093c\u0940"]), ["spans", "story-text", "characters"])
        == []
    )


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("the Fox", True),
        ("FOX", True),
        ("an Old Man", False),
        ("Fo", False),
        ("old fox", True),
        ("\u2764", False),
    ],
)
def test_character_when_named_in_the_story_is_known_without_its_article(name: str, known: bool) -> None:
    texts = ["An old fox ran.", "It hid.", "It slept.", "It woke.", "It left."]
    assert (codes(retold(texts, [name]), ["characters"]) == []) is known
    assert without_article("The Anthill") == "anthill"


def test_moral_target_when_record_has_no_label_must_not_be_on_a_transition() -> None:
    (bundle,) = sample_bundles(1)
    bundle["record"]["moral_label"] = None
    for variant in bundle["variants"]:
        variant["original_moral"] = None
    assert codes(bundle) == ["incomplete", "moral-answer", "moral-target", "moral-target"]
    bundle["record"]["transitions"][3]["moral_target"] = None
    assert codes(bundle) == ["incomplete", "moral-answer"]


@pytest.mark.parametrize("scenes", [2, 3, 8])
def test_rules_when_a_story_has_another_number_of_scenes_hold(scenes: int) -> None:
    (bundle,) = sample_bundles(1)
    record = bundle["record"]
    first, link = record["scenes"][0], record["transitions"][0]
    texts = [f"Part {number} of the tale." for number in range(1, scenes + 1)]
    record["source_text"] = record["story_text"] = " ".join(texts)
    record["scenes"] = [
        {**first, "scene_index": number, "scene_text": text, "characters": []}
        for number, text in enumerate(texts, 1)
    ]
    record["transitions"] = [
        {**link, "from_scene": n, "to_scene": n + 1, "moral_target": None} for n in range(1, scenes)
    ]
    record["transitions"][0]["moral_target"] = record["moral_label"]
    for question in record["questions"]:
        question |= {"target_scene": scenes, "target_transition": [1, 2], "evidence_scenes": [1, scenes]}
    for variant in bundle["variants"]:
        variant |= {"changed_scene_id": scenes, "contrastive_scene_text": "Another end."}
        variant["contrastive_story_text"] = " ".join([*texts[:-1], "Another end."])
    assert codes(bundle) == []


def test_contrastive_moral_when_it_is_another_label_holds() -> None:
    (bundle,) = sample_bundles(1)
    bundle["variants"][0]["contrastive_moral"] = "honesty"
    assert codes(bundle) == []


def test_entity_when_story_never_names_it_is_not_missed_in_the_variant() -> None:
    (bundle,) = sample_bundles(1)
    bundle["record"]["scenes"][3]["characters"].append("the narrator")
    assert codes(bundle) == ["character-unknown"]


def test_ids_when_two_questions_of_one_story_share_one_are_reported(tmp_path: Path) -> None:
    (bundle,) = sample_bundles(1)
    bundle["record"]["questions"][1]["question_id"] = bundle["record"]["questions"][0]["question_id"]
    rehash(bundle)
    report = validate(write_jsonl(tmp_path / "a.jsonl", [bundle]))
    assert [(issue.code, issue.path) for issue in report.issues] == [
        ("id-repeated", "$.questions[1].question_id")
    ]


def test_run_balance_when_two_records_are_added_equals_the_numbers_by_hand() -> None:
    balance = RunBalance()
    for bundle in sample_bundles(2):
        balance.add(bundle["record"], "*")
    document = balance.document()
    # 8 transitions, target 2:1:1, so 4, 2 and 2; each story has exactly 2, 1 and 1.
    assert document["transition_types"]["cause_effect"] == {"observed": 4, "target": 4.0, "deviation": 0.0}
    # Table 14: 6,325 causal questions for 5,000 stories, 2.53 for two; the samples have one each.
    assert document["question_types"]["causal"] == {"observed": 2, "target": 2.53, "deviation": -0.53}
    # One of two stories is in train, whose share is 0.7; the public test has 0.5 instead of 0.1.
    assert document["split_tolerance"] == {"overall": 0.4, "largest_in_a_stratum_in_stories": 0.8}
    assert document["strata"] == {"*": {"train": 1, "validation": 0, "public_test": 1, "hidden_test": 0}}


def test_hashes_when_the_title_is_corrected_keep_the_one_of_the_source() -> None:
    (bundle,) = sample_bundles(1)
    before = record_hashes(bundle["record"], bundle["variants"])
    after = record_hashes({**bundle["record"], "title": "Another"}, bundle["variants"])
    assert {name for name in before if before[name] != after[name]} == {"source_annotations_sha256"}
    moved = record_hashes({**bundle["record"], "source_text": "Another."}, bundle["variants"])
    assert {name for name in before if before[name] != moved[name]} == {"source_prompt_hash"}


def split_findings(folder: Path) -> set[str]:
    return {found.code for found in validate(folder).issues if found.code.startswith("split-")}


def in_split(bundles: Sequence[Any], split: str) -> None:
    for bundle in bundles:
        bundle["record"]["split"] = split
        for variant in bundle["variants"]:
            variant["subset"] = split
        rehash(bundle)


def test_splits_when_all_stories_are_in_one_are_uneven_unless_the_data_set_is_a_part(tmp_path: Path) -> None:
    bundles = sample_bundles(20)
    in_split(bundles, "validation")
    run, part = write_run(tmp_path / "run", bundles), tmp_path / "part.jsonl"
    assert "split-size" in split_findings(run)
    write_jsonl(part, bundles)
    assert split_findings(part) == set()
    release = write_release(tmp_path / "release", bundles)
    for visibility, codes_found in (("public", {"split-size"}), ("hidden", set())):
        document = json.loads((release / "release.json").read_bytes())
        (release / "release.json").write_bytes(pretty_bytes({**document, "visibility": visibility}))
        assert split_findings(release) == codes_found


def test_splits_when_a_moral_label_fills_all_but_the_largest_are_reported(tmp_path: Path) -> None:
    bundles = sample_bundles(60)
    for bundle in bundles:
        label = "courage" if bundle["record"]["split"] != "train" else "kindness"
        bundle["record"]["moral_label"] = label
    run = write_run(tmp_path / "run", bundles)
    issues = [found for found in validate(run).issues if found.code == "split-strata"]
    assert {found.message.split(" of ")[1].split(" in ")[0] for found in issues} == {"courage"}


def test_splits_when_labels_fall_to_them_by_chance_are_not_reported(tmp_path: Path) -> None:
    bundles = sample_bundles(120)
    for name in ("moral_label", "narrative_type"):
        values = [bundle["record"][name] for bundle in bundles]
        Random(1).shuffle(values)
        for bundle, value in zip(bundles, values, strict=True):
            bundle["record"][name] = value
    run = write_run(tmp_path / "run", bundles)
    assert [found for found in validate(run).issues if found.code == "split-strata"] == []
