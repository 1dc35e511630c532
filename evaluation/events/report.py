"""The report on videos judged by the events that they complete, with the prompts that it shows."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...pages.figures import Plot, PlotPoint
from ...pages.grid import if_intervals, label_text
from ...releases.events.form import SUITE, load_suite
from ...releases.loading import evaluated_name
from ...schemas.canonical import digest
from ...schemas.events import Suite
from ...schemas.judgement import EvaluationManifest, Judgement
from ...schemas.plain_files import read_plain
from ...schemas.text import counted, tallied
from ...schemas.values import Score
from ..archive.archive import EVALUATION, sources_of
from ..report.model import (
    Case,
    CaseItem,
    Cases,
    Comparison,
    CountRow,
    CountTable,
    Definition,
    Examples,
    Measure,
    ReportDocument,
    ScoreRow,
    ScoreTable,
    Verdict,
)
from ..report.people import Column, TableForm, between_people, people_of
from ..report.showing import (
    Accounts,
    Pictures,
    Valued,
    comparison,
    comparison_note,
    day_of,
    examples_of,
    pictures_of_run,
    read_lines,
    resampling_definition,
    sentences,
)
from .score import AVERAGE, EventScores, PanelScore, Video, event_comparisons, pairs_within, score_folder
from .votes import METRIC, NONRESPONSE, Definitions

CONDITION = "video"
EACH = 8
"""How many of the worst, typical and best prompts are shown."""

Chosen = tuple[PanelScore, Video, str]
Votes = Mapping[tuple[str | None, str], Sequence[Judgement]]


def chosen_prompts(panels: Sequence[PanelScore]) -> list[Chosen]:
    """Return the prompts that are shown and why: so many of each kind, spread over methods and judges.

    The worst have the lowest rates, the best the highest, the typical those nearest to the mean; one that
    completes all is never among the worst, one that completes nothing never among the best. Among prompts
    with the same rate a hash decides, so that not the first of the suite are shown only.
    """
    share = max(1, EACH // max(1, len(panels)))
    picked: dict[str, list[Chosen]] = {"worst": [], "typical": [], "best": []}
    for panel in panels:
        left = [video for video in panel.videos if video.rate is not None]
        mean = sum(video.rate or 0.0 for video in left) / max(1, len(left))
        for why, target, never in (("worst", 0.0, 1.0), ("best", 1.0, 0.0), ("typical", mean, None)):
            left = sorted(left, key=lambda video: (abs((video.rate or 0.0) - target), digest(video.unit)))
            some = [video for video in left if video.rate != never][:share]
            picked[why] += [(panel, video, why) for video in some]
            left = [video for video in left if video not in some]
    return [prompt for chosen in picked.values() for prompt in chosen]


def prompt_case(
    chosen: Chosen,
    suite: Suite,
    votes: Votes,
    pictures: Pictures,
) -> Case:
    """Return one prompt with frames, events and votes."""
    panel, video, why = chosen
    method = panel.panel.method
    said = [vote for vote in votes.get((method, video.unit), ()) if vote.judge.spec == panel.panel.judge]
    seed = said[0].seed if said else None
    events = suite.prompts[video.unit].event_list
    return Case(
        unit=video.unit,
        title=suite.prompts[video.unit].prompt,
        place="",
        method=method,
        seed=seed,
        why=why,
        score=Score(value=video.rate, status="ok")
        if video.rate is not None
        else Score(value=None, status="undefined", reason="no answer"),
        frames=pictures.every((method, video.unit, seed)),
        items=tuple(
            CaseItem(
                id=f"event {number + 1}",
                group=f"event {number + 1}",
                text=text,
                verdicts=tuple(_verdict(vote, number) for vote in said),
                combined={CONDITION: None if video.events is None else video.events[number] >= 0.5},
            )
            for number, text in enumerate(events)
        ),
    )


def _examples(panels: Sequence[PanelScore], pictures: Pictures) -> tuple[Examples, ...]:
    """Return the card of the completion rate, with frames of videos."""
    places = {(method, unit): (method, unit, seed) for method, unit, seed in pictures.shown}
    valued = [
        Valued(video.rate, f"{panel.panel.method}, {video.unit}, by {panel.panel.judge}", place)
        for panel in panels for video in panel.videos
        if video.rate is not None and (place := places.get((panel.panel.method, video.unit))) is not None
    ]  # fmt: skip
    meaning = "Share of a prompt's events that the votes together call completed."
    made = examples_of(METRIC, meaning, valued, pictures.every, "percent")
    return () if made is None else (made,)


def _verdict(judgement: Judgement, number: int) -> Verdict:
    parsed = judgement.parsed or {}
    listed = parsed.get("completion")
    known = isinstance(listed, list) and number < len(listed)
    return Verdict(
        judge=judgement.judge.spec, condition=CONDITION, vote=judgement.vote, outcome=judgement.outcome,
        answer=str(parsed["description"]) if parsed.get("description") else judgement.reason,
        correct=bool(listed[number]) if known and listed is not None else None,
    )  # fmt: skip


def video_comparisons(scores: EventScores) -> tuple[Comparison, ...]:
    """Return every pair of methods under each judge, paired over prompts and corrected together."""
    made = event_comparisons(pairs_within(scores), scores.definitions)
    several = len({pair.about["judge"] for pair in made}) > 1
    return tuple(
        comparison(
            pair, f"Completion rate, by {pair.about['judge']}" if several else "Completion rate",
            higher=True, better="completes more",
        )
        for pair in made
    )  # fmt: skip


AGAINST_PEOPLE = TableForm(
    "judges_people", "Judges against people, by class", "Judge and class",
    (
        Column("spearman", "Spearman", "number", better="high"),
        Column("kendall", "Kendall", "number", better="high"),
        Column("difference", "Mean difference", "number", better="low", why="no video was judged by both"),
    ),
)  # fmt: skip


def people_tables(document: Mapping[str, Any]) -> Iterator[ScoreTable]:
    yield from AGAINST_PEOPLE.of(
        (
            (f"{judge} · {label_text(name)}", label)
            for judge, judged in document["judges"].items()
            for name, label in judged["classes"].items()
        ),
        lambda label: counted(len(label["models"]), "method"),
    )
    yield from between_people(document["agreement"])


READING = (
    "A judge describes the frames of each video, and says for each event whether it is completed.",
    "The completion rate of a prompt is the share of its events that the votes together call completed; that "
    "of a class is the mean over its prompts. Higher is better.",
)
AVERAGE_MEASURE = Measure.of(METRIC, name=AVERAGE, label="All prompts")


def events_report(
    folder: Path, suite: Path | None = None, definitions: Definitions | None = None
) -> ReportDocument:
    """Return the report on an evaluation folder of kind events.

    ``suite``: the suite's file; None for the copy in the folder. ``definitions``: how votes are joined; None
    for the paper's.
    """
    used = definitions or Definitions()
    people = people_of(folder, "events", people_tables)
    scores = score_folder(folder, suite, used)
    loaded = load_suite(folder / SUITE if suite is None else suite)
    chosen = chosen_prompts(scores.panels)
    units = {(panel.panel.method, video.unit) for panel, video, _ in chosen}
    accounts, votes = Accounts(), defaultdict[tuple[str | None, str], list[Judgement]](list)
    for judgement in read_lines(folder):
        accounts.add(judgement)
        if (judgement.method, judgement.unit) in units and judgement.kind == "completion":
            votes[judgement.method, judgement.unit].append(judgement)
    manifest = EvaluationManifest.model_validate_json(read_plain(folder / EVALUATION, follow=True))
    methods = dict.fromkeys(panel.panel.method for panel in scores.panels)
    pictures = pictures_of_run(folder, dict.fromkeys(methods, "Frame"))
    comparisons = video_comparisons(scores)
    return ReportDocument(
        kind="events",
        protocol="StoryEval",
        units="prompts",
        benchmark=_benchmark(folder, suite, manifest),
        title=_title(scores),
        facts=_facts(scores, accounts, loaded, manifest),
        warnings=(*_warnings(scores, accounts), *people.warnings),
        reading=READING,
        headline=_headline(scores),
        plots=(_plot(scores, loaded),),
        examples=_examples(scores.panels, pictures),
        details=(_votings(scores),),
        comparisons=comparisons,
        people=people.tables,
        people_note=people.note,
        comparison_note=comparison_note(
            len(methods), len(comparisons),
            "a prompt in common that counts",
            "The first method minus the second, paired by prompt, for each judge. p-values are corrected by "
            f"{used.correction.capitalize()} for {counted(len(comparisons), 'comparison')}.",
        ),
        accounting=(_coverage(scores), *_reasons(scores), accounts.outcome_table()),
        cases=_cases(scores, [prompt_case(prompt, loaded, votes, pictures) for prompt in chosen]),
        agreement_note="fabula correlate compares verifiers with each other; fabula calibrate compares "
            "them with "
        "people.",
        cost=accounts.cost_table(),
        definitions=(
            *(
                Definition(name=name, value=str(getattr(scores.definitions, name)))
                for name in ("voting", "nonresponse")
            ),
            resampling_definition(scores.definitions, "prompt"),
        ),
        manifest=manifest.as_json(),
    )  # fmt: skip


def _cases(scores: EventScores, shown: Sequence[Case]) -> Cases:
    total = sum(len(panel.videos) for panel in scores.panels)
    return Cases(
        title="Prompts", measure=Measure.of(METRIC), total=total, shown=tuple(shown),
        note=f"{len(shown)} of {total:,}: with the lowest completion rates, with rates nearest to the mean, "
        "and with the highest, of each method and judge.",
        conditions={CONDITION: "Video"}, right="completed", wrong="not completed", asked="Event",
    )  # fmt: skip


def _benchmark(folder: Path, suite: Path | None, manifest: EvaluationManifest) -> str:
    places = [*([suite] if suite is not None else []), *(path for _, path in sources_of(folder, manifest))]
    wanted = (manifest.protocol.get("suite") or {}).get("sha256")
    return evaluated_name(places, lambda place: load_suite(place).sha256(), wanted)


def _named(panel: PanelScore) -> str:
    return f"{panel.panel.method} · {panel.panel.judge}"


def _title(scores: EventScores) -> str:
    methods = list(dict.fromkeys(panel.panel.method for panel in scores.panels))
    name = methods[0] if len(methods) == 1 else tallied(len(methods), "methods")
    return f"Events completed by {name}"


def _facts(
    scores: EventScores, accounts: Accounts, suite: Suite, manifest: EvaluationManifest
) -> dict[str, str]:
    return {
        "Prompts": f"{len(suite.prompts):,}",
        "Methods": str(len({panel.panel.method for panel in scores.panels})),
        "Judges": str(len({panel.panel.judge for panel in scores.panels})),
        "Replies": f"{accounts.total:,}",
        **day_of("Judged", manifest),
    }


def _warnings(scores: EventScores, accounts: Accounts) -> Iterator[str]:
    yield from sentences(scores.notes, (panel.panel.method for panel in scores.panels))
    for panel in scores.panels:
        missing = sum(not video.seen for video in panel.videos)
        silent = sum(video.seen and video.rate is None for video in panel.videos)
        if missing:
            yield f"{missing:,} of {len(panel.videos):,} prompts have no video by {panel.panel.method}."
        if silent:
            method, judge = panel.panel
            yield f"{judge} answered nothing about {silent:,} of {len(panel.videos):,} prompts of {method}."
    if not accounts.total:
        yield "The archive has no replies."


def tables_of(scores: EventScores) -> Iterator[ScoreTable | CountTable]:
    """Yield the scores as tables: completion by class, other votings, and what was counted."""
    yield _headline(scores)
    yield _votings(scores)
    yield _coverage(scores)
    yield from _reasons(scores)


def _headline(scores: EventScores) -> ScoreTable:
    labels = list(dict.fromkeys(label for panel in scores.panels for label in panel.classes))
    measures = [AVERAGE_MEASURE] if AVERAGE in labels else []
    measures += [
        Measure.of(METRIC, name=label, label=label_text(label)) for label in labels if label != AVERAGE
    ]
    silent = Measure.of(NONRESPONSE)
    return ScoreTable(
        name="headline", title="Completion rate by class", heading="Method and judge",
        note="In brackets 95 % intervals over prompts, where there are enough of them.",
        measures=(*measures, silent),
        rows=tuple(
            ScoreRow(label=_named(panel), scores={**panel.classes, "non_response": panel.nonresponse})
            for panel in scores.panels
        ),
    )  # fmt: skip


def _plot(scores: EventScores, suite: Suite) -> Plot:
    labels = [*suite.labels(), AVERAGE]
    ends = if_intervals(
        ", with 95 % intervals", (panel.classes[label] for panel in scores.panels for label in panel.classes)
    )
    return Plot(
        name="completion", axis="Completion rate", title="Completion rate by class", note=f"In %{ends}.",
        groups={
            "All prompts" if label == AVERAGE else label_text(label): tuple(
                PlotPoint(series=_named(panel), score=panel.classes[label])
                for panel in scores.panels if label in panel.classes
            )
            for label in labels
        },
    )  # fmt: skip


def _votings(scores: EventScores) -> ScoreTable:
    names = list(dict.fromkeys(name for panel in scores.panels for name in panel.alternatives))
    return ScoreTable(
        name="votings", title="All prompts, with other ways to combine votes", heading="Method and judge",
        measures=tuple(Measure.of(METRIC, name=name, label=label_text(name)) for name in names),
        rows=tuple(ScoreRow(label=_named(panel), scores=dict(panel.alternatives)) for panel in scores.panels),
    )  # fmt: skip


def _coverage(scores: EventScores) -> CountTable:
    columns = {
        "prompts": "Prompts",
        "answered": "Answered",
        "silent": "Without answer",
        "missing": "No video",
    }
    rows = []
    for panel in scores.panels:
        videos = panel.videos
        answered = sum(video.rate is not None for video in videos)
        missing = sum(not video.seen for video in videos)
        values = {"prompts": len(videos), "answered": answered, "missing": missing}
        silent = len(videos) - answered - missing
        rows.append(CountRow(label=_named(panel), values={**values, "silent": silent}))
    return CountTable(
        name="prompts", title="Prompts", heading="Method and judge", columns=columns, rows=tuple(rows)
    )


def _reasons(scores: EventScores) -> Iterator[CountTable]:
    reasons = Counter[str]()
    for panel in scores.panels:
        reasons.update(panel.outcomes.get("reasons", {}))
    if reasons:
        rows = tuple(CountRow(label=why, values={"votes": count}) for why, count in reasons.most_common(20))
        yield CountTable(
            name="reasons", title="Why votes have no answer", heading="Outcome and reason",
            columns={"votes": "Votes"}, rows=rows,
        )  # fmt: skip
