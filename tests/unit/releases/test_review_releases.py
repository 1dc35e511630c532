"""A review that is packed: its votes, its tables, its statuses, and the mark where programs made it."""

import copy
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import count, diff, load, pack, verify
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import PackResult
from fabula.schemas.judgement import HumanRow
from fabula.testing.katha_folders import read_rows, rehash, write_jsonl, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import agreed_by, summary_of, votes_on, write_review
from fabula.tests.unit.releases.conftest import lines_of
from fabula.validators.katha.review_tables import (
    CONTENT,
    SEEN,
    binding_of,
    changed_paths,
    seen_content,
    seen_sha256,
)
from fabula.validators.report import STANDS_FOR

BUNDLES = sample_bundles(12)
HIDDEN = {bundle["record"]["story_id"] for bundle in BUNDLES if bundle["record"]["split"] == "hidden_test"}
REJECTED = "kb25k_0002"
MANY = {"kb25k_0001": "ambiguous", REJECTED: "corrected"}


def choose(rater, story, criterion, part):
    """Disagree a little: r3 about the label of two stories, and everybody about a rejected one's scenes."""
    if (criterion, story) == ("scene_sequence", REJECTED):
        return "unusable"
    return MANY.get(story) if (criterion, rater) == ("moral_label", "r3") else None


ROWS = [summary_of(bundle) for bundle in BUNDLES]
ROWS[1] |= {"decision": "rejected"}
VOTES = [vote for bundle in BUNDLES for vote in votes_on(bundle, choose=choose)]
TABLES = ("validation", "construction", "workload", "agreement", "confidence")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of twelve stories, one of them hidden, one of them rejected by its reviewers."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", BUNDLES)


@pytest.fixture
def packs(run, tmp_path):
    """Pack that run with a review of these summaries, votes and consent."""

    def packs_(votes=VOTES, consent=None, rows=ROWS, name="out", **options):
        folder = write_review(tmp_path / f"{name}-review", rows, votes, consent)
        return pack(run, tmp_path / name, PackOptions("0.1.0", reviews=folder, **options, allow_drafts=True))

    return packs_


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    """A release with gold subsets and the votes of people who agreed to it; not to be changed."""
    folder = tmp_path_factory.mktemp("published")
    review = write_review(folder / "review", ROWS, VOTES, agreed_by())
    options = PackOptions("0.1.0", reviews=review, gold=True, allow_drafts=True)
    return pack(run, folder / "out", options)


@pytest.fixture(scope="module")
def published(whole):
    return whole.folder


@pytest.fixture
def damaged(published, tmp_path, helpers):
    """Change copies of that release and its hidden folder, and make every checksum true again."""
    for part in ("out", "out-hidden"):
        shutil.copytree(published.with_name(part), tmp_path / part)

    def change(edit):
        edit(tmp_path / "out")
        helpers.reseal(tmp_path / "out")
        return tmp_path / "out"

    return change


def load_votes(folder: Path) -> list[HumanRow]:
    return [HumanRow.model_validate(line) for line in lines_of(folder / "votes.jsonl")]


def document(folder: Path, name: str = "release.json") -> dict:
    return json.loads((folder / name).read_bytes())


def review_of(folder: Path) -> dict:
    return document(folder, "statistics.json")["review"]


def found(folder: Path, **how) -> Counter:
    return Counter(issue.code for issue in verify(folder, **how).issues)


@pytest.fixture(scope="module")
def said(in_lines):
    """What a release says of its review, in all places where it does."""

    def of(result: PackResult) -> str:
        folder, hidden = result.folder, result.folder.with_name(f"{result.folder.name}-hidden")
        release, card = document(folder), (folder / "README.md").read_text("utf-8")
        records = lines_of(folder / "annotations.jsonl")
        at = [*folder.rglob("*votes*"), *hidden.rglob("*votes*")]
        return in_lines({
            "notes": [{"note": note.replace(str(folder.parent), "")} for note in result.notes],
            "reviews": release.get("reviews"), "bindings": release["review_bindings"],
            "simulated": [each.get("simulated_reviews") for each in (release, document(hidden))
                          ] if hidden.is_dir() else release.get("simulated_reviews"),
            "votes": sorted(path.relative_to(folder.parent).as_posix() for path in at),
            "statuses": Counter(record["validation_status"] for record in records),
            "first": {name: records[0][name] for name in ("validation_status", "evidence_status")},
            "tables": sorted(review_of(folder)), "marked": review_of(folder).get("simulated"),
            "top": "\n".join(card.split("\n# ")[1].splitlines()[2:5]),
            "card": [{"line": line} for line in re.findall(".*(?:[Pp]eople re[av]|not name).*", card)],
            "description": document(folder, "croissant_metadata.json")["description"],
            "issues": [str(issue) for issue in verify(folder, readers=False).issues],
        })  # fmt: skip

    return of


