"""Stage: the pictures of a storyboard, each asked of its generator; what went wrong is kept as data.

A picture that was refused, blocked, left out or that cannot be decoded is an outcome of the method (Tables 42
and 57 of the KathaTrace paper), not a failure of the run. Only a generator that cannot be reached is.
"""

import asyncio
from typing import ClassVar, Self

from pydantic import Field, model_validator

from ...engine.stage import Answer, Ask, BadReply, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...errors import UserError
from ...media.images import open_picture
from ...media.kept_files import keep_file
from ...models.chat import Image
from ...models.generators.request import Generated, PictureRequest, read_generated
from ...models.spec import ModelSettings, parse_spec
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.plain_files import read_plain
from .plans import Order, PanelOrder

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
_LONGEST = 2000  # characters of a useless reply that are kept


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


SPEC = StageSpec(
    name="render_pictures", version=2, shape="map", reads=("order", "prompts", "references"),
    writes=("pictures",), libraries=("pillow",), settings=RenderSettings,
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
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
        request.chat(), _read, LABEL, repairs=0, sample=tools.own(RenderSettings).sample, plain=True
    )
    try:
        answer = await tools.asker.ask(question)
    except NoAnswer as none:
        if none.code not in OUTCOMES:
            raise
        reply = None if none.evidence is None else none.evidence[:_LONGEST]
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


def _read(text: str) -> tuple[Generated, str]:
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
