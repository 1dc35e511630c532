"""A review is of what was read: what changed since is a draft again, and unbound votes do not count."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError
from fabula.kinds.verbs import pack, verify
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import rehash, write_jsonl, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import agreed_by, summary_of, votes_on, write_review
from fabula.validators.katha.votes import CONTENT, SEEN, binding_of, changed_paths, seen_content, seen_sha256
from fabula.validators.review_marks import STANDS_FOR

BUNDLES = sample_bundles(3)
FIRST = "kb25k_0001"
Change = Callable[[dict[str, Any]], object]


def review(folder: Path, bundles: list[dict[str, Any]], *, bound: bool = True) -> Path:
    """Write what three people exported who accepted all of these bundles."""
    rows = [summary_of(bundle) for bundle in bundles]
    votes = [vote for bundle in bundles for vote in votes_on(bundle)]
    if not bound:
        rows = [{key: row[key] for key in row if key not in (SEEN, CONTENT)} for row in rows]
        votes = [{key: vote[key] for key in vote if key != SEEN} for vote in votes]
    contents = {one["record"]["story_id"]: seen_content(one["record"], one["variants"]) for one in bundles}
    stood = [{"story_id": name, "content": content} for name, content in contents.items()]
    folder = write_review(folder, rows, votes, agreed_by())
    write_jsonl(folder / STANDS_FOR, stood)
    return folder


def changed(change: Change) -> list[dict[str, Any]]:
    """Return the bundles with the first of them changed."""
    bundles = copy.deepcopy(BUNDLES)
    change(bundles[0])
    rehash(bundles[0])
    return bundles


def packed(tmp_path: Path, bundles: list[dict[str, Any]], folder: Path, **options: Any) -> Path:
    run = write_run(tmp_path / "run", bundles)
    given = PackOptions("0.1.0", reviews=folder, allow_drafts=True, **options)
    return pack(run, tmp_path / "out", given).folder


def record_of(release: Path, story: str = FIRST) -> dict[str, Any]:
    lines = map(json.loads, (release / "annotations.jsonl").read_bytes().splitlines())
    return next(line for line in lines if line["story_id"] == story)


def told(release: Path) -> dict[str, Any]:
    return dict(json.loads((release / "release.json").read_bytes())["review_bindings"])


def set_in(part: str, number: int, name: str, value: object) -> Change:
    def change(bundle: dict[str, Any]) -> None:
        holder = bundle if part == "variants" else bundle["record"]
        holder[part][number][name] = value

    return change


def reorder(bundle: dict[str, Any]) -> None:
    question = bundle["record"]["questions"][0]
    question["accepted_answers"] = [*question["accepted_answers"], "another way to say it"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (reorder, "$.questions[0].accepted_answers"),
        (set_in("scenes", 0, "action", "Something else is done."), "$.scenes[0].action"),
        (set_in("variants", 1, "semantic_delta", "They do not share."), "$.variants[1].semantic_delta"),
        (set_in("transitions", 2, "causality", "For no reason."), "$.transitions[2].causality"),
        (lambda bundle: bundle["record"].update(title="Another title"), "$.title"),
    ],
)
def test_a_record_when_it_changed_since_people_read_it_is_a_draft_again_and_named(
    tmp_path: Path, change: Change, path: str
) -> None:
    release = packed(tmp_path, changed(change), review(tmp_path / "review", BUNDLES))
    assert record_of(release)["validation_status"] == "review_needed"
    assert record_of(release)["evidence_status"] == {
        "human_evidence_accepted": False, "resolution": "not_reviewed"
    }  # fmt: skip
    assert told(release) == {
        "bound": 2, "unbound": 0, "unbound_accepted": False, "changed": [{"id": FIRST, "paths": [path]}],
    }  # fmt: skip
    card = (release / "dataset_card.md").read_text("utf-8")
    assert f"Changed since people read it, and unread as it stands: `{FIRST}` (`{path}`)." in card
    assert "People reviewed 2 of the 3 records" in card
    assert [issue.code for issue in verify(release, readers=False).issues if issue.level == "error"] == []


def test_a_record_when_only_what_nobody_is_shown_changed_stays_reviewed(tmp_path: Path) -> None:
    def change(bundle: dict[str, Any]) -> None:
        bundle["record"]["scenes"][0]["generation_prompt"] = "A picture in oils."
        bundle["record"]["provenance"]["source_reference"] = "elsewhere"

    release = packed(tmp_path, changed(change), review(tmp_path / "review", BUNDLES))
    assert record_of(release)["validation_status"] == "pre_release_reviewed"
    assert (told(release)["bound"], told(release)["changed"]) == (3, [])


def test_reviews_when_a_record_changed_need_leave_to_pack_a_draft(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", changed(reorder))
    folder = review(tmp_path / "review", BUNDLES)
    with pytest.raises(ConfigError, match=rf"1 changed since people read it: {FIRST}"):
        pack(run, tmp_path / "out", PackOptions("0.1.0", reviews=folder))


@pytest.mark.parametrize("accepted", [False, True])
def test_reviews_when_unbound_count_only_where_that_is_asked_for(tmp_path: Path, accepted: bool) -> None:
    folder = review(tmp_path / "review", BUNDLES, bound=False)
    release = packed(tmp_path, BUNDLES, folder, accept_unbound=accepted)
    status = "pre_release_reviewed" if accepted else "auto_checked"
    assert record_of(release)["validation_status"] == status
    assert told(release) == {"bound": 0, "unbound": 3, "unbound_accepted": accepted, "changed": []}
    assert "3 reviews do not name what was read" in (release / "dataset_card.md").read_text("utf-8")
    issues = verify(release, readers=False).issues
    assert [(issue.code, issue.level) for issue in issues] == [("review-unbound", "warning")] * accepted


def test_a_review_when_one_vote_of_it_is_unbound_is_unbound(tmp_path: Path) -> None:
    folder = review(tmp_path / "review", BUNDLES)
    votes = [json.loads(line) for line in (folder / "votes.jsonl").read_bytes().splitlines()]
    votes[0].pop(SEEN)
    write_jsonl(folder / "votes.jsonl", votes)
    release = packed(tmp_path, BUNDLES, folder)
    assert (told(release)["bound"], told(release)["unbound"]) == (2, 1)


def test_a_review_when_its_votes_are_of_another_story_does_not_hold(tmp_path: Path) -> None:
    folder = review(tmp_path / "review", BUNDLES)
    votes = [json.loads(line) for line in (folder / "votes.jsonl").read_bytes().splitlines()]
    votes[0][SEEN] = summary_of(BUNDLES[1])[SEEN]
    write_jsonl(folder / "votes.jsonl", votes)
    assert told(packed(tmp_path, BUNDLES, folder))["changed"] == [{"id": FIRST, "paths": []}]


@pytest.mark.parametrize("file", ["annotations.jsonl", "votes.jsonl"])
def test_a_release_when_record_or_vote_was_changed_and_sealed_again_is_found(
    tmp_path: Path, helpers: Any, file: str
) -> None:
    release = packed(tmp_path, BUNDLES, review(tmp_path / "review", BUNDLES))

    def change(row: dict[str, Any]) -> None:
        if file == "votes.jsonl":
            row[SEEN] = "0" * 64
        else:
            row["scenes"][0]["action"] = "Something else is done."

    helpers.edit_line(release / file, 0, change)
    helpers.reseal(release)
    found = [issue for issue in verify(release, quick=True).issues if issue.code == "review-stale"]
    assert [issue.path for issue in found] == [f"$.{CONTENT}"]
    assert FIRST in found[0].message


def test_a_summary_when_it_stands_for_what_nobody_corrected_is_found(tmp_path: Path, helpers: Any) -> None:
    release = packed(tmp_path, BUNDLES, review(tmp_path / "review", BUNDLES))
    helpers.edit_line(release / "human_validation.jsonl", 0, lambda row: row.update(seen_sha256="1" * 64))
    for number in range(17 * 3):
        helpers.edit_line(release / "votes.jsonl", number, lambda row: row.update(seen_sha256="1" * 64))
    helpers.reseal(release)
    assert "review-stale" in {issue.code for issue in verify(release, quick=True).issues}


def test_binding_when_worked_by_hand_follows_from_the_hashes() -> None:
    row, vote = {SEEN: "a", CONTENT: "b", "correction_flags": ["corrected:title"]}, {SEEN: "a"}
    assert binding_of(row, [vote], "b") == "bound"  # corrected from a to b, and b stands there
    assert binding_of(row, [vote], "a") == "changed"  # the correction was not applied
    assert binding_of(row, [{SEEN: "c"}], "b") == "changed"
    assert binding_of(row, [vote, {SEEN: None}], "b") == "unbound"
    assert binding_of({**row, "correction_flags": []}, [vote], "b") == "changed"  # nobody decided that
    assert binding_of({}, [], "b") == "unbound"
    assert binding_of({CONTENT: "b"}, [], "c") == "changed"


def test_content_when_variants_are_in_another_order_is_the_same_and_of_another_story_is_not() -> None:
    record, variants = BUNDLES[0]["record"], BUNDLES[0]["variants"]
    content = seen_content(record, variants)
    assert content == seen_content(record, variants[::-1])
    assert seen_sha256("kb25k_0001", content) != seen_sha256("kb25k_0002", content)
    assert list(changed_paths({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]})) == ["$.a[1].b"]
    assert list(changed_paths({"a": [1]}, {"a": [1, 2]})) == ["$.a"]
