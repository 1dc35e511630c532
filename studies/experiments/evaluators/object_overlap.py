"""Object-overlap questions: who, what and which coarse acts appear anywhere in the story, by rules.

Question: which of four characters, things or acts appears in the story?
Answer: the one that the story's scenes are annotated with; the others are of other stories of the release.
Localises: nothing. All questions are typed ``action_visibility``, the dimension of what can be seen.
"""

from ..study import MASTER_SEED
from .evaluator import OPTIONS, About, Asked, Element, Evaluator, Material, choice, elements_of

MOST = 6
"""Most questions of a kind about a story."""
ASKED = {
    "character": "Which of these appears in the story:",
    "object": "Which of these things appears in the story:",
    "action": "Which of these happens in the story:",
}


def build(material: Material) -> list[Asked]:
    """Return the questions about a story: each character, thing and act once, the first so many of a kind."""
    record, asked = material.record, []
    for kind, text in ASKED.items():
        first: dict[str, Element] = {}
        for element in elements_of(record):
            if element.kind == kind:
                first.setdefault(element.text.casefold(), element)
        for number, element in enumerate(list(first.values())[:MOST], 1):
            about = About(f"oo_{kind}_{number}", "action_visibility", (element.scene,))
            others = material.pool.foreign(record, kind, OPTIONS - 1, (material.seed, about.number))
            question = choice(material, about, text, [element.text, *others], kind)
            asked += [question] if question else []
    return asked


EVALUATOR = Evaluator(
    name="object-overlap",
    title="Object-overlap QA",
    construction="Which characters, things and coarse acts appear anywhere, one of four options.",
    card=f"Wrong options are of other stories of the release, drawn with seed {MASTER_SEED}. It names no "
    "dimension: everything that it asks about can be seen, and stands under action_visibility.",
    by="rules",
    dimensions=(),
    build=build,
)
