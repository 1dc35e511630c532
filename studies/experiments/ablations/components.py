"""Parts of the protocol removed one at a time (Table 58) or added one by one (Table 3), and evaluators.

Question: what does each part of the protocol add?
Formula: the measures of :mod:`fabula.studies.experiments.measures`, each in the setting without the part.
Source: KathaTrace, Tables 3, 54 and 58, J.1.
Departures: the paper says what a part is, not how a protocol without it is scored. Here:

- without transition labels: questions about one scene or the whole story only; those that are anchored to a
  transition are left out, and no transition is named.
- without accepted answers: the normalised canonical answer alone is right.
- without contrastives: pair accuracy has no value, and no verdict is held against those on questions about
  variants (:func:`..evaluators.graph.contrast_checked`). How contrastives change image recoverability or STG
  is said nowhere in the paper, whose Table 3 has them raise the one by 1.8 points and lower the other by 1.6.
  Here they can only lower the one. Where variants have no questions of their own, all else stays.
- without dimensions: all questions count alike, and no dimension is named.
- without the filter: also questions that nobody can answer with story and pictures together are scored.
- generic: the evaluation with the questions of the evaluator ``generic-story``.

The ladder of Table 3 begins without transitions, dimensions and contrastives, and adds them in this order.
Since Table 58 removes from the full protocol and Table 3 adds to the bare one, the two need not agree.

Which evidence is needed (Table 59): values and filter with fewer conditions.

Question: what does each condition of evidence add?
Formula: without text-only evidence there is no gap, and the value is image-only recoverability; without
    image-only evidence the value is that from text; without text+image evidence nothing is filtered. Each
    value's reliability is split-half over storyboards (:mod:`...measures.reliability`), detection is of
    planted defects (:mod:`...measures.detection`), correlation is with people's
    image-only recoverability.
Source: KathaTrace, J.2 and Table 59, which names the three columns without formulas; Table 73 has the rates.
Departures: the definitions are ours. Without the filter detection is 0, since nothing is removed.

How questions are made (Table 60), and over which dimensions rates are averaged (Table 66).

Question: which questions tell what was lost, and what does the choice of dimensions do to the headline?
Formula: subsets by type of the questions that were judged, and the evaluators with other questions; the
    measures of :mod:`fabula.studies.experiments.measures` in each.
Source: KathaTrace, Tables 60 and 66, J.3 and J.9.
Departures: the headline of the paper, image recoverability 54.6 and STG 23.5, is the row of the four latent
    dimensions in its Table 66, while its Eq. 18 and 34 are means over all six. Both are computed here, under
    their names: ``latent`` and ``six``. A row of one dimension points at that dimension or nowhere, see the
    card of localisation. "No action, no moral-target" is causal, emotional and consequence: its 22.4 is what
    Table 72 calls the non-moral latent set, so that temporal order is not in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....errors import InputError, UserError
from ....evaluation.archive.archive import JUDGEMENTS, lines_of
from ....evaluation.recoverability.matching import (
    DIMENSIONS,
    LATENT,
    Compare,
    Definitions,
    Key,
    is_rule,
    matcher_of,
)
from ....evaluation.recoverability.replies import marker_for
from ....evaluation.stats.uncertainty import Uncertainty
from ....schemas.canonical import Plain, without_guard
from ....schemas.katha import Question
from ....schemas.plain_files import CsvTable, parse_json, read_plain, reason_of
from ....schemas.values import Score
from ..evaluators.evaluator import EVALUATORS, evaluator_of
from ..measures.planted import release_of
from ..measures.views import View, share_score, undefined
from .measuring import (
    How,
    Measured,
    Setting,
    Sources,
    averaging,
    both,
    canonical_only,
    keeping,
    measure,
    uncontrasted,
    unfiltered,
)


def _is_unanchored(question: Question) -> bool:
    return question.target_transition is None


def _without_transitions(view: View) -> View:
    return replace(keeping(_is_unanchored)(view), transitions=False)


FULL = Setting(name="full", title="Full KathaTrace", removes="Nothing.", how="nothing")
GENERIC = Setting(
    name="generic",
    title="Generic story QA only",
    removes="Transition labels, dimension-specific questions and contrastives.",
    how="evaluator",
    evaluator="generic-story",
)
REMOVALS = (
    GENERIC,
    Setting(
        name="without-transitions", title="w/o transition labels",
        removes="Questions that are anchored to a transition.", how="questions", cut=_without_transitions,
    ),
    Setting(
        name="without-accepted", title="w/o accepted-answer sets",
        removes="All accepted answers but the canonical one.", how="answers", record=canonical_only,
    ),
    Setting(
        name="without-contrastives", title="w/o contrastive variants",
        removes="Contrastive pairs, and the check by questions about variants.", how="pairs",
        cut=uncontrasted,
    ),
    Setting(
        name="without-dimensions", title="w/o dimension-specific questions",
        removes="The questions' types: all count alike.", how="averaging", cut=averaging(),
    ),
    Setting(
        name="without-filter", title="w/o text+image filtering",
        removes="The filter: questions that nobody can answer stay in the score.", how="filter",
        cut=unfiltered,
    ),
    FULL,
)  # fmt: skip
"""The rows of Table 58."""

LADDER = (
    Setting(
        name="qa-only", title="KathaTrace: QA only",
        removes="Transitions, dimensions and contrastives.", how="questions",
        cut=both(both(_without_transitions, averaging()), uncontrasted),
    ),
    Setting(
        name="with-transitions", title="+ transition structure", removes="Dimensions and contrastives.",
        how="averaging", cut=both(averaging(), uncontrasted),
    ),
    Setting(
        name="with-dimensions", title="+ dimension-specific questions", removes="Contrastives.",
        how="pairs", cut=uncontrasted,
    ),
    replace(FULL, title="Full KathaTrace (+ contrastives)"),
)  # fmt: skip
"""The rows of Table 3 below the evaluators of others."""


def evaluator_setting(name: str) -> Setting:
    """Return the setting that is an evaluator as it is."""
    evaluator = evaluator_of(name)
    how: How = "nothing" if name == "katha" else "evaluator"
    return Setting(
        name=name, title=evaluator.title, how=how, evaluator=name,
        removes="Nothing." if how == "nothing" else evaluator.construction,
    )  # fmt: skip


OTHERS = tuple(evaluator_setting(name) for name in EVALUATORS if not evaluator_of(name).reuses)
"""The evaluators of others, the first rows of Tables 3 and 54."""
EVERY_EVALUATOR = tuple(map(evaluator_setting, EVALUATORS))
"""The rows of Table 54."""


@dataclass(frozen=True)
class Evidence:
    """A row of Table 59."""

    setting: Setting  # what of the protocol is left
    value: str  # what it says of a storyboard: ``text``, ``image`` or ``gap``
    conditions: tuple[bool, bool, bool]  # whether text-only, image-only and text+image evidence is used


def _row(name: str, title: str, value: str, conditions: tuple[bool, bool, bool]) -> Evidence:
    left_out = [
        kind
        for kind, used in zip(("text-only", "image-only", "text+image"), conditions, strict=True)
        if not used
    ]
    removes = f"{' and '.join(left_out).capitalize()} evidence." if left_out else "Nothing."
    cut = None if conditions[2] else unfiltered
    how: How = "nothing" if not left_out else "filter"
    return Evidence(Setting(name=name, title=title, removes=removes, how=how, cut=cut), value, conditions)


EVIDENCE = (
    _row("image", "Image-only only", "image", (False, True, False)),
    _row("text-image", "Text + image-only", "gap", (True, True, False)),
    _row("image-both", "Image + text+image only", "image", (False, True, True)),
    _row("text-both", "Text-only + text+image only", "text", (True, False, True)),
    _row("full", "Full evidence protocol", "gap", (True, True, True)),
)
"""The rows of Table 59."""


CAUSAL = ("causal", "consequence")
NON_MORAL = tuple(name for name in LATENT if name != "moral")


def _typed(name: str, title: str, dimensions: tuple[str, ...], removes: str) -> Setting:
    return Setting(name=name, title=title, removes=removes, how="questions", cut=averaging(*dimensions))


def _called(evaluator: str, name: str, title: str) -> Setting:
    made = evaluator_setting(evaluator)
    return Setting(name=name, title=title, removes=made.removes, how="evaluator", evaluator=evaluator)


CONSTRUCTIONS = (
    _called("object-overlap", "object-level", "Object-level QA"),
    _called("tifa", "scene-level", "Scene-level QA"),
    _called("generic-story", "generic", "Generic story QA"),
    _typed("action-only", "Action-only transition QA", ("action_visibility",), "All but visible acts."),
    _typed("causal-only", "Causal/consequence QA only", CAUSAL, "All but causes and consequences."),
    _typed("moral-only", "Moral-target QA only", ("moral",), "All but the moral target."),
    Setting(name="full", title="Full dimension-specific QA", removes="Nothing.", how="nothing"),
)
"""The rows of Table 60."""

DIMENSION_SETS = (
    _typed("action", "Action visibility only", ("action_visibility",), "All but visible acts."),
    _typed("latent", "Latent only, the paper's headline", LATENT,
           "Visible acts and order."),
    _typed("action-latent", "Action + latent dimensions", ("action_visibility", *LATENT), "Order."),
    _typed("non-moral", "No action, no moral-target", NON_MORAL, "Visible acts, order and the moral target."),
    _typed("moral", "Moral-target only", ("moral",), "All but the moral target."),
    _typed("six", "All six dimensions (Eq. 18 and 34)", DIMENSIONS, "Nothing."),
)  # fmt: skip
"""The rows of Table 66, and the mean that the paper's equations state."""


