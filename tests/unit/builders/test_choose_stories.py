"""Choosing stories of a larger pool: quotas, the same choice in any order, and why the rest is left."""

import json
from collections import Counter
from pathlib import Path

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.choose_stories import Settings, choose
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.schemas.vocabulary import vocabulary
from fabula.testing.made_stories import make_story

TYPES, MORALS = vocabulary("narrative_type").values, vocabulary("moral_label").values
FAMILIES = ("aesop", "panchatantra", "kathasaritasagara")


def pool(count: int) -> dict[str, dict[str, str | None]]:
    """A pool in which types, morals and families are spread in ways of their own."""
    return {
        f"s{n:05d}": {
            "narrative_type": TYPES[n * 5 % 8], "moral_label": MORALS[n // 8 % 12],
            "collection": FAMILIES[n // 5 % 3], "language": "en" if n // 3 % 4 else "hi",
        }
        for n in range(count)
    }  # fmt: skip


def chosen(traits: dict, settings: Settings, before: tuple[str, ...] = ()) -> set[str]:
    assert settings.stories is not None
    return traits.keys() - choose(traits, settings.caps(), settings.stories, before).keys()


def test_choice_when_the_pool_is_large_enough_meets_the_quotas_of_the_paper() -> None:
    traits, settings = pool(6000), Settings(stories=500, collection={})
    kept = chosen(traits, settings)
    assert len(kept) == 500
    types = Counter(traits[key]["narrative_type"] for key in kept)
    # Table 6 gives 1,000, 800, 700, 600, 600, 500, 400, 400 of 5,000: a tenth of it for 500 stories.
    assert types == {value: count / 10 for value, count in vocabulary("narrative_type").targets.items()}
    morals = Counter(traits[key]["moral_label"] for key in kept)
    assert all(abs(count - 500 / 12) < 1 for count in morals.values())


def test_choice_when_order_changes_or_stories_come_later_is_the_same_and_keeps_what_it_has() -> None:
    traits, settings = pool(800), Settings(stories=100, collection={}, language={"en": 1, "hi": 1})
    first = chosen(traits, settings)
    assert chosen(dict(reversed(traits.items())), settings) == first
    assert Counter(traits[key]["language"] for key in first) == {"en": 50, "hi": 50}
    assert (
        chosen({**traits, **{f"x{n}": traits["s00001"] for n in range(50)}}, settings, tuple(first)) == first
    )


def test_choice_when_a_value_is_missing_or_rare_says_so() -> None:
    traits = {**pool(40), "none": {**pool(1)["s00000"], "moral_label": None}}
    reasons = choose(traits, Settings(stories=10, collection={"aesop": 1}).caps(), 10)
    assert reasons["none"] == "its moral_label None has no quota"
    assert any("has no quota" in why and "panchatantra" in why for why in reasons.values())
    assert any("its quota is" in why for why in reasons.values())


def write(path: Path, numbers: range) -> Path:
    path.write_text("".join(json.dumps(make_story(n)) + "\n" for n in numbers), "utf-8")
    return path


def test_build_when_balanced_makes_the_chosen_and_reports_the_others(tmp_path) -> None:
    options = BuildOptions(balance=16, workers=0, settings=("choose_stories.collection={}",))
    report = build_katha(write(tmp_path / "a.jsonl", range(1, 60)), tmp_path / "run", options)
    left = [item for item in report.items if item.code == "surplus"]
    assert report.totals["made"] == 16 and len(left) == 43 and all(item.reason for item in left)
    more = extend_katha(
        tmp_path / "run", write(tmp_path / "b.jsonl", range(60, 64)), ExtendOptions(workers=0)
    )
    assert (more.added, {item.code for item in more.stopped}) == ((), {"surplus"})
