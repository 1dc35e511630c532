"""Plans: what a generator is shown of a story, one picture a scene (Table 41 of the KathaTrace paper).

A plan is who tells the generator what to draw, as far as it is data: the text of every prompt, and the same
as a scene for the one model that draws from data. The scenes and their order are the same for all plans.
Questions and accepted answers are never shown to a generator, though the paper's
transition-aware plan holds them: a picture that was made for a question would measure nothing.

What must not stand in a generator's prompt: questions and accepted answers of the story.

A prompt is made of the texts that its plan may show, and of the words of its template. What else of the
record stands in it is a leak. An accepted answer may be in it only as far as the texts of the plan say it
anyhow, as a story that is asked about says its answers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import Field

from ...errors import ConfigError, InputError, UserError
from ...evaluation.judging.packets import Secret
from ...models.generators.drawn.scene import DrawnScene, Mark, MarkKind
from ...prompts.loader import load_prompt, prompt_source
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.katha import Scene, StoryRecord, Transition
from ...schemas.plain_files import read_plain, reason_of
from ...schemas.text import contains_phrase, normalize_answer
from ...schemas.values import Own, is_unset

FIELDS: Mapping[str, MarkKind] = {
    "action": "action",
    "causality": "cause",
    "intention": "intention",
    "emotion": "emotion",
    "consequence": "consequence",
    "expected_change": "change",
    "moral_target": "moral",
}
"""Field of a transition -> the kind of mark that it becomes."""
LABELS = {
    "action": "what is done", "causality": "cause", "intention": "intention", "emotion": "feeling",
    "consequence": "outcome", "expected_change": "what changes", "moral_target": "value",
}  # fmt: skip
"""Field of a transition -> what prompts call it."""


@dataclass(frozen=True, slots=True)
class PlannedPanel:
    """One picture of a plan."""

    scene: int  # which scene it shows, from 1
    prompt: str  # what is sent
    drawn: DrawnScene  # the same as data
    texts: tuple[str, ...]  # the texts of the record that the prompt is made of, and no others


@dataclass(frozen=True)
class Plan:
    """A way of telling a generator what to draw.

    Attributes:
        name: by which studies name it.
        title: for tables.
        representation: what the generator is shown, as Table 41 says it.
        inputs: what is held equal to the other plans.
        fairness: how it is to be read in a comparison.
        prompt_id: of the template of its prompts.
        needs_gold: whether it is made only of records that people accepted.
        show: the inputs of its prompt for a scene.
        marks: what of it becomes marks: fields of the scene, and whether transitions do.
    """

    name: str
    title: str
    representation: str
    inputs: str
    fairness: str
    prompt_id: str
    show: Callable[[StoryRecord, Scene], Mapping[str, Json]] = field(repr=False)
    marks: tuple[str, ...] = ("characters",)
    transitions: bool = False
    needs_gold: bool = False

    def usable(self, record: StoryRecord) -> bool:
        """Return whether it can be made of a record."""
        return not self.needs_gold or record.evidence_status.human_evidence_accepted

    def panels(self, record: StoryRecord) -> tuple[PlannedPanel, ...]:
        """Return one picture for each scene, in story order."""
        return tuple(self.panel(record, scene) for scene in record.scenes)

    def panel(self, record: StoryRecord, scene: Scene) -> PlannedPanel:
        """Return the picture of one scene."""
        shown = self.show(record, scene)
        prompt = load_prompt(self.prompt_id).render(**shown)
        said = normalize_answer(prompt)
        # What the words do not say is not in the data either: all generators are told the same.
        marks = (
            mark for mark in self._marks(record, scene) if contains_phrase(said, normalize_answer(mark.text))
        )
        drawn = DrawnScene(marks=tuple(dict.fromkeys(marks)))
        return PlannedPanel(scene.scene_index, prompt, drawn, tuple(_texts(shown)))

    def _marks(self, record: StoryRecord, scene: Scene) -> list[Mark]:
        kinds: Mapping[str, MarkKind] = {
            "characters": "character", "action": "action", "emotion": "emotion", "objects": "object",
            "state": "state", "visual_must_show": "must_show",
        }  # fmt: skip
        marks = [
            Mark(kind=kind, text=text)
            for name, kind in kinds.items()
            if name in self.marks
            for text in _listed(getattr(scene, name))
        ]
        if self.transitions:
            for transition in _around(record, scene):
                marks += [
                    Mark(kind=kind, text=text)
                    for name, kind in FIELDS.items()
                    for text in _listed(getattr(transition, name))
                ]
        return marks


def plan_named(name: str) -> Plan:
    """Return a plan by its name."""
    for plan in PLANS:
        if plan.name == name:
            return plan
    there = ", ".join(plan.name for plan in PLANS)
    raise ConfigError(
        f"plan {name}", what=f"there is no such plan; there are: {there}", fix="use one of them"
    )


def _listed(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value or ()
    return tuple(text for text in texts if text.strip())


def _texts(shown: Mapping[str, Json]) -> list[str]:
    """Return all texts among the inputs of a prompt, those in lists and pairs included."""
    texts: list[str] = []
    for value in shown.values():
        for entry in value if isinstance(value, list) else [value]:
            texts += [
                part for part in (entry if isinstance(entry, list) else [entry]) if isinstance(part, str)
            ]
    return [text for text in texts if text.strip()]


def _around(record: StoryRecord, scene: Scene) -> list[Transition]:
    here = scene.scene_index
    return [each for each in record.transitions if here in (each.from_scene, each.to_scene)]


def _direct(record: StoryRecord, scene: Scene) -> Mapping[str, Json]:
    return {"index": scene.scene_index, "total": len(record.scenes), "story": record.story_text}


def _rule(record: StoryRecord, scene: Scene) -> Mapping[str, Json]:
    return {
        "index": scene.scene_index, "total": len(record.scenes), "title": record.title,
        "text": scene.scene_text, "characters": list(scene.characters), "objects": list(scene.objects),
    }  # fmt: skip


def _caption(_record: StoryRecord, scene: Scene) -> Mapping[str, Json]:
    return {"caption": scene.action or scene.scene_text}


def _scene(record: StoryRecord, scene: Scene) -> Mapping[str, Json]:
    return {
        "index": scene.scene_index, "total": len(record.scenes), "text": scene.scene_text,
        "characters": list(scene.characters), "objects": list(scene.objects), "action": scene.action,
        "state": scene.state, "emotion": scene.emotion, "must_show": list(scene.visual_must_show),
    }  # fmt: skip


def _transition_aware(record: StoryRecord, scene: Scene) -> Mapping[str, Json]:
    sides: dict[str, list[list[str]]] = {"before": [], "after": []}
    for transition in _around(record, scene):
        side = "before" if transition.to_scene == scene.scene_index else "after"
        for name, label in LABELS.items():
            sides[side] += [[label, text] for text in _listed(getattr(transition, name))]
    return {**_scene(record, scene), **sides}


_SCENE_MARKS = ("characters", "objects", "action", "state", "emotion", "visual_must_show")
PLANS: tuple[Plan, ...] = (
    Plan(
        "direct", "Direct prompting", "the whole story, and which part of it the picture shows",
        "story, number and order of pictures", "the weakest prompt that every generator takes",
        "generation/direct", _direct,
    ),
    Plan(
        "rule", "Rule planner", "a fixed form: place in the order, who, with what, the scene's text",
        "scenes and their order", "tests simple structure", "generation/rule", _rule,
        marks=("characters", "objects"),
    ),
    Plan(
        "caption", "Caption planner", "a caption of each scene: its action", "scenes and their order",
        "tests captions without transitions", "generation/caption", _caption,
        marks=("characters", "objects", "action"),
    ),
    Plan(
        "scene", "Scene planner", "all fields of the scene: who, things, action, state, feeling, must show",
        "scenes, entities and order", "tests richer scenes without transitions", "generation/scene", _scene,
        marks=_SCENE_MARKS,
    ),
    Plan(
        "transition-aware", "Transition-aware planner",
        "the scene planner's fields and those of the transitions before and after the scene",
        "scenes, entities, order and the schema of transitions",
        "tests planning by transitions; no question and no answer is shown", "generation/transition_aware",
        _transition_aware, marks=_SCENE_MARKS, transitions=True,
    ),
    Plan(
        "oracle", "Oracle planner", "the transition-aware plan, of records that people accepted",
        "gold scenes and transitions, on gold stories only", "an upper bound, not a method",
        "generation/transition_aware", _transition_aware, marks=_SCENE_MARKS, transitions=True,
        needs_gold=True,
    ),
)  # fmt: skip
"""All plans, from the one that shows a generator least."""


def leaks_of(record: StoryRecord, plan: Plan, panel: PlannedPanel) -> Iterator[str]:
    """Yield what of the questions stands in a prompt and in no text that the plan may show.

    A question counts from a run of six of its words on, an answer whole.
    """
    allowed = [normalize_answer(text) for text in (*panel.texts, _template(plan.prompt_id))]
    written = normalize_answer(panel.prompt)
    for number, question in enumerate(record.questions):
        secrets = [(f"questions[{number}].question", question.question)]
        secrets += [
            (f"questions[{number}].accepted_answers", answer)
            for answer in dict.fromkeys((question.gold_answer, *question.accepted_answers))
        ]
        for path, text in secrets:
            secret = Secret(path, normalize_answer(text))
            if not secret.text:
                continue
            shown = secret.shown_in(written) if path.endswith("question") else _whole(secret, written)
            if shown is not None and not any(contains_phrase(text, shown) for text in allowed):
                yield f"{path}: {shown}"


def check_panels(record: StoryRecord, plan: Plan, panels: tuple[PlannedPanel, ...]) -> None:
    """Check the prompts of a plan."""
    for panel in panels:
        for leak in leaks_of(record, plan, panel):
            raise ConfigError(
                f"plan {plan.name}, {record.story_id}, scene {panel.scene}",
                what=f"its prompt gives away what judges are asked: {leak}",
                fix="a plan may show neither questions nor accepted answers; take the text out of the plan",
            )


def _whole(secret: Secret, written: str) -> str | None:
    return secret.text if contains_phrase(written, secret.text) else None


@cache
def _template(prompt_id: str) -> str:
    return prompt_source(prompt_id).decode("utf-8").partition("---#}")[2]


# -- Orders: what a generator is to make, as data; one line of ``orders.jsonl`` for each storyboard
#
# Whoever wants pictures writes orders: an experiment for its plans, Semantic Compass for its bridges. The run
# that carries them out knows nothing of why.

ORDERS = "orders.jsonl"


class PanelOrder(Own):
    """One picture."""

    number: int = Field(ge=1, description="Of the picture in its storyboard, from 1.")
    prompt: str = Field(min_length=1, description="What is to be seen, in words.")
    scene: DrawnScene | None = Field(
        default=None, description="The same as data, for the one model that draws from data."
    )
    references: tuple[str, ...] = Field(
        default=(), description="Pictures that it must resemble, by their paths beside the file of orders."
    )


class Order(Own):
    """One storyboard of one method with one seed."""

    method: str = Field(min_length=1, description="Name of the method.")
    story_id: str = Field(min_length=1, description="The story.")
    seed: int | None = Field(description="Generation seed; null for a system that takes none.")
    model: str = Field(description="Spec of the model that makes the pictures.")
    width: int | None = Field(default=None, description="In pixels [the system's].")
    height: int | None = Field(default=None, description="The same.")
    steps: int | None = Field(default=None, description="Steps of denoising [the system's].")
    negative: str | None = Field(default=None, description="What must not be seen.")
    rewrite: str | None = Field(
        default=None, exclude_if=is_unset, description="Chat model that writes the prompts anew before."
    )
    panels: tuple[PanelOrder, ...] = Field(min_length=1, description="Its pictures.")

    @property
    def key(self) -> str:
        """Its id: method, story and, where there is one, seed."""
        seed = "" if self.seed is None else f"/seed_{self.seed}"
        return f"{self.method}/{self.story_id}{seed}"


def write_orders(path: Path, orders: Iterable[Order]) -> None:
    """Write orders, sorted by their keys."""
    listed = sorted(orders, key=lambda order: order.key)
    write_atomic(path, jsonl_lines(order.as_json() for order in listed))


def read_orders(path: Path) -> tuple[Order, ...]:
    """Return the orders in a file."""
    orders: dict[str, Order] = {}
    problems = []
    fix = "correct the line, or have the orders written again"
    try:
        lines = read_plain(path, follow=True).splitlines()
    except OSError as error:
        raise InputError.one(str(path), what=f"it cannot be read: {error.strerror}", fix=fix) from error
    for number, line in enumerate(lines, 1):
        try:
            order = Order.model_validate_json(line)
        except ValueError as error:
            problems.append(
                UserError(f"{path}:{number}", what=f"no order: {reason_of(error)[:200]}", fix=fix)
            )
            continue
        if order.key in orders:
            problems.append(UserError(f"{path}:{number}", what=f"{order.key} is ordered twice", fix=fix))
        orders[order.key] = order
    if problems:
        raise InputError(problems)
    return tuple(orders.values())