# -- How answers are compared (Table 61): false accepts and false rejects against answers labelled by people
#
# Question: which right answers does a matcher reject, and which wrong ones does it accept?
# Formula: false accepts = wrong answers that are accepted / wrong answers; false rejects = right answers that
#     are rejected / right answers.
# Input: labelled answers, JSON Lines or CSV with ``question_id``, ``answer`` and ``correct``, or the votes
# of a
#     study with the task ``equivalence``; matchers.
# Output: in [0, 1], lower is better.
# Undefined when: no wrong, or no right, answer could be compared.
# Source: KathaTrace, J.4 and Table 61, which does not say of what its percentages are shares.
# Departures: a matcher that asks a model has verdicts on the answers that judges gave, in the archive; other
#     labelled answers are left out for it, and counted. Of votes more than half must say right, or wrong; an
#     answer that is neither is left out, and counted. Intervals are of resampled stories.
# Example: right answers accepted, accepted, rejected, wrong ones rejected, accepted: false accepts 1/2, false
#     rejects 1/3.

COLUMNS = ("question_id", "answer", "correct")
SPOKEN = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
FIX = "give lines with question_id, answer and correct (true or false), or votes of the kind equivalence"
RULES = ("exact", "keyword", "accepted")
"""The matchers of Table 61 that are rules; its other two ask a model, and are named as they were archived."""
TITLES = {
    "exact": "Exact string match", "keyword": "Keyword-only match", "accepted": "Accepted-answer set",
}  # fmt: skip


