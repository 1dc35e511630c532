"""How fine moral targets are told apart (Table 65): the same answers, with labels put together.

Question: how does the recovery of the moral target depend on how many targets there are?
Formula: MTR of text, images and their gap (Eq. 39 and 40), after both the judges' label and the story's are
    replaced by their group; chance 1 / number of groups; majority: share of the most frequent group.
Input: labels that judges named, out of twelve; labels of the stories.
Output: MTR in [0, 1], higher is better; gap in [-1, 1], lower is better.
Undefined when: as moral-target recoverability; open answers have no chance level.
Source: KathaTrace, J.8 and Table 65, which names the taxonomies without listing them.
Departures: nothing is asked again, so that coarser taxonomies are groups of the twelve labels that judges
    chose from, joined after the judges' majority among twelve. Which labels belong together is ours:

- binary: any label, or unclear. Every story of the benchmark has a label, so that always saying "moral" is
  right: its majority is 1, and it tells whether judges see a moral at all.
- four groups: care (compassion, generosity, kindness), faith (gratitude, honesty, responsibility), restraint
  (humility, patience, self_control), striving (courage, perseverance, wisdom).
- ten labels: compassion and kindness are one, patience and self_control are one.
- open: the scored questions of the dimension ``moral``, before filtering, compared with their accepted
  answers. The judges' prompt lists the labels for them, too, so that they are less open than the paper's.
Example: a story of kindness, called compassion: wrong among twelve, right among ten and among four.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ....evaluation.archive.archive import read_archive
from ....evaluation.recoverability.columns import MORAL, NO_LABEL, moral_columns
from ....evaluation.recoverability.matching import LABELS, Definitions
from ....evaluation.recoverability.recoverability import Sheet, estimates
from ....evaluation.recoverability.replies import UNCLEAR_LABEL
from ....evaluation.recoverability.score import Judged
from ....evaluation.stats.uncertainty import mean_of_known
from ....people.against import ENSEMBLE, label_agreement
from ....people.against import Judged as Followed
from ....people.against import judged as followed_of
from ....people.recoverability import Resampling, lines_of
from ....schemas.canonical import Plain
from ....schemas.judgement import HumanRow
from ....schemas.values import Score
from ..measures.reliability import NOBODY
from ..measures.views import MEAN, View, side_by_side, undefined, view_scores
from .measuring import Sources, averaging, unfiltered

Floats = NDArray[np.float64]
RATES = ("text", "image", "gap")
FOUR = {
    "compassion": "care", "generosity": "care", "kindness": "care",
    "gratitude": "faith", "honesty": "faith", "responsibility": "faith",
    "humility": "restraint", "patience": "restraint", "self_control": "restraint",
    "courage": "striving", "perseverance": "striving", "wisdom": "striving",
}  # fmt: skip
TEN = {label: label for label in LABELS} | {"kindness": "compassion", "self_control": "patience"}


@dataclass(frozen=True)
class Taxonomy:
    """Groups of the twelve labels."""

    name: str  # in files
    title: str  # in tables
    groups: Mapping[str, str] = field(repr=False)  # label -> group
    size: int | None  # how many answers there are to choose from; None where answers are open

    def group(self, label: str | None) -> str | None:
        """Return the group of a label; what is no label, such as unclear, is a group of its own."""
        return None if label is None else self.groups.get(label, label)


TAXONOMIES = (
    Taxonomy("binary", "Binary moral / non-moral", dict.fromkeys(LABELS, "moral"), 2),
    Taxonomy("four", "Coarse moral categories", FOUR, 4),
    Taxonomy("ten", "Alternative 10-label taxonomy", TEN, 10),
    Taxonomy("twelve", "Final taxonomy", {label: label for label in LABELS}, 12),
)
OPEN = Taxonomy("open", "Open-ended moral answer", {}, None)


@dataclass(frozen=True)
class Granularity(Plain):
    """What was measured with one taxonomy."""

    name: str  # of the taxonomy
    title: str  # in tables
    labels: int | None  # how many there are; None where answers are open
    # ``text``, ``image`` and ``gap``, mean over methods; ``chance``, ``majority`` and ``human_agreement``
    scores: Mapping[str, Score]
    methods: Mapping[str, Mapping[str, Score]]  # method -> text, image and gap


def moral_granularity(sources: Sources) -> tuple[Granularity, ...]:
    """Return the rows of Table 65."""
    folder = sources.evaluations.get("katha")
    if folder is None:
        return ()
    evaluation = sources.judged(folder)
    rows, questions = sources.answers()
    labels = lines_of(rows, "moral_label", condition="image")
    judge = None
    if labels:
        judges = followed_of(read_archive(folder).judgements, questions, sources.definitions.nonresponse)
        judge = judges.get(ENSEMBLE) or next(iter(judges.values()), None)
    resampling = Resampling(sources.definitions.resamples, sources.definitions.seed)
    made = []
    for taxonomy in TAXONOMIES:
        methods = grouped_scores(evaluation, taxonomy, sources.definitions)
        scores = methods.pop(MEAN) | {
            "chance": Score(value=1 / (taxonomy.size or 1), status="ok"),
            "majority": majority_of(evaluation, taxonomy),
            "human_agreement": _agreement(labels, judge, taxonomy, resampling),
        }
        made.append(Granularity(taxonomy.name, taxonomy.title, taxonomy.size, scores, methods))
    return (*made, _open(evaluation, sources.definitions))


def grouped_scores(
    evaluation: Judged, taxonomy: Taxonomy, definitions: Definitions
) -> dict[str, dict[str, Score]]:
    """Return method -> text, image and gap of the moral target in a taxonomy; and their mean."""
    items, names = evaluation.items, [method.name for method in evaluation.methods]
    places = _places(taxonomy)
    grouped = replace(items, moral=np.where(items.moral >= 0, places[items.moral], -1))
    sheet = Sheet(items.stories)
    for method in evaluation.methods:
        labels = np.where(method.labels >= 0, places[method.labels], method.labels).astype(np.int8)
        sheet.add((method.name,), moral_columns(labels, method.made, grouped))

    def statistic(totals: Floats) -> Floats:
        parts = [sheet.part(totals, (name,)) for name in names]
        values = np.stack(
            [
                np.stack([rate.of(part) for rate in MORAL[:3] if rate.of is not None], axis=-1)
                for part in parts
            ],
            -2,
        )
        mean = mean_of_known(np.moveaxis(values, -2, -1))
        return np.concatenate([side_by_side(values), mean], axis=-1)

    rates = {f"{name}.{rate.name}": rate for name in (*names, MEAN) for rate in MORAL[:3]}
    drawn = estimates(rates, sheet.resampled(definitions), statistic)
    return {name: {rate: drawn.score(f"{name}.{rate}") for rate in RATES} for name in (*names, MEAN)}


def majority_of(evaluation: Judged, taxonomy: Taxonomy) -> Score:
    """Return the share of the most frequent group among the stories with a label."""
    moral = evaluation.items.moral
    groups = _places(taxonomy)[moral[moral >= 0]]
    most = int(np.bincount(groups).max()) if len(groups) else 0
    return Score.ratio(most, len(groups), NO_LABEL)


def _places(taxonomy: Taxonomy) -> NDArray[np.int64]:
    """Return the place of the group of each label, and last that of unclear, which is nobody's group."""
    groups = list(dict.fromkeys(taxonomy.groups[label] for label in LABELS))
    return np.array([*(groups.index(taxonomy.groups[label]) for label in LABELS), UNCLEAR_LABEL])


def _agreement(
    rows: Sequence[HumanRow], judge: Followed | None, taxonomy: Taxonomy, resampling: Resampling
) -> Score:
    if judge is None:
        return undefined(NOBODY)
    named = [
        row.model_copy(update={"labels": (str(taxonomy.group(row.labels[0])),)}) for row in rows if row.labels
    ]
    said = {unit: taxonomy.group(label) for unit, label in judge.labels.items()}
    return label_agreement(named, Followed(labels=said), resampling)


def _open(evaluation: Judged, definitions: Definitions) -> Granularity:
    made = view_scores(averaging("moral")(unfiltered(View.whole(evaluation))), definitions)
    scores = {name: made.together[name] for name in RATES} | {
        "chance": undefined("open answers have no chance level"),
        "majority": undefined("open answers have no majority"),
        "human_agreement": undefined("people name labels, and write no open moral answers"),
    }
    methods = {name: {rate: rates[rate] for rate in RATES} for name, rates in made.methods.items()}
    return Granularity(OPEN.name, OPEN.title, OPEN.size, scores, methods)
