"""Aesthetic score.

Question: how pleasing are the pictures?
Formula: the mean over pictures of the predictor's value.
Input: values of Aesthetic Predictor V2.5, one per picture, about 1 to 10; None where it failed.
Output: about 1 to 10 (the predictor has no clamp); higher is better.
Undefined when: no picture has a value.
Source: ViStoryBench, metrics page and public code.
Departures from the source: a picture that cannot be read is counted and left out. How the picture reaches
    the predictor is the adapter's definition, not the metric's.
Example: 5.0 and 6.0: 5.5.
"""

from collections.abc import Sequence

from .metric import Choices, Metric, Term, Terms, of_pictures
from .story import Story


def aesthetic(values: Sequence[float | None], why: Sequence[str] = ()) -> Terms:
    """Return the values of one story's pictures.

    ``values``: one per shot; None where there is none.
    """
    terms = [
        Term((why[index] if why else "undefined") if value is None else value, index)
        for index, value in enumerate(values)
    ]
    counts = {"pictures": len(values), "valued": sum(value is not None for value in values)}
    return Terms(terms, counts, "no picture has a value")


def _terms(story: Story, _chosen: Choices) -> Terms | None:
    rows = story.rows("aesthetic")
    if rows is None:
        return None
    return aesthetic([None if row is None else float(row[0]) for row in rows], story.without_row())


METRIC = Metric(
    name="aesthetic", label="Aesthetics", group="Generation quality", direction="higher",
    range=(float("-inf"), float("inf")), digits=2, top=10.0, column=10, lead=4,
    needs=(of_pictures("aesthetic", "aesthetic-v2.5"),), terms=_terms, per_shot=True,
    meaning="Mean value of the aesthetic predictor over pictures, about 1 to 10.",
)  # fmt: skip