@dataclass(frozen=True)
class Labelled:
    """An answer to a question, and whether people call it right; None where they are not of one mind."""

    question_id: str
    answer: str
    correct: bool | None


@dataclass(frozen=True)
class Matching(Plain):
    """How well a matcher follows people's labels."""

    matcher: str  # its name
    title: str  # in tables
    scores: Mapping[str, Score]  # ``false_accepts``, ``false_rejects`` and ``human_correlation``
    compared: int  # how many labelled answers it has compared
    unknown: int  # how many it has no verdict on
    undecided: int = 0  # how many people are not of one mind about


def read_labelled(path: Path, questions: Mapping[str, Question]) -> tuple[Labelled, ...]:
    """Return the labelled answers of a file; its ending says whether it is CSV."""
    problems: list[UserError] = []
    answers: list[Labelled] = []
    votes: dict[tuple[str, str], list[bool | None]] = {}
    try:
        text = read_plain(path, follow=True).decode("utf-8-sig")
        for where, row in _csv_rows(path, text) if path.suffix.lower() == ".csv" else _lines(path, text):
            if isinstance(row, Mapping) and str(row.get("repeat") or 0) != "0":
                continue  # somebody was asked again, to see how steady they are; the first answer counts
            vote = _voted(row)
            labelled = vote or _labelled(row)
            if labelled is None:
                problems.append(UserError(where, what="it is no labelled answer", fix=FIX))
            elif labelled.question_id not in questions:
                what = f"the release has no question {labelled.question_id[:80]!r}"
                problems.append(UserError(where, what=what, fix="give answers to its questions"))
            elif vote is not None:
                votes.setdefault((vote.question_id, vote.answer), []).append(vote.correct)
            else:
                answers.append(labelled)
    except (OSError, ValueError) as error:
        problems.append(UserError(str(path), what=f"it cannot be read: {reason_of(error)}", fix=FIX))
    answers += [Labelled(*about, _majority(said)) for about, said in votes.items()]
    if not answers and not problems:
        problems.append(UserError(str(path), what="it holds no answers", fix=FIX))
    if problems:
        raise InputError(problems)
    return tuple(answers)


