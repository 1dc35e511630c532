"""Rules about the frame of a script: keys, numbers, lists, the source's shots, empty texts."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from pydantic import BaseModel

from ...schemas.entities import (
    LABELS,
    LISTS,
    TYPES,
    EntityEpisode,
    EntityScene,
    EpisodeShot,
    RegistryEntry,
    ScheduledShot,
)
from ...schemas.values import Issue
from ..report import show
from ..view import find_redacted
from .measures import beyond_ascii
from .view import EntityKey, EpisodeView, Header, HeaderLine, Named, holds, issue, named

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
    for key in _missing(part):
        code = "missing-note" if key in _NOTES else "missing-key"
        yield issue(code, where, path, f"{key} is missing")
    for key in part.unknown_fields():
        yield issue("unknown-field", where, path, f"{show(key)} is no field of the format; it is kept")


def _missing(part: BaseModel) -> Iterator[str]:
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
        path = _path(shot, "video_prompts")
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
            yield issue("unscheduled-mention", where, _path(shot, "action_descriptions"), message)


def _action(shot: EpisodeShot, where: str) -> Iterator[Issue]:
    path = _path(shot, "action_descriptions")
    if "`" in shot.action:
        yield issue("back-ticks", where, path, f"found {shot.action.count('`')}")
    if not shot.action.isascii():
        yield issue("action-ascii", where, path, f"found {beyond_ascii(shot.action)}")
    for match in _PLACEHOLDER.finditer(shot.action):
        yield issue("placeholder", where, path, f"found {show(match[0])}")


def _header(view: EpisodeView, shot: EpisodeShot, header: Header, where: str) -> Iterator[Issue]:
    path = _path(shot, "video_prompts")
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


def _path(shot: EpisodeShot, field: str) -> str:
    return f"$.scenes[{shot.place}].{field}[{shot.number - 1}]"
