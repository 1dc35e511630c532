"""Valid KathaBench bundles for tests: small, deterministic, independent of the builder."""

import json
from collections.abc import Sequence
from importlib.resources import files

from ..schemas.canonical import Json
from ..schemas.text import normalize_text
from ..schemas.values import vocabulary
from ..validators.katha.field_rules import record_hashes

CREATED_AT = "2025-01-01T00:00:00Z"

_WORDS = json.loads((files(__package__) / "words.json").read_bytes())["katha_samples"]
_SPLITS = {1: "public_test", 2: "validation", 4: "hidden_test", 8: "validation", 11: "public_test",
           15: "validation"}  # fmt: skip


def sample_bundles(count: int = 2) -> list[dict[str, Json]]:
    """Return valid ``KathaBundle`` JSON with distinct ids and texts, ``kb25k_0001`` onwards.

    No two texts are near-duplicates. From five bundles on all four splits occur, and every twenty bundles
    hold them as 14, 3, 2 and 1. Each has five scenes, four transitions, six questions (one per dimension)
    and two variants; the record is complete (rule ``incomplete``) and marked ``auto_checked``.
    """
    if count > 9999:
        raise ValueError(f"at most 9999 sample bundles, not {count}")
    return [_bundle(number) for number in range(count)]


def _bundle(number: int) -> dict[str, Json]:
    story_id = f"kb25k_{number + 1:04}"
    narrative = _cycled(vocabulary("narrative_type").values, number)
    moral = _cycled(vocabulary("moral_label").values, number)
    plot = _plot(number)
    texts = plot["texts"]
    record: dict[str, Json] = {
        "story_id": story_id,
        "title": f"{plot['hero']} and the {plot['helper']}",
        "language": "en",
        "source_text": "\n\n".join(texts) + "\n",
        "story_text": normalize_text("\n\n".join(texts)),
        "narrative_type": narrative,
        "moral_label": moral,
        "split": _SPLITS.get(number % 20, "train"),
        "scenes": _scenes(story_id, plot),
        "transitions": _transitions(story_id, plot, moral),
        "questions": _questions(story_id, plot, moral),
        "validation_status": "auto_checked",
        "evidence_status": {"human_evidence_accepted": False, "resolution": "not_reviewed"},
    }
    variants = _variants(record, plot)
    record["provenance"] = {
        "source_dataset": _cycled(vocabulary("source_dataset").values, number),
        "source_reference": f"tale {number + 1}",
        **record_hashes(record, variants),
        "contrastive_variant_ids": [variant["variant_id"] for variant in variants],
        "created_at": CREATED_AT,
        "source_rights_status": "public_domain_or_rights_compatible",
        "dataset_license": "CC-BY-4.0",
    }
    producers = [
        {"path": "$.scenes[*]", "producer": "rules@1"},
        {"path": "$.transitions[*]", "producer": "rules@1"},
        {"path": "$.questions[*]", "producer": "rules@1"},
    ]
    checks = [
        {
            "code": "answerable",
            "path": "$.questions",
            "passed": True,
            "note": "found in the text",
            "producer": "rules@1",
        }
    ]
    return {"record": record, "variants": variants, "producers": producers, "checks": checks}


