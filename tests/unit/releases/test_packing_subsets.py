""""""

import json
import random
import shutil
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import load, pack, verify
from fabula.releases.hidden.marks import read_salt
from fabula.releases.katha.additions import KINDS, QUESTIONS, check_subsets
from fabula.releases.options import PackOptions
from fabula.releases.subsets import ALL, Traits, closeness, draw
from fabula.testing.katha_folders import write_jsonl, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import summary_of

BUNDLES = sample_bundles(40)


def review(bundle, **changes):
    said = {"validation_status": "human_adjudicator_accepted", "evidence_source": "story text"}
    return summary_of(bundle, **{**said, **changes})


REVIEWS = [review(bundle) for bundle in BUNDLES]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "run", BUNDLES)


@pytest.fixture
def packs(run, tmp_path):
    """Pack the run of forty stories with these options."""

    def packs_(name="out", version="0.1.0", reviews=None, **options):
        file = None if reviews is None else write_jsonl(tmp_path / f"{name}.reviews.jsonl", reviews)
        return pack(run, tmp_path / name, PackOptions(version, reviews=file, **options, allow_drafts=True))

    return packs_


def members(folder: Path, file: str) -> list[str]:
    return [json.loads(line)["story_id"] for line in (folder / file).read_text("utf-8").splitlines()]


def found(folder: Path) -> list[str]:
    return [issue.message for issue in check_subsets(folder)]


@pytest.fixture(scope="module")
def gold(run, tmp_path_factory):
    """A release with a Lite subset and two nested gold ones, all of its stories reviewed."""
    folder = tmp_path_factory.mktemp("gold")
    subsets = ("lite=10", "human_gold_1k=3/category", "strict_gold_400=2/category:human_gold_1k")
    reviews = write_jsonl(folder / "human_validation.jsonl", REVIEWS)
    return pack(
        run, folder / "out", PackOptions("0.1.0", subsets=subsets, reviews=reviews, allow_drafts=True)
    ).folder


def test_subsets_when_packed_are_files_of_public_ids_nested_as_asked(gold):
    public = {record.story_id for record in load(gold).records}
    lite = members(gold, "subsets/lite.jsonl")
    big, small = members(gold, "human_gold_1k.jsonl"), members(gold, "strict_gold_400.jsonl")
    assert (len(lite), len(big), len(small)) == (10, 24, 16)
    assert set(small) < set(big) < public
    assert set(lite) < public
    document = json.loads((gold / "subsets.json").read_bytes())
    assert [entry["name"] for entry in document["subsets"]] == ["lite", "human_gold_1k", "strict_gold_400"]
    card = (gold / "dataset_card.md").read_text("utf-8")
    assert "| strict_gold_400 | 16 | 2/category:human_gold_1k | `strict_gold_400.jsonl` |" in card
    assert "| | full | lite | human_gold_1k | strict_gold_400 |" in card
    assert "Not in this release" not in card


@pytest.mark.slow
def test_reviewed_records_when_packed_say_so_and_the_release_is_sound(gold):
    in_gold = set(members(gold, "human_gold_1k.jsonl"))
    for record in load(gold).records:  # D.7 of the paper
        status = "human_adjudicator_accepted" if record.story_id in in_gold else "pre_release_reviewed"
        assert record.validation_status == status
        assert record.evidence_status.human_evidence_accepted
    assert "People reviewed every record." in (gold / "dataset_card.md").read_text("utf-8")
    hidden = gold.with_name("out-hidden")
    public_ids, hidden_ids = (members(folder, "human_validation.jsonl") for folder in (gold, hidden))
    assert (len(public_ids), len(hidden_ids)) == (38, 2)
    assert verify(gold).issues == ()
    assert verify(hidden).issues == ()


WITHOUT_BACKING: dict[str, Any] = {
    "no reviews": None, "few reviews": REVIEWS[:5],
    **{f"{changes}": [{**row, **changes} for row in REVIEWS] for changes in (
        {"annotator_ids": ["r1", "r2"]}, {"resolution": "not_reviewed"}, {"protocol_complete": False},
        {"decision": "needs_correction"},
    )},
}  # fmt: skip


