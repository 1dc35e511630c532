"""Shot similarity: how much neighbouring shots of one scene look alike.

Question: does a method repeat one picture where the script asks for another shot of the same place?
Formula: cosine of the DINOv2 features of two neighbouring shots with the same setting; the mean over pairs.
Input: one feature vector per picture, of any length, made a unit vector; of each shot, which setting it has.
Output: in [-1, 1], 1 for equal features. A diagnostic: neither end is better, so nobody is ranked by it. Near
    1 is repetition; far below the level of other methods may be a place that changes within its scene.
Undefined when: the story has no two neighbouring shots in one setting that both have a picture.
Source: DINOv2, Oquab et al. 2023, class token. The subject consistency of VBench, Huang et al. 2024, compares
    neighbouring frames so, with DINO features.
Departures from the source: VBench compares frames of one clip with the one before and with the first, and
    takes higher as better; here a shot is compared with the one before alone. Settings are the same where
    their descriptions are, letter by letter but for space around them. A picture of which the encoder made
    nothing is left out with its pairs, and counted.
Example: four shots, settings a, a, a, b; features (1, 0), (0.6, 0.8), (0, 1), (1, 0): (0.6 + 0.8) / 2 = 0.7.
"""

from collections.abc import Sequence

from .metric import Choices, Metric, Term, Terms, of_pictures
from .story import Story
from .vectors import Floats


def shot_similarity(features: Sequence[Floats | None], scenes: Sequence[int]) -> Terms:
    """Return how alike each shot and the one before it are, where both have one setting.

    ``features``: of each shot in order, a unit vector of shape (dimensions,); None without a picture.
    """
    terms = [Term("first of its setting", 0)] if features else []
    for index in range(1, len(features)):
        before, own = features[index - 1], features[index]
        if scenes[index] != scenes[index - 1]:
            terms.append(Term("first of its setting", index))
        elif before is None or own is None:
            terms.append(Term("no picture" if own is None else "no picture before it", index))
        else:
            terms.append(Term(min(1.0, max(-1.0, float(before @ own))), index))
    pairs = sum(not isinstance(term.value, str) for term in terms)
    lost = sum(isinstance(term.value, str) and term.value.startswith("no picture") for term in terms)
    gone = sum(feature is None for feature in features)
    counts = {"shots": len(features), "without_image": gone, "neighbours": pairs + lost, "lost": lost}
    return Terms(terms, counts | {"pairs": pairs}, "no two neighbouring shots in one setting have pictures")


def _terms(story: Story, _chosen: Choices) -> Terms | None:
    features, scenes = story.rows("dinov2", units=True), story.scenes()
    return None if features is None or scenes is None else shot_similarity(features, scenes)


METRIC = Metric(
    name="shot_similarity", label="Shot similarity", group="Repetition", direction="none", range=(-1.0, 1.0),
    needs=(of_pictures("dinov2", "dinov2-l-14"),), terms=_terms, per_shot=True,
    notes=(("lost", "neighbours", "pairs of neighbouring shots lack a picture"),),
    meaning="Diagnostic of repetition: how alike neighbouring shots with the same setting are, mean cosine "
    "of their DINOv2 features. -1 to 1; near 1 one picture is repeated, and higher is not better.",
)  # fmt: skip
