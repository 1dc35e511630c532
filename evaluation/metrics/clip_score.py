"""CLIP score: the weak baseline of alignment.

Question: how close is a picture to its text, for a model that knows both?
Formula: per shot 2.5 max(cosine, 0) of CLIP's vectors of picture and text; the mean over shots.
Input: cosines in [-1, 1], one per shot; None where there is no picture or no English text. How many tokens
    of each text were cut off.
Output: in [0, 2.5]; higher is better.
Undefined when: no shot has both a picture and a text.
Source: ViStoryBench, supplement H.5, which sets "CLIP-based similarity" beside judges and finds it weaker;
    the formula is CLIPScore of Hessel et al. 2021, equation 1, with its weight 2.5.
Departures from the source: H.5 gives neither formula nor text. The text is the description of the still,
    which is what a picture can show; archives hold the cosines of setting, plot and perspective, too. Texts
    are English, since CLIP's are; what is beyond its 77 tokens is cut off, and shots with a text that was cut
    are counted.
Example: cosines 0.3 and 0.2: 0.75 and 0.5, mean 0.625.
"""

from collections.abc import Sequence

from .metric import Choices, Metric, Term, Terms, of_pictures
from .story import Story

PARTS = ("static", "setting", "plot", "perspective")
"""Parts of a shot's text that archives compare with its picture."""
WEIGHT = 2.5


def clip_value(cosine: float) -> float:
    """Return the value of one shot."""
    return WEIGHT * max(cosine, 0.0)


def clip_score(shots: Sequence[tuple[float | None, int] | None]) -> Terms:
    """Return the values of one story's shots.

    ``shots``: per shot the cosine of picture and text, None without a text, and how many tokens were cut off;
    None without a picture.
    """
    terms, cut_off = [], 0
    for index, shot in enumerate(shots):
        cosine, cut = (None, 0) if shot is None else shot
        why = "no picture" if shot is None else "no English text"
        terms.append(Term(why if cosine is None else clip_value(cosine), index))
        cut_off += cosine is not None and cut > 0
    gone = sum(term.value == "no picture" for term in terms)
    silent = sum(term.value == "no English text" for term in terms)
    counts = {"shots": len(shots), "without_image": gone, "without_text": silent, "cut": cut_off}
    return Terms(terms, counts, "no picture" if gone == len(shots) else "no shot has an English text")


def _terms(story: Story, _chosen: Choices) -> Terms | None:
    looked = story.looked("clip")
    if looked is None:
        return None
    static = looked["static"]
    return clip_score([
        None if place is None else (static["cosines"][place], static["cut"][place] or 0)
        for place in story.places()
    ])  # fmt: skip


METRIC = Metric(
    name="clip_score", label="CLIP score", group="Prompt alignment", direction="higher", range=(0.0, 2.5),
    needs=(of_pictures("clip", "clip-vit-l-14"),), terms=_terms, per_shot=True,
    notes=(
        ("without_text", "shots", "shots without English text"),
        ("cut", "shots", "shots with a text that was cut"),
    ),
    meaning="Weak baseline of alignment: how close pictures are to the description of their still for CLIP, "
    "mean over shots of 2.5 max(cosine, 0).",
)  # fmt: skip
