"""Shares of subsets: the quotas of the paper's Table 20, and what is left of them where stories run short."""

from collections import Counter
from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.releases.katha.reviews import Reviews
from fabula.releases.katha.subsets import KINDS, QUESTIONS, draw_subsets, quotas_of
from fabula.releases.subsets.closeness import Traits
from fabula.releases.subsets.requests import GOLD, requested
from fabula.schemas.vocabulary import vocabulary

LABELS = vocabulary("moral_label").values
SIZES = vocabulary("narrative_type").targets
"""How many stories of each type the paper's benchmark has (Table 6)."""


def traits(number: int, kind: str, *, unclear: bool = False) -> Traits:
    values = (kind, LABELS[number % 12], "aesop", "en", "train")
    sizes = {"questions": 1, "scenes": 5, "characters": 100}
    kinds = dict(zip(KINDS, values, strict=True))
    return Traits(f"s_{number:04}", kinds, QUESTIONS, {"causal": 1}, sizes, unclear)


def stories(sizes: dict[str, int]) -> list[Traits]:
    listed = [kind for kind, size in sizes.items() for _ in range(size)]
    return [traits(number, kind) for number, kind in enumerate(listed)]


def review(story: Traits, flags=(), people=3) -> dict:
    return {
        "story_id": story.id, "decision": "accepted", "validation_status": "pre_release_reviewed",
        "protocol_complete": True, "annotator_ids": [f"r{n}" for n in range(people)], "adjudicator_id": None,
        "resolution": "unanimous", "correction_flags": list(flags),
    }  # fmt: skip


def reviews(rows) -> Reviews:
    return Reviews(Path("human_validation.jsonl"), {row["story_id"]: row for row in rows})


def by_type(subset, whole) -> Counter:
    return Counter(story.category for story in whole if story.id in set(subset.members))


def test_gold_when_the_set_has_the_papers_size_has_its_quotas():
    whole = stories(SIZES)
    assert len(whole) == 5000
    gold, strict = requested(GOLD)
    ids = {story.id for story in whole}
    assert set(quotas_of(gold, whole, ids, 5000).values()) == {125}
    assert set(quotas_of(strict, whole, ids, 5000).values()) == {50}


def test_gold_when_drawn_is_even_over_types_nested_and_backed():
    whole = stories({"a": 60, "b": 30, "c": 10})
    backed = reviews(review(story) for story in whole)
    gold, strict = draw_subsets(requested(GOLD), whole, backed, {}, len(whole))
    # 20 % of 100 are 20, over three types 7, 7 and 6; 8 % are 8: 3, 3 and 2. The most frequent come first.
    assert by_type(gold, whole) == {"a": 7, "b": 7, "c": 6}
    assert by_type(strict, whole) == {"a": 3, "b": 3, "c": 2}
    assert set(strict.members) < set(gold.members)
    assert gold.short == strict.short == {}
    assert "short" in gold.as_json()


def test_gold_when_reviews_run_short_of_a_type_has_fewer_and_says_which():
    whole = stories({"a": 50, "b": 50})
    chosen = (story for number, story in enumerate(whole) if story.category == "a" or number % 25 == 0)
    backed = reviews(map(review, chosen))
    gold, strict = draw_subsets(requested(GOLD), whole, backed, {}, len(whole))
    assert by_type(gold, whole) == {"a": 10, "b": 2}
    assert (gold.short, gold.counts["b"]) == ({"b": 10}, 2)
    assert by_type(strict, whole) == {"a": 4, "b": 2}
    assert strict.short == {"b": 4}


def test_shares_when_hidden_stories_belong_to_the_release_count_them():
    whole = stories({"a": 95})
    (lite,) = requested(["lite=10%"])
    assert quotas_of(lite, whole, (), 100) == {"all": 10}
    assert quotas_of(lite, whole, (), 4) == {"all": 1}  # never none


@pytest.mark.parametrize(
    "flag",
    [
        "ambiguous:moral_label", "ambiguous:transition_annotation:1-2", "invalid:recoverability_qa:q_1",
        "invalid:contrastive_variant:v_1", "unusable:scene_sequence", "unsafe:safety",
        "rights_uncertain:safety",
    ],
)  # fmt: skip
def test_strict_gold_when_a_defect_is_unresolved_leaves_the_story_out(flag):
    whole = stories({"a": 10})
    rows = [
        review(story, [flag] if number < 9 else ["corrected:title"]) for number, story in enumerate(whole)
    ]
    asked = requested(["gold=10", "strict_gold=1:gold"])
    gold, strict = draw_subsets(asked, whole, reviews(rows), {}, 10)
    assert len(gold.members) == 10
    assert strict.members == (whole[9].id,)
    with pytest.raises(ConfigError, match=f"found 1 \\(9 flag {flag}"):
        draw_subsets(requested(["gold=10", "strict_gold=2:gold"]), whole, reviews(rows), {}, 10)


def test_gold_shares_when_no_story_is_backed_are_refused_with_the_reasons():
    whole = stories({"a": 4, "b": 4})
    few = reviews(review(story, people=2) for story in whole)
    with pytest.raises(ConfigError, match=r"at least 1 story that reviews back.*8 fewer than 3 reviewers"):
        draw_subsets(requested(GOLD), whole, few, {}, 8)
    unclear = [traits(number, "a", unclear=True) for number in range(8)]
    backed = reviews(review(story) for story in unclear)
    with pytest.raises(ConfigError, match="2 with a question of unclear answerability"):
        draw_subsets(requested(GOLD), unclear, backed, {}, 8)


def test_reviews_of_earlier_files_when_they_say_accepted_by_an_adjudicator_still_back_gold():
    whole = stories({"a": 5})
    old = reviews({**review(story), "validation_status": "human_adjudicator_accepted"} for story in whole)
    (gold,) = draw_subsets(requested(["gold=5"]), whole, old, {}, 5)
    assert len(gold.members) == 5
