"""Semantic Compass: what was frozen, controls of length, terms, held-out questions (43, 55, 63, 64, 75)."""

from ....evaluation.recoverability.method import gaps_over
from ....evaluation.recoverability.recoverability import Estimates
from ....evaluation.recoverability.score import Judged
from ....evaluation.report.model import CountRow, CountTable, Measure, ScoreRow, ScoreTable
from ....evaluation.report.people import plain_score
from ....evaluation.report.showing import sentences
from ....evaluation.stats.uncertainty import Paired
from ....schemas.text import counted
from ....schemas.values import Score
from ...compass.arms import BASE, FULL, STILL_FRAME, Arm
from ...compass.boards import TERMS
from ...compass.frozen import CELLS
from .ablations import Contrast, effects
from .compass_results import CompassResults, methods_by_name
from .leaderboard import GAP, IMAGE, INTERVALS, VISUAL
from .results import NO_RATINGS, NoTable, StudyResults, unmeasured

NO_REPORT = "the arms were not evaluated with held-out prompts and questions yet"
DELTA = Measure(name="delta", label="STG, less base", unit="points", better="low")
STILL = Measure(name="delta_still", label="STG, less non-semantic frame", unit="points", better="low")
P_VALUE = Measure(name="p_wilcoxon", label="p, Wilcoxon", unit="number")
COPIES = Measure(name="copy_rate", label="Copy rate", better="low")
PEOPLE = Measure(name="human_correlation", label="Human correlation", unit="plain", better="high")


Quantity = tuple[str, str | int | float, str, str]
"""Name, value, where it was chosen, what for."""


def _tuned(compass: CompassResults) -> list[Quantity]:
    frozen, setting = compass.frozen, compass.frozen.setting
    tuned = f"tuned on {frozen.split}, {counted(len(frozen.stories), 'story')}; frozen"
    return [
        (
            "Candidates", len(frozen.seeds), f"one for each seed: {', '.join(map(str, frozen.seeds))}",
            "what is chosen from",
        ),
        ("Recoverability weight", setting.weights.recoverability, tuned, "rewards answers from images alone"),
        ("Transition weight", setting.weights.coverage, tuned, "rewards pictures like the annotation"),
        ("Copy penalty", setting.weights.copies, tuned, "penalises pictures like their neighbours"),
        ("Transition threshold", setting.delta, tuned, "from where a transition counts as shown (Eq. 25)"),
        ("Copy threshold", setting.gamma, tuned, "from where neighbours count as copies (Eq. 26)"),
        ("Repair threshold", setting.repair_threshold, tuned, "below which the weakest is bridged"),
    ]  # fmt: skip


def _stated(compass: CompassResults) -> list[Quantity]:
    conditions, search = compass.frozen.conditions, compass.frozen.search
    return [
        (
            "Selection questions", f"SHA-256 {conditions.selection_sha256[:12]}", "the selection half",
            "for selection and repair, never for the report",
        ),
        (
            "Reporting questions", f"SHA-256 {conditions.reporting_sha256[:12]}", "the reporting half",
            "for the report only",
        ),
        (
            "Judge prompts", ", ".join(sorted(conditions.prompts)), "those of selection",
            "the report is asked with others, that selection has not seen",
        ),
        (
            "Encoders", ", ".join(f"{name}: {value}" for name, value in sorted(conditions.encoders.items())),
            f"annotations as {conditions.psi}", "coverage and copies",
        ),
        ("Weakest transition", conditions.weakest, "stated in the study", "where a bridge goes (Eq. 27)"),
        (
            "Search", f"{search.tried:,} settings", f"{search.method}; seed {search.seed}",
            f"highest {search.objective}; ties: {search.ties}",
        ),
        ("Arms", ", ".join(arm.name for arm in compass.arms), "the study", "controls and ablations"),
    ]  # fmt: skip