def test_gold_when_reviews_do_not_back_it_is_refused_with_the_reason(packs, tmp_path, refusals, snapshot):
    assert refusals(
        lambda case: packs(subsets=("human_gold_1k=3/category",), reviews=WITHOUT_BACKING[case]),
        WITHOUT_BACKING,
    ) == snapshot  # fmt: skip
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("subset", "message"),
    [("lite=39", r"at least 39 stories, found 38"), ("even=9/category", "of each narrative type, found")],
)
def test_a_subset_when_there_are_too_few_stories_is_refused_with_counts(packs, subset, message):
    with pytest.raises(ConfigError, match=message):
        packs(subsets=(subset,))


@pytest.mark.slow
def test_a_story_when_reviewers_rejected_it_is_left_out(packs):
    rejected = review(BUNDLES[0], decision="rejected")
    result = packs(reviews=[rejected, *REVIEWS[1:]])
    assert [(entry.id, entry.code) for entry in result.left_out] == [("kb25k_0001", "reviewers")]
    assert "kb25k_0001" not in load(result.folder).by_id
    assert verify(result.folder, quick=True).issues == ()


def test_a_review_when_it_is_unsound_or_of_no_story_is_refused(packs, refusals, snapshot):
    assert refusals(lambda change: packs(reviews=[{**REVIEWS[0], **change}, *REVIEWS[1:]]), [
        {"story_id": "kb25k_9999"}, {"final_moral_label": "no_such_label"}, {"decision": "maybe"},
        {"annotator_ids": ["r1", "r1", "r2"]}, {"resolution": "human_adjudicated"},
        {"signed_at": "yesterday"}, {"story_id": "kb25k_0002"},
    ]) == snapshot  # fmt: skip


@pytest.mark.slow
def test_a_later_version_when_packed_keeps_members_canary_and_salt(packs, tmp_path):
    first = packs("one", subsets=("lite=10", "even=2/category"))
    bigger = write_run(tmp_path / "bigger", sample_bundles(60))
    options = PackOptions("0.2.0", since=first.folder, subsets=("lite=14",), allow_drafts=True)
    second = pack(bigger, tmp_path / "two", options)
    lite = [set(members(one.folder, "subsets/lite.jsonl")) for one in (first, second)]
    assert lite[0] < lite[1]
    assert len(lite[1]) == 14
    even = [members(one.folder, "subsets/even.jsonl") for one in (first, second)]
    assert even[0] == even[1]
    assert "subset lite: 14 stories, 10 of them as before" in second.notes
    documents = [json.loads((one.folder / "release.json").read_bytes()) for one in (first, second)]
    assert documents[0]["canary"] == documents[1]["canary"]
    assert set(documents[0]["commitments"]["values"]) < set(documents[1]["commitments"]["values"])
    assert read_salt(tmp_path / "one-hidden.salt") == read_salt(tmp_path / "two-hidden.salt")
    assert verify(second.folder, quick=True).issues == ()


def test_a_later_version_when_reviews_were_on_file_must_name_them(run, gold, tmp_path):
    with pytest.raises(ConfigError, match="the earlier release has human reviews"):
        pack(run, tmp_path / "out", PackOptions("0.1.1", since=gold, allow_drafts=True))


@pytest.fixture
def copy(gold, tmp_path) -> Path:
    """A copy of that release, to be damaged."""
    return Path(shutil.copytree(gold, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("subsets/lite.jsonl", lambda data: data + b'{"story_id":"zz_1"}\n', "zz_1 is not a public story"),
        ("subsets/lite.jsonl", lambda data: data.split(b"\n", 1)[1], "9 stories, and 10 were asked for"),
        ("subsets/lite.jsonl", lambda data: data.replace(b":", b": "), "not written as packing writes it"),
        ("human_gold_1k.jsonl", lambda data: data.split(b"\n", 1)[1], "2 stories of"),
        ("human_validation.jsonl", lambda data: data.split(b"\n", 4)[4], "no review backs it"),
        ("subsets.json", lambda data: data.replace(b'"full": 3', b'"full": 2', 1), "not what its stories"),
    ],
)
def test_a_subset_when_it_was_changed_is_found(copy, path, change, message):
    assert found(copy) == []
    (copy / path).write_bytes(change((copy / path).read_bytes()))
    assert any(message in text for text in found(copy))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"subsets": [{"name": "../x", "asked": "1"}]}', b"\xff"]
)
def test_the_list_of_subsets_when_it_is_damaged_is_told(copy, content):
    (copy / "subsets.json").write_bytes(content)
    with pytest.raises(InputError, match=r"subsets\.json"):
        found(copy)


