"""Rules about actions and prompts: who is mentioned, and what the headers describe."""

import re
from collections.abc import Iterator, Mapping

from ...schemas.entities import LABELS, LISTS, TYPES, EpisodeShot
from ...schemas.issue import Issue
from ..codes import show
from .codes import issue
from .texts import beyond_ascii
from .view import EntityKey, EpisodeView, Header, HeaderLine, Named, holds, named

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
                yield from _place(line.name, opens.get(line.name), number, described, (where, path))
                described.add(line.name)
        here = {line.name for line in header.lines if not line.decorated}
        for kind, name in new.get(number, ()):
            if name not in here:
                yield issue("header-missing", where, path, f"the {kind} {show(name)} is not described")


def _mentions(view: EpisodeView, shot: EpisodeShot, where: str) -> Iterator[Issue]:
    scheduled: set[str] = set()
    for listed, kind in LISTS.items():
        for place, name in enumerate(shot.scheduled.names(kind)):
            scheduled.add(name)
            how = named(shot.action, name)
            if how != "exact":
                path = f"$.entity_schedule[{show(shot.key)}].{listed}[{place}]"
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
    name: str, opens: int | None, number: int, described: set[str], place: tuple[str, str]
) -> Iterator[Issue]:
    if name in described:
        yield issue("header-repeated", *place, f"{show(name)} was described before")
    elif opens is None:
        yield issue("header-unscheduled", *place, f"{show(name)} is scheduled in no shot")
    elif opens != number:
        yield issue("header-elsewhere", *place, f"{show(name)} is first scheduled in shot {opens}")


def _path(shot: EpisodeShot, field: str) -> str:
    return f"$.scenes[{shot.place}].{field}[{shot.number - 1}]"
