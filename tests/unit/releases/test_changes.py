"""Differences between JSON documents, by path."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.kinds.verbs import diff, pack
from fabula.releases.diff.changes import Change, changes_between
from fabula.releases.diff.compare import ReleaseDiff
from fabula.releases.diff.render import render_page
from fabula.releases.options import PackOptions
from fabula.schemas.canonical import canonical_text
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 2.5]) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def told(old: Any, new: Any) -> list[tuple[str, str]]:
    return [(one.path, one.kind) for one in changes_between(old, new)]


@pytest.mark.slow
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


# The page of a diff: whole, escaped, and loading nothing.

HOSTILE = '</td></table><script>alert("x")</script>\u202e<img src=x onerror=y>'


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ReleaseDiff:
    folder = tmp_path_factory.mktemp("diff")
    bundles = copy.deepcopy(sample_bundles(7))
    bundles[0]["record"]["scenes"][1]["action"] = HOSTILE
    for bundle in bundles:
        rehash(bundle)
    folders = []
    for version, stories in (("0.1.0", sample_bundles(6)), ("0.1.1", bundles)):
        run = write_run(folder / f"run-{version}", stories)
        folders.append(
            pack(run, folder / version, PackOptions(version, title=HOSTILE[:20], allow_drafts=True)).folder
        )
    return diff(*folders)


def test_page_when_rendered_shows_changes_step_and_problem_and_escapes_every_value(
    found: ReleaseDiff,
) -> None:
    page = render_page(found, [["kind", "valid"], ["question", "<3>"]]).replace("<wbr>", "")
    assert "$.scenes[1].action" in page and "kb25k_0007" in page
    assert "Step due: <strong>major</strong>; next version: 0.2.0" in page
    assert "the new release says version 0.1.1" in page
    assert "<script" not in page and "<img" not in page and "\u202e" not in page
    assert "&lt;script&gt;alert" in page and "&lt;3&gt;" in page
