"""Contrastive variants of the sample records: each type of change comes often and changes its scene alone."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import fabula
from fabula.schemas.vocabulary import vocabulary

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"
GOLD, LATER = (
    [json.loads(line) for line in (SAMPLES / name).read_text("utf-8").splitlines()]
    for name in ("gold.jsonl", "later_gold.jsonl")
)


def test_samples_when_counted_have_each_change_six_times_and_twelve_other_morals() -> None:
    variants = [variant for record in GOLD for variant in record["variants"]]
    kinds = Counter(variant["change_type"] for variant in variants)
    assert set(kinds) == set(vocabulary("change_type").values)
    assert min(kinds.values()) >= 6, kinds
    assert sum(variant["contrastive_moral"] is not None for variant in variants) >= 12
    assert {len(record["variants"]) for record in (*GOLD, *LATER)} == {2}


@pytest.mark.parametrize("record", [*GOLD, *LATER], ids=lambda record: record["story_id"])
def test_variant_when_read_has_no_sentence_of_another_scene_and_no_moral_of_its_story(record) -> None:
    texts = [scene["scene_text"] for scene in record["scenes"]]
    for variant in record["variants"]:
        changed = variant["changed_scene_id"] - 1
        others = [text for number, text in enumerate(texts) if number != changed]
        sentences = re.split(r"(?<=[.!?]) ", variant["contrastive_scene_text"])
        assert [s for s in sentences if any(s in text for text in others)] == [], variant["variant_id"]
        assert variant["contrastive_moral"] != record["moral_label"]
        temporal = variant["variant_kind"] == "temporal_contrast"
        assert temporal == (variant["change_type"] == "reorder_events")
    assert record["variants"][0]["change_type"] != record["variants"][1]["change_type"]
