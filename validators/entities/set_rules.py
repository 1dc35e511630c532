"""Rules about a set of episodes: its splits, and what episodes must not share."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from ...schemas.entities import ALL, EntitySplits
from ...schemas.values import Issue
from ..codes import show
from .registry_rules import check_registry, check_schedule
from .script_rules import check_script, check_texts
from .view import EpisodeView, issue

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
