from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.builders.katha.choosing.assign_splits import fill_splits, strata_of
from fabula.engine.stage import Item
from fabula.schemas.vocabulary import vocabulary

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


def test_splits_when_the_input_order_changes_are_the_same(katha) -> None:
    labels = stories(300)
    assert assign(katha, dict(reversed(labels.items()))) == assign(katha, labels)


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


def test_strata_when_labels_are_missing_form_one_of_their_own() -> None:
    assert set(strata_of({f"n{n}": (None, None) for n in range(3)}, 2).values()) == {"none/none"}


def test_first_stories_when_few_go_where_most_is_lacking(katha) -> None:
    # Lacking before the first: 0.70 0.15 0.10 0.05; the second: 0.40 0.30 0.20 0.10; the third: 0.10 0.45 ...
    splits = [fields["split"] for fields in assign(katha, stories(3)).values()]
    assert Counter(splits) == {"train": 2, "validation": 1}
