"""What an extension came to: the stories that came in or did not, and balance and splits before and after."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from ...engine.report import ItemReport, RunReport
from ...schemas.canonical import Json
from ...validators.run_balance import SECTIONS

_WORDS = {"splits": "split", "narrative_types": "narrative types", "moral_labels": "moral labels"}


@dataclass(frozen=True, slots=True)
class ExtendReport:
    """What an extension came to.

    Attributes:
        added: ids of the new stories that have a record now.
        known: ids of stories in the new sources that the run had already, just so.
        stopped: the new stories that were not made, or would not be, with the reason.
        kept: how many records there were before; every one of them is as it was, byte for byte.
        before: ``balance.json`` as it was; ``after``: as it is.
        added_at: the time that the new records bear; None where nothing was added.
        run: the report of the whole run; None where nothing was run.
        tried: whether this is what would come of it: nothing was written.
    """

    added: tuple[str, ...]
    known: tuple[str, ...]
    stopped: tuple[ItemReport, ...]
    kept: int
    before: Mapping[str, Json]
    after: Mapping[str, Json]
    added_at: str | None = None
    run: RunReport | None = field(default=None, repr=False)
    tried: bool = False

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
