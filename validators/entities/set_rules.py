"""Rules about a set of episodes: its splits, and what episodes must not share."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from pydantic import BaseModel

from ...schemas.entities import (
    ALL,
    LABELS,
    LISTS,
    TYPES,
    EntityEpisode,
    EntityScene,
    EntitySplits,
    EntityType,
    EpisodeShot,
    RegistryEntry,
    ScheduledShot,
    type_of_label,
)
from ...schemas.values import Issue
from ..report import show
from ..view import find_redacted
from .measures import beyond_ascii
from .view import EntityKey, EpisodeView, Header, HeaderLine, Named, holds, issue, named

# -- Rules about the frame of a script: keys, numbers, lists, the source's shots, empty texts

_NOTES = ("_window_shot_ids", "_num_scenes", "_num_shots", "_name_map")
_WINDOW_ID = re.compile(r"(.+)__shot([0-9]{1,9})", re.DOTALL)


def check_script(view: EpisodeView, where: str) -> Iterator[Issue]:
    """Yield what is wrong with the frame of a script."""
    yield from find_redacted(view.script.as_json(), where)
    yield from _keys(view.script, where)
    yield from _numbers(view, where)
    yield from _schedule_keys(view, where)
    yield from _window(view, where)
    yield from _texts(view, where)


def _keys(script: EntityEpisode, where: str) -> Iterator[Issue]:
    yield from _own_keys(script, where, "$")
    for index, scene in enumerate(script.scenes):
        yield from _own_keys(scene, where, f"$.scenes[{index}]")
    for key, shot in script.entity_schedule.items():
        yield from _own_keys(shot, where, f"$.entity_schedule[{show(key)}]")
    for label, entry in script.entity_descriptions.items():
        yield from _own_keys(entry, where, f"$.entity_descriptions[{show(label)}]")


def _own_keys(
    part: EntityEpisode | EntityScene | ScheduledShot | RegistryEntry, where: str, path: str
) -> Iterator[Issue]:
    if len(part.model_fields_set) == len(type(part).model_fields) and not part.model_extra:
        return  # every key once, and no other
    for key in _unfilled(part):
        code = "missing-note" if key in _NOTES else "missing-key"
        yield issue(code, where, path, f"{key} is missing")
    for key in part.unknown_fields():
        yield issue("unknown-field", where, path, f"{show(key)} is no field of the format; it is kept")


def _unfilled(part: BaseModel) -> Iterator[str]:
    for name, info in type(part).model_fields.items():
        if name not in part.model_fields_set:
            yield info.alias or name


def _numbers(view: EpisodeView, where: str) -> Iterator[Issue]:
    script = view.script
    if script.story_name is not None and script.story_name != view.episode_id:
        message = f"expected {show(view.episode_id)}, found {show(script.story_name)}"
        yield issue("story-name", where, "$.story_name", message)
    if not script.scenes:
        yield issue("no-shots", where, "$.scenes", "expected a scene, found none")
    numbers = [scene.scene_num for scene in script.scenes]
    if numbers != list(range(1, len(numbers) + 1)):
        message = f"expected 1 to {len(numbers)}, found {show(numbers)}"
        yield issue("scene-order", where, "$.scenes[*].scene_num", message)
    for index, scene in enumerate(script.scenes):
        yield from _scene(scene, where, f"$.scenes[{index}]")
    for name, stated, counted in (
        ("_num_scenes", script.num_scenes, len(script.scenes)),
        ("_num_shots", script.num_shots, len(view.shots)),
    ):
        if stated is not None and stated != counted:
            yield issue("stated-count", where, f"$.{name}", f"expected {counted}, found {stated}")


def _scene(scene: EntityScene, where: str, path: str) -> Iterator[Issue]:
    lengths = [len(scene.video_prompts), len(scene.cut), len(scene.action_descriptions)]
    if len(set(lengths)) > 1:
        listed = ", ".join(map(str, lengths))
        yield issue("list-length", where, path, f"prompts, cuts and actions have the lengths {listed}")
    elif not lengths[0]:
        yield issue("no-shots", where, path, "expected a shot, found none")
    if scene.cut and not scene.cut[0]:
        yield issue("first-cut", where, f"{path}.cut[0]", "expected true, found false")


def _schedule_keys(view: EpisodeView, where: str) -> Iterator[Issue]:
    wanted = [shot.key for shot in view.shots]
    keys = list(view.script.entity_schedule)
    if wanted == keys:
        return
    for key in sorted(set(wanted) - set(keys)):
        yield issue("schedule-key", where, "$.entity_schedule", f"the shot {show(key)} is missing")
    for key in sorted(set(keys) - set(wanted)):
        path = f"$.entity_schedule[{show(key)}]"
        yield issue("schedule-key", where, path, f"{show(key)} is no shot of the script")
    twice = sorted(key for key, count in Counter(wanted).items() if count > 1)
    for key in twice:
        yield issue("schedule-key", where, "$.entity_schedule", f"{show(key)} stands for several shots")
    if sorted(wanted) == sorted(keys):
        yield issue("schedule-order", where, "$.entity_schedule", "its keys are not in story order")


def _window(view: EpisodeView, where: str) -> Iterator[Issue]:
    ids, path = view.script.window_shot_ids, "$._window_shot_ids"
    if ids is None:
        return
    if len(ids) != len(view.shots):
        message = f"expected {len(view.shots)}, found {len(ids)}"
        yield issue("window-length", where, path, message)
    numbers = []
    for index, scene_id in enumerate(ids):
        match = _WINDOW_ID.fullmatch(scene_id)
        if match is None or match[1] != view.episode_id:
            message = f"expected {view.episode_id}__shot0001 or the like, found {show(scene_id)}"
            yield issue("window-id", where, f"{path}[{index}]", message)
            return
        numbers.append(int(match[2]))
    steps = [after - before for before, after in pairwise(numbers)]
    if any(step <= 0 for step in steps):
        yield issue("window-order", where, path, "the numbers do not ascend")
    elif any(step > 1 for step in steps):
        left_out = numbers[-1] - numbers[0] + 1 - len(numbers)
        yield issue("window-gap", where, path, f"{left_out} shots of the source are left out")


def _texts(view: EpisodeView, where: str) -> Iterator[Issue]:
    if not (view.script.story_overview or "").strip() and "story_overview" in view.script.model_fields_set:
        yield issue("empty-text", where, "$.story_overview", "expected a text, found none")
    for number, scene in enumerate(view.script.scenes):
        for name, texts in (
            ("video_prompts", scene.video_prompts),
            ("action_descriptions", scene.action_descriptions),
        ):
            for index, text in enumerate(texts):
                if not text.strip():
                    path = f"$.scenes[{number}].{name}[{index}]"
                    yield issue("empty-text", where, path, "expected a text, found none")


_PLACEHOLDER = re.compile(rf"\b({'|'.join(LABELS.values())}) \d+\b|\b[Gg]en_\w+")
_CODES: dict[Named | None, str] = {"case": "mention-case", "part": "mention-part", None: "unmentioned"}
_HOW: dict[Named | None, str] = {
    "case": "in another case",
    "part": "by a part of its name",
    None: "in no way",
}


def check_texts(view: EpisodeView, where: str) -> Iterator[Issue]:
    """Yield what is wrong with the actions and prompts of an episode."""
    first = {key: numbers[0] for key, numbers in view.appearances.items()}
    opens = {name: min(first[kind, name] for kind in TYPES if (kind, name) in first) for _, name in first}
    new: dict[int, list[EntityKey]] = {}
    for key, start in first.items():
        new.setdefault(start, []).append(key)
    described: set[str] = set()
    for number, (shot, header) in enumerate(zip(view.shots, view.headers, strict=True), 1):
        yield from _mentions(view, shot, where)
        yield from _action(shot, where)
        yield from _header(view, shot, header, where)
        path = _script_path(shot, "video_prompts")
        for line in header.lines:
            if line.name is not None and not line.decorated:
                yield from _place(line.name, opens.get(line.name), number, described, where, path)
                described.add(line.name)
        here = {line.name for line in header.lines if not line.decorated}
        for kind, name in new.get(number, ()):
            if name not in here:
                yield issue("header-missing", where, path, f"the {kind} {show(name)} is not described")


def _mentions(view: EpisodeView, shot: EpisodeShot, where: str) -> Iterator[Issue]:
    scheduled: set[str] = set()
    for listed, kind in LISTS.items():
        for index, name in enumerate(shot.scheduled.names(kind)):
            scheduled.add(name)
            how = named(shot.action, name)
            if how != "exact":
                path = f"$.entity_schedule[{show(shot.key)}].{listed}[{index}]"
                yield issue(_CODES[how], where, path, f"the action names {show(name)} {_HOW[how]}")
    for name in view.index.held(shot.action):
        if name not in scheduled:
            inside = next((other for other in scheduled if holds(other, name)), None)
            hint = f", perhaps as a part of {show(inside)}" if inside is not None else ""
            message = f"the action names {show(name)}{hint}"
            yield issue("unscheduled-mention", where, _script_path(shot, "action_descriptions"), message)


def _action(shot: EpisodeShot, where: str) -> Iterator[Issue]:
    path = _script_path(shot, "action_descriptions")
    if "`" in shot.action:
        yield issue("back-ticks", where, path, f"found {shot.action.count('`')}")
    if not shot.action.isascii():
        yield issue("action-ascii", where, path, f"found {beyond_ascii(shot.action)}")
    for match in _PLACEHOLDER.finditer(shot.action):
        yield issue("placeholder", where, path, f"found {show(match[0])}")


def _header(view: EpisodeView, shot: EpisodeShot, header: Header, where: str) -> Iterator[Issue]:
    path = _script_path(shot, "video_prompts")
    if not header.ends_with_action:
        yield issue("prompt-action", where, path, "the action is not at its end")
        return
    if header.lines and header.separator != "\n\n":
        yield issue("header-separator", where, path, f"found {show(header.separator)}")
    for line in header.lines:
        yield from _line(line, view.descriptions, where, path)
    kinds = [view.type_of(line.name) for line in header.lines if line.name is not None and not line.decorated]
    order = [TYPES.index(kind) for kind in kinds if kind is not None]
    if order != sorted(order):
        yield issue("header-order", where, path, "types are mixed")


def _line(line: HeaderLine, descriptions: Mapping[str, str], where: str, path: str) -> Iterator[Issue]:
    if line.name is None:
        yield issue("header-line", where, path, f"found {show(line.text)}")
    elif line.decorated:
        yield issue("header-decorated", where, path, f"found {show(line.text.partition(': ')[0])}")
    elif line.description == f"{descriptions[line.name]}.":
        yield issue("header-period", where, path, f"the description of {show(line.name)}")
    elif line.description != descriptions[line.name]:
        message = f"the registry describes {show(line.name)} otherwise"
        yield issue("header-description", where, path, message)


def _place(
    name: str, opens: int | None, number: int, described: set[str], where: str, path: str
) -> Iterator[Issue]:
    if name in described:
        yield issue("header-repeated", where, path, f"{show(name)} was described before")
    elif opens is None:
        yield issue("header-unscheduled", where, path, f"{show(name)} is scheduled in no shot")
    elif opens != number:
        yield issue("header-elsewhere", where, path, f"{show(name)} is first scheduled in shot {opens}")


def _script_path(shot: EpisodeShot, field: str) -> str:
    return f"$.scenes[{shot.place}].{field}[{shot.number - 1}]"


# -- Rules about the registry of an episode: labels, names, descriptions, the map of names

GENERATED = "Gen_"
LONG_WORDS = 30
"""Words of a description at most: what the prompts that polish descriptions ask for. Of the 3,729 published
ones 137 have more. The official evaluator looks for the first twelve words alone, whatever the length."""
SHORT_WORDS = 3
_MOST_TOLD = 10
CLIP_TOKENS = 77
"""Tokens of a text that CLIP's text encoder takes, the marks at both ends included."""
_MARKS = 2
# How CLIP's tokeniser cuts a text before it splits words further: so many tokens there are at least.
_PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d|[^\W\d_]+|\d|[^\s\w]+|_")


