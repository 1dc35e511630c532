"""Every leaf of a valid story is corrupted in every way that fits its kind; some rule must notice each."""

import copy
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap

from fabula.schemas.paths import format_path, get_at, replace_at
from fabula.schemas.values import NAMES, vocabulary
from fabula.testing.katha_folders import rehash, write_records, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.review_tables import (
    FIELDS,
    UNITS,
    Elsewhere,
    ReviewData,
    agreement_table,
    before_adjudication,
    construction_table,
    kind_of_flag,
    review_tables,
    stated_elsewhere,
    stated_tables,
    validation_table,
    workload_table,
)
from fabula.validators.katha.scene_rules import check_story
from fabula.validators.katha.validation import validate
from fabula.validators.resampling import fleiss_kappa

BUNDLE = sample_bundles(2)[1]

# Free text that no hash covers, and a status for another that claims no more: the record stays valid.
FREE = {"$.record.provenance.source_reference", "$.record.provenance.dataset_license"}
EQUALLY_VALID = {
    ("$.record.validation_status", "drafted"),
    ("$.record.validation_status", "review_needed"),
    ("$.record.provenance.source_rights_status", "licensed_with_permission"),
    ("$.record.provenance.source_dataset", "kathasaritasagara"),
    ("$.record.provenance.source_dataset", "panchatantra"),
    ("$.record.provenance.source_dataset", "aesop"),
}
WORDS = sorted({value for name in NAMES for value in vocabulary(name).values})


def leaves(node: Any, steps: tuple[str | int, ...] = ()) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*steps, key))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from leaves(value, (*steps, number))
    else:
        yield format_path(steps)


LEAVES = [path for path in leaves(BUNDLE) if path.startswith(("$.record", "$.variants"))]


def corruptions(value: Any) -> list[Any]:
    """Return values of the same and of other types, all different from the given one."""
    if isinstance(value, bool):
        return [not value, None, "yes", 2]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 1000, -value, 0.5, None, str(value), True, [value]]
    if value is None:
        return [0, False, [], "", "something"]
    swapped = value[:-1] + ("0" if value[-1] != "0" else "1")
    return [swapped, value + "x", value.swapcase(), "", None, 7, [value], *similar(value)]


def similar(value: str) -> list[str]:
    """Return the other values of the word lists that a value is in."""
    lists = [vocabulary(name).values for name in NAMES if value in vocabulary(name).values]
    return sorted({other for values in lists for other in values} - {value})


def is_noticed(bundle: Any, folder: Path) -> bool:
    if check_story(bundle["record"], bundle["variants"]):
        return True
    # What one story cannot show, its neighbours and the files of the run can.
    run = write_run(folder / "run", [sample_bundles(1)[0], BUNDLE])
    write_records(run / "records.jsonl", [sample_bundles(1)[0], bundle])
    return bool(validate(run).issues)


@pytest.mark.parametrize("path", LEAVES)
def test_validate_when_any_leaf_is_corrupted_finds_an_issue(path: str, tmp_path: Path) -> None:
    unnoticed = []
    for value in corruptions(get_at(BUNDLE, path)):
        if isinstance(value, str) and (path in FREE or (path, value) in EQUALLY_VALID):
            continue
        if path == "$.record.provenance.source_reference" and value is None:
            continue
        if not is_noticed(replace_at(BUNDLE, path, value), tmp_path):
            unnoticed.append(value)
    assert unnoticed == []


ENUMERATED = {
    "narrative_type", "moral_label", "split", "validation_status", "source_dataset", "source_rights_status",
    "transition_type", "moral_target", "question_type", "answerability", "variant_kind", "subset",
    "change_type", "original_moral", "resolution",
}  # fmt: skip
NUMBERED = {"scene_index", "from_scene", "to_scene", "target_scene", "changed_scene_id"}
NUMBERED_LISTS = ("evidence_scenes[", "target_transition[")


def last_name(path: str) -> str:
    return path.rsplit(".", 1)[-1]


