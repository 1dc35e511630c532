import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.choosing.assign_splits import fill_splits, strata_of
from fabula.builders.katha.choosing.choose_stories import Settings, choose
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.progress import Event
from fabula.engine.stage import Item
from fabula.schemas.vocabulary import vocabulary
from fabula.testing.made_stories import make_story

TYPES, MORALS = vocabulary("narrative_type").values, vocabulary("moral_label").values
TARGET = {"train": 0.70, "validation": 0.15, "public_test": 0.10, "hidden_test": 0.05}


def stories(count, first=0):
    return {f"s{n:05d}": (TYPES[n * n % 8], MORALS[n % 12]) for n in range(first, first + count)}


def assign(katha, labels, previous=None, least=20):
    module = katha.stage("assign_splits")
    items = [
        Item(key, {"labels": {"narrative_type": kind, "moral_label": moral}, "links": []})
        for key, (kind, moral) in labels.items()
    ]
    return dict(module.run(items, katha.tools_for(module.SPEC, {"least": least}, previous=previous or {})))


@pytest.mark.parametrize("count", [100, 1000, 5000])
def test_splits_when_many_stories_reach_the_shares_over_all_and_in_the_strata(katha, count) -> None:
    found = assign(katha, stories(count))
    overall = Counter(fields["split"] for fields in found.values())
    assert all(abs(overall[split] - share * count) <= 0.01 * count for split, share in TARGET.items())
    strata: dict[str, Counter] = {}
    for fields in found.values():
        strata.setdefault(fields["stratum"], Counter())[fields["split"]] += 1
    for counts in strata.values():
        assert all(abs(counts[split] - share * counts.total()) < 1.5 for split, share in TARGET.items())


@settings(max_examples=30, deadline=None)
@given(first=st.integers(1, 120), more=st.integers(0, 120))
def test_splits_when_stories_are_added_never_move_the_old_ones(first, more) -> None:
    old = strata_of(stories(first), 20)
    before = fill_splits(old, {})
    grown = strata_of(stories(first + more), 20)
    after = fill_splits(grown, before)
    assert {key: after[key] for key in before} == before
    assert set(after) == set(grown)


def test_splits_when_stories_go_forget_them_and_keep_the_rest(katha) -> None:
    before = assign(katha, stories(100))
    after = assign(katha, stories(50), previous=before)
    assert {key: fields["split"] for key, fields in after.items()} == {
        key: before[key]["split"] for key in stories(50)
    }


def test_strata_when_small_are_collapsed_over_label_then_type() -> None:
    # 3 of (a, x), 1 of (a, y), 1 of (a, z), 1 of (b, x), 1 without labels; at least 2 make a stratum.
    labels = {
        **{f"ax{n}": ("a", "x") for n in range(3)},
        "ay": ("a", "y"),
        "az": ("a", "z"),
        "bx": ("b", "x"),
        "none": (None, None),
    }
    found = strata_of(labels, 2)
    assert found["ax0"] == "a/x"
    assert found["ay"] == found["az"] == "a/*"
    assert found["bx"] == found["none"] == "*"


# Choosing stories of a larger pool: quotas, the same choice in any order, and why the rest is left.

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


@pytest.mark.slow
def test_build_when_balanced_makes_the_chosen_and_reports_the_others(tmp_path) -> None:
    options = BuildOptions(balance=16, workers=0, settings=("choose_stories.collection={}",))
    report = build_katha(write(tmp_path / "a.jsonl", range(1, 60)), tmp_path / "run", options)
    left = [item for item in report.items if item.code == "surplus"]
    assert report.totals["made"] == 16 and len(left) == 43 and all(item.reason for item in left)
    more = extend_katha(
        tmp_path / "run", write(tmp_path / "b.jsonl", range(60, 64)), ExtendOptions(workers=0)
    )
    assert (more.added, {item.code for item in more.stopped}) == ((), {"surplus"})


class Told:
    """A reporter that keeps what it is warned of."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def emit(self, event: Event) -> None:
        self.warnings += [event.data["message"]] if event.kind == "warning" else []

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_build_when_stories_are_lacking_says_which_quotas_fell_short(tmp_path) -> None:
    quotas = ("choose_stories.collection={}", "choose_stories.moral_label={}")
    named = "choose_stories.narrative_type={hidden_consequence=1, moral_semantic=3}"
    options = BuildOptions(balance=40, workers=0, settings=(*quotas, named))
    reporter = Told()
    report = build_katha(
        write(tmp_path / "a.jsonl", range(1, 60)), tmp_path / "run", options, reporter=reporter
    )
    made = Counter(
        json.loads(line)["payload"]["record"]["narrative_type"]
        for line in (tmp_path / "run" / "records.jsonl").read_text("utf-8").splitlines()
    )
    document = json.loads((tmp_path / "run" / "quotas.json").read_text("utf-8"))
    assert document["stories"] == {"wanted": 40, "made": report.totals["made"]} and sum(made.values()) < 40
    # A quarter and three quarters of 40.
    wanted = {"hidden_consequence": 10, "moral_semantic": 30}
    assert {row["value"]: (row["wanted"], row["made"]) for row in document["short"]} == {
        value: (count, made[value]) for value, count in wanted.items() if made[value] < count
    }
    (warning,) = reporter.warnings
    assert f"{report.totals['made']} of 40 stories were made" in warning and "moral_semantic" in warning
