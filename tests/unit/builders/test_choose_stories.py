"""Choosing stories of a larger pool: quotas, the same choice in any order, and why the rest is left."""

import json
from collections import Counter
from pathlib import Path

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.choosing.choose_stories import Settings, choose
from fabula.builders.katha.choosing.tell_quotas import shortage
from fabula.builders.katha.extend import ExtendOptions, extend_katha
from fabula.engine.progress import Event
from fabula.schemas.vocabulary import vocabulary
from fabula.testing.made_stories import make_story

TYPES, MORALS = vocabulary("narrative_type").values, vocabulary("moral_label").values
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


def test_quotas_when_met_or_not_asked_for_are_not_warned_of(tmp_path) -> None:
    document = {"stories": {"wanted": 16, "made": 16}, "short": []}
    assert shortage(document) is None
    build_katha(write(tmp_path / "a.jsonl", range(1, 4)), tmp_path / "run", BuildOptions(workers=0))
    assert not (tmp_path / "run" / "quotas.json").exists()
