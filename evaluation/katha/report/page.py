"""What else than lost meaning could explain the gap, and what the data say to it (Tables 4 and 72).

Only controls that need no new generation; the table of Table 73 is among the details.

The report on an evaluation of storyboards.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....pages.grid import DASH, label_text, value_text
from ....releases.loading import Release, load
from ....schemas.paths import STATES
from ....schemas.text import counted, tallied
from ....schemas.values import Score, states_told
from ....validators.resampling import fleiss_kappa
from ...recoverability.compare import Strongest
from ...recoverability.matching import COMMONS, CONDITIONS, NONRESPONSES, PROTOCOL, SUPPORTS, Definitions
from ...recoverability.pooling import KathaScores
from ...recoverability.score import Judged, judged_folder, scores_of
from ...report.model import CountRow, CountTable, Definition, Measure, ReportDocument, ScoreRow, ScoreTable
from ...report.people import people_of
from ...report.showing import (
    Accounts,
    comparison_note,
    day_of,
    pictures_of_outputs,
    pictures_of_run,
    read_lines,
    resampling_definition,
    sentences,
)
from ...stats.tables import counts_of, krippendorff_alpha, observed_agreement
from .cases import NAMES, Replies, Shown, cases_of, chosen_spots, examples, spots_of
from .people import people_drawn, people_tables, with_people
from .tables import (
    accounting,
    comparisons,
    details,
    figures_of,
    headline,
    judges_table,
    plots,
    strongest_table,
)

CONTROL_NAMES = {"raw": "raw", "filtered": "filtered", "common": "common-valid"}


def controls(scores: KathaScores, subject: Mapping[str, Any]) -> CountTable:
    rows = [*_of_rankings(scores), *_of_methods(scores), *_leakage(subject)]
    return CountTable(
        name="controls", title="Other explanations of the gap", heading="Threat",
        note="Rank correlations are Spearman's, between methods unless stated otherwise; they need three"
        " methods. Wording of prompts: fabula compare compares evaluations with two prompt"
        " sets.",
        columns={"control": "Control", "found": "Found"},
        rows=tuple(
            CountRow(label=threat, values={"control": control, "found": text})
            for threat, control, text in rows
        ),
    )  # fmt: skip


Control = tuple[str, str, str]
"""What could explain the gap, what was compared, and what that shows."""


def _of_rankings(scores: KathaScores) -> Iterator[Control]:
    robustness = scores.robustness
    for pair, found in robustness["filtering"].items():
        first, second = (CONTROL_NAMES[name] for name in pair.split("_"))
        yield "Filtering artifact", f"Ranking by {first} and by {second} STG", _rho(found)
    for method, family in robustness["source_family"].items():
        if family["groups"] > 1:
            families = counted(family["groups"], "source family")
            yield "Source-family artifact", f"STG of {method} over {families}", _range(family)
    for judges in robustness["judges"]:
        first, second = judges["judges"]
        for of in ("methods", "stories"):
            yield "Single-judge artifact", f"Gaps of {of} by {first} and by {second}", _rho(judges[of])
    half = robustness["half_data"]
    text = f"{DASH} ({half['reason']})"
    if half["mean"] is not None:
        text = f"mean {half['mean']:.2f}, lowest {half['lowest']:.2f}"
    halves = counted(half.get("halves", 0), "random half")
    yield "Dataset-size artifact", f"Ranking by {halves} of the stories and by all", text


def _of_methods(scores: KathaScores) -> Iterator[Control]:
    for name, method in scores.methods.items():
        other = method.pairs.get("gap")
        if other is not None and other.value is not None:
            text = f"{_points(method.gaps['question']['filtered'].gap)}, and {_points(other)}"
            yield "Surface appearance", f"STG of {name} to the story, and to contrastive labels", text
    for name, method in scores.methods.items():
        main = method.gaps["question"]["filtered"]
        text = f"{_points(main.latent_gap)}, and {_points(main.latent_gap_without_moral)}"
        yield "Moral-target-only effect", f"Latent STG of {name}, and without moral questions", text
    for name, method in scores.methods.items():
        gaps = {
            group: (each.gaps["filtered"].gap, each.ambiguity)
            for group, each in method.groups.get("narrative_type", {}).items()
            if each.gaps["filtered"].gap.value is not None
        }
        if len(gaps) > 1:
            order = sorted(gaps, key=lambda group: (gaps[group][0].value or 0.0, group))
            ends = [
                f"{label_text(group)} {_points(gaps[group][0])} with {_percent(gaps[group][1])} ambiguous"
                for group in (order[0], order[-1])
            ]
            control = f"STG of {name}, lowest and highest narrative type"
            yield "Scope and ambiguity", control, "; ".join(ends)


def _leakage(subject: Mapping[str, Any]) -> Iterator[Control]:
    methods = subject.get("methods")
    for name, about in sorted(methods.items()) if isinstance(methods, Mapping) else ():
        scanned = about.get("packets_scanned") if isinstance(about, Mapping) else None
        if isinstance(scanned, int):
            leaks = about.get("leaks")
            stopped = counted(len(leaks) if isinstance(leaks, list) else 0, "storyboard")
            control = f"Scan of {counted(scanned, 'packet')} of {name}"
            yield "Source-side leakage", control, f"{stopped} stopped"


def _rho(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return f"{DASH} ({found['reason']})"
    ends = "" if found["low"] is None else f" [{found['low']:.2f}, {found['high']:.2f}]"
    return f"\N{GREEK SMALL LETTER RHO} = {found['value']:.2f}{ends}, {counted(found['pairs'], 'pair')}"


def _range(found: Mapping[str, Any]) -> str:
    if found["lowest"] is None:
        return DASH
    return f"{value_text(found['lowest'], 'points')} to {value_text(found['highest'], 'points')}"


def _points(score: Score) -> str:
    return value_text(score.value, "points")


def _percent(score: Score) -> str:
    return DASH if score.value is None else f"{value_text(score.value, 'percent')} %"


READING = (
    "Judges answer fixed questions from the story's text alone, from the images alone, and from both.",
    "STG, the Semantic Trajectory Gap, is what is recovered from text minus what is recovered from "
    "images, in "
    "percentage points: lower is better. Latent STG is its mean over causal, emotional, consequence and "
    "moral.",
    "Questions that are not answered as accepted even with text and images together are ambiguous; they are "
    "counted, but left out of STG.",
)


def katha_report(
    folder: Path,
    release: Path | None = None,
    outputs: Sequence[Path] = (),
    definitions: Definitions | None = None,
    *,
    read: Callable[[Path], Release] = load,
    strongest: Callable[[Judged], Strongest] | None = None,
) -> ReportDocument:
    """Return the report on an evaluation folder of kind katha.

    ``release``: the release that was judged; None for the place that the manifest names. ``definitions``: how
    replies become numbers; None for the paper's. ``strongest``: compares the methods with a baseline.
    """
    used = definitions or Definitions()
    people = people_of(folder, PROTOCOL, people_tables, people_drawn)
    judged = judged_folder(folder, release, used, read=read)
    scores = scores_of(judged, used)
    records = judged.items.records
    spots = spots_of(judged.methods, judged.items)
    chosen = chosen_spots(spots)
    questions = {judged.items.keys[place].question_id for spot in chosen for place in spot.questions}
    accounts, replies = Accounts(), Replies(frozenset(questions))
    for judgement in read_lines(folder):
        accounts.add(judgement)
        replies.add(judgement)
    told = judged.manifest.subject.get("methods") or {}
    pictures = pictures_of_outputs(outputs, records, told) if outputs else pictures_of_run(folder)
    pictures.nouns = {method.name: _noun(judged.manifest.about(method.name)) for method in judged.methods}
    shown = Shown(judged.methods, judged.items, replies, pictures, judged.replies.seeds, used)
    return ReportDocument(
        kind=PROTOCOL,
        protocol="KathaTrace",
        benchmark=f"{judged.release.name} {judged.release.version}",
        title=_title(scores),
        facts=_facts(scores, accounts, judged),
        warnings=(*_warnings(scores, accounts, judged), *people.warnings),
        reading=READING,
        headline=with_people(headline(scores), people.drawn),
        plots=plots(scores),
        figures=figures_of(spots, judged.methods),
        examples=tuple(examples(spots, shown)),
        details=(*(() if strongest is None else [strongest_table(strongest(judged))]), *details(scores)),
        comparisons=comparisons(scores),
        comparison_note=comparison_note(
            len(scores.methods),
            1,
            "",
            "The first method minus the second on the questions that are valid for all methods, paired by "
            f"story. p-values are corrected by {used.correction.capitalize()} for the number of comparisons.",
        ),
        controls=(controls(scores, judged.manifest.subject),),
        people=people.tables,
        people_note=people.note,
        people_figures=people.drawn.figures,
        people_missing=people.drawn.missing,
        accounting=(*accounting(scores), accounts.outcome_table()),
        cases=cases_of(chosen, len(spots), shown) if chosen else None,
        agreement=(_agreement(judged), judges_table(scores)),
        agreement_note="Agreement on whether answers are correct, after matching; 1 is perfect, 0 is chance.",
        cost=accounts.cost_table(),
        definitions=_definitions(used),
        manifest=judged.manifest.as_json(),
    )


def _title(scores: KathaScores) -> str:
    methods = list(scores.methods)
    if len(methods) == 1:
        return f"How much of the story {methods[0]} shows"
    return f"How much of the story {len(methods)} methods show"


def _facts(scores: KathaScores, accounts: Accounts, judged: Judged) -> dict[str, str]:
    return {
        "Release": str(scores.release["version"]),
        **_states(judged.release),
        "Stories": f"{scores.scope['stories']:,}",
        "Questions": f"{scores.scope['questions']:,}",
        "Methods": f"{len(scores.methods):,}",
        "Judges": f"{len(scores.scope['judges']):,}",
        "Replies": f"{accounts.total:,}",
        **_units(judged),
        **day_of("Judged", judged.manifest),
    }


def _states(release: Release) -> dict[str, str]:
    """Return in which state how many records of the release are, where it says so."""
    told = states_told(release.info.get(STATES) or {})
    return {"Its records": told} if told else {}


def _units(judged: Judged) -> dict[str, str]:
    """Return what one picture or video of the outputs is, where they say so."""
    units = [unit_text(judged.manifest.about(method.name)) for method in judged.methods]
    named = dict.fromkeys(text for text in units if text)
    return {"Units": ", ".join(named)} if named else {}


def unit_text(about: Mapping[str, Any]) -> str:
    """Return the unit of a method's outputs, as its manifest says it; empty where it does not."""
    unit, frames = about.get("unit"), about.get("frames_each")
    if not isinstance(unit, str):
        return ""
    return f"{unit}, {counted(frames, 'frame')} of each" if isinstance(frames, int) else unit