def _voted(row: object) -> Labelled | None:
    """Return what one person said in a study of equivalence; None where a row is no such vote."""
    if not isinstance(row, Mapping) or row.get("kind") != "equivalence":
        return None
    item, answer, value = row.get("item"), row.get("answer"), row.get("value")
    said = {"None": None, "": None, "1": True, "0": False}
    if not (isinstance(item, str) and isinstance(answer, str) and str(value) in said):
        return None
    return Labelled(item, answer, said[str(value)])


def _majority(said: Sequence[bool | None]) -> bool | None:
    """Return what more than half of the votes say; Unclear is a vote for neither."""
    return next((word for word in (True, False) if 2 * said.count(word) > len(said)), None)


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = parse_json(line.encode())
            except ValueError:
                row = None
            yield f"{path}:{number}", row


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for line, row in CsvTable(text).named():
        cells = {name: without_guard(cell) for name, cell in row.items()}
        spoken = cells.get("correct")
        yield (
            f"{path}:{line}",
            {**cells, "correct": None if spoken is None else SPOKEN.get(spoken.strip().casefold())},
        )


def _labelled(row: object) -> Labelled | None:
    if not isinstance(row, Mapping):
        return None
    item, answer, correct = (row.get(name) for name in COLUMNS)
    if not (isinstance(item, str) and isinstance(answer, str) and isinstance(correct, bool)):
        return None
    return Labelled(item, answer, correct)


def matching_errors(
    labelled: Sequence[Labelled],
    questions: Mapping[str, Question],
    compare: Callable[[Key, str], bool],
    uncertainty: Uncertainty,
) -> tuple[dict[str, Score], int]:
    """Return ``false_accepts`` and ``false_rejects``, and how many answers the matcher has no verdict on.

    Answers that people are not of one mind about are in neither.

    ``questions``: question id -> question.
    """
    wrong: list[tuple[str, float, float]] = []
    right: list[tuple[str, float, float]] = []
    unknown = 0
    for answer in labelled:
        question = questions[answer.question_id]
        if answer.correct is None:
            continue
        try:
            accepted = compare(Key.of(question), answer.answer)
        except InputError:
            unknown += 1
            continue
        (right if answer.correct else wrong).append(
            (question.story_id, float(accepted != answer.correct), 1.0)
        )  # fmt: skip
    return {
        "false_accepts": share_score(wrong, uncertainty, "no wrong answer was compared"),
        "false_rejects": share_score(right, uncertainty, "no right answer was compared"),
    }, unknown