def check_registry(view: EpisodeView, where: str) -> Iterator[Issue]:
    """Yield what is wrong with the registry of an episode."""
    yield from _labels(view, where)
    yield from _names(view, where)
    yield from _descriptions(view, where)
    yield from _name_map(view, where)


def least_clip_tokens(text: str) -> int:
    """Return how many tokens of CLIP a text has at least: words of more than one token count as one."""
    return len(_PIECES.findall(text.lower())) + _MARKS


def _labels(view: EpisodeView, where: str) -> Iterator[Issue]:
    numbers: dict[EntityType, list[int]] = {kind: [] for kind in TYPES}
    order = []
    for label, entry in view.script.entity_descriptions.items():
        path = _path(label)
        if entry.label is not None and entry.label != label:
            yield issue("label-key", where, f"{path}.label", f"found {show(entry.label)} under {show(label)}")
        kind = type_of_label(label)
        if kind is not None:
            numbers[kind].append(int(label.partition(" ")[2]))
            order.append(TYPES.index(kind))
        elif label.startswith(GENERATED):
            yield issue("generated-label", where, path, f"{show(label)} names no type")
        else:
            yield issue("label-form", where, path, f"{show(label)} names no type and number")
    if order != sorted(order):
        yield issue("registry-order", where, "$.entity_descriptions", "types are mixed")
    for kind, number in numbers.items():
        missing = list(islice(_missing(number), _MOST_TOLD + 1))
        if missing:
            listed = ", ".join(map(str, missing[:_MOST_TOLD])) + (
                ", ..." if len(missing) > _MOST_TOLD else ""
            )
            yield issue("label-gap", where, "$.entity_descriptions", f"no {LABELS[kind]} {listed}")


