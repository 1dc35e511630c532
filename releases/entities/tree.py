"""Reading and writing the official EntityBench data: a script per episode, and split files.

::

    data/scripts/<episode>.json
    data/splits/final_split_validated_ids.json

Files keep their bytes: what was read is written as it was; what is made anew is laid out as the official
scripts are. Reading goes on past every problem and reports them all; a file that cannot be used is left out.
"""

import html
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import ConfigError, InputError, UserError
from ...pages.figures import Ridges, draw_figure, figure_table, ridges
from ...pages.page import policy_of, save_page, style_of, template_of
from ...schemas.canonical import Json, digest, write_atomic, writing
from ...schemas.entities import ALL, TIERS, TYPES, EntityEpisode, EntitySplits, EntityType, EpisodeShot
from ...schemas.plain_files import alike, by_name, composed
from ...schemas.text import tallied
from ...validators.entities.measures import measure, value_text
from ...validators.entities.set_rules import (
    check_actions,
    check_episode,
    check_splits,
    check_tiers,
    check_windows,
)
from ...validators.entities.statistics import EntityStatistics, distributions, entity_statistics
from ...validators.entities.tables import Table
from ...validators.entities.view import EpisodeView, issue, view_of
from ...validators.report import IssueBin, Opened, RuleSet, ValidationReport
from ..loading import OfficialFiles
from ..shots.tree import SYSTEM_FILES

ENTITIES = "entities"
"""Name of the kind."""
IMPORTED_ENTITIES = "import-entities"
"""Kind of a run folder that holds imported episodes: it has no stages, and its releases are of entities."""
EPISODES = "episodes.jsonl"
"""Episodes with their history, one line per episode."""
FOLDER = "data"
"""Folder of a run that holds the official tree."""
SCRIPTS, SPLITS = "scripts", "splits"
NO_OBJECT = "shots without an object"
"""What a check of a set counts besides, as it is no fault."""
_MOST_BYTES = 5_000_000
"""Of a script; the official ones have about 25,000. Mentions are looked for by shot and entity."""
_FILES = OfficialFiles(
    issue=issue,
    most_bytes=_MOST_BYTES,
    too_large="too-large",
    missing="unreadable",
    expected="a file",
)


@dataclass(frozen=True)
class Episode:
    episode_id: str  # the stem of its file
    script: EntityEpisode  # its script
    content: bytes = field(repr=False)  # the bytes of its file

    @classmethod
    def of(cls, script: EntityEpisode) -> "Episode":
        """Return an episode that was made anew, under its ``story_name``."""
        return cls(str(script.story_name), script, script_bytes(script.as_json()))


@dataclass(frozen=True)
class SplitFile:
    """One split file of a set; ``name`` is the stem of the file."""

    name: str
    splits: EntitySplits
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, name: str, tiers: Mapping[str, Iterable[str]]) -> "SplitFile":
        """Return a split file that was made anew: tier -> ids of episodes."""
        splits = EntitySplits({tier: tuple(ids) for tier, ids in tiers.items()})
        return cls(name, splits, script_bytes(splits.as_json()))


@dataclass(frozen=True)
class EntitySet:
    episodes: tuple[Episode, ...]  # those that can be used, in the order of their ids
    splits: tuple[SplitFile, ...] = ()  # the split files that can be used, in the order of their names

    @cached_property
    def by_id(self) -> dict[str, Episode]:
        return {episode.episode_id: episode for episode in self.episodes}

    @cached_property
    def sha256(self) -> str:
        """What identifies the content: scripts and splits, whatever the layout of the files."""
        scripts = [[one.episode_id, _ordered(one.script.as_json())] for one in self.episodes]
        return digest([scripts, [[one.name, one.splits.as_json()] for one in self.splits]])

    def tiers(self, name: str | None = None) -> dict[str, tuple[str, ...]]:
        """Return tier -> ids of its episodes that are there, ``all`` last.

        ``name``: stem of the split file to go by; None for the one that names most episodes, of these the one
        with fewest items that are no ids, of these the first by name.
        """
        chosen = self.split_file(name)
        everything = tuple(self.by_id)
        if chosen is None:
            return {ALL: everything}
        named = {
            tier: tuple(filter(self.by_id.__contains__, chosen.splits.ids(tier))) for tier in _tiers(chosen)
        }
        whole = tuple(dict.fromkeys(one for ids in named.values() for one in ids))
        return {**{tier: ids for tier, ids in named.items() if tier != ALL}, ALL: whole}

    def split_file(self, name: str | None = None) -> SplitFile | None:
        """Return the split file of a name, or the one to go by; see :meth:`tiers`."""
        if name is None:
            return min(self.splits, key=self._rank, default=None)
        found = next((one for one in self.splits if one.name == name), None)
        if found is None:
            names = ", ".join(one.name for one in self.splits) or "none"
            raise ConfigError(
                "--split", expected=f"one of {names}", found=repr(name), fix="name a split file"
            )
        return found

    def _rank(self, one: SplitFile) -> tuple[int, int, str]:
        ids = {episode for tier in one.splits.root for episode in one.splits.ids(tier)}
        return -len(ids & self.by_id.keys()), sum(1 for _ in one.splits.objects()), one.name

    def counts(self) -> dict[str, int]:
        """Return how many episodes, scenes, shots, entities and split files there are."""
        scripts = [episode.script for episode in self.episodes]
        return {
            "episodes": len(scripts),
            "scenes": sum(len(script.scenes) for script in scripts),
            "shots": sum(len(tuple(script.shots())) for script in scripts),
            "entities": sum(len(script.entity_descriptions) for script in scripts),
            "split files": len(self.splits),
        }


