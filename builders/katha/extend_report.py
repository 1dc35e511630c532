"""What an extension came to: the stories that came in or did not, and balance and splits before and after.

New stories beside those that a run has: which are there already, and which cannot be taken in.

A benchmark tells a story once, in one language, under one id for ever. So refused are: an id that stands for
another text, a translation of a story that is there, an id that was withdrawn, and a story that nearly equals
one that is there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from ...engine.status import ItemReport, RunReport
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, canonical_text
from ...schemas.text import primary_language, quoted
from ...schemas.values import Edit, Story
from ...validators.katha.set_rules import SECTIONS
from ...validators.retellings import near_duplicates, signature
from ..rows import Reader, Row, StoryRows

_OPENING = 80
_UNKNOWN = "a story that the run does not have"


@dataclass(slots=True)
class AddedRows(StoryRows):
    """Turns the rows of a run and of new sources into stories."""

    run: str = ""  # the run, as a command names it
    first: int = 0  # the number of the first new source
    withdrawn: Mapping[str, Edit] = field(default_factory=dict)  # story id -> the correction that withdrew it
    given: dict[str, str] = field(default_factory=dict)  # story id -> where its row stands in the new sources

    @property
    def added(self) -> list[Story]:
        """The stories that only the new sources hold, in order."""
        return [story for story in self.stories.values() if self.sources[story.id] >= self.first]

    @property
    def known(self) -> list[str]:
        """The ids of the stories of the new sources that the run has just so."""
        return sorted(
            story_id
            for story_id, source in self.repeated.items()
            if source >= self.first > self.sources[story_id]
        )

    def _taken_in(self, row: Row, story: Story, source: int) -> Story | None:
        if source >= self.first:
            self.given.setdefault(story.id, row.where)
        return StoryRows._taken_in(self, row, story, source)

    def clash(self, row: Row, story: Story, known: Story) -> None:
        """Note why a row cannot have the id of a story that is there."""
        if self.sources[known.id] >= self.first:
            StoryRows.clash(self, row, story, known)
            return
        where = f"{row.where}, id"
        if known.id in self.withdrawn:
            self.refuse_withdrawn(where, known.id)
        elif primary_language(story.language) != primary_language(known.language):
            _refuse_translation(self.reader, where, story, known)
        elif story.normalized_text != known.normalized_text:
            self.reader.problem(
                where, "an id of its own, or the story that the run has under this one",
                f"{story.id} with another text: {_opening(story)}; in the run: {_opening(known)}",
                f"rename it; to correct the record that is there: fabula edit {quoted(self.run)} {story.id}",
            )  # fmt: skip
        else:
            name = next(key for key in Story.model_fields if getattr(story, key) != getattr(known, key))
            now, then = (canonical_text(getattr(one, name))[:_OPENING] for one in (story, known))
            self.reader.problem(
                where, "the story as the run has it, or none",
                f"{story.id} with the same text and another {name}: {now}; in the run: {then}",
                f"leave it out; to correct the record there: fabula edit {quoted(self.run)} {story.id}",
            )  # fmt: skip

    def refuse_withdrawn(self, where: str, story_id: str) -> None:
        """Note that an id was withdrawn."""
        gone = self.withdrawn[story_id]
        found = f"{story_id}, withdrawn by {gone.who}: {gone.why}"
        fix = "leave the story out; a new one needs another id"
        self.reader.problem(where, "an id that was never used", found, fix)


def refuse_translations(builder: AddedRows) -> None:
    """Note new stories that by their ids are others in another language: ``kb_1-zh`` beside ``kb_1``."""
    stems: dict[str, Story] = {}
    fresh = {story.id for story in builder.added}
    for story in builder.stories.values():
        stem = _stem(story)
        other = stems.setdefault(stem, story)
        if other is not story and story.id in fresh:
            _refuse_translation(builder.reader, f"{builder.places[story.id]}, id", story, other)


def refuse_duplicates(builder: AddedRows, signatures: Mapping[str, Sequence[int]], threshold: float) -> None:
    """Note new stories that nearly equal stories of the run.

    ``signatures``: story id -> MinHash signature, of the stories that are there.
    """
    added = {story.id: story for story in builder.added}
    order = [*sorted(signatures), *sorted(added)]
    numbers = {**signatures, **{key: signature(story.normalized_text) for key, story in added.items()}}
    # Under ranks, so that of equal texts the one that is there comes first and is paired with all the others.
    ranked = {f"{rank:09d}": numbers[story_id] for rank, story_id in enumerate(order)}
    nearest: dict[str, tuple[float, str]] = {}
    for first, second, share in near_duplicates(ranked, threshold):
        old, new = order[int(first)], order[int(second)]
        if old in signatures and new in added:
            nearest[new] = min(nearest.get(new, (1.0, old)), (-share, old))
    for new, (share, old) in nearest.items():
        texts = f"{_opening(added[new])}; in the run: {_opening(builder.stories[old])}"
        builder.reader.problem(
            builder.places[new], _UNKNOWN, f"{new}, {-share:.0%} like {old}: {texts}",
            f"leave it out; to correct the record that is there: fabula edit {quoted(builder.run)} {old}",
        )  # fmt: skip


def _refuse_translation(reader: Reader, where: str, story: Story, known: Story) -> None:
    version = f"which by its id is {known.id} ({known.language}) in another version"
    reader.problem(
        where, _UNKNOWN, f"{story.id} in {story.language}, {version}",
        "leave it out: a benchmark tells a story once; another language makes a benchmark of its own",
    )  # fmt: skip


def _stem(story: Story) -> str:
    """Return a story's id without its language at the end, such as ``-zh`` or ``_zh-Hans``."""
    name = story.id.casefold().replace("_", "-")
    for tag in (story.language, primary_language(story.language)):
        ending = f"-{tag.casefold().replace('_', '-')}"
        if name.endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name


