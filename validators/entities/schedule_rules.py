"""Rules about the schedule of an episode: names, types, places, entities that are never scheduled."""

from collections import Counter
from collections.abc import Iterator, Mapping

from ...schemas.entities import LISTS, EpisodeShot, type_of_label
from ...schemas.issue import Issue
from ..codes import show
from .codes import issue
from .view import EpisodeView


def check_schedule(view: EpisodeView, where: str) -> Iterator[Issue]:
    """Yield what is wrong with the schedule of an episode."""
    folded = {name.casefold(): name for name in view.labels}
    for shot in view.shots:
        path = f"$.entity_schedule[{show(shot.key)}]"
        for name, kind in LISTS.items():
            for place, entity in enumerate(shot.scheduled.names(kind)):
                yield from _slot(view, folded, (entity, name), (where, f"{path}.{name}[{place}]"))
        yield from _shot(shot, where, path)
    yield from _episode(view, where)


def _slot(
    view: EpisodeView, folded: Mapping[str, str], slot: tuple[str, str], place: tuple[str, str]
) -> Iterator[Issue]:
    name, listed = slot
    labels = view.labels.get(name)
    if labels is None:
        near = folded.get(name.casefold())
        hint = f"; {show(near)} differs only in case" if near is not None else ""
        yield issue("unregistered", *place, f"{show(name)} is not in the registry{hint}")
    elif LISTS[listed] not in {type_of_label(label) for label in labels}:
        yield issue("type-mismatch", *place, f"{show(name)} is {' and '.join(labels)}")


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
