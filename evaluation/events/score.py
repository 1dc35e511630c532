"""Scoring an archive of event judgements: completion rates per class and overall, and what is missing.

Prompts that an unfinished evaluation has not asked about yet count as nothing, not as zero. For intervals,
prompts are drawn; videos and votes stay as they are. The rates are also what a suite is graded by.

Comparing two evaluations of videos made under the same protocol: paired over prompts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ConfigError, InputError, UserError, mismatch
from ...releases.events.form import SUITE, load_suite
from ...schemas.canonical import Plain, plain
from ...schemas.events import Suite
from ...schemas.judgement import EvaluationManifest
from ...schemas.text import counted
from ...schemas.values import Score
from ..archive.archive import Archive, check_hash, nothing_to_compare, read_archive
from ..archive.replies import archive_notes, lacks, last_attempts, not_judged
from ..comparing import Comparisons, read_sides
from ..protocol import UNCERTAINTY, Chosen, Scoring, later
from ..report.model import ReportDocument
from ..stats.tables import number_of, read_table
from ..stats.uncertainty import Pair, Paired, paired
from .votes import Definitions, Panel, Votes, collect_votes, completion_rate

_problem = partial(mismatch, fix="give the folder of fabula evaluate events")

AVERAGE = "average"


@dataclass(frozen=True)
class Video(Plain):
    """One prompt under one panel."""

    unit: str  # file name in the suite
    rate: float | None  # its completion rate, the mean over its seeds; null where no vote has an answer
    # completion score of each event, of the first seed that has one; null as above
    events: tuple[float, ...] | None
    seen: bool  # whether any judgement is about it. A missing video has none.


@dataclass(frozen=True)
class PanelScore:
    """The scores of one method under one verifier."""

    panel: Panel  # method and verifier
    classes: Mapping[str, Score]  # label -> mean completion rate of its prompts; ``average`` over all
    nonresponse: Score  # share of prompts without any answer
    alternatives: Mapping[str, Score]  # voting -> average under it, all else the same
    # how many votes came out how; and why those without an answer have none
    outcomes: Mapping[str, Mapping[str, int]]
    videos: tuple[Video, ...] = field(repr=False)  # every prompt, in the order of the suite

    def as_json(self) -> dict[str, Any]:
        """Return the scores as plain JSON, with every video."""
        return {
            "method": self.panel.method,
            "judge": self.panel.judge,
            "non_response": self.nonresponse.as_json(),
            **{
                name: plain(getattr(self, name)) for name in ("classes", "alternatives", "outcomes", "videos")
            },
        }


@dataclass(frozen=True)
class EventScores:
    """The scores of an archive of event judgements."""

    definitions: Definitions  # the named definitions that were used
    suite_sha256: str  # the suite
    # one entry per method and verifier of it; a verifier without a judgement of a method has none
    panels: tuple[PanelScore, ...]
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number

    def as_json(self) -> dict[str, Any]:
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
        named = f"voting={used.voting}, nonresponse={used.nonresponse}"
        yield f"completion rate, % ({named})"
        yield from (f"note: {note}" for note in self.notes)
        for panel in self.panels:
            yield ""
            yield f"{panel.panel.method} judged by {panel.panel.judge}"
            for name, score in panel.classes.items():
                counts = score.counts
                yield (
                    f"  {name:<12}{_percent(score)}  of {counted(counts['prompts'], 'prompt')},"
                    f" {counts['answered']} answered, {counts['missing']} without a video"
                )
            yield f"  {'no response':<12}{_percent(panel.nonresponse)}"
            others = ", ".join(f"{name}{_percent(score)}" for name, score in panel.alternatives.items())
            yield f"  average under other votings: {others}"
            for why, count in sorted(panel.outcomes["reasons"].items()):
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

    ``judge``: whose; None where there is one only.
    """
    panels = [panel for scored in scores for panel in scored.panels]
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
    """Return method -> file name -> rate from a table with the columns method, unit and rate in [0, 1]."""
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
        where = f"{path} row {number}"
        rate = number_of(row["rate"])
        if rate is None or not 0 <= rate <= 1:
            problems.append(
                UserError(where, expected="a rate from 0 to 1", found=row["rate"], fix="correct it")
            )
        if row["unit"] in rates.setdefault(row["method"], {}):
            problems.append(UserError(where, what=f"{row['unit']} is in the table twice", fix="remove one"))
        rates[row["method"]][row["unit"]] = rate
    if problems:
        raise InputError(problems)
    return rates


