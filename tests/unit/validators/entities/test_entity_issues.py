"""One broken set of episodes per code; what is found in each is pinned in tests/golden/validators/entities.

Run with UPDATE_GOLDEN=1 to write the pinned files anew, then read the difference.
"""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.models.keys import MARK
from fabula.releases.entities.tree import read_entity_set, script_bytes
from fabula.schemas.entities import EntityEpisode
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode
from fabula.validators.entities.measures import (
    Measures,
    Share,
    Spread,
    fixed,
    measure,
    median,
    share,
    spread,
    value_text,
)
from fabula.validators.entities.statistics import EntityStatistics, entity_statistics
from fabula.validators.entities.view import CODES, holds, named, view_of

GOLDEN = Path(__file__).parents[3] / "golden" / "validators" / "entities"
FIRST = "scripts/ep_a.json"
Change = Callable[[Any], object]


def _set(document: Any, path: str, value: Any) -> None:
    *steps, last = path.split("/")
    for step in steps:
        document = document[int(step)] if isinstance(document, list) else document[step]
    if isinstance(document, list):
        document[int(last)] = value
    else:
        document[last] = value


def setting(**values: Any) -> Change:
    """Return a change that puts values at paths, steps parted by ``__``."""

    def change(episode: Any) -> None:
        for path, value in values.items():
            _set(episode, path.replace("__", "/"), value)

    return change


def action(episode: Any, scene: int, shot: int, text: str) -> None:
    """Write another action, and the prompt that ends with it."""
    part = episode["scenes"][scene]
    old = part["action_descriptions"][shot]
    part["action_descriptions"][shot] = text
    part["video_prompts"][shot] = part["video_prompts"][shot].removesuffix(old) + text


def prompt(episode: Any, scene: int, shot: int, old: str, new: str) -> None:
    texts = episode["scenes"][scene]["video_prompts"]
    assert old in texts[shot]
    texts[shot] = texts[shot].replace(old, new)


def describe(episode: Any, label: str, text: str) -> None:
    """Describe an entity otherwise, in the registry and in the header."""
    old = episode["entity_descriptions"][label]["description"]
    episode["entity_descriptions"][label]["description"] = text
    for scene in episode["scenes"]:
        scene["video_prompts"] = [one.replace(old, text) for one in scene["video_prompts"]]


def relabel(episode: Any, old: str, new: str) -> None:
    registry = episode["entity_descriptions"]
    episode["entity_descriptions"] = {
        new if label == old else label: {**entry, "label": new} if label == old else entry
        for label, entry in registry.items()
    }
    episode["_name_map"] = {
        new if label == old else label: name for label, name in episode["_name_map"].items()
    }


def add(episode: Any, label: str, name: str, description: str) -> None:
    episode["entity_descriptions"][label] = {"name": name, "label": label, "description": description}
    episode["_name_map"][label] = name


def schedule(episode: Any, key: str, **lists: list[str]) -> None:
    episode["entity_schedule"][key].update(lists)


def pop_all(episode: Any) -> None:
    del episode["scenes"][0]["cut"]
    del episode["entity_descriptions"]["Object 1"]["description"]
    del episode["entity_schedule"]["2:2"]["places"]


def second_scene_first(episode: Any) -> None:
    parts = list(episode["entity_schedule"].items())
    episode["entity_schedule"] = dict(reversed(parts))


def objects_first(episode: Any) -> None:
    parts = list(episode["entity_descriptions"].items())
    episode["entity_descriptions"] = dict(reversed(parts))