def _cycled(values: Sequence[str], number: int) -> str:
    # The shift every twenty stories keeps the splits and the labels from marching in step.
    return values[(number + number // 20) % len(values)]


def _plot(number: int) -> dict[str, Json]:
    """Return the parts of a story; the hero's name is different for every number."""
    digits = [int(digit) for digit in f"{(number * 7919 + 1234) % 10000:04}"]
    hero = "".join(_WORDS["syllables"][digit] for digit in digits).capitalize()
    trade, place = _WORDS["trades"][number % 9], _WORDS["places"][number % 5]
    thing, helper = _WORDS["things"][number % 7], _WORDS["helpers"][number % 8]
    trouble, cause = _WORDS["troubles"][number % 6]
    remedy, (ending, worse) = _WORDS["remedies"][number // 3 % 5], _WORDS["endings"][number // 2 % 5]
    texts = [
        f"{hero} the {trade} lived {place} and owned {thing}.",
        f"One morning {hero} went to market, and old {hero} promised to be home by noon.",
        f"Because {cause}, {trouble}, and {hero} was afraid.",
        f"Then the {helper} {remedy}, so {hero} came home safe.",
        f"In the end {hero} {ending}, and {hero} was glad.",
    ]
    return {
        "hero": hero, "helper": helper, "thing": thing.split(" ", 1)[1], "trouble": trouble, "cause": cause,
        "remedy": remedy, "ending": ending, "worse": worse, "texts": texts,
    }  # fmt: skip


def _scenes(story_id: str, plot: dict[str, Json]) -> list[Json]:
    hero, helper = plot["hero"], plot["helper"]
    actions = ("lives quietly", "goes to market", "faces trouble", "is helped", "makes a choice")
    emotions = (None, "hope", "fear", "relief", "joy")
    return [
        {
            "story_id": story_id,
            "scene_index": index,
            "scene_text": text,
            "characters": [hero, helper] if index == 4 else [hero],
            "objects": [plot["thing"]] if index == 1 else [],
            "action": f"{hero} {action}",
            "state": f"{hero}, part {index} of 5",
            "emotion": emotion,
            "visual_evidence": None,
            "visual_must_show": [hero],
            "generation_prompt": f"A drawing: {text}",
        }
        for index, (text, action, emotion) in enumerate(zip(plot["texts"], actions, emotions, strict=True), 1)
    ]


def _transitions(story_id: str, plot: dict[str, Json], moral: str) -> list[Json]:
    hero = plot["hero"]
    kinds = ("cause_effect", "cause_effect", "consequence_reveal", "moral_choice")
    causes = (f"{hero} had goods to sell", plot["cause"], f"the {plot['helper']} came", f"{hero} was helped")
    results = (f"{hero} was on the road", plot["trouble"], f"{hero} came home safe", plot["ending"])
    return [
        {
            "story_id": story_id,
            "from_scene": index,
            "to_scene": index + 1,
            "transition_type": kind,
            "action": f"{hero} moves on from part {index}",
            "causality": cause,
            "intention": None,
            "emotion": None,
            "consequence": result,
            "expected_change": f"{hero} is in part {index + 1}",
            "moral_target": moral if kind == "moral_choice" else None,
            "recoverability_target": result,
        }
        for index, (kind, cause, result) in enumerate(zip(kinds, causes, results, strict=True), 1)
    ]


def _questions(story_id: str, plot: dict[str, Json], moral: str) -> list[Json]:
    hero, helper = plot["hero"], plot["helper"]
    rows = (
        ("causal", f"Why did things go wrong for {hero}?", plot["cause"], (3,), [2, 3]),
        ("emotional", f"What did {hero} feel in the middle?", "afraid", (3,), [2, 3]),
        ("moral", "Which lesson does the story support?", moral.replace("_", " "), (5,), [4, 5]),
        ("consequence", f"What came of the help that {hero} got?", f"{hero} came home safe", (4,), [3, 4]),
        ("temporal_order", "Which came first, the journey or the help?", "went to market", (2, 4), [1, 2]),
        ("action_visibility", f"What did the {helper} do?", plot["remedy"], (4,), [3, 4]),
    )
    return [
        {
            "question_id": f"{story_id}_q{number}",
            "story_id": story_id,
            "question_type": kind,
            "question": question,
            "gold_answer": answer,
            "accepted_answers": [answer, f"because: {answer}"],
            "target_scene": evidence[0],
            "target_transition": link,
            "evidence_scenes": list(evidence),
            "required_evidence": f"scene {evidence[0]}",
            "answerability": "text_supported",
        }
        for number, (kind, question, answer, evidence, link) in enumerate(rows, 1)
    ]


def _variants(record: dict[str, Json], plot: dict[str, Json]) -> list[Json]:
    hero, texts, story_id = plot["hero"], plot["texts"], record["story_id"]
    changes = (
        (4, "remove_consequence", f"Then the {plot['helper']} {plot['remedy']}, but {hero} was lost."),
        (5, "replace_outcome", f"In the end {hero} {plot['worse']}, and {hero} was alone."),
    )
    return [
        {
            "variant_id": f"{story_id}_v{number}",
            "base_story_id": story_id,
            "variant_kind": "semantic_contrast",
            "subset": record["split"],
            "narrative_type": record["narrative_type"],
            "has_variant": True,
            "pair_id": f"{story_id}_p{number}",
            "changed_scene_id": scene,
            "change_type": change,
            "original_moral": record["moral_label"],
            "contrastive_moral": None,
            "semantic_delta": f"scene {scene} ends otherwise",
            "contrastive_scene_text": text,
            "contrastive_story_text": " ".join([*texts[: scene - 1], text, *texts[scene:]]),
        }
        for number, (scene, change, text) in enumerate(changes, 1)
    ]


def with_variant_questions(bundle: Json) -> Json:
    """Give each variant of a bundle a question about how its changed scene ends; return the bundle."""
    for variant in bundle["variants"]:
        scene = variant["changed_scene_id"]
        gold = variant["contrastive_scene_text"].rpartition(", ")[2].rstrip(".")
        question = {
            "question_id": f"{variant['variant_id']}_q01", "story_id": variant["variant_id"],
            "question_type": "consequence", "question": f"How does part {scene} end?", "gold_answer": gold,
            "accepted_answers": [gold, f"this: {gold}"], "target_scene": None,
            "target_transition": [scene - 1, scene], "evidence_scenes": [scene],
            "required_evidence": f"scene {scene}", "answerability": "text_supported",
        }  # fmt: skip
        variant["questions"] = [question]
    return bundle