def finished(archive: Archive, panel: Panel, scope: Suite, required: int) -> Suite:
    """Return the prompts of a suite that are done for one method and verifier."""
    votes = Counter(
        (attempt.unit, attempt.seed)
        for attempt in last_attempts(archive.judgements)
        if (attempt.kind, attempt.method, attempt.judge.spec) == ("completion", panel.method, panel.judge)
    )
    subject = archive.manifest.about(panel.method)
    listed = subject.get("invalid")
    invalid = {
        (entry.get("unit"), entry.get("seed"))
        for entry in (listed if isinstance(listed, list) else ())
        if isinstance(entry, Mapping)
    }
    seeds = subject.get("seeds") or [None]
    return Suite({
        unit: prompt
        for unit, prompt in scope.prompts.items()
        if all(votes[unit, seed] >= required or (unit, seed) in invalid for seed in seeds)
    })  # fmt: skip


SILENT = "non_response"
"""Name of the share of prompts without any answer, which needs no members."""


def with_intervals(
    scores: Mapping[str, Score],
    videos: Sequence[Video],
    members: Mapping[str, Sequence[bool]],
    definitions: Definitions,
) -> dict[str, Score]:
    """Return scores with their 95 % intervals over drawings of the prompts.

    All scores see the same drawings.

    ``members``: name -> for each prompt whether it belongs to that score's class; of :data:`SILENT` unused.
    """
    import numpy as np

    if not videos or not definitions.resamples:
        return dict(scores)
    answered = np.array([video.rate is not None for video in videos])
    rates = np.array([video.rate or 0.0 for video in videos])
    counted = np.ones(len(videos)) if definitions.nonresponse == "zero" else answered.astype(float)
    tops, bottoms = [], []
    for name in scores:
        member = np.ones(len(videos)) if name == SILENT else np.array(members[name], dtype=float)
        tops.append((~answered).astype(float) if name == SILENT else rates * member)
        bottoms.append(member if name == SILENT else counted * member)
    columns = np.stack(tops, axis=1), np.stack(bottoms, axis=1)
    made = definitions.with_ends([*scores.values()], *columns, (0.0, 1.0))
    return dict(zip(scores, made, strict=True))


NO_PROMPT = "no prompt of this class was judged"


def score_folder(
    folder: str | Path, suite: str | Path | None = None, definitions: Definitions | None = None
) -> EventScores:
    """Score an evaluation folder of kind events; pure: archive and suite in, numbers out.

    ``suite``: the suite's file; None for the copy in the folder. ``definitions``: how votes and gaps are
    treated; None for the paper's.
    """
    archive = read_archive(folder)
    if archive.manifest.kind != "events":
        raise InputError([_problem(str(folder), "an evaluation of kind events", archive.manifest.kind)])
    path = Path(folder) / SUITE if suite is None else Path(suite)
    loaded = load_suite(path)
    check_hash(archive, "suite", loaded.sha256(), str(path))
    return score_archive(archive, loaded, definitions or Definitions())


def score_archive(archive: Archive, suite: Suite, definitions: Definitions) -> EventScores:
    protocol = archive.manifest.protocol
    votes = protocol.get("votes")
    units = protocol.get("units")
    scope = Suite({name: suite.prompts[name] for name in units if name in suite.prompts}) if units else suite
    required = votes if isinstance(votes, dict) else {}
    panels = collect_votes(archive.judgements, scope, required)
    judged = {
        method: {judge for name, judge in panels if name == method}
        for method in subject_methods(archive.manifest)
    }
    unfinished = any(lacks(archive.manifest.environment))
    scored = []
    for panel in sorted(panels):
        seeds = tuple(archive.manifest.about(panel.method).get("seeds") or ()) or None
        asked = finished(archive, panel, scope, required.get(panel.judge, 1)) if unfinished else scope
        scored.append(_score_panel(panel, panels[panel], asked, seeds, definitions))
    unjudged = not_judged(judged, map(str, protocol.get("judges", ())))
    notes = (*archive_notes(archive.manifest), *unjudged, *definitions.notes(len(scope.prompts), "prompt"))
    return EventScores(definitions, suite.sha256(), tuple(scored), notes)