@pytest.mark.slow
def test_votes_when_published_are_a_file_and_a_table_of_public_stories_and_the_release_is_sound(published):
    votes = load_votes(published)
    public = {record.story_id for record in load(published).records}
    assert {vote.item for vote in votes} == public
    assert len(votes) == len(public) * 3 * 17
    rows = [row for path in sorted((published / "data/votes").iterdir()) for row in read_rows(path)]
    key = ("item", "criterion", "part", "rater", "answer", "value", "seconds", "simulated")
    assert Counter(tuple(row[name] for name in key) for row in rows) == Counter(
        tuple(getattr(vote, name) for name in key) for vote in votes
    )
    assert "- config_name: votes" in (published / "README.md").read_text("utf-8")
    assert document(published)["reviews"] == {"status": "d7", "votes": "published"}
    assert verify(published).issues == ()


def test_votes_on_hidden_stories_when_published_are_in_the_hidden_folder_alone(published):
    hidden = published.with_name("out-hidden")
    assert {vote.item for vote in load_votes(hidden)} == HIDDEN
    assert not any(name in (published / "votes.jsonl").read_text("utf-8") for name in HIDDEN)
    assert verify(hidden).issues == ()


def test_tables_when_packed_count_the_release_and_what_was_rejected_apart(published):
    review = review_of(published)
    assert set(TABLES) <= set(review)
    # 10 public stories were accepted and one rejected: 30 and 3 judgements of scenes, 3 of them unusable.
    scenes = review["construction"]["scene_sequence"]
    assert (scenes["judgements"], scenes["changed"], scenes["items"], scenes["final"]) == (33, 3, 10, 50)
    assert scenes["elsewhere"] == {"judgements": 3, "changed": 3}
    assert review["validation"]["not_in_release"] == {"rejected": 1}
    assert review["validation"]["decisions"] == {"accepted": 10}
    # Of 30 votes one says ambiguous: P = (9 + 1/3) / 10, and the shares of the two words are 29/30 and 1/30.
    observed, chance = (9 + 1 / 3) / 10, (29 / 30) ** 2 + (1 / 30) ** 2
    assert review["agreement"]["moral_label"]["kappa"] == round((observed - chance) / (1 - chance), 4)
    assert review["confidence"] == {"judgements": 30, "sum": 120, "mean": 4.0}
    gold = document(published, "subsets.json")["subsets"]
    assert [(subset["name"], subset["stories"]) for subset in gold] == [("human_gold", 2), ("strict_gold", 1)]
    assert review["workload"]["subsets"]["human_gold"]["judgements"] == 6


def test_tables_when_counted_again_or_shown_are_those_of_the_release(published):
    again = count(published)["review"]
    assert {name: again[name] for name in TABLES} == {name: review_of(published)[name] for name in TABLES}
    card = (published / "dataset_card.md").read_text("utf-8")
    for title in ("(Table 16)", "(Table 17)", "(Table 21)", "(Table 22)"):
        assert title in card
    assert "Programs took part" not in card


BY_PROGRAMS = {
    "reviewer": {"annotator_ids": ["r1", "r2", "simulated-3"]},
    "adjudicator": {"adjudicator_id": "simulated-9", "resolution": "human_adjudicated"},
}
PACKS: dict[str, dict[str, Any]] = {
    "no consent": {"consent": None}, "consent not to publish": {"consent": agreed_by(publish=False)},
    "two of three agreed": {"consent": agreed_by(2, 3)}, "consent of two": {"consent": agreed_by(2, 2)},
    **{f"no votes, words of {words}": {"votes": None, "review_status": words} for words in ("d7", "a7")},
    **{f"a program was {who}": {"votes": None, "consent": None, "rows": [{**ROWS[0], **change}, *ROWS[1:]]}
       for who, change in BY_PROGRAMS.items()},
    "a program voted": {"votes": [*VOTES, *votes_on(BUNDLES[0], ["simulated-1"])]},
}  # fmt: skip


