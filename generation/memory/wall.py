"""The bank as one page, a wall of entities: each with its picture, what it was chosen from, and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...evaluation.report.model import Frame
from ...evaluation.report.page import Thumbnails
from ...pages.page import policy_of, save_page, style_of, template_of
from ...schemas.canonical import Json
from ...schemas.plain_files import json_lines
from ...schemas.text import counted
from .bank import (
    BANK,
    CANDIDATES,
    CUTOUT,
    EPISODE,
    LABELLED,
    PANORAMA,
    PORTRAIT,
    BankEntry,
    BankEpisode,
    read_bank,
)
from .references import ENTITIES

PAGE = "bank.html"
MOST = 400
"""Entities with a picture that a page shows; the others are listed."""
_SIDE, _WIDE = 300, 900
STATUSES = {
    "verified": "verified", "unverified": "not verified", "part_of": "part of another picture",
    "text_only": "words alone", "failed": "no picture",
}  # fmt: skip
"""Status of an entity -> how the page says it."""
_SHOWN = (LABELLED, PANORAMA, CUTOUT, PORTRAIT)


@dataclass(frozen=True, slots=True)
class Hung:
    """An entity on the wall."""

    entry: BankEntry  # what the bank has of it
    picture: Frame  # its picture, small
    grid: Frame | None  # the candidates of the try that it was taken from, small; None where there were none
    tries: tuple[str, ...]  # one line for each try: ground, what was chosen, what failed
    calls: str  # how many questions it took

    @property
    def status(self) -> str:
        """Its status in words."""
        return STATUSES[self.entry.record.status]

    @property
    def mark(self) -> str:
        """Class of the mark that shows its status."""
        marks = {"verified": "yes", "unverified": "no", "failed": "no"}
        return marks.get(self.entry.record.status, "neither")


@dataclass(frozen=True, slots=True)
class HungEpisode:
    """An episode on the wall: its entities with pictures, those without, and how many are not shown."""

    episode: BankEpisode
    hung: tuple[Hung, ...]
    others: tuple[BankEntry, ...]
    more: int


def write_wall(run: Path) -> None:
    """Write the page of a run whose bank is written; none for an empty one."""
    if any((run / BANK).glob(f"*/{EPISODE}")):
        save_page(run / PAGE, wall_of(run))


def wall_of(run: Path) -> str:
    """Return the page of a run."""
    bank = read_bank(run)
    rows = {_key(row["record"]): row for row in json_lines(run / ENTITIES)}
    small, wide = Thumbnails(_SIDE), Thumbnails(_WIDE)
    left, episodes = MOST, []
    for episode in bank.episodes:
        pictured = [entry for entry in episode.entries if entry.record.files]
        shown = pictured[:left]
        left -= len(shown)
        hung = tuple(_hung(entry, rows, small, wide) for entry in shown)
        others = tuple(entry for entry in episode.entries if not entry.record.files)
        episodes.append(HungEpisode(episode, hung, others, len(pictured) - len(shown)))
    style = style_of()
    text: str = template_of("wall.j2", __package__).render(
        style=style, policy=policy_of(style), episodes=episodes,
        facts=_facts([entry for episode in bank.episodes for entry in episode.entries]), counted=counted,
    )  # fmt: skip
    return text


def _key(record: Mapping[str, Json]) -> tuple[str, str, str]:
    return record["episode_id"], record["type"], record["name"]


def _hung(
    entry: BankEntry, rows: Mapping[tuple[str, str, str], Json], small: Thumbnails, wide: Thumbnails
) -> Hung:
    record = entry.record
    row = rows.get((record.episode_id, record.type, record.name))
    file = next((path for name in _SHOWN if (path := entry.file(name)) is not None), None)
    maker = wide if record.type == "location" else small
    grid = entry.file(CANDIDATES)
    calls = ", ".join(counted(count, name) for name, count in record.calls.items() if count)
    return Hung(
        entry, maker.frame(file, record.name), None if grid is None else wide.frame(grid, record.name),
        tuple(_tries(row)), calls,
    )  # fmt: skip


def _tries(row: Json | None) -> Sequence[str]:
    """Return a line for each try at a picture."""
    lines = []
    for number, made in enumerate([] if row is None else row["tries"], 1):
        ground = "" if made["key"] is None else f" on {made['key']}"
        count = sum(candidate["file"] is not None for candidate in made["candidates"])
        asked = counted(len(made["candidates"]), "picture")
        if made["chosen"] is None:
            outcomes = Counter(candidate["outcome"] for candidate in made["candidates"])
            result = ", ".join(f"{some} {outcome}" for outcome, some in outcomes.items())
        else:
            failed = [f"{check['code']} ({check['note']})" for check in made["checks"]
                      if check["passed"] is False]  # fmt: skip
            result = f"number {made['chosen']['number']} taken: {made['chosen']['why']}; " + (
                "passed" if made["passed"] else f"failed {'; '.join(failed) or 'the check'}"
            )
        lines.append(f"Try {number}{ground}: {asked}, {count} made; {result}")
    return lines


def _facts(entries: Sequence[BankEntry]) -> dict[str, str]:
    statuses = Counter(entry.record.status for entry in entries)
    calls: Counter[str] = Counter()
    for entry in entries:
        calls.update(entry.record.calls)
    facts = {"Entities": f"{len(entries):,}"}
    facts |= {text.capitalize(): f"{statuses[name]:,}" for name, text in STATUSES.items() if statuses[name]}  # type: ignore[index]
    by_hand = sum(bool(entry.record.by_person) for entry in entries)
    locked = sum(entry.record.locked for entry in entries)
    facts |= {"From a person": f"{by_hand:,}"} if by_hand else {}
    facts |= {"Locked": f"{locked:,}"} if locked else {}
    facts |= {f"Asked: {name}": f"{count:,}" for name, count in calls.items() if count}
    return facts
