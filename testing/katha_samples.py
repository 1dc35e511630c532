"""Valid KathaBench bundles for tests: small, deterministic, independent of the builder."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

import yaml

from ..schemas.canonical import Json
from ..schemas.text import normalize_text
from ..schemas.values import vocabulary
from ..validators.katha.field_rules import record_hashes

CREATED_AT = "2025-01-01T00:00:00Z"

_WORDS = json.loads((files(__package__) / "words.json").read_bytes())["katha_samples"]
_BUNDLE = yaml.safe_load((files(__package__) / "katha_bundle.yaml").read_text("utf-8"))
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
    plot = _plot(number)
    texts = _filled(_BUNDLE["texts"], plot)
    record: dict[str, Json] = {
        "story_id": plot["story_id"],
        "title": f"{plot['hero']} and the {plot['helper']}",
        "language": "en",
        "source_text": "\n\n".join(texts) + "\n",
        "story_text": normalize_text("\n\n".join(texts)),
        "narrative_type": plot["narrative"],
        "moral_label": plot["moral"],
        "split": plot["split"],
        "scenes": _parts("scenes", plot, texts),
        "transitions": _parts("transitions", plot),
        "questions": _parts("questions", plot),
        "validation_status": "auto_checked",
        "evidence_status": {"human_evidence_accepted": False, "resolution": "not_reviewed"},
    }
    for question in record["questions"]:
        gold, first = question["gold_answer"], question["evidence_scenes"][0]
        question |= {"accepted_answers": [gold, f"because: {gold}"], "target_scene": first}
        question["required_evidence"] = f"scene {first}"
    variants = _parts("variants", plot)
    for variant in variants:
        scene, text = variant["changed_scene_id"], variant["contrastive_scene_text"]
        variant["contrastive_story_text"] = " ".join([*texts[: scene - 1], text, *texts[scene:]])
    record["provenance"] = {
        "source_dataset": _cycled(vocabulary("source_dataset").values, number),
        "source_reference": f"tale {number + 1}",
        **record_hashes(record, variants),
        "contrastive_variant_ids": [variant["variant_id"] for variant in variants],
        "created_at": CREATED_AT,
        "source_rights_status": "public_domain_or_rights_compatible",
        "dataset_license": "CC-BY-4.0",
    }
    paths = ("$.scenes[*]", "$.transitions[*]", "$.questions[*]")
    return {
        "record": record, "variants": variants,
        "producers": [{"path": path, "producer": "rules@1"} for path in paths],
        "checks": [
            {"code": "answerable", "path": "$.questions", "passed": True, "note": "found in the text",
             "producer": "rules@1"},
        ],
    }  # fmt: skip


def _cycled(values: Sequence[str], number: int) -> str:
    # The shift every twenty stories keeps the splits and the labels from marching in step.
    return values[(number + number // 20) % len(values)]


def _plot(number: int) -> dict[str, str]:
    """Return the names that stand in braces; the hero's is different for every number."""
    digits = [int(digit) for digit in f"{(number * 7919 + 1234) % 10000:04}"]
    thing, (trouble, cause) = _WORDS["things"][number % 7], _WORDS["troubles"][number % 6]
    ending, worse = _WORDS["endings"][number // 2 % 5]
    moral = _cycled(vocabulary("moral_label").values, number)
    return {
        "story_id": f"kb25k_{number + 1:04}", "split": _SPLITS.get(number % 20, "train"),
        "narrative": _cycled(vocabulary("narrative_type").values, number),
        "moral": moral, "lesson": moral.replace("_", " "),
        "hero": "".join(_WORDS["syllables"][digit] for digit in digits).capitalize(),
        "trade": _WORDS["trades"][number % 9], "place": _WORDS["places"][number % 5],
        "a_thing": thing, "thing": thing.split(" ", 1)[1], "helper": _WORDS["helpers"][number % 8],
        "trouble": trouble, "cause": cause, "remedy": _WORDS["remedies"][number // 3 % 5],
        "ending": ending, "worse": worse,
    }  # fmt: skip


def _parts(kind: str, plot: Mapping[str, str], texts: Sequence[str] = ()) -> list[Json]:
    """Return the parts of a kind; ``texts``: of each."""
    each, own = _BUNDLE[kind]["each"], _BUNDLE[kind]["own"]
    return [
        _filled({**each, **part}, {**plot, "number": str(place), "text": texts[place - 1] if texts else ""})
        for place, part in enumerate(own, 1)
    ]


def _filled(value: Json, names: Mapping[str, str]) -> Json:
    """Return a value with what its names in braces stand for."""
    if isinstance(value, str):
        return value.format_map(names)
    if isinstance(value, list):
        return [_filled(part, names) for part in value]
    return {key: _filled(part, names) for key, part in value.items()} if isinstance(value, dict) else value


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