def _opening(story: Story) -> str:
    text = story.normalized_text
    return canonical_text(text if len(text) <= _OPENING else f"{text[:_OPENING]}...")


_WORDS = {"splits": "split", "narrative_types": "narrative types", "moral_labels": "moral labels"}


@dataclass(frozen=True, slots=True)
class ExtendReport(Tabular):
    """What an extension came to."""

    added: tuple[str, ...]  # ids of the new stories that have a record now
    known: tuple[str, ...]  # ids of stories in the new sources that the run had already, just so
    stopped: tuple[ItemReport, ...]  # the new stories that were not made, or would not be, with the reason
    kept: int  # how many records there were before; every one of them is as it was, byte for byte
    before: Mapping[str, Json]  # ``balance.json`` as it was; ``after``: as it is
    after: Mapping[str, Json]
    added_at: str | None = None  # the time that the new records bear; None where nothing was added
    # the report of the whole run; None where nothing was run
    run: RunReport | None = field(default=None, repr=False)
    tried: bool = False  # whether this is what would come of it: nothing was written

    def grids(self) -> Iterator[Grid]:
        """Yield what became of the new stories, and how the run ended."""
        rows = (
            *((story, "added", None) for story in self.added),
            *((story, "known", None) for story in self.known),
            *((item.id, item.status, item.reason) for item in self.stopped),
        )
        note = f"{_stories(self.kept)} kept as they were."
        yield Grid("stories", "Stories", ("story", "status", "reason"), rows, note, words=(1, 2))
        if self.run is not None:
            yield from self.run.grids()

    def as_json(self) -> dict[str, Json]:
        """Return the report as plain JSON."""
        return {
            "added": list(self.added),
            "known": list(self.known),
            "stopped": [asdict(item) for item in self.stopped],
            "kept": self.kept,
            "before": dict(self.before),
            "after": dict(self.after),
            "added_at": self.added_at,
            "run": None if self.run is None else self.run.as_json(),
        }

    def lines(self) -> list[str]:
        """Return the report as lines for people."""
        known = f"; {_stories(len(self.known))} there already" if self.known else ""
        many = _stories(len(self.added))
        stopped = [
            f"  {item.id} {item.status} in {item.stage} ({item.code or 'not run'}): "
            f"{item.reason or item.meaning}"
            for item in self.stopped
        ]
        if self.tried:
            return [f"{many} can be added to {self.kept}, which stay as they are{known}", *stopped]
        lines = [f"{many} added to {self.kept}, which stay as they were{known}", *stopped]
        if self.run is None:
            return lines
        lines += _table(self.before, self.after, "splits")
        for name in ("narrative_types", "moral_labels"):
            lines.append(
                f"{_WORDS[name]}, furthest from target: {_furthest(self.before, name)}"
                f" -> {_furthest(self.after, name)}"
            )
        return [*lines, *(f"  {use.line()}" for use in self.run.models)]


def _stories(count: int) -> str:
    return "1 story" if count == 1 else f"{count} stories"


def _table(before: Mapping[str, Json], after: Mapping[str, Json], name: str) -> Iterator[str]:
    yield f"{_WORDS[name]:14}  {'before':>8}  {'after':>8}  {'target':>8}"
    then, now = before.get(name, {}), after.get(name, {})
    for value in _values(then, now):
        counts = [str(side.get(value, {}).get("observed", 0)) for side in (then, now)]
        target = now.get(value, {}).get("target", 0)
        yield f"{value:14}  {counts[0]:>8}  {counts[1]:>8}  {target:>8.1f}"


def _values(then: Mapping[str, Json], now: Mapping[str, Json]) -> Sequence[str]:
    return [*now, *(value for value in then if value not in now)]


def _furthest(document: Mapping[str, Json], name: str) -> str:
    assert name in SECTIONS
    rows = document.get(name, {})
    if not document.get("stories") or not rows:
        return "no story"
    value = max(rows, key=lambda key: abs(rows[key]["deviation"]))
    share = 100 * rows[value]["deviation"] / document["stories"]
    return f"{value} by {share:+.1f} points"