def protocol(results: StudyResults) -> CountTable:
    """Table 43: what tuning chose, where, and what it was for."""
    frozen = results.compass.frozen
    columns = {"value": "Value", "where": "Where it was chosen", "purpose": "Purpose"}
    return CountTable(
        name="compass_protocol", title="What Semantic Compass was frozen with", heading="Quantity",
        note=f"From the frozen file, SHA-256 {frozen.sha256[:12]}.", columns=columns,
        rows=tuple(
            CountRow(label=label, values=dict(zip(columns, cells, strict=True)))
            for label, *cells in (*_tuned(results.compass), *_stated(results.compass))
        ),
    )  # fmt: skip


def reported_gaps(compass: CompassResults, judged: Judged) -> dict[str, Estimates]:
    """Return arm -> recoverability and gap over its own valid questions, all resampled together."""
    parts = {
        name: (method, method.outcomes.sets["filtered"]) for name, method in methods_by_name(judged).items()
    }
    return gaps_over(parts, judged.items, compass.definitions)


def _reported(compass: CompassResults) -> Judged:
    judged = compass.reported
    if judged is None:
        raise NoTable(NO_REPORT)
    return judged


def differences(results: StudyResults, against: str = BASE) -> dict[str, Paired]:
    """Return arm -> its STG less that of another arm, over the questions valid for both, paired by story."""
    judged = _reported(results.compass)
    methods = methods_by_name(judged)
    if against not in methods:
        raise NoTable(f"the arm {against} was not evaluated")
    others = [name for name in methods if name != against]
    some = [Contrast("plan", name, against, ((methods[name], methods[against]),)) for name in others]
    made = effects(some, judged.items, results.definitions)
    return {pair.first: pair for pair in made if pair.about["value"] == "STG"}


def bridge_controls(results: StudyResults) -> ScoreTable:
    """Tables 55 and 75: reranking and repair against controls of the same length."""
    compass = results.compass
    judged = _reported(compass)
    gaps, less = reported_gaps(compass, judged), differences(results)
    has_still = STILL_FRAME in methods_by_name(judged)
    longer = differences(results, STILL_FRAME) if has_still else {}
    rows = []
    for arm in compass.arms:
        if 55 not in arm.tables or arm.name not in gaps:
            continue
        scores = {
            "visual": unmeasured(NO_RATINGS), "image": gaps[arm.name].score("image"),
            "gap": gaps[arm.name].score("gap"),
        }  # fmt: skip
        if arm.name in less:
            scores |= _less(less[arm.name])
        if arm.insertion is not None and arm.name in longer:
            scores["delta_still"] = _difference(longer[arm.name])
        rows.append(ScoreRow(label=arm.label, scores=scores, note=_what_it_does(compass, arm)))
    notes = " ".join(sentences(results.definitions.notes(judged.items.stories, "story")))
    return ScoreTable(
        name="bridge_controls", title="Semantic Compass and controls of its length", heading="Arm",
        note="Judged with prompts and questions that selection has not seen. Differences are paired by story "
        f"over the questions valid for both; p-values, of those from the base, are corrected over the arms. "
        f"{INTERVALS} {notes}".strip(),
        measures=(IMAGE, GAP, VISUAL, DELTA, P_VALUE, STILL), rows=tuple(rows),
    )  # fmt: skip


def _difference(pair: Paired) -> Score:
    difference = plain_score(pair.difference, "no question is valid for both")
    return difference.model_copy(update={"low": pair.low, "high": pair.high})


def _less(pair: Paired) -> dict[str, Score]:
    return {
        "delta": _difference(pair),
        "p_wilcoxon": plain_score(pair.p_wilcoxon_corrected, "too few stories for a test"),
    }


def _what_it_does(compass: CompassResults, arm: Arm) -> str:
    made = compass.document["arms"][arm.name]
    does = [f"reranks by {', '.join(arm.terms)}"] if arm.terms else []
    if arm.insertion is not None:
        inserted, boards = made.get("inserted"), made.get("storyboards")
        does.append(f"a frame more in {inserted} of {boards}" if inserted is not None else "inserts a frame")
    return "; ".join(does) or ("mean over all seeds" if arm.start == "all" else "one candidate, unchanged")