TEXT = "Woman of forty in a green apron with rolled sleeves."
CHANGES: dict[str, Change] = {
    "unknown-field": setting(mood="calm", scenes__0__camera="low"),
    "missing-key": pop_all,
    "missing-note": lambda one: one.pop("_name_map"),
    "story-name": setting(story_name="ep/a"),
    "no-shots": lambda one: one["scenes"][1].update(video_prompts=[], cut=[], action_descriptions=[]),
    "scene-order": setting(scenes__1__scene_num=3),
    "list-length": setting(scenes__0__cut=[True]),
    "schedule-key": lambda one: one["entity_schedule"].update({"2:4": one["entity_schedule"].pop("2:3")}),
    "schedule-order": second_scene_first,
    "stated-count": setting(_num_shots=6, _num_scenes=1),
    "window-length": lambda one: one["_window_shot_ids"].pop(),
    "window-id": setting(_window_shot_ids__1="other__shot0004"),
    "window-order": setting(_window_shot_ids__1="ep_a__shot0003"),
    "window-gap": setting(_window_shot_ids__4="ep_a__shot0012"),
    "first-cut": setting(scenes__1__cut__0=False),
    "secret-removed": lambda one: action(one, 1, 1, f"{MARK} waits."),
    "empty-text": lambda one: (
        setting(story_overview=" ")(one),
        action(one, 1, 1, ""),
        action(one, 1, 2, ""),
    ),
    "repeated-action": lambda one: action(one, 1, 2, one["scenes"][0]["action_descriptions"][1]),
    "label-key": setting(**{"entity_descriptions__Object 1__label": "Object 2"}),
    "label-form": lambda one: relabel(one, "Object 2", "Thing B"),
    "generated-label": lambda one: relabel(one, "Character 2", "Gen_Ben"),
    "label-gap": lambda one: relabel(one, "Object 2", "Object 5"),
    "registry-order": objects_first,
    "registry-name": setting(**{"entity_descriptions__Object 2__name": ""}),
    "name-repeated": lambda one: add(one, "Object 3", "the red cup", "Chipped red enamel cup with a rim."),
    "name-case": lambda one: add(one, "Object 3", "The Red Cup", "Chipped red enamel cup with a rim."),
    "name-contained": lambda one: add(one, "Object 3", "the red cup of Ana", "Chipped red enamel cup again."),
    "description-empty": setting(**{"entity_descriptions__Object 2__description": " "}),
    "description-lines": lambda one: describe(one, "Character 1", "Woman of forty.\nShe has a green apron."),
    "description-short": lambda one: describe(one, "Character 1", "Woman."),
    "description-long": lambda one: describe(
        one, "Character 1", " ".join([TEXT[:-1], "and boots,", TEXT[:-1], TEXT])
    ),
    "description-tokens": lambda one: describe(one, "Character 1", " ".join(["so"] * 76) + "."),
    "description-period": lambda one: describe(one, "Character 1", TEXT[:-1]),
    "description-repeated": lambda one: describe(one, "Character 2", TEXT),
    "name-map": setting(**{"_name_map__Object 1": "the blue cup"}),
    "name-map-extra": setting(**{"_name_map__Object 9": "the blue cup"}),
    "name-map-missing": lambda one: one["_name_map"].pop("Object 2"),
    "unregistered": lambda one: (
        schedule(one, "2:2", objects=["The Red cup", "microphone"]),
        action(one, 1, 1, "Ana walks across The Garden with microphone and The Red cup."),
    ),
    "type-mismatch": lambda one: schedule(one, "2:2", characters=["Ana"], places=[], objects=["The Garden"]),
    "slot-repeated": lambda one: schedule(one, "2:2", characters=["Ana", "Ana"]),
    "two-lists": lambda one: schedule(one, "2:2", objects=["Ana"]),
    "two-types": lambda one: (
        schedule(one, "2:2", characters=[], objects=["Ana"]),
        add(one, "Object 3", "Ana", "A doll that looks like a woman."),
    ),
    "never-scheduled": lambda one: add(one, "Object 3", "the blue vase", "Tall blue vase of thin glass."),
    "no-character": lambda one: (
        schedule(one, "2:2", characters=[]),
        action(one, 1, 1, "A cat walks across The Garden."),
    ),
    "name-ascii": lambda one: add(one, "Object 3", "the café sign", "Enamel sign above a door, in red."),
    "action-ascii": lambda one: action(one, 1, 1, "Ana walks across The Garden to a sign: Café ❤."),
    "no-place": lambda one: (
        schedule(one, "2:2", places=[]),
        action(one, 1, 1, "Ana walks across the lawn, shading her eyes."),
    ),
    "several-places": lambda one: (
        schedule(one, "2:2", places=["The Kitchen", "The Garden"]),
        action(one, 1, 1, "Ana walks from The Kitchen into The Garden."),
    ),
    "empty-shot": lambda one: (
        schedule(one, "2:2", characters=[], places=[]),
        action(one, 1, 1, "A cat walks across the lawn."),
    ),
    "mention-case": lambda one: action(one, 1, 1, "ana walks across the garden."),
    "mention-part": lambda one: action(one, 1, 1, "Ana walks across her garden."),
    "unmentioned": lambda one: action(one, 1, 1, "Anabel walks across the lawn."),
    "unscheduled-mention": lambda one: action(one, 1, 1, "Ana walks to Ben across The Garden."),
    "back-ticks": lambda one: action(one, 1, 1, "`Ana` walks across `The Garden`."),
    "placeholder": lambda one: action(one, 1, 1, "Ana and Character 3 walk across The Garden with Gen_Leo."),
    "prompt-action": setting(scenes__1__video_prompts__1="Ana walks."),
    "header-separator": lambda one: prompt(one, 0, 0, "\n\n", "\n"),
    "header-missing": lambda one: prompt(one, 0, 0, f"Ana: {TEXT}\n", ""),
    "header-elsewhere": lambda one: (
        prompt(one, 0, 0, f"Ana: {TEXT}\n", ""),
        prompt(one, 0, 1, "Ben: ", f"Ana: {TEXT}\nBen: "),
    ),
    "header-unscheduled": lambda one: (
        add(one, "Object 3", "the blue vase", "Tall blue vase of thin glass."),
        prompt(one, 0, 0, "\n\n", "\nthe blue vase: Tall blue vase of thin glass.\n\n"),
    ),
    "header-repeated": lambda one: prompt(one, 0, 1, "Ben: ", f"Ana: {TEXT}\nBen: "),
    "header-decorated": lambda one: prompt(one, 0, 0, "Ana: ", "Ana (Character 1): "),
    "header-line": lambda one: prompt(one, 0, 0, "Ana: ", "Somebody else: "),
    "header-order": lambda one: (
        prompt(one, 0, 0, f"Ana: {TEXT}\n", ""),
        prompt(one, 0, 0, "\n\n", f"\nAna: {TEXT}\n\n"),
    ),
    "header-period": setting(**{"entity_descriptions__Character 1__description": TEXT[:-1]}),
    "header-description": setting(
        **{"entity_descriptions__Character 1__description": "Woman of fifty in a green apron."}
    ),
}
"""Code -> what is done to a sound episode."""

