"""CLIP score: the weak baseline of alignment.

Question: how close is a picture to its text, for a model that knows both?
Formula: per shot 2.5 max(cosine, 0) of CLIP's vectors of picture and text; the mean over shots.
Input: cosines in [-1, 1], one per shot and part of its text; None where there is no picture or no English
    text. How many tokens of each text were cut off.
Output: in [0, 2.5]; higher is better.
Undefined when: no shot has both a picture and a text.
Source: ViStoryBench, supplement H.5, which sets "CLIP-based similarity" beside judges and finds it weaker;
    the formula is CLIPScore of Hessel et al. 2021, equation 1, with its weight 2.5.
Departures from the source: H.5 gives neither formula nor text. Two definitions of the value: ``hessel``
    (default), as above; ``cosine``, the cosine itself, in [-1, 1]. Five of the text: ``static`` (default),
    the description of the still, which is what a picture can show; ``setting``; ``plot``; ``perspective``;
    and ``mean``, the mean of the cosines of those that the shot has. Texts are English, since CLIP's are;
    what is beyond its 77 tokens is cut off, and shots with a text that was cut are counted.
Example: cosines 0.3 and 0.2: 0.75 and 0.5, mean 0.625.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from ...schemas.score import Score
from .spec import Spec

SPEC = Spec("clip_score", 1, "story", "higher", (0.0, 2.5), "mean of stories", ("embeddings:clip",))
Part = Literal["static", "setting", "plot", "perspective"]
PARTS: tuple[Part, ...] = get_args(Part)
"""Parts of a shot's text that are compared with its picture."""
Text = Literal["static", "setting", "plot", "perspective", "mean"]
Definition = Literal["hessel", "cosine"]
WEIGHT = 2.5

Cosines = Mapping[str, float | None]
"""Part of a shot's text -> its cosine with the picture; None where the shot has no such text."""


def clip_value(cosines: Cosines, text: Text = "static", definition: Definition = "hessel") -> float | None:
    """Return the value of one shot; None where it has none of the texts."""
    wanted = PARTS if text == "mean" else (text,)
    known = [value for part in wanted if (value := cosines.get(part)) is not None]
    if not known:
        return None
    cosine = sum(known) / len(known)
    return cosine if definition == "cosine" else WEIGHT * max(cosine, 0.0)


def clip_score(
    shots: Sequence[tuple[Cosines | None, Mapping[str, int]]],
    text: Text = "static",
    definition: Definition = "hessel",
) -> Score:
    """Return the mean value of one story's shots.

    Args:
        shots: per shot its cosines, None without a picture; and how many tokens of each part were cut off.
        text: which part of the text counts.
        definition: ``hessel`` or ``cosine``.
    """
    counts = {"shots": len(shots), "without_image": 0, "without_text": 0, "cut": 0}
    total, counted = 0.0, 0
    for cosines, cut in shots:
        if cosines is None:
            counts["without_image"] += 1
            continue
        value = clip_value(cosines, text, definition)
        if value is None:
            counts["without_text"] += 1
            continue
        total, counted = total + value, counted + 1
        wanted = PARTS if text == "mean" else (text,)
        counts["cut"] += any(cut.get(part, 0) > 0 for part in wanted)
    why = "no picture" if counts["without_image"] == len(shots) else "no shot has an English text"
    return Score.ratio(total, counted, why, **counts)
