"""Atomic statements with a graph of what depends on what, in the manner of DSG, over several pictures.

Question: does a part of the story show that somebody or something is there, acts so, stands so, feels so?
Answer: yes, as every statement is the story's own.
Graph: that a character or thing is there has no parent. Its parents are, of an act or a state, the
    characters and things of the scene that it names, else the scene's characters; of a feeling, the scene's
    characters. A child counts only where all its parents are answered rightly (:mod:`.graph`).
Localises: as the scene questions of :mod:`.tifa`.
"""

from collections.abc import Sequence

from ....builders.step import Problems, needed
from ....engine.stage import BadReply
from ....schemas.canonical import Json
from ....schemas.katha import StoryRecord
from ....schemas.text import contains_phrase, normalize_answer
from .evaluator import About, Asked, Element, Evaluator, Material, elements_of, part, statement
from .tifa import DIMENSION_OF

PROMPT = "evaluators/statements"
PREFIX = "ds"
THERE = ("character", "object")
SAID = {
    "character": "Does this appear in {part}: {text}?", "object": "Does this appear in {part}: {text}?",
    "action": "Does this happen in {part}: {text}?", "state": "Do things stand so in {part}: {text}?",
    "emotion": "Is this the leading feeling in {part}: {text}?",
}  # fmt: skip


def build(material: Material) -> list[Asked]:
    """Return a statement for each element of each scene, with its parents."""
    record = material.record
    asked = []
    for scene in range(1, len(record.scenes) + 1):
        here = [element for element in elements_of(record) if element.scene == scene]
        numbered = [(f"{PREFIX}_{scene}_{number}", element) for number, element in enumerate(here, 1)]
        for number, element in numbered:
            about = About(number, DIMENSION_OF[element.kind], (scene,), scene)
            said = SAID[element.kind].format(part=part(material, scene), text=element.text)
            parents = [f"{record.story_id}_{parent}" for parent in _parents(element, numbered)]
            asked.append(statement(material, about, said, parents))
    return asked


def _parents(element: Element, numbered: Sequence[tuple[str, Element]]) -> list[str]:
    if element.kind in THERE:
        return []
    text = normalize_answer(element.text)
    named = [
        number
        for number, other in numbered
        if other.kind in THERE and contains_phrase(text, normalize_answer(other.text))
    ]
    characters = [number for number, other in numbered if other.kind == "character"]
    return named if named and element.kind != "emotion" else characters


def read(reply: Json, record: StoryRecord) -> list[Asked]:
    """Return the statements of a model's reply, with their parents."""
    problems, asked = Problems(), []
    entries = reply["statements"]
    if [entry["number"] for entry in entries] != list(range(1, len(entries) + 1)) or not entries:
        raise BadReply("expected statements numbered from 1 in order, and at least one")
    for entry in entries:
        number, scene = entry["number"], entry["scene"]
        where = f"statement {number}"
        if not 1 <= scene <= len(record.scenes):
            problems.add(f"{where}: scene must be 1 to {len(record.scenes)}, not {scene}")
        if any(not 1 <= parent < number for parent in entry["parents"]):
            problems.add(f"{where}: parents must be numbers of earlier statements")
        text = needed(entry, "question", where, problems)
        about = About(f"{PREFIX}_{number}", DIMENSION_OF[entry["element"]], (scene,), scene)
        parents = tuple(f"{record.story_id}_{PREFIX}_{parent}" for parent in sorted(set(entry["parents"])))
        yes = needed(entry, "yes", where, problems)
        asked.append(Asked(about.question(record, text, [yes]), parents, chance=1 / 2))
    story = {"normalized_text": record.story_text, "language": record.language}
    problems.check_script(story, [question.question.question for question in asked])
    problems.settle()
    return asked


EVALUATOR = Evaluator(
    name="dsg",
    title="Multi-frame DSG-style QA",
    construction="Atomic yes-no statements for each scene; one counts only where those it depends on hold.",
    card="Every statement is true of the story, so that a judge that says yes to all gets everything: read "
    "its values beside false alarms and sensitivity, not alone.",
    by="rules",
    dimensions=("action_visibility", "emotional", "consequence"),
    build=build,
    prompt=PROMPT,
    read=read,
)