@pytest.mark.slow
def test_a_release_when_reviewed_says_so_everywhere(whole, said, snapshot):
    assert said(whole) == snapshot


@pytest.mark.slow
@pytest.mark.parametrize("case", PACKS)
def test_a_release_when_reviewed_otherwise_says_that_instead(whole, packs, said, difference, snapshot, case):
    result = packs(**{"consent": agreed_by(), "gold": True, **PACKS[case]})
    assert difference(said(whole), said(result)) == snapshot


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"publish_votes": 1, "consented": 3, "reviewers": 3}', b"{}"]
)
def test_consent_when_it_cannot_be_read_is_refused(run, tmp_path, content):
    folder = write_review(tmp_path / "review", ROWS, VOTES, agreed_by())
    (folder / "consent.json").write_bytes(content)
    with pytest.raises(InputError, match=r"consent\.json: this does not say what the reviewers agreed to"):
        pack(run, tmp_path / "out", PackOptions("0.1.0", reviews=folder, allow_drafts=True))


def test_a_vote_when_unsound_or_about_nothing_of_the_run_is_refused(packs, tmp_path, refusals, snapshot):
    assert VOTES[0]["criterion"] == "safety"
    part = {"criterion": "recoverability_qa", "answer": "valid", "part": "q"}
    assert refusals(
        lambda change: packs(votes=[{**VOTES[0], **change}, *VOTES[1:]], consent=agreed_by()),
        [{"item": "kb25k_9999"}, part, {"answer": "sure"}, {"rater": "r2"}, {"simulated": True}],
    ) == snapshot  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_votes_when_controls_or_checks_are_among_them_are_taken_without(packs):
    check = {"kind": "attention", "rater": "r1", "item": "i1", "value": 1}
    result = packs(votes=[*VOTES, check, {**VOTES[0], "repeat": 1}], consent=agreed_by())
    assert len(load_votes(result.folder)) == 10 * 3 * 17


def test_statuses_when_other_words_are_asked_for_are_refused():
    with pytest.raises(ConfigError, match="--review-status: expected d7 or a7, found 'gold'"):
        PackOptions("0.1.0", review_status="gold").checked()


def test_a_status_when_it_is_not_that_of_its_tier_is_found(damaged, helpers):
    def lower(folder):
        gold = lines_of(folder / "subsets/human_gold.jsonl")[0]["story_id"]
        for name in ("annotations.jsonl", "human_validation.jsonl"):
            place = [row["story_id"] for row in lines_of(folder / name)].index(gold)
            helpers.edit_line(
                folder / name, place, lambda row: row.update(validation_status="pre_release_reviewed")
            )

    codes = found(damaged(lower), readers=False)
    assert codes["review-status"] == 1
    assert codes["statistics"] > 0


@pytest.mark.slow
def test_the_mark_of_programs_when_taken_away_is_missed(packs, helpers):
    rows = [{**row, "annotator_ids": ["simulated-1", "r2", "r3"]} for row in ROWS]
    folder = packs(rows=rows, votes=None).folder
    helpers.edit_json(folder / "release.json", lambda it: it.pop("simulated_reviews"))
    helpers.reseal(folder)
    assert found(folder, quick=True) == {"simulated-unmarked": 1, "statistics": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda lines: lines[:-1], "table"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "document"),
        (lambda lines: [{**lines[0], "answer": "corrected"}, *lines[1:]], "vote"),
        (lambda lines: [{**lines[0], "item": min(HIDDEN)}, *lines[1:]], "hidden-leak"),
        (lambda lines: [{**lines[0], "seconds": 9.0}, *lines[1:]], "table"),
    ],
)
def test_votes_when_changed_and_sealed_again_are_found(damaged, change, code):
    folder = damaged(lambda at: write_jsonl(at / "votes.jsonl", change(lines_of(at / "votes.jsonl"))))
    assert found(folder, readers=False)[code] > 0


@pytest.mark.slow
def test_tables_when_the_votes_stayed_out_are_checked_as_far_as_they_can_be(packs, helpers):
    folder = packs(consent=agreed_by(publish=False)).folder

    def change(statistics):
        statistics["review"]["workload"]["responses"]["judgements"] += 1
        statistics["review"]["construction"]["safety"]["final"] += 1
        statistics["review"]["agreement"]["moral_label"]["note"] = "<script>"

    helpers.edit_json(folder / "statistics.json", change)
    helpers.reseal(folder)
    issues = [issue for issue in verify(folder, readers=False).issues if issue.code == "statistics"]
    assert {issue.path for issue in issues} == {
        "$.review.workload.responses.judgements", "$.review.construction.safety.final",
        "$.review.agreement.moral_label.note",
    }  # fmt: skip