def subject_methods(manifest: EvaluationManifest) -> tuple[str, ...]:
    """Return the methods that an evaluation of events is about."""
    methods = manifest.subject.get("methods", {})
    return tuple(sorted(methods)) if isinstance(methods, dict | list) else ()


def _score_panel(
    panel: Panel, votes: Votes, suite: Suite, wanted: tuple[int, ...] | None, definitions: Definitions
) -> PanelScore:
    videos = _videos(votes, suite, wanted, definitions)
    most = max((len(lists) for lists in votes.lists.values()), default=0)
    others = ("average", *(f"at_least_{k}" for k in range(1, most)), "unanimous")
    alternatives = {
        name: _mean(_videos(votes, suite, wanted, replace(definitions, voting=name)), definitions)
        for name in others
    }
    labels = {unit: prompt.labels for unit, prompt in suite.prompts.items()}
    classes = {
        label: _mean([video for video in videos if label in labels[video.unit]], definitions)
        for label in suite.labels()
    }
    silent = sum(video.rate is None for video in videos)
    scores = {
        **classes,
        AVERAGE: _mean(videos, definitions),
        SILENT: Score.ratio(silent, len(videos), NO_PROMPT, **_counts(videos)),
    }
    members = {name: [name == AVERAGE or name in labels[video.unit] for video in videos] for name in scores}
    scores = with_intervals(scores, videos, members, definitions)
    return PanelScore(
        panel=panel,
        classes={name: score for name, score in scores.items() if name != SILENT},
        nonresponse=scores[SILENT],
        alternatives=alternatives,
        outcomes={"votes": dict(votes.outcomes), "reasons": dict(votes.silent)},
        videos=tuple(videos),
    )


def _videos(
    votes: Votes, suite: Suite, wanted: tuple[int, ...] | None, definitions: Definitions
) -> list[Video]:
    seeds_of: dict[str, list[int | None]] = {}
    for unit, seed in votes.lists:
        seeds_of.setdefault(unit, []).append(seed)
    videos: list[Video] = []
    for unit, prompt in suite.prompts.items():
        there = seeds_of.get(unit, [])
        seeds = list(wanted) if wanted is not None and there != [None] else there
        rates: list[float | None] = []
        events: tuple[float, ...] | None = None
        for seed in seeds:
            lists = votes.lists.get((unit, seed), [])
            rate, combined = completion_rate(lists, len(prompt.event_list), definitions)
            rates.append(rate.value)
            events = combined if events is None else events
        videos.append(Video(unit, _over_seeds(rates, definitions), events, bool(there)))
    return videos


def _over_seeds(rates: Sequence[float | None], definitions: Definitions) -> float | None:
    """Return the mean over seeds, null where none has an answer; single gaps are treated as prompts are."""
    answered = [rate for rate in rates if rate is not None]
    if not answered:
        return None
    return sum(answered) / (len(rates) if definitions.nonresponse == "zero" else len(answered))


def _mean(videos: Sequence[Video], definitions: Definitions) -> Score:
    answered = [video.rate for video in videos if video.rate is not None]
    count = len(videos) if definitions.nonresponse == "zero" else len(answered)
    return Score.ratio(sum(answered), count, NO_PROMPT, **_counts(videos))


def _counts(videos: Sequence[Video]) -> dict[str, int]:
    return {
        "prompts": len(videos),
        "answered": sum(video.rate is not None for video in videos),
        "missing": sum(not video.seen for video in videos),
    }


HEADING = "difference of completion rates (positive: the first completes more)"


