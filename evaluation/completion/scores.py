"""What scoring an archive of event judgements gives: rates per class and overall, and what is missing.

Completion rates per method and video, from scored evaluations or people: what a suite is graded by.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ConfigError, InputError, UserError
from ...schemas.score import Score
from ..events.votes import Definitions, Panel
from ..stats.tables import read_table
from ..words import counted

AVERAGE = "average"


@dataclass(frozen=True)
class Video:
    """One prompt under one panel.

    Attributes:
        unit: file name in the suite.
        rate: its completion rate, the mean over its seeds; null where no vote has an answer.
        events: completion score of each event, of the first seed that has one; null as above.
        seen: whether any judgement is about it. A missing video has none.
    """

    unit: str
    rate: float | None
    events: tuple[float, ...] | None
    seen: bool

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        events = None if self.events is None else list(self.events)
        return {"unit": self.unit, "rate": self.rate, "events": events, "seen": self.seen}


@dataclass(frozen=True)
class PanelScore:
    """The scores of one method under one verifier.

    Attributes:
        panel: method and verifier.
        classes: label -> mean completion rate of its prompts; ``average`` over all.
        nonresponse: share of prompts without any answer.
        alternatives: voting -> average under it, all else the same.
        outcomes: how many votes came out how; and why those without an answer have none.
        videos: every prompt, in the order of the suite.
    """

    panel: Panel
    classes: Mapping[str, Score]
    nonresponse: Score
    alternatives: Mapping[str, Score]
    outcomes: Mapping[str, Mapping[str, int]]
    videos: tuple[Video, ...] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return the scores as plain JSON, with every video."""
        return {
            "method": self.panel.method,
            "judge": self.panel.judge,
            "classes": {name: score.as_json() for name, score in self.classes.items()},
            "non_response": self.nonresponse.as_json(),
            "alternatives": {name: score.as_json() for name, score in self.alternatives.items()},
            "outcomes": {name: dict(counts) for name, counts in self.outcomes.items()},
            "videos": [one.as_json() for one in self.videos],
        }


@dataclass(frozen=True)
class EventScores:
    """The scores of an archive of event judgements.

    Attributes:
        definitions: the named definitions that were used.
        suite_sha256: the suite.
        panels: one entry per method and verifier.
        notes: what a reader must know before trusting a number.
    """

    definitions: Definitions
    suite_sha256: str
    panels: tuple[PanelScore, ...]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the scores as plain JSON."""
        return {
            "kind": "events",
            "definitions": vars(self.definitions),
            "suite": {"sha256": self.suite_sha256},
            "panels": [panel.as_json() for panel in self.panels],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterable[str]:
        """Return the scores as a table for people, in percent, with coverage."""
        used = self.definitions
        named = f"voting={used.voting}, nonresponse={used.nonresponse}, partial={used.partial}"
        yield f"completion rate, % ({named})"
        yield from (f"note: {note}" for note in self.notes)
        for one in self.panels:
            yield ""
            yield f"{one.panel.method} judged by {one.panel.judge}"
            for name, score in one.classes.items():
                counts = score.counts
                yield (
                    f"  {name:<12}{_percent(score)}  of {counted(counts['prompts'], 'prompt')},"
                    f" {counts['answered']} answered, {counts['missing']} without a video"
                )
            yield f"  {'no response':<12}{_percent(one.nonresponse)}"
            others = ", ".join(f"{name}{_percent(score)}" for name, score in one.alternatives.items())
            yield f"  average under other votings: {others}"
            for why, count in sorted(one.outcomes["reasons"].items()):
                yield f"  {counted(count, 'vote')} without an answer, {why[:120]}"


def _percent(score: Score) -> str:
    if score.value is None:
        return f"{'-':>7}"
    interval = (
        "" if score.low is None or score.high is None else f" [{100 * score.low:.1f}, {100 * score.high:.1f}]"
    )
    return f"{100 * score.value:7.1f}{interval}"


def rates_of(scores: Sequence[EventScores], judge: str | None = None) -> dict[str, dict[str, float | None]]:
    """Return method -> file name -> completion rate; null where there is no answer.

    Args:
        scores: scored evaluations.
        judge: whose; None where there is one only.

    Raises:
        ConfigError: there are several judges and none is named, it has no scores, or a method has two.
    """
    panels = [panel for one in scores for panel in one.panels]
    judges = sorted({panel.panel.judge for panel in panels})
    if judge is None and len(judges) > 1:
        raise ConfigError(
            "--judge",
            what="several judges voted, and none of them is named",
            fix=f"name one of: {', '.join(judges)}",
        )
    chosen = [panel for panel in panels if judge is None or panel.panel.judge == judge]
    if not chosen:
        raise ConfigError(
            "--judge", what=f"{judge} did not vote here", fix=f"name one of: {', '.join(judges)}"
        )
    rates: dict[str, dict[str, float | None]] = {}
    for panel in chosen:
        if panel.panel.method in rates:
            raise ConfigError(
                "--results", what=f"the method {panel.panel.method} is in two evaluations",
                fix="leave one of them out",
            )  # fmt: skip
        rates[panel.panel.method] = {video.unit: video.rate for video in panel.videos}
    return rates


COLUMNS = ("method", "unit", "rate")


def read_rates(path: str | Path) -> dict[str, dict[str, float | None]]:
    """Return method -> file name -> rate from a table with the columns method, unit and rate in [0, 1].

    Raises:
        InputError: a column is missing, a rate is no share, or a video is there twice; all is listed.
    """
    table = read_table(path)
    problems = [
        UserError(
            str(path),
            what=f"the table has no column {name}, only {', '.join(table.columns)}",
            fix="add the column",
        )
        for name in COLUMNS
        if name not in table.columns
    ]
    rates: dict[str, dict[str, float | None]] = {}
    for number, row in enumerate(table.rows if not problems else (), 2):
        place = f"{path} row {number}"
        try:
            rate = float(row["rate"])
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= 1:
            problems.append(
                UserError(place, expected="a rate from 0 to 1", found=row["rate"], fix="correct it")
            )
        if row["unit"] in rates.setdefault(row["method"], {}):
            problems.append(UserError(place, what=f"{row['unit']} is in the table twice", fix="remove one"))
        rates[row["method"]][row["unit"]] = rate
    if problems:
        raise InputError(problems)
    return rates