@pytest.mark.parametrize("part", [{"status": "x", "votes": "kept"}, {"status": []}, {}, [], None, 5])
def test_what_a_release_says_of_its_reviews_when_damaged_is_found(damaged, helpers, part):
    folder = damaged(lambda at: helpers.edit_json(at / "release.json", lambda it: it.update(reviews=part)))
    issues = verify(folder, readers=False).issues
    assert issues and not any("NoneType" in issue.message for issue in issues)


def test_a_record_without_a_label_when_reviewed_is_packed_as_the_draft_that_it_is(tmp_path):
    bundles = sample_bundles(3)
    record = bundles[0]["record"]
    record["moral_label"] = None
    record["transitions"] = [{**part, "moral_target": None} for part in record["transitions"]]
    record["questions"] = [part for part in record["questions"] if part["question_type"] != "moral"]
    bundles[0]["variants"] = [{**variant, "original_moral": None} for variant in bundles[0]["variants"]]
    rehash(bundles[0])
    rows = [summary_of(each, final_moral_label=each["record"]["moral_label"] or "") for each in bundles]
    review = write_review(tmp_path / "review", rows)
    options = PackOptions("0.1.0", reviews=review, allow_drafts=True)
    folder = pack(write_run(tmp_path / "run", bundles), tmp_path / "out", options).folder
    assert load(folder).by_id[record["story_id"]].validation_status == "pre_release_reviewed"
    assert {issue.code for issue in verify(folder, quick=True).issues} <= {"incomplete", "moral-balance"}
    wrong = write_review(tmp_path / "wrong", [{**rows[1], "final_moral_label": ""}])
    with pytest.raises(InputError, match="final_moral_label ''"):
        pack(tmp_path / "run", tmp_path / "other", PackOptions("0.1.0", reviews=wrong, allow_drafts=True))


@pytest.mark.slow
def test_releases_when_one_has_votes_are_compared_without_counting_them_as_records(published, run, tmp_path):
    before = pack(run, tmp_path / "before", PackOptions("0.0.9", allow_drafts=True)).folder
    changes = diff(before, published)
    assert str(changes.step) == "major"  # a story was rejected
    documents = {row.path: row.kind for row in changes.sections["documents"]}
    assert documents["votes.jsonl"] == "added"
    assert "votes" not in " ".join(why for _, why in changes.reasons)


def test_a_pack_when_repeated_has_the_same_bytes_whatever_the_order_of_the_lines(published, run, tmp_path):
    review = write_review(tmp_path / "review", ROWS[::-1], VOTES[::-1], agreed_by())
    options = PackOptions("0.1.0", reviews=review, gold=True, allow_drafts=True)
    again = pack(run, tmp_path / "out", options).folder
    salted = ("SHA256SUMS", "release.json")  # commitments have another salt
    for path in sorted(path for path in published.rglob("*") if path.is_file() and path.name not in salted):
        assert (again / path.relative_to(published)).read_bytes() == path.read_bytes(), path.name


# -- A review is of what was read: what changed since is a draft again, and unbound votes do not count

THREE = sample_bundles(3)
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
    bundles = copy.deepcopy(THREE)
    change(bundles[0])
    rehash(bundles[0])
    return bundles


def packed(tmp_path: Path, bundles: list[dict[str, Any]], folder: Path, **options: Any) -> PackResult:
    run = write_run(tmp_path / "run", bundles)
    return pack(run, tmp_path / "out", PackOptions("0.1.0", reviews=folder, allow_drafts=True, **options))


def set_in(part: str, number: int, name: str, value: object) -> Change:
    def change(bundle: dict[str, Any]) -> None:
        holder = bundle if part == "variants" else bundle["record"]
        holder[part][number][name] = value

    return change


def reorder(bundle: dict[str, Any]) -> None:
    question = bundle["record"]["questions"][0]
    question["accepted_answers"] = [*question["accepted_answers"], "another way to say it"]


def hide(bundle: dict[str, Any]) -> None:
    """Change what nobody is shown."""
    bundle["record"]["scenes"][0]["generation_prompt"] = "A picture in oils."
    bundle["record"]["provenance"]["source_reference"] = "elsewhere"


