"""Tables of a report on shot images: scores by kind of story and by kind of character."""

from collections.abc import Iterator

from ..images.scores import ImageScores
from ..metrics.registry import in_order
from ..words import counted
from .model import ScoreRow, ScoreTable
from .shot_tables import measure_of
from .showing import label_text

TITLES = {
    "realism": "By realistic and unrealistic stories",
    "story_type": "By type of story",
    "culture": "By culture of the story",
    "style": "By style of the references",
    "tag": "By kind of character",
    "gender": "By gender of characters",
    "ethnicity": "By ethnicity of characters, as the set's author gives it",
}
"""What is told apart -> caption, in order."""
MOST_CELLS = 4000
"""Values up to which the page lists a table; ``fabula score --tables`` writes all of them."""
_OF_STORIES = (
    "Means over the stories of a kind, with 95 % intervals over them. The inception score grows with the "
    "number of pictures and is not split by kind."
)
_OF_CHARACTERS = (
    "Scores of single characters, over the characters of a kind; which crop shows whom was decided among "
    "all characters of a story."
)


def by_strata(scores: ImageScores) -> Iterator[ScoreTable]:
    """Yield a table for each respect in which stories or characters of an evaluation differ."""
    for by, title in TITLES.items():
        some = [(one.method, stratum) for one in scores.methods for stratum in one.strata if stratum.by == by]
        names = in_order(dict.fromkeys(name for _, stratum in some for name in stratum.scores))
        if len({stratum.kind for _, stratum in some}) < 2 or len(some) * len(names) > MOST_CELLS:
            continue
        ordered = sorted(some, key=lambda one: one[1].kind)
        yield ScoreTable(
            name=f"by_{by}", title=title, heading="Kind and method",
            note=_OF_STORIES if some[0][1].characters is None else _OF_CHARACTERS,
            measures=tuple(measure_of(name) for name in names),
            rows=tuple(
                ScoreRow(
                    label=f"{label_text(stratum.kind)} · {method}", scores=dict(stratum.scores),
                    note=counted(stratum.stories, "story")
                    if stratum.characters is None
                    else f"{counted(stratum.characters, 'character')}, {counted(stratum.stories, 'story')}",
                )
                for method, stratum in ordered
            ),
        )  # fmt: skip