def compare_folders(
    first: Path, second: Path, suite: Path | None, definitions: Definitions, allowed: Collection[str] = ()
) -> Comparisons:
    """Compare the methods of two evaluation folders of kind events; of one, its methods with each other.

    Those of the same name if there are any, else each against each; per verifier.
    """
    sides = read_sides(first, second, lambda folder: score_folder(folder, suite, definitions), allowed)
    if len(sides.scores) == 1:
        pairs, problem = pairs_within(sides.scores[0]), nothing_to_compare(first)
    else:
        every = product(*(scores.panels for scores in sides.scores))
        judged = [(a, b) for a, b in every if a.panel.judge == b.panel.judge]
        pairs = [(a, b) for a, b in judged if a.panel.method == b.panel.method] or judged
        problem = UserError(
            str(second), what=f"no judge voted both here and in {first}",
            fix="compare evaluations with the same judges",
        )  # fmt: skip
    if not pairs:
        raise InputError([problem])
    comparisons = event_comparisons(pairs, definitions)
    return Comparisons("events", definitions, HEADING, comparisons, sides.differences, sides.notes)


def event_comparisons(
    pairs: Sequence[tuple[PanelScore, PanelScore]], definitions: Definitions
) -> tuple[Paired, ...]:
    """Return the comparison of each pair, p-values corrected for the number of pairs."""
    return paired([_pair(a, b, definitions) for a, b in pairs], "prompt", definitions)


def pairs_within(scores: EventScores) -> list[tuple[PanelScore, PanelScore]]:
    """Return every two methods under the same verifier that have a prompt in common that counts."""
    return [
        (ours, other)
        for ours, other in combinations(scores.panels, 2)
        if ours.panel.judge == other.panel.judge
        and ours.panel.method != other.panel.method
        and _differences(ours, other, scores.definitions)
    ]


def _differences(ours: PanelScore, other: PanelScore, definitions: Definitions) -> list[float]:
    """Return the differences over the prompts that both have, without an answer as defined."""
    theirs = {video.unit: video.rate for video in other.videos}
    values = []
    for video in ours.videos:
        pair = [video.rate, theirs.get(video.unit)]
        if video.unit not in theirs or (definitions.nonresponse == "excluded" and None in pair):
            continue
        values.append((pair[0] or 0.0) - (pair[1] or 0.0))
    return values


def _pair(ours: PanelScore, other: PanelScore, definitions: Definitions) -> Pair:
    differences = _differences(ours, other, definitions)
    if not differences:
        raise InputError.one(
            other.panel.method, what=f"it has no prompt in common with {ours.panel.method}",
            fix="compare evaluations of the same prompts",
        )  # fmt: skip
    return Pair(
        ours.panel.method, other.panel.method, np.array(differences), {"judge": ours.panel.judge}, reach=1.0
    )  # fmt: skip


# -- Scoring, comparing and showing evaluations of videos as the commands ask for it


def definitions_of(chosen: Chosen) -> Definitions:
    """Return the definitions that were chosen; what no answer counts as is called ``zero`` here."""
    given = chosen.of("voting", "nonresponse", "resamples", *UNCERTAINTY)
    if given.get("nonresponse") == "incorrect":
        given["nonresponse"] = "zero"
    return Definitions(**given)


def suite_of(chosen: Chosen) -> Path | None:
    """Return the suite that was judged: as given, or that of the given release of events."""
    suite, release = (chosen.options.get(name) for name in ("suite", "release"))
    if suite is not None and release is not None:
        raise ConfigError(
            "--release", what="--suite and a release of events are both given, and one is enough",
            fix="leave one out",
        )  # fmt: skip
    return suite if suite is not None else release


def score(folder: Path, chosen: Chosen) -> EventScores:
    return score_folder(folder, suite_of(chosen), definitions_of(chosen))


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> Comparisons:
    """Return the methods of two evaluations, or of one, against each other."""
    return compare_folders(first, second, suite_of(chosen), definitions_of(chosen), allowed)


def report(folder: Path, chosen: Chosen) -> ReportDocument:
    if chosen.options.get("outputs"):
        raise ConfigError(
            "--outputs", what="this option is for evaluations of storyboards; this one is of videos",
            fix="leave it out: the frames that judges saw are kept in the run folder",
        )  # fmt: skip
    document: ReportDocument = later("events.report:events_report")(folder, chosen.options.get("release"))
    return document


SCORING = Scoring(
    "videos (events)",
    score,
    compare,
    report,
    None,
    ("release", "suite", "voting", "nonresponse"),
    tables=later("events.report:tables_of"),
    of_people=later("events.report:people_tables"),
    difference="completion rates (positive: the first completes more)",
    compared_by="average",
)
