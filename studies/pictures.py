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

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from ..engine.config import RunConfig
from ..engine.estimate import CallPlan, plan_calls
from ..engine.execute import STORE, RunRequest, Source
from ..engine.pipeline import Pipeline
from ..engine.run_options import RunOptions, setting_texts
from ..engine.running import RunKind
from ..engine.stage import Answer, Ask, BadReply, Child, Item, Made, NoAnswer, Outcome, Tools, stage
from ..engine.status import RunReport
from ..errors import ConfigError, InputError, UserError
from ..evaluation.judging.packets import Secret
from ..media.images import open_picture
from ..media.kept_files import keep_file
from ..models.chat import Image
from ..models.generators.drawn.scene import DrawnScene, Mark, MarkKind
from ..models.generators.request import Generated, PictureRequest, read_generated
from ..models.spec import ModelSettings, parse_spec
from ..prompts.loader import load_prompt, prompt_source
from ..schemas.canonical import (
    Json,
    jsonl_lines,
    link_or_copy,
    pretty_bytes,
    sha256_bytes,
    write_atomic,
    writing,
)
from ..schemas.katha import Scene, StoryRecord, Transition
from ..schemas.plain_files import explaining, parse_json, read_plain, reason_of
from ..schemas.text import contains_phrase, normalize_answer
from ..schemas.values import Own, is_unset

if TYPE_CHECKING:
    from ..engine.hooks import Reporter

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
    orders: dict[str, Order] = {}
    problems = []
    fix = "correct the line, or have the orders written again"
    with explaining(path, fix, of=OSError):
        lines = read_plain(path, follow=True).splitlines()
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


# -- Stage: the orders of a run, one item for each storyboard, with the content of its reference pictures

ORDERS_ROLE = "orders"
"""Role of the sources."""