def script_bytes(document: Json) -> bytes:
    """Return JSON as the official scripts hold it: UTF-8, indented by two, in order, no line end."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode("utf-8")


def folder_of(path: Path) -> Path:
    """Return the folder that holds a set's scripts: ``data/scripts``, ``scripts``, or the path itself."""
    for folder in (path / FOLDER / SCRIPTS, path / SCRIPTS):
        if folder.is_dir():
            return folder
    return path


def read_entity_set(path: Path | str, *, rules: bool = True) -> tuple[EntitySet, ValidationReport]:
    """Return a set and everything that is wrong with it.

    ``path``: the folder with ``scripts`` and ``splits``, the one above that holds it as ``data``, or a folder
    of scripts.
    """
    opened = open_entity_set(Path(path))
    made, found = opened.content.entity_set, opened.found
    checked = check_read(opened.content, found) if rules else made.counts()
    return made, found.report(str(path), opened.kind, checked)


@dataclass(frozen=True)
class ReadSet:
    """A set as it was read; ``known`` has the names of all its scripts, of those without use too."""

    entity_set: EntitySet
    known: frozenset[str]


def open_entity_set(root: Path) -> Opened:
    """Read a set of episodes, or a run or release that holds one; see :func:`read_entity_set`."""
    folder = folder_of(root)
    if not folder.is_dir():
        raise InputError(
            [_no_set(str(root), f"nothing there{alike(root)}" if not root.exists() else "a file")]
        )
    found = IssueBin()
    episodes = tuple(_read_scripts(folder, found))
    splits: tuple[SplitFile, ...] = ()
    if folder.name == SCRIPTS and folder != root and (folder.parent / SPLITS).is_dir():
        splits = tuple(_read_split_files(folder.parent / SPLITS, found))
    if not episodes and not found.kept:
        raise InputError([_no_set(str(folder), "no script in it")])
    known = frozenset(composed(path.stem) for path in folder.glob("*.json"))
    return Opened(root, "entities", ReadSet(EntitySet(episodes, splits), known), found)


def check_read(read: ReadSet, found: IssueBin) -> dict[str, int]:
    """Take what breaks a rule about scripts and splits; return what was looked at."""
    return read.entity_set.counts() | _check(read.entity_set, read.known, found)


def write_tree(folder: Path, made: EntitySet) -> None:
    """Write scripts and splits below a folder, in place of those that are there."""
    wanted = {f"{SCRIPTS}/{one.episode_id}.json": one.content for one in made.episodes}
    wanted |= {f"{SPLITS}/{one.name}.json": one.content for one in made.splits}
    problems = [_unsafe(one.episode_id) for one in made.episodes if not is_file_name(one.episode_id)]
    if problems:
        raise InputError(problems)
    with writing(folder):
        for name in (SCRIPTS, SPLITS):
            (folder / name).mkdir(parents=True, exist_ok=True)
            for old in sorted((folder / name).glob("*.json")):
                if f"{name}/{old.name}" not in wanted:
                    old.unlink()
        for name, content in wanted.items():
            write_atomic(folder / name, [content])


def is_file_name(stem: str) -> bool:
    """Return whether the id of an episode can be the name of a file everywhere."""
    return (
        bool(stem)
        and stem.isprintable()
        and not set(stem) & set('/\\:*?"<>|')
        and stem.strip(". ") == stem
        and len(stem.encode("utf-8", "surrogatepass")) <= 200
    )


