import random
from collections import Counter
from itertools import combinations

import pytest

from fabula.releases.katha.additions import KINDS, QUESTIONS
from fabula.releases.subsets.drawing import ALL, Traits, closeness, draw


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