def _missing(numbers: Sequence[int]) -> Iterator[int]:
    """Yield the numbers that are missing from 1 to the highest, ascending."""
    before = 0
    for number in sorted(set(numbers)):
        yield from range(before + 1, number)
        before = number


def _names(view: EpisodeView, where: str) -> Iterator[Issue]:
    for label, entry in view.script.entity_descriptions.items():
        if "name" in entry.model_fields_set and not (entry.name or "").strip():
            yield issue("registry-name", where, f"{_path(label)}.name", "expected a name, found none")
    folded: dict[str, str] = {}
    for name, labels in view.labels.items():
        if len(labels) > 1:
            message = f"{show(name)} is {' and '.join(labels)}"
            yield issue("name-repeated", where, _path(labels[1]), message)
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            message = f"{show(name)} and {show(other)} differ only in case"
            yield issue("name-case", where, _path(labels[0]), message)
        if not name.isascii():
            message = f"found {beyond_ascii(name)} in {show(name)}"
            yield issue("name-ascii", where, f"{_path(labels[0])}.name", message)
    yield from _contained(view, where)


def _contained(view: EpisodeView, where: str) -> Iterator[Issue]:
    for other in view.labels:
        for name in view.index.held(other):
            if name != other:
                message = f"{show(name)} is a part of {show(other)}"
                yield issue("name-contained", where, _path(view.labels[name][0]), message)