def _read_scripts(folder: Path, found: IssueBin) -> Iterator[Episode]:
    for path in _json_files(folder, found):
        where = f"{SCRIPTS}/{path.name}"
        if not is_file_name(path.stem):
            found.add(issue("unsafe-name", where, "$", "other programs cannot use the name of the file"))
            continue
        script, content = _FILES.read(path, where, EntityEpisode, found)
        if script is not None:
            yield Episode(composed(path.stem), script, content)


def _read_split_files(folder: Path, found: IssueBin) -> Iterator[SplitFile]:
    for path in _json_files(folder, found):
        splits, content = _FILES.read(path, f"{SPLITS}/{path.name}", EntitySplits, found)
        if splits is not None:
            yield SplitFile(composed(path.stem), splits, content)


def _json_files(folder: Path, found: IssueBin) -> Iterator[Path]:
    there = sorted(folder.iterdir())
    repeated = {second: first for first, second in by_name(entry.name for entry in there)[1]}
    for entry in there:
        if entry.name in SYSTEM_FILES or entry.name.startswith("._"):
            continue
        if entry.name in repeated:
            message = f"it has the name of {repeated[entry.name]!a}, written otherwise in Unicode"
            found.add(issue("stray-file", f"{folder.name}/{entry.name}", "$", message))
        elif entry.suffix == ".json" and not entry.is_dir():
            yield entry
        else:
            found.add(issue("stray-file", f"{folder.name}/{entry.name}", "$", "expected a file *.json"))


def _check(made: EntitySet, known: Collection[str], found: IssueBin) -> dict[str, int]:
    """Take what the rules say about scripts and splits; return what is counted without being a fault."""
    views = [
        (view_of(one.episode_id, one.script), f"{SCRIPTS}/{one.episode_id}.json") for one in made.episodes
    ]
    for view, where in views:
        found.extend(check_episode(view, where))
    found.extend(check_actions(views))
    episodes = [(view.episode_id, where) for view, where in views]
    found.extend(check_windows(episodes))
    for one in made.splits:
        found.extend(check_splits(one.splits, f"{SPLITS}/{one.name}.json", known))
    found.extend(check_tiers([one.splits for one in made.splits], episodes))
    return {NO_OBJECT: sum(not shot.scheduled.objects for view, _ in views for shot in view.shots)}


def _tiers(one: SplitFile) -> list[str]:
    """Return the tiers of a split file: the usual ones in their order, then the others as they stand."""
    usual = [tier for tier in TIERS if tier in one.splits.root]
    return [*usual, *(tier for tier in one.splits.root if tier not in usual)]


def _ordered(document: Json) -> Json:
    """Return a script as JSON whose canonical form keeps the order of schedule and registry."""
    keyed = ("entity_schedule", "entity_descriptions", "_name_map")
    return {
        name: list(value.items()) if name in keyed and isinstance(value, dict) else value
        for name, value in document.items()
    }


def _unsafe(name: str) -> UserError:
    return UserError(
        repr(name), what="this id cannot be the name of a file",
        fix="use letters, digits, _ - and . only",
    )  # fmt: skip


def _no_set(where: str, found: str) -> UserError:
    return UserError(
        where, expected=f"a folder with {SCRIPTS}/*.json, or of scripts", found=found,
        fix=f"give the folder that holds {SCRIPTS} and {SPLITS}",
    )  # fmt: skip


def statistics_of_set(entity_set: EntitySet, split: str | None = None) -> EntityStatistics:
    tiers = entity_set.tiers(split)
    measured = (measure(view_of(one.episode_id, one.script)) for one in entity_set.episodes)
    return entity_statistics(measured, tiers)


def count_episodes(path: Path, split: str | None = None) -> Json:
    """Return the statistics of a set on disk, as JSON; see :func:`statistics_of_set`."""
    return statistics_of_set(read_entity_set(path, rules=False)[0], split).as_json()


RULES = RuleSet(open_entity_set, check_read, count_episodes)


# -- A set of episodes as one page that loads nothing from anywhere: tables, distributions, every episode
#
# Episodes are shown as in the EntityBench paper (appendix D): overview and registry, a strip of who is in
# which shot, and a timeline with mentions tinted by type. Each is folded, so that the page stays light.

# -- An episode as pages show it: overview and registry, who is in which shot, a timeline with mentions tinted
#
# The parts are those of the EntityBench paper (appendix D). Pages import ``episode.j2`` and ``episode.css``.

