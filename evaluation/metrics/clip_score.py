"""CLIP score: the weak baseline of alignment.

Question: how close is a picture to its text, for a model that knows both?
Formula: per shot 2.5 max(cosine, 0) of CLIP's vectors of picture and text; the mean over shots.
Input: cosines in [-1, 1], one per shot and part of its text; None where there is no picture or no English
    text. How many tokens of each text were cut off.
Output: in [0, 2.5]; higher is better.
Undefined when: no shot has both a picture and a text.
Source: ViStoryBench, supplement H.5, which sets "CLIP-based similarity" beside judges and finds it weaker;
    the formula is CLIPScore of Hessel et al. 2021, equation 1, with its weight 2.5.
Departures from the source: H.5 gives neither formula nor text. Five definitions of the text: ``static``
    (default), the description of the still, which is what a picture can show; ``setting``; ``plot``;
    ``perspective``; and ``mean``, the mean of the cosines of those that the shot has. Texts are English,
    since CLIP's are; what is beyond its 77 tokens is cut off, and shots with a text that was cut are counted.
Example: cosines 0.3 and 0.2: 0.75 and 0.5, mean 0.625.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from .metric import Choice, Choices, Metric, Term, Terms, of_pictures
from .story import Story

Part = Literal["static", "setting", "plot", "perspective"]
PARTS: tuple[Part, ...] = get_args(Part)
"""Parts of a shot's text that are compared with its picture."""
Text = Literal["static", "setting", "plot", "perspective", "mean"]
DEFINITION: Choice[str] = Choice("clip-score", ("hessel",))
"""The one way from a cosine to a value; protocols and comparisons name it."""
TEXT: Choice[Text] = Choice("clip-text", ("static", "setting", "plot", "perspective", "mean"))
WEIGHT = 2.5

Cosines = Mapping[str, float | None]
"""Part of a shot's text -> its cosine with the picture; None where the shot has no such text."""


def clip_value(cosines: Cosines, text: Text = "static") -> float | None:
    """Return the value of one shot; None where it has none of the texts."""
    wanted = PARTS if text == "mean" else (text,)
    known = [value for part in wanted if (value := cosines.get(part)) is not None]
    if not known:
        return None
    return WEIGHT * max(sum(known) / len(known), 0.0)


def clip_score(shots: Sequence[tuple[Cosines | None, Mapping[str, int]]], text: Text = "static") -> Terms:
    """Return the values of one story's shots.

    Args:
        shots: per shot its cosines, None without a picture; and how many tokens of each part were cut off.
        text: which part of the text counts.
    """
    terms, cut_off = [], 0
    wanted = PARTS if text == "mean" else (text,)
    for index, (cosines, cut) in enumerate(shots):
        value = None if cosines is None else clip_value(cosines, text)
        why = "no picture" if cosines is None else "no English text"
        terms.append(Term(why if value is None else value, index))
        cut_off += value is not None and any(cut.get(part, 0) > 0 for part in wanted)
    gone = sum(term.value == "no picture" for term in terms)
    silent = sum(term.value == "no English text" for term in terms)
    counts = {"shots": len(shots), "without_image": gone, "without_text": silent, "cut": cut_off}
    return Terms(terms, counts, "no picture" if gone == len(shots) else "no shot has an English text")


def _terms(story: Story, chosen: Choices) -> Terms | None:
    looked = story.looked("clip")
    if looked is None:
        return None
    shots = [
        (None, {})
        if place_in_rows is None
        else (
            {part: values["cosines"][place_in_rows] for part, values in looked.items()},
            {part: values["cut"][place_in_rows] or 0 for part, values in looked.items()},
        )
        for place_in_rows in story.places()
    ]
    return clip_score(shots, chosen.of(TEXT))


METRIC = Metric(
    name="clip_score", label="CLIP score", group="Prompt alignment", direction="higher", range=(0.0, 2.5),
    needs=(of_pictures("clip", "clip-vit-l-14"),), terms=_terms, per_shot=True, choices=(DEFINITION, TEXT),
    notes=(
        ("without_text", "shots", "shots without English text"),
        ("cut", "shots", "shots with a text that was cut"),
    ),
    meaning="Weak baseline of alignment: how close pictures are to a part of their texts for CLIP, mean "
    "over shots of 2.5 max(cosine, 0).",
)  # fmt: skip