def _descriptions(view: EpisodeView, where: str) -> Iterator[Issue]:
    same: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for label, entry in view.script.entity_descriptions.items():
        if "description" not in entry.model_fields_set:
            continue
        path, text = f"{_path(label)}.description", entry.description or ""
        if not text.strip():
            yield issue("description-empty", where, path, "expected a description, found none")
            continue
        yield from _description(text, where, path)
        if entry.name:
            same[text][entry.name] = None
    for names in same.values():
        if len(names) > 1:
            shown = ", ".join(map(show, list(names)[:_MOST_TOLD])) + (
                ", ..." if len(names) > _MOST_TOLD else ""
            )
            message = f"{shown} have the same"
            yield issue("description-repeated", where, "$.entity_descriptions", message)


def _description(text: str, where: str, path: str) -> Iterator[Issue]:
    words = len(text.split())
    if "\n" in text or "\r" in text:
        yield issue("description-lines", where, path, "it has several lines")
    if words <= SHORT_WORDS:
        yield issue("description-short", where, path, f"found {words}: {show(text)}")
    elif words > LONG_WORDS:
        yield issue("description-long", where, path, f"found {words}")
    tokens = least_clip_tokens(text)
    if tokens > CLIP_TOKENS:
        yield issue("description-tokens", where, path, f"found {tokens} or more")
    if not text.endswith("."):
        yield issue("description-period", where, path, f"found {show(text[-20:])}")


