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
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode
from fabula.validators.entities.view import CODES

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
    "empty-text": lambda one: (setting(story_overview=" ")(one), action(one, 1, 1, "")),
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
    "description-long": lambda one: describe(one, "Character 1", " ".join([TEXT[:-1], "and boots", TEXT])),
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