@stage(version=1, shape="expand", reads=("sources",), writes=("order", "references"))
def load_orders(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child for each order."""
    for path in tools.of_role(item, ORDERS_ROLE):
        for order in read_orders(path):
            made: dict[str, Json] = {"order": order.as_json(), "references": _references(path.parent, order)}
            yield Child(order.key, Made(made))


def _references(folder: Path, order: Order) -> dict[str, Json]:
    names = dict.fromkeys(name for panel in order.panels for name in panel.references)
    listed: dict[str, Json] = {}
    for name in names:
        path = (folder / name).absolute()
        what = f"the reference picture of {order.key} cannot be read"
        with explaining(path, "put it there, or order without it", what=what, of=OSError):
            listed[name] = {"path": str(path), "sha256": sha256_bytes(read_plain(path, follow=True))}
    return listed


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes an order the same order."""
    order = fields["order"]
    return [order["method"], order["story_id"], order["seed"]]


# -- Stage: the pictures of a storyboard, each asked of its generator; what went wrong is kept as data
#
# A picture that was refused, blocked, left out or that cannot be decoded is an outcome of the method
# (Tables 42 and 57 of the KathaTrace paper), not a failure of the run. Only a generator that cannot be
# reached is.

LABEL = "generation/picture@1#000000000000"
"""What the journal calls the prompt of a picture: it is made from a plan, and stands in the order."""
OUTCOMES = {
    "refused": "refused",
    "blocked": "blocked",
    "empty": "empty",
    "truncated": "corrupt",
    "malformed": "corrupt",
    "too_long": "failed",
    "bad_request": "failed",
}
"""Code of a missing answer -> outcome of the picture. Any other code is raised: the generator had no part in
it, and the item is run again."""
SUFFIXES = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
"""Format of a picture -> the ending of its file."""
_LONGEST_REPLY = 2000  # characters of a useless reply that are kept


class RenderSettings(ModelSettings):
    """Who may be asked; the order says who is."""

    keeps_unanswered: ClassVar[bool] = True

    generators: tuple[str, ...] = Field(default=(), description="Specs of the models that orders name.")

    @model_validator(mode="after")
    def _they_make_pictures(self) -> Self:
        for spec in self.generators:
            if parse_spec(spec).makes != "image":
                raise ValueError(f"{spec} makes no pictures: the spec of such a model begins with image:")
        return self

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that may be asked."""
        return self.generators


@stage(
    version=2,
    reads=("order", "prompts", "references"),
    writes=("pictures",),
    libraries=("pillow",),
    settings=RenderSettings,
)
async def render_pictures(item: Item, tools: Tools) -> Outcome:
    """Return what became of each picture, in order; the pictures themselves go to the run's store."""
    order = Order.model_validate(item["order"])
    if tools.asker is None or order.model not in tools.own(RenderSettings).generators:
        return Made({"pictures": []})
    known = {name: _reference(entry) for name, entry in item["references"].items()}
    rows = await asyncio.gather(
        *(
            _picture(order, panel, prompt, tuple(known[name] for name in panel.references), tools)
            for panel, prompt in zip(order.panels, item["prompts"], strict=True)
        ),
        return_exceptions=True,
    )
    pictures: list[Json] = []
    for row in rows:
        if isinstance(row, BaseException):
            raise row
        pictures.append(row)
    return Made({"pictures": pictures})


async def _picture(
    order: Order, panel: PanelOrder, prompt: str, references: tuple[Image, ...], tools: Tools
) -> dict[str, Json]:
    assert tools.asker is not None
    scene = (
        None if panel.scene is None or parse_spec(order.model).provider != "drawn" else panel.scene.as_json()
    )
    request = PictureRequest(
        order.model, prompt, references, order.negative, order.seed, order.width, order.height, order.steps,
        scene=scene,
    )  # fmt: skip
    row: dict[str, Json] = {"panel": panel.number, "prompt": prompt, "asked_seed": order.seed}
    question = Ask(
        request.chat(), _read_picture, LABEL, repairs=0, sample=tools.own(RenderSettings).sample, plain=True
    )
    try:
        answer = await tools.asker.ask(question)
    except NoAnswer as none:
        if none.code not in OUTCOMES:
            raise
        reply = None if none.evidence is None else none.evidence[:_LONGEST_REPLY]
        cost = None if none.receipt is None else none.receipt.cost
        return {**row, "outcome": OUTCOMES[none.code], "reason": none.reason, "reply": reply, "cost": cost}
    return {**row, **_made(answer, tools)}


def _made(answer: Answer[tuple[Generated, str]], tools: Tools) -> dict[str, Json]:
    generated, suffix = answer.value
    name = f"{sha256_bytes(generated.file.data)}.{suffix}"
    if tools.store is not None:
        keep_file(generated.file.data, name, tools.store)
    about = generated.about()
    reply = None if answer.receipt is None else answer.receipt.reply
    return {
        "outcome": "made", "reason": None, "reply": None, "file": name,
        "revised_prompt": about["revised_prompt"], "effective_seed": about["seed"], "width": about["width"],
        "height": about["height"], "steps": about["steps"], "unsupported": about["unsupported"],
        "reported_model": None if reply is None else reply.reported_model,
        "cost": None if answer.receipt is None else answer.receipt.cost,
        "truth": None if generated.truth is None else dict(generated.truth),
    }  # fmt: skip


def _read_picture(text: str) -> tuple[Generated, str]:
    """Return a picture that can be decoded, and the ending of its file."""
    try:
        generated = read_generated(text)
        opened = open_picture(generated.file.data, name="the picture")
    except UserError as error:
        raise BadReply(f"the picture cannot be decoded: {error.what or error}") from error
    except ValueError as error:
        raise BadReply(str(error)) from error
    if opened.format not in SUFFIXES:
        raise BadReply(f"the picture is a {opened.format}; PNG, JPEG and WebP are used")
    return generated, SUFFIXES[opened.format]


def _reference(entry: Json) -> Image:
    """Return a reference picture; its hash stands for it where it can no longer be read."""
    from pathlib import Path

    path = Path(entry["path"])
    media_type = {"jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp"}
    kind = media_type.get(path.suffix.lower().lstrip("."), "image/png")
    return Image(read_plain(path, follow=True), kind, entry["sha256"])


# -- Stage: prompts written anew by a chat model, where the order wants it; a condition of its own

REWRITE_PROMPT = "generation/rewrite_prompt"


class RewriteSettings(ModelSettings):
    """Who may be asked; the order says who is."""

    writers: tuple[str, ...] = Field(default=(), description="Specs of the chat models that orders name.")

    @model_validator(mode="after")
    def _writers_are_chat_models(self) -> Self:
        for spec in self.writers:
            if parse_spec(spec).makes != "text":
                raise ValueError(f"{spec} is no chat model, which writing prompts anew needs")
        return self

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that may be asked."""
        return self.writers


@stage(version=1, reads=("order",), writes=("prompts",), settings=RewriteSettings, asks=(REWRITE_PROMPT,))
async def rewrite_prompts(item: Item, tools: Tools) -> Outcome:
    """Return the prompt of each picture as it is sent."""
    order = Order.model_validate(item["order"])
    settings = tools.own(RewriteSettings)
    if order.rewrite is None or order.rewrite not in settings.writers or tools.asker is None:
        return Made({"prompts": [panel.prompt for panel in order.panels]})
    asked = settings.model_copy(update={"model": order.rewrite})
    prompt, asker = load_prompt(REWRITE_PROMPT), tools.asker

    async def rewritten(text: str) -> str:
        request = prompt.request(asked, tools.seed, prompt=text)
        return (await asker.ask(Ask(request, _read_prompt, prompt.label))).value

    prompts: list[Json] = list(await asyncio.gather(*(rewritten(panel.prompt) for panel in order.panels)))
    return Made({"prompts": prompts})


def _read_prompt(reply: Json) -> str:
    return str(reply["prompt"])


# -- The run that carries out orders: its stages, what may be chosen, and the file that a finished run holds

GENERATIONS = "generations.jsonl"
"""One line for each picture that was ordered: what was asked, and what came of it."""
PIPELINE = Pipeline(
    name="generate",
    stages=tuple(f"{__name__}:{name}" for name in ("load_orders", "rewrite_prompts", "render_pictures")),
    finish=f"{__name__}:finish",
    final_fields=("order",),
    identity=f"{__name__}:identity",
)


@dataclass(frozen=True, slots=True)
class GenerateOptions(RunOptions):
    """How to carry out orders. What every run may choose comes as keywords."""


def without_generators(config: RunConfig) -> RunConfig:
    """Return settings under which nobody is asked."""
    bare = {"render_pictures": {"generators": ()}, "rewrite_prompts": {"writers": ()}}
    stages = {
        name: settings.model_copy(update=bare.get(name, {})) for name, settings in config.stages.items()
    }
    return replace(config, stages=stages, models={})


def tell_generating(request: RunRequest, reporter: "Reporter") -> None:
    """Tell how many calls a new run makes and about what they cost, or what it has cost so far."""
    from ..builders.drafting import tell_plan

    tell_plan(request, reporter, without_generators)


RUN = RunKind(PIPELINE, tell_generating)
"""How orders are carried out."""


def generate_request(orders: Path, out: Path, options: GenerateOptions) -> RunRequest:
    listed = read_orders(orders)
    if not listed:
        raise ConfigError(str(orders), what="it holds no order", fix="order at least one storyboard")
    given = {
        "render_pictures.generators": sorted({order.model for order in listed}),
        "rewrite_prompts.writers": sorted({order.rewrite for order in listed if order.rewrite is not None}),
        # A storyboard whose generator cannot be reached is an item that is run again; no share of the
        # others is too small to go on with.
        "run.threshold": 0.0,
    }
    return options.request(PIPELINE, out, [Source(ORDERS_ROLE, orders)], setting_texts(given))


def generate(
    orders: Path, out: Path, options: GenerateOptions | None = None, reporter: "Reporter | None" = None
) -> RunReport:
    """Carry out orders; a run is continued, and no picture that was made is asked for again."""
    return RUN.make(generate_request(orders, out, options or GenerateOptions()), reporter)


def estimate_generation(orders: Path, out: Path, options: GenerateOptions | None = None) -> CallPlan:
    """Tell what :func:`generate` would ask now, and about what that costs. Asks nothing."""
    request = generate_request(orders, out, options or GenerateOptions())
    return plan_calls(request, without_generators(request.config))


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write ``generations.jsonl``."""
    write_atomic(folder / GENERATIONS, jsonl_lines(row for item in items for row in _rows(item)))


def _rows(item: Item) -> Iterable[dict[str, Json]]:
    order = item["order"]
    head = {"method": order["method"], "story_id": order["story_id"], "seed": order["seed"],
            "model": order["model"], "rewritten": order.get("rewrite")}  # fmt: skip
    for panel, picture in zip(order["panels"], item["pictures"], strict=True):
        ordered = {"ordered": panel["prompt"]} if head["rewritten"] else {}
        yield {**head, **ordered, **picture}


# -- Pictures of a generation run as folders of outputs, one for each method, as evaluations read them

MANIFEST = "outputs.json"
Row = dict[str, Any]


def generations_of(run: Path) -> dict[str, list[Row]]:
    """Return method -> what became of each of its pictures, in order."""
    path = run / GENERATIONS
    with explaining(path, "finish the run: the same command continues it"):
        rows = [parse_json(line) for line in read_plain(path, follow=True).splitlines()]
    methods: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        methods[row["method"]].append(row)
    return dict(methods)


def place_outputs(
    run: Path, outputs: Path, truth: Path | None = None, about: Mapping[str, Mapping[str, Json]] | None = None
) -> dict[str, Path]:
    """Lay out the pictures of a finished run below a folder; what lies there already and is right stays.

    ``truth``: where what drawn pictures show is written as data, a file for each method; None for nowhere.
    ``about``: method -> more keys of its ``outputs.json``.

    Returned: method -> its folder.
    """
    placed = {}
    with writing(outputs):
        for method, rows in sorted(generations_of(run).items()):
            folder = outputs / method
            _place(run / STORE, folder, rows)
            seeds = sorted({row["seed"] for row in rows if row["seed"] is not None})
            manifest: Row = {"method": method, **({"seeds": seeds} if seeds else {})}
            manifest |= (about or {}).get(method, {})
            shown = ({name: value for name, value in row.items() if name != "truth"} for row in rows)
            write_atomic(folder / GENERATIONS, jsonl_lines(shown))
            write_atomic(folder / MANIFEST, [pretty_bytes(manifest)])
            if truth is not None and any(row.get("truth") is not None for row in rows):
                truth.mkdir(parents=True, exist_ok=True)
                write_atomic(truth / f"{method}.jsonl", jsonl_lines(_truths(rows)))
            placed[method] = folder
    return placed


def _place(store: Path, folder: Path, rows: Sequence[Row]) -> None:
    wanted = {}
    for row in rows:
        if row["outcome"] == "made":
            seed = [] if row["seed"] is None else [f"seed_{row['seed']}"]
            ending = row["file"].rpartition(".")[2]
            wanted[Path(row["story_id"], *seed, f"{row['panel']:02}.{ending}")] = store / row["file"]
    for path in [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []:
        if path.relative_to(folder) not in wanted and path.name not in (MANIFEST, GENERATIONS):
            path.unlink()
    for name, source in wanted.items():
        link_from_store(source, folder / name)


def link_from_store(source: Path, target: Path) -> None:
    """Put a file of a run's store at a place, without a copy where the disk can do so."""
    if target.exists() and source.exists() and target.samefile(source):
        return
    if not source.is_file():
        fix = "remove the run's store and journal, and generate into a new folder with --reuse and this run"
        raise InputError.one(str(source), what="a file is gone from the run's store", fix=fix)
    link_or_copy(source, target)


def _truths(rows: Sequence[Row]) -> Iterator[Json]:
    for row in rows:
        if row.get("truth") is not None:
            yield {name: row[name] for name in ("story_id", "seed", "panel", "truth")}