def _name_map(view: EpisodeView, where: str) -> Iterator[Issue]:
    given, registry = view.script.name_map, view.script.entity_descriptions
    if given is None:
        return
    for label, name in given.items():
        path = f"$._name_map[{show(label)}]"
        if label not in registry:
            yield issue("name-map-extra", where, path, f"{show(label)} is not in the registry")
        elif registry[label].name != name:
            message = f"{show(name)} here, {show(registry[label].name)} in the registry"
            yield issue("name-map", where, path, message)
    for label in registry:
        if label not in given:
            yield issue("name-map-missing", where, "$._name_map", f"{show(label)} is missing")


def _path(label: str) -> str:
    return f"$.entity_descriptions[{show(label)}]"


def check_schedule(view: EpisodeView, where: str) -> Iterator[Issue]:
    """Yield what is wrong with the schedule of an episode."""
    folded = {name.casefold(): name for name in view.labels}
    for shot in view.shots:
        path = f"$.entity_schedule[{show(shot.key)}]"
        for name, kind in LISTS.items():
            for index, entity in enumerate(shot.scheduled.names(kind)):
                yield from _slot(view, folded, _Slot(entity, kind, f"{path}.{name}[{index}]"), where)
        yield from _shot(shot, where, path)
    yield from _episode(view, where)


class _Slot(NamedTuple):
    name: str
    kind: EntityType
    path: str


def _slot(view: EpisodeView, folded: Mapping[str, str], slot: _Slot, where: str) -> Iterator[Issue]:
    name = slot.name
    labels = view.labels.get(name)
    if labels is None:
        near = folded.get(name.casefold())
        hint = f"; {show(near)} differs only in case" if near is not None else ""
        yield issue("unregistered", where, slot.path, f"{show(name)} is not in the registry{hint}")
    elif slot.kind not in {type_of_label(label) for label in labels}:
        yield issue("type-mismatch", where, slot.path, f"{show(name)} is {' and '.join(labels)}")


def _shot(shot: EpisodeShot, where: str, path: str) -> Iterator[Issue]:
    lists = {name: shot.scheduled.names(kind) for name, kind in LISTS.items()}
    for name, entities in lists.items():
        for entity, count in Counter(entities).items():
            if count > 1:
                yield issue(
                    "slot-repeated", where, f"{path}.{name}", f"{show(entity)} is there {count} times"
                )
    in_lists = Counter(entity for entities in lists.values() for entity in set(entities))
    for entity in sorted(entity for entity, count in in_lists.items() if count > 1):
        named = " and ".join(name for name, entities in lists.items() if entity in entities)
        yield issue("two-lists", where, path, f"{show(entity)} is in {named}")
    if not any(lists.values()):
        yield issue("empty-shot", where, path, "nothing is scheduled")
    if not lists["characters"]:
        yield issue("no-character", where, f"{path}.characters", "found none")
    if not lists["places"]:
        yield issue("no-place", where, f"{path}.places", "found none")
    elif len(lists["places"]) > 1:
        yield issue("several-places", where, f"{path}.places", f"found {len(lists['places'])}")


def _episode(view: EpisodeView, where: str) -> Iterator[Issue]:
    kinds = Counter(name for _, name in view.appearances)
    for name in sorted(name for name, count in kinds.items() if count > 1):
        lists = " and ".join(kind for kind, other in view.appearances if other == name)
        yield issue("two-types", where, "$.entity_schedule", f"{show(name)} is a {lists}")
    scheduled = view.scheduled
    for name, labels in view.labels.items():
        if name not in scheduled:
            path = f"$.entity_descriptions[{show(labels[0])}]"
            yield issue("never-scheduled", where, path, f"{show(name)} is in no shot")


