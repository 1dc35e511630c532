"""The report on an evaluation of storyboards."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...schemas.score import Score
from ..recoverability.definitions import NONRESPONSES, SUPPORTS, Definitions
from ..recoverability.items import CONDITIONS
from ..recoverability.score import Judged, judged_folder, scores_of
from ..recoverability.scores import KathaScores
from ..stats.agreement import counts_of, fleiss_kappa, krippendorff_alpha, observed_agreement
from .accounts import Accounts, read_lines
from .comparing import resampling_definition
from .katha_cases import NAMES, Replies, Shown, cases_of
from .katha_controls import controls
from .katha_spots import chosen_spots, spots_of
from .katha_tables import accounting, comparisons, details, headline, judges_table, plots
from .model import Definition, Measure, ReportDocument, ScoreRow, ScoreTable
from .people import people_of
from .pictures import pictures_of_outputs, pictures_of_run

FEW_ANSWERS = 0.95
"""Share of answers of a judge below which the page says so at its top."""
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
) -> ReportDocument:
    """Return the report on an evaluation folder of kind katha.

    Args:
        folder: the evaluation folder.
        release: the release that was judged; None for the place that the manifest names.
        outputs: folders with the generated storyboards; none for the pictures that the run keeps.
        definitions: how replies become numbers; None for the paper's.

    Raises:
        InputError: archive, release or outputs cannot be read, or do not belong together.
        ConfigError: the release is not to be found.
    """
    used = definitions or Definitions()
    people = people_of(folder, "katha")
    judged = judged_folder(folder, release, used)
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
    shown = Shown(replies, pictures, judged.replies.seeds, used)
    return ReportDocument(
        kind="katha",
        title=_title(scores),
        facts=_facts(scores, accounts, judged),
        warnings=(*_warnings(scores, accounts, judged), *people.warnings),
        reading=READING,
        headline=headline(scores),
        plots=plots(scores),
        details=tuple(details(scores)),
        comparisons=comparisons(scores),
        comparison_note=_comparison_note(scores),
        controls=(controls(scores, judged.manifest.subject),),
        people=people.tables,
        people_note=people.note,
        accounting=(*accounting(scores), accounts.outcome_table()),
        cases=cases_of(chosen, len(spots), judged.methods, judged.items, shown) if chosen else None,
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
    created = judged.manifest.environment.get("created_at")
    return {
        "Release": str(scores.release["version"]),
        "Stories": f"{scores.scope['stories']:,}",
        "Questions": f"{scores.scope['questions']:,}",
        "Methods": f"{len(scores.methods):,}",
        "Judges": f"{len(scores.scope['judges']):,}",
        "Replies": f"{accounts.total:,}",
        **({"Judged": str(created)[:10]} if created else {}),
    }


def _warnings(scores: KathaScores, accounts: Accounts, judged: Judged) -> Iterator[str]:
    if judged.manifest.environment.get("simulation"):
        yield "Simulation: these judgements were drawn from random numbers, and say nothing about any method."
    yield from (f"{note[:1].upper()}{note[1:]}." for note in scores.notes)
    for judge, count in sorted(accounts.replies.items()):
        answered = accounts.outcomes[judge]["answered"]
        if answered < FEW_ANSWERS * count:
            yield f"{judge} answered {answered:,} of {count:,} requests; see Coverage and outcomes."
    for name, method in scores.methods.items():
        invalid, requested = (method.generations[f"generations_{one}"] for one in ("invalid", "requested"))
        if invalid:
            yield f"{invalid:,} of {requested:,} generations of {name} are invalid and could not be judged."
        leaks = _about(judged, name).get("leaks") or ()
        if leaks:
            yield f"The leakage scan kept {len(leaks):,} storyboards of {name} from judges; see the manifest."
        below = [one for one in method.negative["scores"] if one.startswith("question.filtered.")]
        if below:
            named = ", ".join(one.removeprefix("question.filtered.").replace("_", " ") for one in below)
            yield f"{name} has a negative gap ({named}): more is recovered from images than from text."


def _about(judged: Judged, method: str) -> Mapping[str, Any]:
    """Return what the manifest says of a method."""
    methods = judged.manifest.subject.get("methods")
    told = methods.get(method) if isinstance(methods, Mapping) else None
    return told if isinstance(told, Mapping) else {}


def _comparison_note(scores: KathaScores) -> str:
    if len(scores.methods) < 2:
        return "There is only one method; fabula compare compares it with other evaluations."
    return (
        "The first method minus the second on the questions that are valid for all methods, paired by story. "
        f"p-values are corrected by {scores.definitions.correction.capitalize()} for the number of "
        "comparisons."
    )


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
        Definition(name="aggregation", value="majority" if used.weights is None else "weighted",
                   meaning=f"Judges are combined by majority, {weights}; a tie counts as incorrect."),
        resampling_definition(used, "story"),
    )  # fmt: skip