FILES: dict[str, Callable[[Path], object]] = {
    "unreadable": lambda folder: (
        (folder / "scripts/gone.json").symlink_to(folder / "nothing.json"),
        os.mkfifo(folder / "scripts/pipe.json"),
    ),
    "too-large": lambda folder: (folder / "scripts/big.json").write_bytes(b" " * 5_000_001),
    "encoding": lambda folder: (folder / FIRST).write_bytes('{"story_name": "Kränich"}'.encode("latin-1")),
    "byte-order-mark": lambda folder: (folder / FIRST).write_bytes(
        b"\xef\xbb\xbf" + (folder / FIRST).read_bytes()
    ),
    "json": lambda folder: [
        (folder / f"scripts/{name}.json").write_bytes(content)
        for name, content in (
            ("empty", b""), ("cut", b'{"scenes": ['), ("number", b'{"_num_shots": NaN}'), ("list", b"[]"),
            ("deep", b"[" * 100_000),
        )
    ],
    "repeated-key": lambda folder: (folder / FIRST).write_bytes(
        (folder / FIRST).read_bytes().replace(b'"_num_scenes": 2', b'"_num_scenes": 2, "_num_scenes": 3')
    ),
    "shape": lambda folder: (folder / FIRST).write_bytes(
        b'{"scenes": [{"scene_num": "1", "cut": [1], "action_descriptions": "none"}], "_num_shots": true,'
        b' "entity_schedule": {"1:1": {"places": null}}, "entity_descriptions": []}'
    ),
    "stray-file": lambda folder: (folder / "scripts/notes.txt").write_text("x", "utf-8"),
    "unsafe-name": lambda folder: (folder / FIRST).rename(folder / "scripts/ep:a.json"),
    "split-object": lambda folder: _splits(
        folder, {"easy": [{"episode_id": "ep_a", "num_shots": 5}], "hard": ["ep_b"]}
    ),
    "split-unknown": lambda folder: _splits(folder, {"easy": ["ep_a", "ep_z"], "hard": ["ep_b"]}),
    "split-repeated": lambda folder: _splits(folder, {"easy": ["ep_a", "ep_a"], "hard": ["ep_a", "ep_b"]}),
    "split-all": lambda folder: _splits(
        folder, {"easy": ["ep_a"], "hard": ["ep_b"], "all": ["ep_b", "ep_a"]}
    ),
    "window-overlap": lambda folder: _windows(folder, (3, 14), (12, 20), (21, 30)),
    "no-tier": lambda folder: _splits(folder, {"easy": ["ep_a"]}),
}  # fmt: skip
"""Code -> what is done to the files of a sound set."""