EPISODE_TEMPLATE = ("episode.j2", __package__)
EPISODE_STYLE = ("episode.css", __package__)

_CELL = 14
"""Width of a shot in a strip, in pixels; narrower in long episodes."""
_WIDEST = 700
_HIGH = 16
_ALL_NUMBERED = 25
"""Most shots of an episode whose strip numbers them all; else every fifth."""
_NAMES, _LETTERS = 210, 32
"""Width of the names beside a strip, in pixels, and most letters of one."""

StripRow = tuple[EntityType | None, str, Sequence[int]]
"""Type, name and shots of an entity."""


def shown_episode(view: EpisodeView, number: int = 1, tier: str = "") -> dict[str, Json]:
    """Return what ``episode.j2`` shows of an episode.

    ``number``: which of the page it is, from 1.
    """
    scenes, shots = len(view.script.scenes), len(view.shots)
    rows = list(strip_rows(view))
    return {
        "id": view.episode_id,
        "number": number,
        "about": ", ".join(filter(None, (tier, tallied(scenes, "scenes"), tallied(shots, "shots")))),
        "overview": view.script.story_overview or "",
        "strip": _strip(view, rows, number),
        "entities": [
            {
                "name": name,
                "kind": kind or "object",
                "type": (kind or "unknown") + ("" if name in view.labels else ", not in the registry"),
                "shots": ", ".join(_runs(found)) or "none",
                "description": view.descriptions.get(name, ""),
            }
            for kind, name, found in rows
        ],
        "shots": [_shot(place, shot) for place, shot in enumerate(view.shots, 1)],
    }


def strip_rows(view: EpisodeView) -> Iterator[StripRow]:
    """Yield type, name and shots of the registry in its order, then of what only the schedule has."""
    listed = dict.fromkeys((view.type_of(name), name) for name in view.labels)
    for kind, name in (*listed, *(key for key in view.appearances if key[1] not in view.labels)):
        yield kind, name, () if kind is None else view.appearances.get((kind, name), ())


def _runs(shots: Sequence[int]) -> Iterator[str]:
    for first, last in _spans(shots):
        yield str(first) if first == last else f"{first}–{last}"