def voted(change: Change) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        votes = lines_of(folder / "votes.jsonl")
        change(votes[0])
        write_jsonl(folder / "votes.jsonl", votes)

    return edit


PLACES: dict[str, Change] = {
    "$.scenes[0].action": set_in("scenes", 0, "action", "Something else is done."),
    "$.variants[1].semantic_delta": set_in("variants", 1, "semantic_delta", "They do not share."),
    "$.transitions[2].causality": set_in("transitions", 2, "causality", "For no reason."),
    "$.title": lambda bundle: bundle["record"].update(title="Another title"),
}
SINCE: dict[str, dict[str, Any]] = {
    "an answer": {"change": reorder}, "what nobody is shown": {"change": hide},
    "unbound": {"bound": False}, "unbound, and accepted": {"bound": False, "accept_unbound": True},
    "a vote is unbound": {"edit": voted(lambda vote: vote.pop(SEEN))},
    "a vote on another story": {"edit": voted(lambda vote: vote.update({SEEN: summary_of(THREE[1])[SEEN]}))},
}  # fmt: skip


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> PackResult:
    folder = tmp_path_factory.mktemp("bound")
    return packed(folder, THREE, review(folder / "review", THREE))


@pytest.fixture(scope="module")
def reworded(said, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said where an answer was changed since."""
    folder = tmp_path_factory.mktemp("reworded")
    return said(packed(folder, changed(reorder), review(folder / "review", THREE)))


@pytest.mark.parametrize("place", PLACES)
def test_a_record_when_any_part_changed_since_people_read_it_is_told_with_the_part(
    said, reworded, tmp_path, place
):
    release = packed(tmp_path, changed(PLACES[place]), review(tmp_path / "review", THREE))
    assert said(release).replace(place, "$.questions[0].accepted_answers") == reworded


@pytest.mark.parametrize("case", SINCE)
def test_a_record_when_it_changed_since_people_read_it_is_a_draft_again_and_named(
    bound, said, difference, snapshot, tmp_path, case
):
    given = {"change": lambda bundle: None, "edit": lambda folder: None, "bound": True, **SINCE[case]}
    bundles = changed(given.pop("change"))
    folder = review(tmp_path / "review", THREE, bound=given.pop("bound"))
    given.pop("edit")(folder)
    assert difference(said(bound), said(packed(tmp_path, bundles, folder, **given))) == snapshot


def test_reviews_when_a_record_changed_need_leave_to_pack_a_draft(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", changed(reorder))
    folder = review(tmp_path / "review", THREE)
    with pytest.raises(ConfigError, match=rf"1 changed since people read it: {FIRST}"):
        pack(run, tmp_path / "out", PackOptions("0.1.0", reviews=folder))


SEALED: dict[str, list[tuple[str, int, Change]]] = {
    "a record": [
        ("annotations.jsonl", 0, lambda row: row["scenes"][0].update(action="Something else is done."))
    ],
    "a vote": [("votes.jsonl", 0, lambda row: row.update({SEEN: "0" * 64}))],
    "a summary and its votes, which nobody corrected": [
        ("human_validation.jsonl", 0, lambda row: row.update({SEEN: "1" * 64})),
        *(("votes.jsonl", number, lambda row: row.update({SEEN: "1" * 64})) for number in range(17 * 3)),
    ],
}


@pytest.mark.parametrize("what", SEALED)
def test_a_release_when_its_reviews_were_changed_and_sealed_again_is_found(tmp_path, helpers, what):
    release = packed(tmp_path, THREE, review(tmp_path / "review", THREE)).folder
    for file, number, change in SEALED[what]:
        helpers.edit_line(release / file, number, change)
    helpers.reseal(release)
    (issue,) = (issue for issue in verify(release, quick=True).issues if issue.code == "review-stale")
    assert issue.path == f"$.{CONTENT}" and FIRST in issue.message


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
    record, variants = THREE[0]["record"], THREE[0]["variants"]
    content = seen_content(record, variants)
    assert content == seen_content(record, variants[::-1])
    assert seen_sha256("kb25k_0001", content) != seen_sha256("kb25k_0002", content)
    assert list(changed_paths({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]})) == ["$.a[1].b"]
    assert list(changed_paths({"a": [1]}, {"a": [1, 2]})) == ["$.a"]