def _splits(folder: Path, tiers: Any) -> None:
    (folder / "splits/ids.json").write_text(json.dumps(tiers), "utf-8")


def _windows(folder: Path, *windows: tuple[int, int]) -> None:
    """Write an episode for each window of a film, and one of another film, in place of those there."""
    for path in (folder / "scripts").iterdir():
        path.unlink()
    names = [f"film__i{first}_j{last}__T{10 * (last - first + 1)}" for first, last in windows]
    for name in (*names, "other__i3_j14__T120"):
        shots = [(scene, f"In {name}, {text}", names) for scene, text, names in SECOND]
        (folder / f"scripts/{name}.json").write_bytes(script_bytes(written_episode(name, shots)))
    _splits(folder, {"easy": [*names, "other__i3_j14__T120"]})


def broken(code: str, folder: Path) -> Path:
    if code in FILES:
        write_episodes(folder)
        FILES[code](folder)
        return folder
    episode = copy.deepcopy(written_episode())
    CHANGES[code](episode)
    write_episodes(folder, [written_episode(), written_episode("ep_b", SECOND)])
    (folder / FIRST).write_bytes(script_bytes(episode))
    return folder


@pytest.mark.parametrize("code", CODES)
def test_read_entity_set_when_one_rule_is_broken_reports_the_pinned_issues(code: str, tmp_path: Path) -> None:
    report = read_entity_set(broken(code, tmp_path / "data"))[1]
    text = "".join(f"{issue.level}: {issue}\n" for issue in report.issues)
    golden = GOLDEN / f"{code}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(text, "utf-8")
    assert code in report.counts
    assert text == golden.read_text("utf-8")


def test_a_sound_set_breaks_no_rule(tmp_path: Path) -> None:
    assert read_entity_set(write_episodes(tmp_path / "data"))[1].counts == {}


# -- Statistics of episodes against values worked out by hand, and of episodes that hold nothing

TIERS = {"easy": ["ep_a"], "hard": ["ep_b", "ep_z"], "all": ["ep_a", "ep_b"]}


def measured(document: dict[str, Any]) -> Measures:
    return measure(view_of(document["story_name"], EntityEpisode.model_validate(document)))


@pytest.fixture(scope="module")
def statistics() -> EntityStatistics:
    episodes = [written_episode(), written_episode("ep_b", SECOND)]
    return entity_statistics(map(measured, episodes), TIERS)


def row(statistics: EntityStatistics, table: str, key: str) -> dict[str, Any]:
    found = next(one for one in statistics.tables if one.key == table)
    values: dict[str, Any] = next(one for one in found.rows if one.key == key).as_json()["values"]
    return values


def test_statistics_when_episodes_are_counted_are_these(statistics: EntityStatistics, snapshot) -> None:
    said = [
        f"{table.key}, {row.key}: {'; '.join(map(value_text, row.values.values()))}"
        for table in statistics.tables
        for row in table.rows
    ]
    whole = statistics.as_json()
    rest = [f"{name}: {whole[name]}" for name in ("totals", "distributions", "episodes")]
    assert "\n".join([*said, *rest]) == snapshot


