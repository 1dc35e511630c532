"""Counts and distributions against numbers worked out by hand, and against the published tables."""

import pytest

from fabula.schemas.vocabulary import vocabulary
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.statistics import (
    BalanceTolerance,
    HiddenCounts,
    StatisticsCollector,
    distribution,
    moral_balance,
)


def statistics_over(bundles, hidden=None):
    counts = StatisticsCollector()
    for bundle in bundles:
        counts.add_record(bundle["record"])
        for variant in bundle["variants"]:
            counts.add_variant(variant)
    return counts.result(hidden or HiddenCounts())


def test_statistics_when_two_stories_equal_the_counts_by_hand() -> None:
    bundles = sample_bundles(2)
    bundles[1]["record"]["transitions"][0] |= {"intention": "to sell pots", "transition_type": None}
    document = statistics_over(bundles)
    assert document["totals"] == {
        "stories": 2,
        "scenes": 10,
        "transitions": 8,
        "questions": 12,
        "variants": 4,
    }
    assert document["splits"] == {"train": 1, "validation": 0, "public_test": 1, "hidden_test": 0, "test": 1}
    # Each story has 2 cause_effect, 1 consequence_reveal, 1 moral_choice; one cause_effect is taken away.
    types = document["transition_types"]
    assert {name: entry["count"] for name, entry in types.items()} == {
        "cause_effect": 3, "moral_choice": 2, "consequence_reveal": 2, "none": 1,
    }  # fmt: skip
    # 3 of 8 is 0.375, the target 2 of 4 is 0.5.
    assert types["cause_effect"] == {"count": 3, "share": 0.375, "target_share": 0.5, "deviation": -0.125}
    assert types["none"] == {"count": 1, "share": 0.125}
    assert document["transition_field_coverage"]["intention"] == {"count": 1, "share": 0.125}
    assert document["transition_field_coverage"]["moral_target"] == {"count": 2, "share": 0.25}
    assert document["source_mix"]["kathasaritasagara"] == {"count": 1, "share": 0.5}
    assert document["languages"] == {"en": {"count": 2, "share": 1.0}}
    assert document["change_types"]["remove_consequence"]["count"] == 2
    assert document["review"]["resolution"]["not_reviewed"] == {"count": 2, "share": 1.0}


def test_statistics_when_hidden_stories_exist_count_them_and_nothing_else() -> None:
    hidden = HiddenCounts(stories=3, scenes=15, transitions=12, questions=18, variants=6)
    with_hidden, without = statistics_over(sample_bundles(2), hidden), statistics_over(sample_bundles(2))
    assert with_hidden["totals"]["stories"] == 5
    assert with_hidden["public"] == without["totals"]
    assert with_hidden["splits"] == {
        "train": 1, "validation": 0, "public_test": 1, "hidden_test": 3, "test": 4,
    }  # fmt: skip
    changed = {name for name in without if with_hidden[name] != without[name]}
    assert changed == {"totals", "hidden_test", "splits"}


def test_statistics_when_order_changes_stay_the_same() -> None:
    bundles = sample_bundles(30)
    assert statistics_over(bundles) == statistics_over(bundles[::-1])


def test_statistics_when_there_is_nothing_have_every_key_and_no_division() -> None:
    document = statistics_over([])
    assert document.keys() == statistics_over(sample_bundles(1)).keys()
    assert document["moral_labels"]["courage"]["share"] == 0.0


def test_distribution_when_counts_are_the_published_ones_deviates_nowhere() -> None:
    for name in ("narrative_type", "moral_label", "question_type"):
        table = distribution(name, vocabulary(name).targets)
        assert {entry["deviation"] for entry in table.values()} == {0.0}, name


def test_distribution_when_values_are_unknown_lists_them_after_the_known_ones() -> None:
    table = distribution("moral_label", {"zeal": 1, "courage": 2, "ardour": 1})
    assert list(table)[:1] + list(table)[-2:] == ["compassion", "ardour", "zeal"]
    assert table["zeal"] == {"count": 1, "share": 0.25}


def test_moral_balance_when_labels_are_the_published_ones_is_within_tolerance() -> None:
    # Table 12: 5,000 stories over 12 labels, 416 or 417 each; the uniform target is 416.6667.
    targets = vocabulary("moral_label").targets
    audit = moral_balance(label for label, count in targets.items() for _ in range(count))
    assert audit["target_distribution"]["courage"] == 416.6667
    assert audit["observed_distribution"] == targets
    assert audit["per_label_deviation"]["courage"] == 0.3333
    assert audit["per_label_deviation"]["wisdom"] == -0.6667
    assert audit["tolerance_status"] == "within_tolerance"
    assert audit["automatic_relabeling"] is False


@pytest.mark.parametrize(("extra", "status"), [(8, "within_tolerance"), (10, "outside_tolerance")])
def test_moral_balance_when_one_label_has_too_many_uses_the_larger_bound(extra: int, status: str) -> None:
    # 12 x 417 + extra: the target is 417 + extra / 12, the bound 2 % of it, about 8.35.
    names = vocabulary("moral_label").values
    labels = [name for name in names for _ in range(417)] + ["courage"] * extra
    audit = moral_balance(labels)
    assert audit["per_label_status"]["courage"] == status
    assert audit["tolerance_status"] == status


def test_moral_balance_when_labels_are_missing_or_unknown_counts_them_apart() -> None:
    audit = moral_balance(["courage", None, None, "thrift"])
    assert (audit["unlabelled"], audit["unlisted"]) == (2, {"thrift": 1})
    assert audit["target_distribution"]["courage"] == 0.0833


def test_moral_balance_when_tolerance_is_given_uses_and_states_it() -> None:
    labels = ["courage", "courage", *vocabulary("moral_label").values]
    strict = BalanceTolerance(stories=0.5, relative=0.0)
    # 14 stories over 12 labels: the target is 1.1667, courage has 3.
    audit = moral_balance(labels, strict)
    assert audit["per_label_deviation"]["courage"] == 1.8333
    assert audit["tolerance_status"] == "outside_tolerance"
    assert audit["tolerance"] == {"stories": 0.5, "relative": 0.0}
