""""""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.choosing.choose_stories import Groups, Settings, choose, fill_splits, strata_of
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.hooks import Event
from fabula.engine.stage import Item
from fabula.schemas.values import vocabulary
from fabula.testing.made_stories import make_story, near_copy
from fabula.validators.katha.validation import validate

TYPES, MORALS = vocabulary("narrative_type").values, vocabulary("moral_label").values
TARGET = {"train": 0.70, "validation": 0.15, "public_test": 0.10, "hidden_test": 0.05}


def stories(count, first=0):
    return {f"s{n:05d}": (TYPES[n * n % 8], MORALS[n % 12]) for n in range(first, first + count)}


def assign(katha, labels, previous=None, least=20, **more):
    module = katha.stage("assign_splits")
    items = [
        Item(key, {"labels": {"narrative_type": kind, "moral_label": moral}, "links": []})
        for key, (kind, moral) in labels.items()
    ]
    set_to = {"least": least, **more}
    return dict(module.run(items, katha.tools_for(module.SPEC, set_to, previous=previous or {})))


@pytest.mark.parametrize("count", [100, 1000, 5000])
def test_splits_when_many_stories_reach_the_shares_over_all_and_in_the_strata(katha, count) -> None:
    found = assign(katha, stories(count))
    overall = Counter(fields["split"] for fields in found.values())
    assert all(abs(overall[split] - share * count) <= 0.01 * count for split, share in TARGET.items())
    strata: dict[str, Counter] = {}
    for fields in found.values():
        strata.setdefault(fields["stratum"], Counter())[fields["split"]] += 1
    for counts in strata.values():
        assert all(abs(counts[split] - share * counts.total()) < 1.5 for split, share in TARGET.items())


@settings(max_examples=30, deadline=None)
@given(first=st.integers(1, 120), more=st.integers(0, 120))
def test_splits_when_stories_are_added_never_move_the_old_ones(first, more) -> None:
    old = strata_of(stories(first), 20)
    before = fill_splits(old, {})
    grown = strata_of(stories(first + more), 20)
    after = fill_splits(grown, before)
    assert {key: after[key] for key in before} == before
    assert set(after) == set(grown)


def test_splits_when_stories_go_forget_them_and_keep_the_rest(katha) -> None:
    before = assign(katha, stories(100))
    after = assign(katha, stories(50), previous=before)
    assert {key: fields["split"] for key, fields in after.items()} == {
        key: before[key]["split"] for key in stories(50)
    }


def test_splits_when_one_is_set_take_all_new_stories_and_move_none(katha) -> None:
    before = assign(katha, stories(50))
    after = assign(katha, stories(80), previous=before, only="public_test")
    new = {fields["split"] for key, fields in after.items() if key not in before}
    assert new == {"public_test"} and all(after[key]["split"] == before[key]["split"] for key in before)


def test_strata_when_small_are_collapsed_over_label_then_type() -> None:
    # 3 of (a, x), 1 of (a, y), 1 of (a, z), 1 of (b, x), 1 without labels; at least 2 make a stratum.
    labels = {
        **{f"ax{n}": ("a", "x") for n in range(3)},
        "ay": ("a", "y"),
        "az": ("a", "z"),
        "bx": ("b", "x"),
        "none": (None, None),
    }
    found = strata_of(labels, 2)
    assert found["ax0"] == "a/x"
    assert found["ay"] == found["az"] == "a/*"
    assert found["bx"] == found["none"] == "*"


# Choosing stories of a larger pool: quotas, the same choice in any order, and why the rest is left.

FAMILIES = ("aesop", "panchatantra", "kathasaritasagara")


