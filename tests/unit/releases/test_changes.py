"""Differences between JSON documents, by path."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.releases.diff.changes import Change, changes_between
from fabula.schemas.canonical import canonical_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 2.5]) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def told(old: Any, new: Any) -> list[tuple[str, str]]:
    return [(one.path, one.kind) for one in changes_between(old, new)]


@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES)
def test_changes_when_two_documents_differ_in_bytes_are_never_empty(old: Any, new: Any) -> None:
    assert bool(changes_between(old, new)) == (canonical_text(old) != canonical_text(new))


def test_changes_when_a_question_is_put_in_between_leave_the_others_alone() -> None:
    old = {"questions": [{"question_id": "a", "q": 1}, {"question_id": "b", "q": 2}]}
    new = {
        "questions": [
            {"question_id": "a", "q": 1},
            {"question_id": "c", "q": 3},
            {"question_id": "b", "q": 2},
        ]
    }
    assert told(old, new) == [("$.questions[1]", "added")]
    assert told(new, old) == [("$.questions[1]", "removed")]


def test_changes_when_parts_change_places_say_so_once() -> None:
    old = {"questions": [{"question_id": name, "q": 1} for name in "abc"]}
    new = {"questions": [{"question_id": name, "q": 1} for name in "bca"]}
    assert told(old, new) == [("$.questions", "reordered")]


def test_changes_when_two_parts_share_an_id_compare_place_by_place() -> None:
    old = {"questions": [{"question_id": "a", "q": 1}, {"question_id": "a", "q": 2}]}
    new = {"questions": [{"question_id": "a", "q": 1}, {"question_id": "a", "q": 3}]}
    assert told(old, new) == [("$.questions[1].q", "changed")]


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"a": 1}, {"a": True}, [Change("$.a", "changed", 1, True)]),
        ({"a": 1}, {"a": 1.0}, [Change("$.a", "changed", 1, 1.0)]),
        ({"a": [1, {"b": 1}]}, {"a": [1, {"b": 1.0}]}, [Change("$.a[1].b", "changed", 1, 1.0)]),
        ({}, {"a": None}, [Change("$.a", "added", None, None)]),
        ({"a": None}, {}, [Change("$.a", "removed", None, None)]),
        ({"odd key": 1}, {"odd key": 2}, [Change('$["odd key"]', "changed", 1, 2)]),
        ({"a": ["x", "z"]}, {"a": ["x", "y", "z"]}, [Change("$.a[1]", "added", None, "y")]),
        ({"a": ["x", "y", "z"]}, {"a": ["x", "z"]}, [Change("$.a[1]", "removed", "y", None)]),
        ({"a": []}, {"a": {}}, [Change("$.a", "changed", [], {})]),
        ([1, 2], [1, 3], [Change("$[1]", "changed", 2, 3)]),
    ],
)
def test_changes_when_values_differ_have_path_and_both_values(old: Any, new: Any, changes: Any) -> None:
    found = changes_between(old, new)
    assert [(one.path, one.kind, repr(one.old), repr(one.new)) for one in found] == [
        (one.path, one.kind, repr(one.old), repr(one.new)) for one in changes
    ]


def test_change_when_written_keeps_absent_apart_from_null() -> None:
    assert Change("$.a", "added", None, None).as_json() == {"path": "$.a", "kind": "added", "new": None}
    assert Change("$.a", "removed", 1, None).as_json() == {"path": "$.a", "kind": "removed", "old": 1}
