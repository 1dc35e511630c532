"""Two small episodes in the official EntityBench form, written by hand and sound; folders of such."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..releases.entities.tree import script_bytes

_WORDS = json.loads((files(__package__) / "words.json").read_bytes())["written_episodes"]
Written = tuple[int, str, tuple[str, ...]]
"""Scene, action and scheduled names of a shot."""
CAST: Mapping[str, tuple[str, str]] = {label: (name, text) for label, (name, text) in _WORDS["cast"].items()}
"""Label -> name and description."""
SHOTS: Sequence[Written]
SHOTS, SECOND = (
    tuple((scene, action, tuple(names)) for scene, action, names in _WORDS[which])
    for which in ("first", "second")
)
"""The shots of each episode."""

_LISTS = {"Character": "characters", "Location": "places", "Object": "objects"}


def written_episode(name: str = "ep_a", shots: Sequence[Written] = SHOTS) -> dict[str, Any]:
    """Return an episode as parsed JSON; its registry holds who is scheduled, numbered within each type."""
    labels = _labels(shots)
    scenes: dict[int, dict[str, Any]] = {}
    schedule: dict[str, Any] = {}
    known: set[str] = set()
    for number, action, names in shots:
        scene = scenes.setdefault(
            number, {"scene_num": number, "video_prompts": [], "cut": [], "action_descriptions": []}
        )
        lines = [f"{one}: {_description(one)}" for one in names if one not in known]
        known.update(names)
        scene["video_prompts"].append("\n".join([*lines, "", action]) if lines else action)
        scene["cut"].append(not scene["cut"])
        scene["action_descriptions"].append(action)
        schedule[f"{number}:{len(scene['cut'])}"] = {
            plural: [one for one in names if labels[one].startswith(word)] for word, plural in _LISTS.items()
        }
    by_label = {label: one for one, label in labels.items()}
    order = [label for word in _LISTS for label in by_label if label.startswith(word)]
    return {
        "story_name": name,
        "story_overview": "Ana and Ben carry a cup from The Kitchen to The Garden.",
        "scenes": list(scenes.values()),
        "entity_schedule": schedule,
        "entity_descriptions": {
            label: {"name": by_label[label], "label": label, "description": _description(by_label[label])}
            for label in order
        },
        "_window_shot_ids": [f"{name}__shot{number:04d}" for number in range(3, 3 + len(shots))],
        "_num_scenes": len(scenes),
        "_num_shots": len(shots),
        "_name_map": {label: by_label[label] for label in order},
    }


def write_episodes(folder: Path, episodes: Sequence[Mapping[str, Any]] | None = None) -> Path:
    """Write episodes and a split file that calls the first easy and the others hard; return the folder."""
    given = [written_episode(), written_episode("ep_b", SECOND)] if episodes is None else list(episodes)
    (folder / "scripts").mkdir(parents=True)
    (folder / "splits").mkdir()
    for episode in given:
        (folder / "scripts" / f"{episode['story_name']}.json").write_bytes(script_bytes(episode))
    ids = [str(episode["story_name"]) for episode in given]
    splits = {"easy": ids[:1], "hard": ids[1:], "all": ids}
    (folder / "splits" / "ids.json").write_text(json.dumps(splits, indent=2), "utf-8")
    return folder


def _labels(shots: Sequence[Written]) -> dict[str, str]:
    words = {name: label.partition(" ")[0] for label, (name, _) in CAST.items()}
    counts: dict[str, int] = {}
    labels = {}
    for name in dict.fromkeys(one for _, _, names in shots for one in names):
        word = words[name]
        counts[word] = counts.get(word, 0) + 1
        labels[name] = f"{word} {counts[word]}"
    return labels


def _description(name: str) -> str:
    return next(description for other, description in CAST.values() if other == name)