def answer_matching(
    sources: Sources, labelled: Path | None, matchers: Sequence[str] | None = None
) -> tuple[Matching, ...]:
    """Return the rows of Table 61.

    ``matchers``: names, as scores are asked for; None for the rules of the table and all archived ones.
    """
    folder = sources.evaluations.get("katha")
    if folder is None:
        return ()
    questions = {
        question.question_id: question for record in release_of(folder) for question in record.questions
    }
    answers = () if labelled is None else read_labelled(labelled, questions)
    names = (*RULES[:2], *archived_matchers(folder), *RULES[2:]) if matchers is None else matchers
    undecided = sum(answer.correct is None for answer in answers)
    rows = []
    for name in names:
        scores, unknown = matching_errors(
            answers, questions, compare_of(folder, name, sources.definitions), sources.definitions
        )
        if labelled is None:
            scores = dict.fromkeys(scores, undefined("no answers were labelled as right or wrong"))
        own = replace(sources, definitions=replace(sources.definitions, matcher=name), _judged={})
        scores |= measure(own, FULL, ("people",)).scores
        compared = len(answers) - undecided - unknown
        rows.append(Matching(name, TITLES.get(name, name), scores, compared, unknown, undecided))
    return tuple(rows)


def archived_matchers(folder: Path) -> tuple[str, ...]:
    """Return the names of the matchers whose verdicts an evaluation holds, sorted."""
    return tuple(
        sorted(
            {
                str(line.parsed.get("matcher"))
                for line in lines_of(folder / JUDGEMENTS)
                if line.kind == "match" and line.parsed is not None
            }
        )
    )


def compare_of(folder: Path, name: str, definitions: Definitions) -> Compare:
    """Return a matcher by name: a rule, or what an evaluation holds."""
    if is_rule(name):
        return matcher_of(name, {})
    return marker_for(folder / JUDGEMENTS, replace(definitions, matcher=name)).compare


# -- The ablations as results: one function for each table of the paper, from the same sources

RATES = ("rates", "planted", "people")


@dataclass(frozen=True)
class EvidenceMeasured(Plain):
    """What was measured with some conditions of evidence."""

    measured: Measured  # the values
    value: str  # what the row says of a storyboard: ``text``, ``image`` or ``gap``
    conditions: tuple[bool, bool, bool]  # whether text-only, image-only and text+image evidence is used


def evaluators_and_ladder(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 3: the evaluators of others, then the protocol built up part by part."""
    return tuple(measure(sources, setting, RATES) for setting in (*OTHERS, *LADDER))


def evaluator_controls(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 54."""
    return tuple(measure(sources, setting, RATES) for setting in EVERY_EVALUATOR)


def component_removals(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 58."""
    return tuple(measure(sources, setting, (*RATES, "leakage")) for setting in REMOVALS)


def evidence_conditions(sources: Sources) -> tuple[EvidenceMeasured, ...]:
    """Return the rows of Table 59."""
    wanted = ("rates", "reliability", "detection", "people")
    return tuple(
        EvidenceMeasured(measure(sources, row.setting, wanted, value=row.value), row.value, row.conditions)
        for row in EVIDENCE
    )


def question_constructions(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 60."""
    return tuple(measure(sources, setting, RATES) for setting in CONSTRUCTIONS)


def dimension_sets(sources: Sources) -> tuple[Measured, ...]:
    """Return the rows of Table 66, and the mean over all six dimensions."""
    return tuple(measure(sources, setting, RATES) for setting in DIMENSION_SETS)