@pytest.mark.parametrize("path", [path for path in LEAVES if last_name(path) in ENUMERATED])
@given(data=st.data())
@settings(max_examples=10, deadline=None, derandomize=True)
def test_check_story_when_an_enumeration_is_unknown_and_hashes_agree_finds_it(path, data):
    current = get_at(BUNDLE, path)
    value = data.draw(st.text(max_size=12).filter(lambda text: text not in WORDS))
    bundle = copy.deepcopy(replace_at(BUNDLE, path, value))
    if current is None:
        return
    rehash(bundle)
    found = {issue.code for issue in check_story(bundle["record"], bundle["variants"])}
    assert found & {"unlisted-value", "unfamiliar-value"}


@pytest.mark.parametrize(
    "path",
    [path for path in LEAVES if last_name(path) in NUMBERED or last_name(path).startswith(NUMBERED_LISTS)],
)
@given(number=st.integers(-(2**40), 2**40))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_check_story_when_a_scene_number_is_outside_the_story_and_hashes_agree_finds_it(path, number):
    bundle = copy.deepcopy(replace_at(BUNDLE, path, number if not 1 <= number <= 5 else number + 5))
    rehash(bundle)
    assert [issue for issue in check_story(bundle["record"], bundle["variants"]) if issue.level == "error"]


# The record's own id is not a reference; with it wrong, every part has a wrong reference.
REFERENCES = [path for path in LEAVES if last_name(path) in ("story_id", "base_story_id")][1:]


@pytest.mark.parametrize("path", REFERENCES)
def test_check_story_when_a_story_reference_is_wrong_and_hashes_agree_finds_it(path: str) -> None:
    bundle = copy.deepcopy(replace_at(BUNDLE, path, "kb25k_0777"))
    rehash(bundle)
    assert "story-reference" in {issue.code for issue in check_story(bundle["record"], bundle["variants"])}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@given(path=st.sampled_from(LEAVES), value=JSON)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_check_story_when_any_leaf_becomes_any_json_never_raises(path: str, value: Any) -> None:
    bundle = replace_at(BUNDLE, path, value)
    for issue in check_story(bundle["record"], bundle["variants"]):
        assert issue.cure and issue.path.startswith("$")
        assert "\n" not in issue.where + issue.path + issue.message


# -- The tables of a review, against published numbers: of Fleiss (1971), and the paper's Tables 17 and 21