def test_gaps_when_counted_by_hand_are_as_index_and_as_shots_between(statistics: EntityStatistics) -> None:
    # Ana is in shots 1 2 4 5, Ben 2 3 5, the kitchen 1 2, the garden 3 4 5, the cup 1 5.
    index, between = (row(statistics, "table_3", f"mean_gap_{key}") for key in ("index", "between"))
    assert index["easy"] == {"mean": 1.555556, "sd": 0.955814, "of": 9}
    assert index["all"] == {"mean": 1.454545, "sd": 0.890724, "of": 11}
    assert between["easy"] == {"mean": 0.555556, "sd": 0.955814, "of": 9}
    assert row(statistics, "table_3", "max_gap_index")["all"] == {"mean": 2.5, "sd": 1.5, "of": 2}
    assert row(statistics, "table_3", "max_gap_between")["all"] == {"mean": 1.5, "sd": 1.5, "of": 2}
    assert row(statistics, "table_10", "mean_max_gap") == {
        "easy": 2.0,
        "hard": 1.0,
        "all": pytest.approx(12 / 7, abs=1e-6),
    }
    assert row(statistics, "section_a3", "max_gap_between") == {"easy": 3, "hard": 0, "all": 3}


def test_slots_and_first_appearances_when_counted_by_hand_agree(statistics: EntityStatistics) -> None:
    assert row(statistics, "table_8", "slots") == {"easy": 15, "hard": 5, "all": 20}
    assert row(statistics, "table_8", "first") == {"easy": 6, "hard": 3, "all": 9}
    assert row(statistics, "table_8", "again")["all"] == {"count": 11, "of": 20, "share": 0.55}
    assert row(statistics, "table_6", "appearances_characters") == {"easy": 7, "hard": 2, "all": 9}
    assert row(statistics, "table_6", "shots_per_character")["all"] == 3.0
    assert row(statistics, "table_10", "recurring")["easy"] == {"count": 5, "of": 6, "share": 0.833333}
    assert row(statistics, "table_8", "described")["all"]["count"] == 9


def test_cuts_chains_and_carry_over_when_counted_by_hand_agree(statistics: EntityStatistics) -> None:
    assert row(statistics, "table_10", "cut_rate")["easy"] == {"count": 2, "of": 5, "share": 0.4}
    assert row(statistics, "table_10", "cut_rate_within")["easy"] == {"count": 1, "of": 4, "share": 0.25}
    assert row(statistics, "section_a3", "chains") == {"easy": 2, "hard": 1, "all": 3}
    assert row(statistics, "section_a3", "carry_over_any")["easy"]["count"] == 1
    assert row(statistics, "section_a3", "carry_over_character")["easy"]["count"] == 1
    assert row(statistics, "section_a3", "carry_over_location")["easy"]["count"] == 0
    assert row(statistics, "section_a3", "carry_over_any")["hard"] is None
    assert row(statistics, "section_a3", "longest_run") == {"easy": 3, "hard": 2, "all": 3}


def test_rest_of_what_is_counted_when_counted_by_hand_agrees(statistics: EntityStatistics) -> None:
    # Chains of 2 and 3 shots, and of 2; at the one cut Ben is on both sides.
    assert row(statistics, "section_a3", "several_chains")["all"] == {"count": 3, "of": 3, "share": 1.0}
    assert row(statistics, "section_a3", "carry_over_none")["easy"] == {"count": 0, "of": 1, "share": 0.0}
    # All is in the registry: 15 slots of 6 names, and 5 of 3.
    assert row(statistics, "table_8", "again_registered")["all"] == {"count": 11, "of": 20, "share": 0.55}
    # 9 slots of 3 characters in the registries, 4 of 3 objects.
    assert row(statistics, "table_6", "character_by_object")["all"] == 2.25
    # No shot after the tenth, no verb 43 times, no shot type, no day.
    for table, key in (
        ("section_a3", "introduced_late"), ("table_9", "share_posture"), ("section_a4", "close_up_share"),
        ("section_a4", "night_by_day"),
    ):  # fmt: skip
        assert row(statistics, table, key) == {"easy": None, "hard": None, "all": None}