# -- Rules about a set of episodes

_WINDOW = re.compile(r"(.+)__i([0-9]{1,9})_j([0-9]{1,9})__T[0-9]+", re.DOTALL)


def check_episode(view: EpisodeView, where: str) -> Iterator[Issue]:
    """Yield everything that is wrong with one episode."""
    yield from check_script(view, where)
    yield from check_registry(view, where)
    yield from check_schedule(view, where)
    yield from check_texts(view, where)


def check_actions(views: Sequence[tuple[EpisodeView, str]]) -> Iterator[Issue]:
    """Yield every action that stands in the set before; each view comes with the name of its file."""
    seen: dict[str, str] = {}
    for view, where in views:
        for shot in view.shots:
            if not shot.action.strip():
                continue
            here = f"{where} {shot.key}"
            other = seen.setdefault(shot.action, here)
            if other != here:
                path = f"$.scenes[{shot.place}].action_descriptions[{shot.number - 1}]"
                yield issue("repeated-action", where, path, f"the same as in {other}")


def check_windows(episodes: Sequence[tuple[str, str]]) -> Iterator[Issue]:
    """Yield the episodes whose ids say that their window overlaps an earlier one of the same source.

    Each episode comes as its id and the name of its file.
    """
    windows: dict[str, list[tuple[int, int, str, str]]] = {}
    for episode, where in episodes:
        match = _WINDOW.fullmatch(episode)
        if match is not None:
            windows.setdefault(match[1], []).append((int(match[2]), int(match[3]), episode, where))
    for group in windows.values():
        last_one: tuple[int, int, str] | None = None  # of those before, the one that goes on longest
        for first, last, episode, where in sorted(group):
            if last_one is not None and last_one[1] >= first:
                start, stop, other = last_one
                message = f"i{first}_j{last} overlaps i{start}_j{stop} of {show(other)}"
                yield issue("window-overlap", where, "$.story_name", message)
            if last_one is None or last > last_one[1]:
                last_one = (first, last, episode)


def check_splits(splits: EntitySplits, where: str, known: Collection[str]) -> Iterator[Issue]:
    """Yield what is wrong with one split file.

    ``known``: the episodes that have a file, one that cannot be used included.
    """
    for tier, index, item in splits.objects():
        message = f"an object of {len(item.as_json())} fields stands for {show(item.episode_id)}"
        yield issue("split-object", where, f"$.{tier}[{index}]", message)
    tiers = {tier: splits.ids(tier) for tier in splits.root}
    for tier, ids in tiers.items():
        for index, episode in enumerate(ids):
            if episode not in known:
                yield issue("split-unknown", where, f"$.{tier}[{index}]", f"no script of {show(episode)}")
    yield from _repeated(tiers, where)
    if ALL in tiers:
        joined = [name for tier, ids in tiers.items() if tier != ALL for name in ids]
        if len(tiers) > 1 and list(tiers[ALL]) != joined:
            message = f"expected the {len(joined)} of the other tiers in order, found {len(tiers[ALL])}"
            yield issue("split-all", where, f"$.{ALL}", message)


def _repeated(tiers: Mapping[str, Sequence[str]], where: str) -> Iterator[Issue]:
    for group in ([tier for tier in tiers if tier != ALL], [ALL]):
        seen: dict[str, str] = {}
        for tier in group:
            for index, episode in enumerate(tiers.get(tier, ())):
                if episode in seen:
                    message = f"{show(episode)} stands in {seen[episode]} already"
                    yield issue("split-repeated", where, f"$.{tier}[{index}]", message)
                seen[episode] = tier


def check_tiers(splits: Sequence[EntitySplits], episodes: Sequence[tuple[str, str]]) -> Iterator[Issue]:
    """Yield the episodes that no split file names; each comes as its id and the name of its file."""
    if not splits:
        return
    named = {name for part in splits for tier in part.root for name in part.ids(tier)}
    for episode, where in episodes:
        if episode not in named:
            yield issue("no-tier", where, "$", "no split names it")
