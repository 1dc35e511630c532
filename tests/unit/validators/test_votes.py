"""Lines of votes: what is refused, and that a release's votes are about what it holds."""

import json

import pytest

from fabula.schemas.canonical import pretty_bytes
from fabula.schemas.judgement import HumanRow
from fabula.testing.katha_folders import write_jsonl, write_release
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import REVIEWERS, votes_on
from fabula.validators.katha.validation import validate
from fabula.validators.katha.votes import FIELDS, UNITS, parts_of, read_vote, stray
from fabula.validators.view import Part

BUNDLE = sample_bundles(1)[0]
VOTE = {
    "kind": "review", "rater": "r1", "item": "kb25k_0001", "criterion": "moral_label", "answer": "correct",
    "at": "2025-06-01T00:00:00Z", "protocol": "5" * 64, "seconds": 3, "confidence": "high",
}  # fmt: skip


def problems_of(**changes):
    problems = []
    vote = read_vote(Part("votes.jsonl:1", {**VOTE, **changes}), problems)
    assert (vote is None) == bool(problems)
    return [(found.path, found.message) for found in problems]


def test_a_vote_when_sound_has_all_columns_and_is_a_line_of_what_people_said():
    vote = read_vote(Part("votes.jsonl:1", VOTE), [])
    assert tuple(vote) == FIELDS
    assert vote["labels"] == [] and vote["part"] is None
    assert HumanRow.model_validate(vote).answer == "correct"


def test_votes_of_a_whole_bundle_when_read_are_all_sound():
    problems = []
    votes = [read_vote(Part("v:1", vote), problems) for vote in votes_on(BUNDLE)]
    assert problems == []
    parts = {"kb25k_0001": parts_of(BUNDLE["record"], BUNDLE["variants"])}
    assert [stray(vote, parts) for vote in votes] == [None] * len(votes)
    # 7 units, of which transitions, questions and variants are asked 4, 6 and 2 times, and confidence.
    assert len(votes) == len(REVIEWERS) * (4 + 4 + 6 + 2 + 1)


@pytest.mark.parametrize(
    ("changes", "path", "text"),
    [
        ({"answer": "valid"}, "$.answer", "one of correct, corrected, ambiguous, found 'valid'"),
        ({"criterion": "plot"}, "$.criterion", "expected one of safety, "),
        ({"part": "1-2"}, "$.part", "nothing: the whole is decided"),
        ({"criterion": "recoverability_qa", "answer": "valid"}, "$.part", "one of its questions"),
        ({"criterion": "confidence", "answer": None, "value": 6}, "$", "a review goes from 1 to 5"),
        ({"criterion": "confidence"}, "$.value", "a whole number from 1 to 5"),
        ({"labels": ["courage"]}, "$.labels", "none on a line of kind review"),
        ({"kind": "moral_label", "condition": "text", "labels": ["greed"]}, "$.labels", "moral labels"),
        ({"kind": "rating", "method": "m", "value": 3}, "$.kind", "expected review or moral_label"),
        ({"method": "m"}, "$.method", "nothing, as reviewers see the record"),
        ({"rater": "a\nb"}, "$.rater", "an id in one line"),
        ({"rater": "simulated-1"}, "$.simulated", "true exactly where the rater begins with simulated-"),
        ({"simulated": True}, "$.simulated", "true exactly where the rater begins with simulated-"),
        ({"at": "yesterday, at Ana's desk"}, "$.at", "a time such as"),
        ({"protocol": "v1"}, "$.protocol", "a SHA-256"),
        ({"rater": None}, "$.rater", "expected string"),
        ({"note": "I know the author"}, "$.note", "not in the schema"),
        ({"seconds": -1}, "$.seconds", ""),
    ],
)
def test_a_line_when_it_is_no_sound_vote_is_refused_with_its_column(changes, path, text):
    found = problems_of(**changes)
    assert any(where == path and text in message for where, message in found), found


def test_words_of_units_when_compared_are_those_of_table_18():
    assert {name: unit.words for name, unit in UNITS.items() if name != "safety"} == {
        "narrative_category": ("correct", "incorrect", "ambiguous"),
        "moral_label": ("correct", "corrected", "ambiguous"),
        "scene_sequence": ("valid", "flawed", "unusable"),
        "transition_annotation": ("valid", "corrected", "ambiguous"),
        "recoverability_qa": ("valid", "needs_edit", "invalid"),
        "contrastive_variant": ("valid", "invalid", "ambiguous"),
    }


def test_votes_of_a_release_when_about_nothing_in_it_or_said_twice_are_found(tmp_path):
    release = write_release(tmp_path / "release", sample_bundles(2))
    good = VOTE | {"criterion": "transition_annotation", "answer": "valid", "part": "1-2"}
    rows = [good, good, {**good, "part": "1-3"}, {**good, "item": "kb25k_0009"}, {**good, "part": "2-3"}]
    write_jsonl(release / "votes.jsonl", rows)
    found = {(issue.where, issue.path) for issue in validate(release).issues if issue.code == "vote"}
    assert found == {
        ("votes.jsonl:2", "$"), ("votes.jsonl:3", "$.part"), ("votes.jsonl:4", "$.item"),
    }  # fmt: skip


@pytest.mark.parametrize("marked", [True, False, 1, None])
def test_a_release_when_programs_voted_needs_the_mark(tmp_path, marked):
    release = write_release(tmp_path / "release", sample_bundles(2))
    write_jsonl(release / "votes.jsonl", votes_on(BUNDLE, ["simulated-1"]))
    document = json.loads((release / "release.json").read_bytes())
    if marked is not None:
        (release / "release.json").write_bytes(pretty_bytes({**document, "simulated_reviews": marked}))
    codes = [issue.code for issue in validate(release).issues]
    assert ("simulated-unmarked" in codes) == (marked is not True)
    assert "vote" not in codes