def story(number: int, kind="a", moral="kindness", source="aesop", questions=(("causal", 1),)) -> Traits:
    return traits(f"s_{number:04}", (kind, moral, source, "en", "train"), dict(questions), 100)


def traits(name, kinds, questions, characters) -> Traits:
    sizes = {"questions": sum(questions.values()), "scenes": 5, "characters": characters}
    return Traits(name, dict(zip(KINDS, kinds, strict=True)), QUESTIONS, questions, sizes)


@pytest.fixture(scope="module")
def stories() -> list[Traits]:
    """Six hundred stories of uneven kinds."""
    chance = random.Random(5)
    made = []
    for number in range(600):
        kind = chance.choices("abc", weights=[5, 3, 2])[0]
        moral = chance.choice(["courage", "honesty", "kindness"])
        source = chance.choices(["aesop", "other"], weights=[4, 1])[0]
        made.append(story(number, kind, moral, source, {"causal": 1 + number % 3, "moral": 1}))
    return made


def ids(stories) -> set[str]:
    return {one.id for one in stories}


def test_a_draw_when_worked_by_hand_takes_the_shares_of_the_whole():
    # Six of kind a, three of b, three of c; of four stories two, one and one are their shares.
    whole = [story(number, kind) for number, kind in enumerate("aaaaaabbbccc")]
    drawn = set(draw("lite", whole, ids(whole), {ALL: 4}))
    assert sorted(one.category for one in whole if one.id in drawn) == ["a", "a", "b", "c"]


def test_a_draw_when_crossed_kinds_matter_takes_the_pairs_too():
    pairs = [(kind, moral) for kind in "ab" for moral in ("courage", "honesty")]
    whole = [story(number, *pairs[number % 4]) for number in range(16)]
    drawn = set(draw("lite", whole, ids(whole), {ALL: 4}))
    assert sorted(tuple(one.kinds.values())[:2] for one in whole if one.id in drawn) == pairs


def test_a_draw_when_questions_differ_takes_their_shares():
    whole = [story(number, questions={"moral": 3} if number % 2 else {"causal": 1}) for number in range(20)]
    drawn = set(draw("lite", whole, ids(whole), {ALL: 4}))
    assert sum(one.parts.get("moral", 0) for one in whole if one.id in drawn) == 6


@pytest.mark.parametrize("size", [30, 60, 299])
def test_a_draw_when_compared_with_one_at_random_is_much_closer(stories, size):
    def far(members) -> float:
        part = [one for one in stories if one.id in members]
        return sum(row["total_variation"] for row in closeness(stories, part)["fields"].values())

    chance = random.Random(1)
    at_random = sorted(far(set(chance.sample(sorted(ids(stories)), size))) for _ in range(5))
    assert far(set(draw("lite", stories, ids(stories), {ALL: size}))) < at_random[2] / 3


def test_quotas_when_given_are_met_and_keep_the_proportions_within_each(stories):
    drawn = set(draw("even", stories, ids(stories), dict.fromkeys("abc", 40)))
    shares = []
    for kind in "abc":
        of_kind = [one for one in stories if one.category == kind]
        part = [one for one in of_kind if one.id in drawn]
        assert len(part) == 40
        assert closeness(of_kind, part)["fields"]["moral_label"]["total_variation"] < 0.04
        shares.append(sum(one.kinds["source_dataset"] == "aesop" for one in of_kind) / len(of_kind))
    from_aesop = sum(one.kinds["source_dataset"] == "aesop" for one in stories if one.id in drawn)
    assert abs(from_aesop - 40 * sum(shares)) < 1


