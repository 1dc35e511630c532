"""Releases name public stories that were withdrawn, with the reason, and count hidden ones."""

from collections import Counter

import pytest

from fabula.engine.report import ItemReport
from fabula.errors import InputError
from fabula.releases.katha.form import withdrawn
from fabula.releases.katha.selection import LeftOut, Selection, require_records
from fabula.releases.verify.documents import check_left_out

MEANING = "It was withdrawn; its id is not used again."


def gone(story: str) -> ItemReport:
    return ItemReport(story, "assemble_records", "rejected", "withdrawn", f"why {story}", MEANING)


@pytest.fixture
def selection() -> Selection:
    selection = Selection()
    splits = {"b": "train", "a": "validation", "secret": "hidden_test"}
    selection.add_unmade([gone("b"), gone("secret"), gone("a")], splits)
    return selection


def test_selection_when_stories_were_withdrawn_keeps_them_from_those_left_out(selection) -> None:
    assert [(entry.id, entry.reason) for entry in selection.withdrawn] == [("a", "why a"), ("b", "why b")]
    assert [entry.id for entry in selection.withdrawn_hidden] == ["secret"]
    assert (selection.left_out, selection.left_out_hidden) == ([], [])


def test_release_json_when_stories_were_withdrawn_only_counts_hidden_ones(selection) -> None:
    stories = [{"id": "a", "reason": "why a"}, {"id": "b", "reason": "why b"}]
    assert withdrawn(selection.withdrawn, 1) == {"withdrawn": {"stories": stories, "hidden_test_stories": 1}}
    assert withdrawn([], 0) == {}


def test_require_records_when_all_were_withdrawn_says_so(selection) -> None:
    with pytest.raises(InputError, match="3 withdrawn"):
        require_records(selection, "runs/mine")
    assert Counter(entry.why for entry in selection.withdrawn) == {"withdrawn": 2}


def test_check_when_a_story_is_packed_and_withdrawn_finds_it() -> None:
    document = {"records": {"annotations.jsonl": {"a": "0" * 64}}, **withdrawn([LeftOut("a", "", "x")])}
    (issue,) = check_left_out(document, "stories")
    assert (issue.path, issue.message) == ("$.withdrawn", "a is named as withdrawn, and is in the release")
