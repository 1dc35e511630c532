"""Every leaf of a valid story is corrupted in every way that fits its kind; some rule must notice each."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.schemas.paths import format_path, get_at, replace_at
from fabula.schemas.vocabulary import NAMES, vocabulary
from fabula.testing.katha_folders import rehash, write_records, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.validation import validate
from fabula.validators.record_rules import check_story

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
def test_check_story_when_an_enumeration_is_unknown_and_hashes_agree_finds_it(
    path: str, data: st.DataObject
) -> None:
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
def test_check_story_when_a_scene_number_is_outside_the_story_and_hashes_agree_finds_it(
    path: str, number: int
) -> None:
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
        assert (
            issue.cure and issue.path.startswith("$") and "\n" not in issue.where + issue.path + issue.message
        )
