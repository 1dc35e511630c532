"""Shares of subsets: the quotas of the paper's Table 20, and what is left of them where stories run short."""

import json
from collections import Counter
from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.kinds.shots import KIND
from fabula.kinds.verbs import pack, verify
from fabula.releases.katha.additions import KINDS, QUESTIONS, draw_subsets, quotas_of
from fabula.releases.katha.reviews import Reviews
from fabula.releases.options import PackOptions
from fabula.releases.shots.imports import (
    choose,
    read_story_facts,
    statistics_of_shots,
    subset_document,
    write_subset,
)
from fabula.releases.shots.tree import ShotSet, read_shot_set
from fabula.releases.subsets import GOLD, Traits, requested
from fabula.schemas.values import vocabulary
from fabula.testing.drawn_shots import draw_shot_set, drawn_script

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
    rows = [review(story, [flag]) for story in whole[:9]] + [review(whole[9], ["corrected:title"])]
    asked = requested(["gold=10", "strict_gold=1:gold"])
    gold, strict = draw_subsets(asked, whole, reviews(rows), {}, 10)
    assert len(gold.members) == 10
    assert strict.members == (whole[9].id,)
    with pytest.raises(ConfigError, match=f"found 1 \\(9 flag {flag}"):
        draw_subsets(requested(["gold=10", "strict_gold=2:gold"]), whole, reviews(rows), {}, 10)


def test_reviews_of_earlier_files_when_they_say_accepted_by_an_adjudicator_still_back_gold():
    whole = stories({"a": 5})
    old = reviews({**review(story), "validation_status": "human_adjudicator_accepted"} for story in whole)
    (gold,) = draw_subsets(requested(["gold=5"]), whole, old, {}, 5)
    assert len(gold.members) == 5


# A subset of shot scripts that is spread as the whole; statistics of section C.

CREATED = "2026-01-01T00:00:00Z"
OPTIONS = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en", "zh"))
STYLES = ("photorealistic",) * 5 + ("anime",) * 3 + ("comics",) * 2


@pytest.fixture
def eighty(tmp_path: Path) -> ShotSet:
    """Eighty stories without images: half photorealistic, 4 to 13 shots."""
    folder = tmp_path / "whole" / "ViStory"
    lines = []
    for number in range(1, 81):
        place = folder / f"{number:02d}"
        place.mkdir(parents=True)
        script = drawn_script(4 + number % 10)
        (place / "story.json").write_text(json.dumps(script), "utf-8")
        style = STYLES[number % len(STYLES)]
        lines.append({"story_id": place.name, "style": style, "realistic": style == "photorealistic"})
    (folder / "stories.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return read_shot_set(tmp_path / "whole")[0]


def test_subset_when_drawn_has_the_shares_of_the_whole(eighty: ShotSet) -> None:
    chosen = choose(eighty, 20)
    facts = read_story_facts(eighty)
    # A quarter of 40 photorealistic, 24 anime and 16 comics.
    assert Counter(facts[one].style for one in chosen) == {"photorealistic": 10, "anime": 6, "comics": 4}
    document = subset_document(eighty, chosen)
    assert document["fields"]["style"]["total_variation"] == 0
    assert document["fields"]["characters"]["total_variation"] == 0
    assert document["stories"] == {"full": 80, "subset": 20}


def test_subset_when_it_cannot_be_is_refused(eighty: ShotSet) -> None:
    few = ShotSet(eighty.folder, eighty.stories[:5])
    with pytest.raises(ConfigError, match="the set has no story"):
        choose(few, 20, "official")
    for count in (0, 6):
        with pytest.raises(ConfigError, match="1 to 5"):
            choose(few, count)


def test_subset_when_written_is_a_set_with_facts_and_document(tmp_path: Path) -> None:
    whole, _ = read_shot_set(draw_shot_set(tmp_path / "whole", stories=4))
    document = write_subset(whole, ["02", "03"], tmp_path / "lite")
    part, _ = read_shot_set(tmp_path / "lite")
    assert [story.story_id for story in part.stories] == ["02", "03"]
    assert part.counts()["references"] == 12
    assert json.loads((tmp_path / "lite" / "lite.json").read_text()) == document
    assert document["ids"] == ["02", "03"]


@pytest.mark.slow
def test_subset_when_packed_is_a_release_that_says_what_it_is_of(eighty: ShotSet, tmp_path: Path) -> None:
    write_subset(eighty, choose(eighty, 20, "official"), tmp_path / "lite", CREATED)
    result = pack(tmp_path / "lite", tmp_path / "dist", OPTIONS)
    assert result.counts["stories"] == 20
    assert verify(tmp_path / "dist").ok
    assert (tmp_path / "dist/lite.json").read_bytes() == (tmp_path / "lite/lite.json").read_bytes()
    (source,) = json.loads((tmp_path / "dist/source_manifest.json").read_text())["inputs"]
    assert source == {"role": "scripts", "name": "whole", "sha256": eighty.sha256}
    write_subset(eighty, choose(eighty, 20, "official"), tmp_path / "again", CREATED)
    pack(tmp_path / "again", tmp_path / "same", OPTIONS)
    assert (tmp_path / "same/SHA256SUMS").read_bytes() == (tmp_path / "dist/SHA256SUMS").read_bytes()


def test_subset_when_a_script_was_changed_by_hand_forgets_who_made_it(tmp_path: Path) -> None:
    whole, _ = read_shot_set(draw_shot_set(tmp_path / "whole", stories=2))
    write_subset(whole, ["01", "02"], tmp_path / "first", CREATED)
    lines = tmp_path / "first/scripts.jsonl"
    lines.write_text(lines.read_text("utf-8").replace('"producer":"given"', '"producer":"hand:ana"'), "utf-8")
    changed = tmp_path / "first/ViStory/02/story.json"
    changed.write_text(changed.read_text("utf-8").replace("stands still", "runs"), "utf-8")
    write_subset(read_shot_set(tmp_path / "first")[0], ["01", "02"], tmp_path / "second", CREATED)
    written = (tmp_path / "second/scripts.jsonl").read_text("utf-8").splitlines()
    records = list(map(json.loads, written))
    assert [one["producers"][0]["producer"] for one in records] == ["hand:ana", "given"]


def test_statistics_when_counted_give_totals_and_targets(eighty: ShotSet) -> None:
    document = statistics_of_shots(eighty.folder.parent)
    # 4 + number % 10 shots for 1 to 80: eight times 4 + 5 + ... + 13 = 85.
    assert document["totals"]["shots"] == 680
    assert document["totals"] == {
        "stories": 80, "shots": 680, "shots_per_story": 8.5, "characters": 240, "references": 0,
        "characters_with_several_references": 0,
    }  # fmt: skip
    assert document["shots_per_story"] == {"least": 4, "most": 13}
    style = document["style_category"]["photorealistic"]
    assert (style["count"], style["share"], style["target_share"]) == (40, 0.5, 0.4875)
    assert document["character_tag"]["non_human"]["count"] == 80
    assert document["realism"]["realistic"]["count"] == 40
    distances = document["shot_distance"]
    assert sum(distances[name]["count"] for name in ("wide_shot", "medium_shot", "full_shot")) == 680
    assert KIND.marks.match(eighty.folder)
    assert not KIND.marks.match(eighty.folder / "01")