def _noun(about: Mapping[str, Any]) -> str:
    """Return what a picture of a method's outputs is called."""
    return "Frame" if about.get("frames_each") else str(about.get("unit") or "panel").capitalize()


def _warnings(scores: KathaScores, accounts: Accounts, judged: Judged) -> Iterator[str]:
    if judged.manifest.environment.get("simulation"):
        yield "Simulation: these judgements were drawn from random numbers, and say nothing about any method."
    yield from sentences(scores.notes, scores.methods)
    yield from accounts.warnings()
    for name, method in scores.methods.items():
        invalid, requested = (method.generations[f"generations_{one}"] for one in ("invalid", "requested"))
        if invalid:
            yield f"{invalid:,} of {requested:,} generations of {name} are invalid and could not be judged."
        leaks = judged.manifest.about(name).get("leaks") or ()
        if leaks:
            kept = tallied(len(leaks), "storyboards")
            yield f"The leakage scan kept {kept} of {name} from judges; see the manifest."
        below = [one for one in method.negative["scores"] if one.startswith("question.filtered.")]
        if below:
            named = ", ".join(one.removeprefix("question.filtered.").replace("_", " ") for one in below)
            yield f"{name} has a negative gap ({named}): more is recovered from images than from text."


def _agreement(judged: Judged) -> ScoreTable:
    measures = (
        Measure(name="observed", label="Agreement"),
        Measure(name="fleiss", label="Fleiss' kappa", unit="number"),
        Measure(name="alpha", label="Krippendorff's alpha", unit="number"),
    )
    rows = []
    for place, condition in enumerate(CONDITIONS):
        for method in judged.methods[:1] if condition == "text" else judged.methods:
            single = method.board.single[:, :1] if condition == "text" else method.board.single
            shown = single[:, :, place]
            codes = shown.reshape(len(shown), int(np.prod(shown.shape[1:]))).astype(np.int64)
            label = NAMES[condition] if condition == "text" else f"{NAMES[condition]} · {method.name}"
            rows.append(ScoreRow(label=label, scores=_agreed(codes)))
    return ScoreTable(
        name="agreement", title="Agreement between judges", heading="Condition", measures=measures,
        note="Over questions with a verdict of at least two judges.", rows=tuple(rows),
    )  # fmt: skip