def distance(whole, part) -> float:
    """What drawing makes small, written down again: Pearson's statistic per value, pairs by a tenth."""
    total = 0.0
    for weight, keys in ((1, lambda one: one.kinds.values()), (1, lambda one: one.parts), (0.1, pair)):
        full, own = (Counter(key for one in stories for key in keys(one)) for stories in (whole, part))
        for key, count in full.items():
            target = count * len(part) / len(whole)
            total += weight * (own[key] - target) ** 2 / (target + 1)
    return total


def pair(one: Traits) -> list[str]:
    return ["/".join(list(one.kinds.values())[:2])]


def test_draws_when_all_choices_can_be_tried_are_mostly_the_best():
    ranks = []
    for seed in range(12):
        chance = random.Random(seed)
        kinds = [
            (chance.choice("ab"), chance.choice(["m1", "m2", "m3"]), chance.choice("xy")) for _ in range(12)
        ]
        whole = [story(number, *kind) for number, kind in enumerate(kinds)]
        drawn = set(draw("lite", whole, ids(whole), {ALL: 4}))
        reached = distance(whole, [one for one in whole if one.id in drawn]) - 1e-9
        ranks.append(sum(distance(whole, part) < reached for part in combinations(whole, 4)))
    # Of 495 choices each: the best one nine times in twelve, and never beyond the first tenth.
    assert ranks.count(0) >= 8
    assert max(ranks) < 50


def test_a_nested_draw_when_made_stays_in_its_parent(stories):
    parent = set(draw("even", stories, ids(stories), dict.fromkeys("abc", 40)))
    child = set(draw("strict", stories, parent, dict.fromkeys("abc", 10)))
    assert len(child) == 30
    assert child <= parent


def test_a_draw_when_the_whole_grows_keeps_its_members(stories):
    before = set(draw("lite", stories[:400], ids(stories[:400]), {ALL: 40}))
    after = set(draw("lite", stories, ids(stories), {ALL: 60}, keep=before))
    assert before <= after
    assert len(after) == 60
    assert set(draw("lite", stories, ids(stories), {ALL: 40}, keep=before)) == before


def test_members_when_they_go_are_replaced_and_the_others_stay(stories):
    before = draw("lite", stories, ids(stories), {ALL: 40})
    gone = set(before[:3])
    rest = [one for one in stories if one.id not in gone]
    after = set(draw("lite", rest, ids(rest), {ALL: 40}, keep=before))
    assert len(after) == 40
    assert set(before) - gone <= after


def test_members_when_a_quota_shrinks_are_dropped_and_none_is_new(stories):
    before = set(draw("even", stories, ids(stories), dict.fromkeys("abc", 40)))
    after = set(draw("even", stories, ids(stories), {"a": 40, "b": 25, "c": 40}, keep=before))
    assert len(after) == 105
    assert after < before


def test_closeness_when_worked_by_hand():
    # Of 4 questions per kind: whole a, a, b, b; subset a, a, b. Shares 2/4 and 2/4 against 2/3 and 1/3.
    whole = [story(number, kind) for number, kind in enumerate("aabb")]
    found = closeness(whole, whole[:3])
    kinds = found["fields"]["narrative_type"]
    row = {"full": 2, "full_share": 0.5, "subset": 2, "subset_share": 0.666667, "difference": 0.166667}
    assert kinds["values"]["a"] == row
    assert kinds["total_variation"] == 0.166667  # (1/6 + 1/6) / 2
    assert kinds["chi_square"] == 0.333333  # (2 - 1.5)^2 / 1.5 + (1 - 1.5)^2 / 1.5
    assert kinds["degrees_of_freedom"] == 1
    assert set(found["fields"]) == {*KINDS, "question_type"}
    assert found["means"]["characters"] == {"full": 100.0, "subset": 100.0, "difference": 0.0}