# Fleiss (1971), Table 1: 10 subjects, 14 raters, 5 categories; kappa 0.210.
FLEISS = (
    (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
)  # fmt: skip
LABELS = ("courage", "honesty", "humility", "kindness", "wisdom")
TOTALS = {
    "stories": 3, "scenes": 15, "transitions": 12, "questions": 18, "variants": 6, "narrative_types": 3,
    "moral_labels": 2,
}  # fmt: skip


def vote(rater, item, criterion="moral_label", answer="correct", **more):
    said = {"rater": rater, "item": item, "criterion": criterion, "answer": answer, "kind": "review"}
    return {**dict.fromkeys(FIELDS), "labels": [], "simulated": False, **said, **more}


def label(rater, item, name):
    more = {"kind": "moral_label", "labels": [name], "condition": "text"}
    return vote(rater, item, None, None, **more)


def row(story, *, reviewers=("r1", "r2", "r3"), adjudicator=None, flags=(), moral="courage", **more):
    resolution = "unanimous" if adjudicator is None else "human_adjudicated"
    return {
        "story_id": story, "decision": "accepted", "validation_status": "pre_release_reviewed",
        "annotator_ids": list(reviewers), "adjudicator_id": adjudicator, "resolution": resolution,
        "final_moral_label": moral, "correction_flags": list(flags), **more,
    }  # fmt: skip


def fleiss_votes():
    for story, counts in enumerate(FLEISS):
        names = [name for name, count in zip(LABELS, counts, strict=True) for _ in range(count)]
        for rater, name in enumerate(names):
            yield vote(f"r{rater}", f"s{story}", answer="corrected")
            yield label(f"r{rater}", f"s{story}", name)


def test_agreement_when_the_labels_are_those_of_fleiss_is_his_kappa():
    table = agreement_table(list(fleiss_votes()), {})
    assert table["moral_target"]["kappa"] == pytest.approx(0.210, abs=5e-4)
    assert (table["moral_target"]["items"], table["moral_target"]["judgements"]) == (10, 140)
    # All chose the same word about the label that was shown: there is nothing to agree on beyond chance.
    assert table["moral_label"]["kappa"] is None
    assert table["moral_label"]["low"] is None


def test_agreement_when_there_are_many_stories_has_the_interval_of_an_independent_bootstrap():
    chance = np.random.default_rng(3)
    own, common = chance.integers(0, 3, (200, 3)), chance.integers(0, 3, (200, 1))
    codes = np.where(chance.random((200, 3)) < 0.8, common, own)
    words = UNITS["scene_sequence"].words
    votes = [
        vote(f"r{rater}", f"s{story:03}", "scene_sequence", words[code])
        for story, ratings in enumerate(codes)
        for rater, code in enumerate(ratings)
    ]
    table = agreement_table(votes, {})["scene_sequence"]
    counts = np.stack([(codes == code).sum(axis=1) for code in range(3)], axis=1).astype(float)

    def kappa(*rows):
        return fleiss_kappa(np.stack(rows, axis=1))

    ends = bootstrap(
        tuple(counts.T), kappa, paired=True, vectorized=False, n_resamples=2000, method="percentile", rng=1
    ).confidence_interval
    assert table["kappa"] == pytest.approx(fleiss_kappa(counts), abs=1e-4)
    assert (table["low"], table["high"]) == pytest.approx((ends.low, ends.high), abs=0.02)
    assert table["low"] < table["kappa"] < table["high"]


def test_agreement_when_units_have_parts_counts_each_and_draws_stories():
    # Two transitions of one story: on one all three agree, on the other two of three. P = (1 + 1/3) / 2;
    # shares valid 5/6, corrected 1/6: Pe = 26/36; kappa = (2/3 - 26/36) / (1 - 26/36) = -0.2.
    said = {("r3", "2-3"): "corrected"}
    votes = [
        vote(*unit[:1], "s1", "transition_annotation", said.get(unit, "valid"), part=unit[1])
        for unit in product(("r1", "r2", "r3"), ("1-2", "2-3"))
    ]
    table = agreement_table(votes, {})["transition_annotation"]
    assert table["kappa"] == -0.2
    assert (table["items"], table["stories"], table["judgements"], table["low"]) == (2, 1, 6, None)


@pytest.mark.parametrize(
    ("answer", "flags", "category"),
    [
        ("correct", (), "courage"),
        ("ambiguous", (), "unclear"),
        ("correct", ("corrected:moral_label",), None),
        ("correct", ("majority:moral_label",), "courage"),
        ("corrected", (), None),
    ],
)
def test_label_of_a_vote_when_no_line_gives_it_is_known_only_where_the_record_kept_its_own(
    answer, flags, category
):
    votes = [vote("r1", "s1", answer=answer), vote("r2", "s1"), label("r2", "s1", "wisdom")]
    table = agreement_table(votes, {"s1": row("s1", flags=flags)})
    if category is None:
        assert table["moral_target"]["items"] == 0  # one rating alone agrees with nobody
    else:
        assert (table["moral_target"]["items"], table["moral_target"]["judgements"]) == (1, 2)


def test_construction_when_worked_by_hand_has_rates_of_all_and_counts_of_the_release():
    # In the release 1 of 4 judgements asks for a change, elsewhere 2 of 4: together 3 of 8.
    votes = [vote("r1", story, "safety", "ok") for story in ("s1", "s2", "s3")]
    votes += [vote("r2", "s1", "safety", "unsafe")]
    table = construction_table(votes, {"safety": (4, 2)}, TOTALS)
    assert table["safety"] == {
        "items": 3, "judgements": 8, "changed": 3, "rate": 0.375,
        "elsewhere": {"judgements": 4, "changed": 2}, "final": 3,
    }  # fmt: skip
    assert set(table) == {"safety"}


def test_construction_when_the_paper_counts_narratives_gives_its_rate():
    # Table 17: 74 of 15,000 responses flagged a narrative as ineligible, 0.5 %.
    answers = ["unsafe"] * 74 + ["ok"] * (15_000 - 74)
    numbered = enumerate(answers)
    votes = [vote(f"r{number % 3}", f"s{number // 3}", "safety", answer) for number, answer in numbered]
    rate = construction_table(votes, {}, {**TOTALS, "stories": 5000})["safety"]["rate"]
    assert round(100 * rate, 1) == 0.5


def test_workload_when_the_review_is_that_of_the_paper_has_its_table_21():
    rows = [row(f"s{number:04}", adjudicator="a1" if number < 899 else None) for number in range(5000)]
    sizes = {"human_gold": 1000, "strict_gold": 400}
    gold = {name: {f"s{number:04}" for number in range(size)} for name, size in sizes.items()}
    table = workload_table(rows, gold, 5000)
    assert table["records"] == 5000
    for name, stories, judgements in (
        ("responses", 5000, 15_000), ("unanimous", 4101, 12_303), ("adjudicated", 899, 2697),
    ):  # fmt: skip
        assert (table[name]["stories"], table[name]["judgements"]) == (stories, judgements), name
    assert {name: part["judgements"] for name, part in table["subsets"].items()} == {
        "human_gold": 3000, "strict_gold": 1200,
    }  # fmt: skip
    assert table["subsets"]["human_gold"]["adjudications"] == 899


def test_summaries_when_counted_tell_decisions_people_and_kinds_of_flags():
    flags = ("corrected:scenes[0].action", "corrected:scenes[4].action", "invalid:recoverability_qa:s1_q01")
    rows = [
        row("s1", flags=flags),
        row("s2", adjudicator="simulated-9", flags=("corrected:scenes[1].action",)),
    ]
    table = validation_table(rows, {"rejected": 2})
    assert table["decisions"] == {"accepted": 2}
    assert table["not_in_release"] == {"rejected": 2}
    assert table["resolution"] == {"human_adjudicated": 1, "unanimous": 1}
    assert table["correction_flags"] == {"corrected:scenes[*].action": 2, "invalid:recoverability_qa": 1}
    assert (table["reviewers"], table["adjudicators"], table["simulated"]) == (3, 1, 1)
    assert kind_of_flag("moral_label") == "moral_label"


def test_votes_of_an_adjudicator_when_no_reviewer_of_the_story_do_not_count():
    rows = [row("s1", adjudicator="a1"), row("s2", reviewers=("a1", "r2", "r3"), adjudicator="a1")]
    votes = [vote(rater, story) for rater in ("a1", "r2") for story in ("s1", "s2")]
    kept = {(each["rater"], each["item"]) for each in before_adjudication(votes, rows)}
    assert kept == {("r2", "s1"), ("a1", "s2"), ("r2", "s2")}


def test_tables_of_votes_when_no_vote_is_at_hand_are_those_stated_and_nothing_else():
    votes = [vote(rater, "s1", "safety", answer) for rater, answer in (("r1", "ok"), ("r2", "unsafe"))]
    whole = review_tables(ReviewData([row("s1")], votes, elsewhere=Elsewhere({}, {"safety": (2, 1)})), TOTALS)
    kept = ("construction", "agreement", "confidence")
    assert stated_tables(whole, TOTALS) == {name: whole[name] for name in kept}
    assert stated_elsewhere(whole) == Elsewhere({}, {"safety": (2, 1)})
    hostile = {
        "construction": {"safety": {"items": "<b>", "rate": True, "x": 1}, "y": {}},
        "agreement": [], "confidence": "no",
    }  # fmt: skip
    nothing = dict.fromkeys(("items", "judgements", "changed", "rate"))
    safety = {**nothing, "elsewhere": {"judgements": None, "changed": None}, "final": 3}
    assert stated_tables(hostile, TOTALS) == {"construction": {"safety": safety}}
    assert stated_tables(None, TOTALS) == {}
    assert set(review_tables(ReviewData([row("s1")]), TOTALS)) == {"validation", "workload"}