def _agreed(codes: np.ndarray) -> dict[str, Score]:
    counts = counts_of(codes, 2)
    units = int((counts.sum(axis=1) > 1).sum())
    values = {
        "observed": observed_agreement(counts),
        "fleiss": fleiss_kappa(counts),
        "alpha": krippendorff_alpha(counts),
    }
    why = "all verdicts are the same" if units else "fewer than two judges"
    return {
        name: Score(value=None, status="undefined", reason=why, counts={"questions": units})
        if np.isnan(value)
        else Score(value=value, status="ok", counts={"questions": units})
        for name, value in values.items()
    }


def _definitions(used: Definitions) -> tuple[Definition, ...]:
    weights = "one vote each" if used.weights is None else "weights fitted on people's answers"
    return (
        Definition(name="matcher", value=used.matcher, meaning="How answers are compared with the "
            "accepted ones."),
        Definition(name="nonresponse", value=used.nonresponse, meaning=NONRESPONSES[used.nonresponse]),
        Definition(name="support", value=used.support, meaning=SUPPORTS[used.support]),
        Definition(name="common", value=used.common, meaning=f"{COMMONS[used.common].capitalize()}."),
        Definition(name="aggregation", value="majority" if used.weights is None else "weighted",
                   meaning=f"Judges are combined by majority, {weights}; a tie counts as incorrect."),
        resampling_definition(used, "story"),
    )  # fmt: skip