def pool(count: int) -> dict[str, dict[str, str | None]]:
    """A pool in which types, morals and families are spread in ways of their own."""
    return {
        f"s{n:05d}": {
            "narrative_type": TYPES[n * 5 % 8], "moral_label": MORALS[n // 8 % 12],
            "collection": FAMILIES[n // 5 % 3], "language": "en" if n // 3 % 4 else "hi",
        }
        for n in range(count)
    }  # fmt: skip


def chosen(traits: dict, settings: Settings, before: tuple[str, ...] = ()) -> set[str]:
    assert settings.stories is not None
    return traits.keys() - choose(traits, settings.caps(), settings.stories, before).keys()


def test_choice_when_the_pool_is_large_enough_meets_the_quotas_of_the_paper() -> None:
    traits, settings = pool(6000), Settings(stories=500, collection={})
    kept = chosen(traits, settings)
    assert len(kept) == 500
    types = Counter(traits[key]["narrative_type"] for key in kept)
    # Table 6 gives 1,000, 800, 700, 600, 600, 500, 400, 400 of 5,000: a tenth of it for 500 stories.
    assert types == {value: count / 10 for value, count in vocabulary("narrative_type").targets.items()}
    morals = Counter(traits[key]["moral_label"] for key in kept)
    assert all(abs(count - 500 / 12) < 1 for count in morals.values())


def test_choice_when_order_changes_or_stories_come_later_is_the_same_and_keeps_what_it_has() -> None:
    traits, settings = pool(800), Settings(stories=100, collection={}, language={"en": 1, "hi": 1})
    first = chosen(traits, settings)
    assert chosen(dict(reversed(traits.items())), settings) == first
    assert Counter(traits[key]["language"] for key in first) == {"en": 50, "hi": 50}
    assert (
        chosen({**traits, **{f"x{n}": traits["s00001"] for n in range(50)}}, settings, tuple(first)) == first
    )


def test_choice_when_a_value_is_missing_or_rare_says_so() -> None:
    traits = {**pool(40), "none": {**pool(1)["s00000"], "moral_label": None}}
    reasons = choose(traits, Settings(stories=10, collection={"aesop": 1}).caps(), 10)
    assert reasons["none"] == "its moral_label None has no quota"
    assert any("has no quota" in why and "panchatantra" in why for why in reasons.values())
    assert any("its quota is" in why for why in reasons.values())


def write(path: Path, numbers: range) -> Path:
    path.write_text("".join(json.dumps(make_story(n)) + "\n" for n in numbers), "utf-8")
    return path


@pytest.mark.slow
def test_build_when_balanced_makes_the_chosen_and_reports_the_others(tmp_path) -> None:
    options = BuildOptions(balance=16, workers=0, settings=("choose_stories.collection={}",))
    report = build_katha(write(tmp_path / "a.jsonl", range(1, 60)), tmp_path / "run", options)
    left = [item for item in report.items if item.code == "surplus"]
    assert report.totals["made"] == 16 and len(left) == 43 and all(item.reason for item in left)
    more = extend_katha(
        tmp_path / "run", write(tmp_path / "b.jsonl", range(60, 64)), ExtendOptions(workers=0)
    )
    assert (more.added, {item.code for item in more.stopped}) == ((), {"surplus"})


class Told:
    """A reporter that keeps what it is warned of."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def emit(self, event: Event) -> None:
        self.warnings += [event.data["message"]] if event.kind == "warning" else []

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_build_when_stories_are_lacking_says_which_quotas_fell_short(tmp_path) -> None:
    quotas = ("choose_stories.collection={}", "choose_stories.moral_label={}")
    named = "choose_stories.narrative_type={hidden_consequence=1, moral_semantic=3}"
    options = BuildOptions(balance=40, workers=0, settings=(*quotas, named))
    reporter = Told()
    report = build_katha(
        write(tmp_path / "a.jsonl", range(1, 60)), tmp_path / "run", options, reporter=reporter
    )
    made = Counter(
        json.loads(line)["payload"]["record"]["narrative_type"]
        for line in (tmp_path / "run" / "records.jsonl").read_text("utf-8").splitlines()
    )
    document = json.loads((tmp_path / "run" / "quotas.json").read_text("utf-8"))
    assert document["stories"] == {"wanted": 40, "made": report.totals["made"]} and sum(made.values()) < 40
    # A quarter and three quarters of 40.
    wanted = {"hidden_consequence": 10, "moral_semantic": 30}
    assert {row["value"]: (row["wanted"], row["made"]) for row in document["short"]} == {
        value: (count, made[value]) for value, count in wanted.items() if made[value] < count
    }
    (warning,) = reporter.warnings
    assert f"{report.totals['made']} of 40 stories were made" in warning and "moral_semantic" in warning


# -- Retellings in a build: near copies, title twins and turned orders stay in one split, added later or not

BUILD = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0)
EXTEND = ExtendOptions(created_at="2026-02-01T00:00:00Z", workers=0)
SHARES = {100: 0.05, 110: 0.12, 120: 0.2}


def row(story_id: str, number: int, **changes: str) -> dict[str, str]:
    return {**make_story(number), "id": story_id, **changes}


def retold(number: int, share: float) -> list[list[dict[str, str]]]:
    """Four pairs: a near copy, one with its sentences turned, title twins, twins by number."""
    first = [
        row(f"{kind}{number}a", number + place) for place, kind in enumerate(("near", "turn", "name", "numb"))
    ]
    near, turned = (make_story(number + place)["text"] for place in (0, 1))
    other = row("", number + 500)["text"], row("", number + 501)["text"]
    second = [
        {**first[0], "text": near_copy(near, share, number), "title": f"Near {number}"},
        {**first[1], "text": near_copy(turned, share, number, turned=True), "title": f"Turned {number}"},
        {**first[2], "text": other[0], "title": f"The Story of {number} Wolves and a Hen"},
        {**first[3], "text": other[1], "title": f"{number}", "source_reference": f"Perry, no. {number}"},
    ]  # fmt: skip
    first[2]["title"], first[3]["source_reference"] = f"A Hen and {number} Wolves", f"Perry {number}"
    return [[one, {**two, "id": f"{one['id'][:-1]}b"}] for one, two in zip(first, second, strict=True)]


PAIRS = [pair for number, share in SHARES.items() for pair in retold(number, share)]
ALONE = [row(f"lone{n:02d}", n) for n in range(40)]


def write_rows(path: Path, rows: Iterable[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), "utf-8")
    return path


def splits(run: Path) -> dict[str, str]:
    lines = (run / "assignments.jsonl").read_text("utf-8").splitlines()
    return {one["id"]: one["split"] for one in map(json.loads, lines)}


def groups(run: Path) -> dict[str, dict]:
    lines = (run / "retellings.jsonl").read_text("utf-8").splitlines()
    return {one["id"]: one for one in map(json.loads, lines)}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A run of the first stories of all pairs, and of those that stand alone."""
    folder = tmp_path_factory.mktemp("retold")
    build_katha(write_rows(folder / "a.jsonl", [*ALONE, *(pair[0] for pair in PAIRS)]), folder / "run", BUILD)
    return folder / "run"


@pytest.mark.slow
def test_build_when_stories_are_retold_keeps_each_group_in_one_split_and_shows_why(tmp_path) -> None:
    source = write_rows(tmp_path / "all.jsonl", [*ALONE, *(one for pair in PAIRS for one in pair)])
    build_katha(source, tmp_path / "run", BUILD)
    found, assigned = groups(tmp_path / "run"), splits(tmp_path / "run")
    assert sorted(one["stories"] for one in found.values()) == sorted(
        [one["id"] for one in pair] for pair in PAIRS
    )
    assert all(len({assigned[story] for story in one["stories"]}) == 1 for one in found.values())
    by = {name[:4]: {link["by"] for link in one["links"]} for name, one in found.items()}
    assert by == {"near": {"text"}, "turn": {"text"}, "name": {"title"}, "numb": {"number"}}
    assert len(set(assigned.values())) == 4
    assert {issue.code for issue in validate(tmp_path / "run").issues} <= {
        "incomplete",
        "split-size",
        "split-strata",
    }


@pytest.mark.slow
def test_extend_when_stories_are_retold_puts_them_where_the_group_is(built, tmp_path) -> None:
    before = splits(built)
    report = extend_katha(built, write_rows(tmp_path / "b.jsonl", [pair[1] for pair in PAIRS]), EXTEND)
    after = splits(built)
    assert len(report.added) == len(PAIRS)
    assert {key: after[key] for key in before} == before
    assert all(after[one["id"]] == after[two["id"]] for one, two in PAIRS)
    apart = {}
    for story, split in before.items():
        apart.setdefault(split, story)
    (one, _), (two, _) = sorted(before.items(), key=lambda pair: pair[1])[:: len(before) - 1]
    texts = {story["id"]: story["text"] for story in [*ALONE, *(pair[0] for pair in PAIRS)]}
    bridge = row("bridge", 700, text=f"{texts[one]} {texts[two]}")
    report = extend_katha(built, write_rows(tmp_path / "c.jsonl", [bridge]), EXTEND)
    (stopped,) = report.stopped
    assert (stopped.id, stopped.code) == ("bridge", "joins_splits")
    assert one in stopped.reason and two in stopped.reason
    assert splits(built) == after


def linked(*pairs: str) -> list[dict]:
    return [{"stories": sorted(pair), "by": "text", "evidence": "so"} for pair in pairs]


def test_groups_when_a_story_would_join_two_splits_it_gets_none() -> None:
    found = Groups.of("abcd", linked("ac", "bc", "cd"), {"a": "train", "b": "validation"})
    assert set(found.joins) == {"c"} and len(found.joins["c"]) == 2
    assert fill_splits(
        dict.fromkeys("abd", "*"), {"a": "train", "b": "validation"}, found.units()
    ).keys() == set("abd")


def test_groups_when_linked_stories_have_two_splits_already_leave_them_there() -> None:
    before = {"a": "train", "b": "validation"}
    found = Groups.of("abc", linked("ab"), before)
    assert fill_splits(dict.fromkeys("abc", "*"), before, found.units()).items() >= before.items()


def test_groups_when_large_fill_no_split_beyond_its_share() -> None:
    ids = [f"s{n:03d}" for n in range(200)]
    links = linked(*((ids[n], ids[n + 1]) for n in range(199) if n % 10 != 9 and n < 100))
    found = Groups.of(ids, links, {})
    assigned = fill_splits(dict.fromkeys(ids, "*"), {}, found.units())
    sizes = [
        list(assigned.values()).count(split)
        for split in ("train", "validation", "public_test", "hidden_test")
    ]
    assert sizes == [140, 30, 20, 10]
    assert all(len({assigned[story] for story in ids[n : n + 10]}) == 1 for n in range(0, 100, 10))
