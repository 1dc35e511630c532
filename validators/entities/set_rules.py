"""Rules about a set of episodes: its splits, and what episodes must not share."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ...schemas.entities import (
    ALL,
    LABELS,
    LISTS,
    TYPES,
    EntitySplits,
    EntityType,
    EpisodeShot,
    type_of_label,
)
from ...schemas.values import Issue
from ..report import show
from .measures import beyond_ascii
from .script_rules import check_script, check_texts
from .view import EpisodeView, issue

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