def _spans(shots: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for place, shot in enumerate(shots):
        if place + 1 == len(shots) or shots[place + 1] != shot + 1:
            yield shots[start], shot
            start = place + 1


def _strip(view: EpisodeView, rows: Sequence[StripRow], number: int) -> str:
    """Return who is in which shot as SVG: a row per entity, a column per shot."""
    wide = min(_CELL, max(4, _WIDEST // max(1, len(view.shots))))
    high, width = (len(rows) + 1) * _HIGH, _NAMES + len(view.shots) * wide + 2
    parts = [
        f'<svg class="strip" role="img" width="{width}" height="{high}" aria-labelledby="strip{number}">',
        f'<title id="strip{number}">Entities by shot; the table below says the same in words.</title>',
    ]
    every = 1 if len(view.shots) <= _ALL_NUMBERED else 5
    for shot in range(every, len(view.shots) + 1, every):
        x = _NAMES + (shot - 1) * wide + wide / 2
        parts.append(f'<text x="{x:g}" y="{_HIGH - 4}" text-anchor="middle">{shot}</text>')
    for place, (kind, name, shots) in enumerate(rows, 1):
        short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
        parts.append(f'<text x="0" y="{place * _HIGH + _HIGH - 4}">{html.escape(short)}</text>')
        path = "".join(
            f"M{_NAMES + (first - 1) * wide + 1} {place * _HIGH + 1}h{(last - first + 1) * wide - 1}"
            f"v{_HIGH - 2}h-{(last - first + 1) * wide - 1}z"
            for first, last in _spans(shots)
        )
        if path:
            parts.append(f'<path class="{kind or "object"}" d="{path}"/>')
    return "".join(parts) + _rules(view.shots, wide, high) + "</svg>"


def _rules(shots: Sequence[EpisodeShot], wide: int, high: int) -> str:
    """Return the lines between scenes, solid, and at cuts within a scene, dashed."""
    scenes, hard = [], []
    for place, shot in enumerate(shots):
        if place and shot.scene != shots[place - 1].scene:
            scenes.append(place)
        elif place and shot.cut:
            hard.append(place)
    drawn = []
    for name, places in (("scene", scenes), ("hard", hard)):
        path = "".join(f"M{_NAMES + place * wide}.5 {_HIGH}V{high}" for place in places)
        drawn.append(f'<path class="{name}" d="{path}"/>' if path else "")
    return "".join(drawn)


def _shot(number: int, shot: EpisodeShot) -> dict[str, Json]:
    kinds = {name: kind for kind in TYPES for name in shot.scheduled.names(kind)}
    return {
        "number": number,
        "key": shot.key,
        "cut": shot.cut,
        "action": _tinted(shot.action, kinds),
        "scheduled": [(kind, name) for name, kind in kinds.items()],
    }


def _tinted(text: str, kinds: Mapping[str, EntityType]) -> str:
    """Return a text, escaped, with the mentions of names marked by type, whatever their case."""
    return "".join(
        f'<mark class="{kind}">{html.escape(part)}</mark>' if kind else html.escape(part)
        for part, kind in mentions_in(text, kinds)
    )


def mentions_in(text: str, kinds: Mapping[str, EntityType]) -> Iterator[tuple[str, EntityType | None]]:
    """Yield the parts of a text, each mention of a name with its type, the rest with None."""
    names = sorted((name for name in kinds if name), key=lambda name: (-len(name), name))
    if not names:
        yield text, None
        return
    folded = {name.casefold(): kind for name, kind in kinds.items()}
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", re.IGNORECASE)
    start = 0
    for match in pattern.finditer(text):
        yield text[start : match.start()], None
        yield match[0], folded.get(match[0].casefold(), "object")
        start = match.end()
    yield text[start:], None


# -- The page of a set


def write_page(path: Path, entity_set: EntitySet, statistics: EntityStatistics, name: str = "") -> None:
    save_page(path, render_page(entity_set, statistics, name))


def render_page(entity_set: EntitySet, statistics: EntityStatistics, name: str = "") -> str:
    """Return the page of a set. All texts of episodes are escaped and isolated in their direction."""
    style = style_of("page.css", __package__, EPISODE_STYLE)
    tier_of = {
        one.episode_id: tier for tier, some in statistics.groups.items() if tier != ALL for one in some
    }
    document = statistics.as_json()
    page: str = template_of("page.j2", __package__, EPISODE_TEMPLATE).render(
        style=style,
        policy=policy_of(style),
        name=name or f"{len(entity_set.episodes)} in all",
        totals=document["totals"],
        tables=[_table(table) for table in statistics.tables],
        figures=[(one, draw_figure(one), figure_table(one)) for one in _figures(statistics)],
        episodes=[
            shown_episode(view_of(one.episode_id, one.script), number, tier_of.get(one.episode_id, "no tier"))
            for number, one in enumerate(entity_set.episodes, 1)
        ],
    )
    return page


def _table(table: Table) -> dict[str, Any]:
    tiers = list(table.rows[0].values)
    return {
        "title": table.title,
        "tiers": tiers,
        "rows": [
            {
                "label": row.label,
                "convention": row.convention,
                "values": [value_text(row.values[tier]) for tier in tiers],
                "published": [row.published.get(tier, "") for tier in tiers] if row.published else [],
            }
            for row in table.rows
        ],
    }


def _figures(statistics: EntityStatistics) -> Iterator[Ridges]:
    """Yield how episodes, shots and entities are spread (EntityBench, Figures 3 to 8)."""
    counted = {tier: distributions(some) for tier, some in statistics.groups.items()}
    whole = counted[ALL]
    tiers = {tier: found for tier, found in counted.items() if tier != ALL} or counted
    for name, title, unit, values in (
        ("gap", "Widest gap of a recurring entity", "Difference of shot numbers, by tier.",
         {tier: found["max_gap_index"] for tier, found in tiers.items()}),
        ("chain", "Length of continuation chains", "Shots of a chain.", {ALL: whole["chain_length"]}),
        ("load", "Entities that a shot schedules", "By type of entity.",
         {kind: whole[f"load_{kind}"] for kind in TYPES}),
        ("shots", "Shots that schedule an entity", "All of them, and the most in a row.",
         {"shots": whole["appearances"], "in a row": whole["longest_run"]}),
    ):  # fmt: skip
        spread = {label: _values(counts) for label, counts in values.items()}
        ends = [value for some in spread.values() for value in some]
        if ends:
            edges = range(min(ends), max(ends) + 2)
            yield Ridges(
                name=f"distribution-{name}", title=title, axis=title, unit="count", edges=tuple(edges),
                note=f"{unit} The line is the median, which stands at the right.",
                ridges=ridges(spread, edges),
            )  # fmt: skip


def _values(counts: Mapping[str, int]) -> list[int]:
    return [int(value) for value, count in counts.items() for _ in range(count)]