def terms(results: StudyResults) -> ScoreTable:
    """Table 63: what each term of the score selects by itself; every arm says whether it bridges."""
    compass = results.compass
    gaps = reported_gaps(compass, _reported(compass))
    labels = {"recoverability": "R", "coverage": "C", "copies": "P"}
    rows = []
    for arm in compass.arms:
        if 63 not in arm.tables or arm.name not in gaps:
            continue
        used = " ".join(labels[term] if term in arm.terms else "–" for term in TERMS)
        copied, neighbours = compass.copies(arm)
        scores = {
            "image": gaps[arm.name].score("image"), "gap": gaps[arm.name].score("gap"),
            "copy_rate": Score.ratio(copied, neighbours, "no storyboard has two frames"),
        }  # fmt: skip
        bridges = "reranks and bridges" if arm.tests else "reranks, no bridge"
        rows.append(ScoreRow(label=f"{arm.label} ({used})", scores=scores, note=bridges))
    return ScoreTable(
        name="compass_terms", title="Terms of the score that selects", heading="Score (R, C, P)",
        note="R: recoverability on selection questions; C: transition coverage (Eq. 25); P: copy penalty "
        "(Eq. 26). The copy rate is the share of neighbouring frames that are copies, inserted ones "
        f"among them. {INTERVALS}",
        measures=(IMAGE, GAP, COPIES), rows=tuple(rows),
    )  # fmt: skip


def held_out(results: StudyResults) -> ScoreTable:
    """Table 64: the full method judged with prompts and questions that selection has or has not seen."""
    compass = results.compass
    rows = []
    for cell in CELLS:
        judged = compass.cells.get(cell)
        if judged is None or FULL not in methods_by_name(judged):
            missing = unmeasured("not evaluated so")
            scores = {"image": missing, "gap": missing}
        else:
            made = reported_gaps(compass, judged)[FULL]
            scores = {"image": made.score("image"), "gap": made.score("gap")}
        rows.append(
            ScoreRow(label=cell.label, scores={**scores, "human_correlation": unmeasured(NO_RATINGS)})
        )
    if all(row.scores["gap"].value is None for row in rows):
        raise NoTable("the full method was not evaluated in any of the four ways")
    return ScoreTable(
        name="held_out", title="Prompts and questions that selection has, or has not, seen",
        heading="Prompts and questions",
        note=f"Full Semantic Compass. The last row is what is reported. {INTERVALS}",
        measures=(IMAGE, GAP, PEOPLE), rows=tuple(rows),
    )  # fmt: skip


def _inserts(arm: Arm) -> str:
    insertion = arm.insertion
    return "no" if insertion is None else f"{insertion.shows}, at the {insertion.at} transition"


def arm_lengths(results: StudyResults) -> CountTable:
    """What each arm made, and how its storyboards differ in length."""
    compass = results.compass
    rows = []
    for arm in compass.arms:
        made = compass.document["arms"][arm.name]
        rows.append(
            CountRow(
                label=arm.label,
                values={
                    "storyboards": made.get("storyboards"), "inserted": made.get("inserted"),
                    "reranks": ", ".join(arm.terms) or "no",
                    "inserts": _inserts(arm),
                    "tested": "yes" if arm.tests else "no",
                    "calls": made.get("asked", {}).get("calls"),
                    "pictures": made.get("asked", {}).get("pictures"),
                },
            )
        )  # fmt: skip
    return CountTable(
        name="compass_arms", title="What each arm of Semantic Compass does", heading="Arm",
        note="A tested frame is tried by judges and taken only where the frozen score rises and it copies no "
        "neighbour (Algorithm 1); others are inserted always (Table 74). Calls of judges and pictures are "
        "what the arm takes by itself, those of selection included.",
        columns={
            "storyboards": "Storyboards", "inserted": "With a frame more", "reranks": "Reranks by",
            "inserts": "Inserts", "tested": "Tested", "calls": "Judge calls", "pictures": "Pictures",
        }, rows=tuple(rows),
    )  # fmt: skip