def test_verbs_and_times_of_day_when_there_are_enough_are_shares() -> None:
    episode = written_episode("ep_b", SECOND)
    action = " ".join(["stand"] * 60 + ["walk"] * 20 + ["sits"] * 42) + " at night, not by day, in close-up."
    for texts in (episode["scenes"][0]["action_descriptions"], episode["scenes"][0]["video_prompts"]):
        texts[:] = [action, action]
    found = entity_statistics([measured(episode)])
    # 120 times stand and 84 times sits, 40 times walk, which is too few.
    assert row(found, "table_9", "share_posture")["all"] == {"count": 204, "of": 204, "share": 1.0}
    assert row(found, "table_9", "share_motion")["all"]["count"] == 0
    assert row(found, "section_a4", "night_by_day")["all"] == 1.0
    assert row(found, "section_a4", "close_up_share")["all"] == {"count": 2, "of": 2, "share": 1.0}


def test_memory_only_when_a_header_comes_late_differs_by_definition() -> None:
    episode = written_episode()
    prompts = episode["scenes"][1]["video_prompts"]
    prompts[1] = f"Ana: again\n\n{prompts[1]}"
    found = entity_statistics([measured(episode)])
    assert row(found, "table_10", "memory_only")["all"] == {"count": 1, "of": 5, "share": 0.2}
    assert row(found, "table_10", "memory_only_schedule")["all"] == {"count": 2, "of": 5, "share": 0.4}


def test_introductions_when_episodes_differ_in_length_count_those_that_are_so_long(statistics):
    introduced = statistics.as_json()["distributions"]["all"]["introduced"]
    assert introduced[:3] == [
        {"shot": 1, "episodes": 2, "mean": 2.5},
        {"shot": 2, "episodes": 2, "mean": 1.0},
        {"shot": 3, "episodes": 1, "mean": 2.0},
    ]
    assert row(statistics, "section_a3", "introduced_first")["all"] == 2.5


def test_statistics_when_there_is_nothing_have_no_value_instead_of_zero_shares() -> None:
    empty = entity_statistics([])
    assert row(empty, "table_3", "mean_gap_index") == {"all": None}
    assert row(empty, "table_10", "cut_rate") == {"all": None}
    assert row(empty, "table_10", "episodes") == {"all": 0}
    bare = measured({"story_name": "bare", "scenes": [{}]})
    found = entity_statistics([bare]).as_json()
    assert found["totals"] == {"episodes": 1, "scenes": 1, "shots": 0, "entities": 0, "slots": 0}
    assert found["episodes"]["bare"]["max_gap_index"] == 0


def test_statistics_when_episodes_come_in_another_order_are_the_same(statistics: EntityStatistics) -> None:
    episodes = [written_episode("ep_b", SECOND), written_episode()]
    again = entity_statistics(map(measured, episodes), TIERS)
    assert again.as_json()["tables"] == statistics.as_json()["tables"]


def test_mentions_when_names_differ_in_case_or_part_are_told_apart() -> None:
    assert named("Ana opens The Garden gate.", "The Garden") == "exact"
    assert named("Ana opens the garden gate.", "The Garden") == "case"
    assert named("Ana opens her garden gate.", "The Garden") == "part"
    assert named("Ana opens the gate.", "The Garden") is None
    assert not holds("Anabel and Banana", "Ana")
    assert holds("Ana's hat", "Ana")
    assert holds("小明走进花园。", "小明")
    assert not holds("anything", "")


def test_numbers_when_there_are_few_are_worked_out_as_stated() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5
    assert median([]) is None
    assert spread([1, 3]) == Spread(2.0, 1.0, 2)
    assert spread([]) is None
    assert share(1, 0) is None
    assert value_text(Share(1, 3)) == "33.3% (1)"
    assert value_text(Spread(2.0, 1.0, 2)) == "2.00 ± 1.00"
    assert [value_text(one) for one in (None, 1234, 1.5)] == ["–", "1,234", "1.50"]


# Values as people read them.


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(239 / 40, 2, "5.98"), (101 / 40, 2, "2.53"), (1 / 3, 2, "0.33"), (0.125, 1, "0.1"),
     (12345.5, 0, "12,346"), (-0.005, 2, "-0.01"), (0.0, 2, "0.00")],
)  # fmt: skip
def test_fixed_when_a_value_lies_between_two_takes_the_one_away_from_zero(value, places, text):
    assert fixed(value, places) == text
