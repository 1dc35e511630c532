"""One try at a portrait or panorama: its candidates asked for, decoded, cut out and checked by rules.

Settings of the stage that draws references: who draws, cuts out, chooses and checks.
"""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from ...engine.stage import REHEARSED, Ask, BadReply, NoAnswer, Tools
from ...errors import UserError
from ...media.images import open_picture
from ...media.kept_files import keep_file
from ...models.generators.drawn.scene import DrawnScene, Mark
from ...models.generators.request import Generated, PictureRequest, read_generated
from ...models.spec import ModelSettings, parse_spec
from ...models.vision.detectors import LAYOUTS
from ...models.vision.needs import VisionSettings, opened
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.values import is_unset
from ..pictures.render_pictures import LABEL, OUTCOMES
from .bank import PANORAMA_SIZE, BankCheck
from .keying import (
    KEYS,
    CheckLimits,
    CutOut,
    Key,
    Subject,
    check_cut,
    check_panorama,
    composition,
    cut_by_colour,
    cut_by_mask,
    passes,
    rgb_of,
)
from .pictures import panorama_of, png_bytes
from .references import Reference
from .write_prompts import with_ground

if TYPE_CHECKING:
    from PIL.Image import Image


class DrawSettings(ModelSettings, VisionSettings):
    """Who draws, cuts out, chooses and checks; ``model`` is the generator."""

    viewer: str | None = Field(
        default=None, description="Chat model that sees pictures and chooses and checks them; null: rules do."
    )
    candidates: int = Field(default=5, ge=1, le=20, description="Pictures of a portrait to choose from.")
    retries: int = Field(default=2, ge=0, le=8, description="Further grounds for what does not pass.")
    verify: bool = Field(default=True, description="Whether a picture has to pass checks.")
    portrait: tuple[int, int] = Field(default=(768, 1024), description="Size of a character's picture.")
    square: tuple[int, int] = Field(default=(1024, 1024), description="Size of an object's picture.")
    limits: CheckLimits = Field(default=CheckLimits(), description="What the rules bear.")
    segmenter: str | None = Field(
        default=None, description="Model that cuts out, such as sam2.1-hiera-tiny; null: by the key's colour."
    )
    seed: int = Field(default=0, ge=0, exclude_if=lambda value: value == 0,
                      description="Added to the seed of every picture.")  # fmt: skip
    licence: str | None = Field(
        default=None, exclude_if=is_unset, description="Under what the pictures may be used, if you know."
    )

    @model_validator(mode="after")
    def _each_does_what_it_is_for(self) -> Self:
        if self.model is not None and parse_spec(self.model).makes != "image":
            raise ValueError(f"{self.model} makes no pictures: the spec of such a model begins with image:")
        if self.viewer is not None and parse_spec(self.viewer).makes != "text":
            raise ValueError(f"{self.viewer} answers no questions: a chat model that sees pictures is needed")
        return self

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that are asked."""
        named = (self.model, None if self.model is None else self.viewer)
        return tuple(dict.fromkeys(spec for spec in named if spec is not None))

    def looking(self) -> tuple[str, ...]:
        """Return the names of the models that look."""
        return () if self.segmenter is None or self.model is None else (self.segmenter,)


_MARKS: Any = {"character": "character", "object": "object", "location": "place"}
_ONE_AT_A_TIME = threading.Lock()
"""A network that cuts out is one for all items, and is not to be used by two threads at once."""


@dataclass
class Candidate:
    """One picture that was asked for, and what became of it."""

    number: int  # from 1, among those of its try
    seed: int  # with which it was asked for
    prompt: str  # as it was sent
    # ``made``, or as for pictures of storyboards; ``rehearsed`` where nothing was asked
    outcome: str = "made"
    reason: str | None = None  # why it was not made
    file: str | None = None  # name in the run's store, as PNG
    cut_file: str | None = None  # the same of the cut-out
    image: "Image | None" = field(default=None, repr=False)  # the picture itself, RGB
    cut: CutOut | None = field(default=None, repr=False)  # the cut-out of a portrait
    checks: tuple[BankCheck, ...] = ()  # what rules looked at
    score: float = 0.0  # how well it is composed, 0 to 1; of a panorama 1
    about: dict[str, Json] = field(default_factory=dict)  # what the generator tells of how it was made

    @property
    def sound(self) -> bool:
        """Whether there is a picture, and rules know nothing against it."""
        return self.file is not None and passes(self.checks)

    @property
    def rank(self) -> tuple[int, float, int]:
        """By what rules choose: fewest failed checks, then composition, then number; the least is best."""
        failed = sum(check.passed is False for check in self.checks)
        return (failed if self.file is not None else 99, -self.score, self.number)

    def as_json(self) -> dict[str, Json]:
        """Return what is kept of it."""
        return {
            "number": self.number, "seed": self.seed, "prompt": self.prompt, "outcome": self.outcome,
            "reason": self.reason, "file": self.file, "cutout": self.cut_file, "score": round(self.score, 4),
            "checks": [check.as_json() for check in self.checks], **self.about,
        }  # fmt: skip


@dataclass(frozen=True)
class Studio:
    """Where the pictures of one entity are made."""

    reference: Reference  # the entity
    prompt: str  # what the generator is asked for, without the ground
    tools: Tools  # of the stage
    settings: DrawSettings  # of the stage

    async def candidates(self, attempt: int, key: Key | None) -> list[Candidate]:
        """Return the candidates of one try.

        ``attempt``: number of the try, from 0. ``key``: the ground; None for a panorama, which has none.
        """
        count = 1 if key is None else self.settings.candidates
        prompt = self.prompt if key is None else with_ground(self.prompt, key)
        first = self.tools.seed + self.settings.seed + attempt * self.settings.candidates
        asked = [Candidate(number, first + number - 1, prompt) for number in range(1, count + 1)]
        rows = await asyncio.gather(
            *(self._make(candidate, key) for candidate in asked), return_exceptions=True
        )
        for row in rows:
            if isinstance(row, BaseException):
                raise row
        return asked

    async def _make(self, candidate: Candidate, key: Key | None) -> None:
        assert self.tools.asker is not None
        request = self._request(candidate, key)
        question = Ask(request.chat(), _read, LABEL, repairs=0, sample=self.settings.sample, plain=True)
        try:
            answer = await self.tools.asker.ask(question)
        except NoAnswer as none:
            if none.code == REHEARSED:
                candidate.outcome = REHEARSED
                return
            if none.code not in OUTCOMES:
                raise
            candidate.outcome, candidate.reason = OUTCOMES[none.code], none.reason
            return
        await asyncio.to_thread(self._look, candidate, answer.value, key)
        reply = None if answer.receipt is None else answer.receipt.reply
        candidate.about |= {
            "reported_model": None if reply is None else reply.reported_model,
            "cost": None if answer.receipt is None else answer.receipt.cost,
        }

    def _request(self, candidate: Candidate, key: Key | None) -> PictureRequest:
        reference, settings = self.reference, self.settings
        assert settings.model is not None
        sizes = {"character": settings.portrait, "object": settings.square, "location": PANORAMA_SIZE}
        width, height = sizes[reference.type]
        scene = None
        if parse_spec(settings.model).provider == "drawn":
            marks = [Mark(kind=_MARKS[reference.type], text=reference.name)]
            marks += [Mark(kind="must_show", text=part.name) for part in reference.parts if key is None]
            form = "panorama" if key is None else "portrait"
            ground = None if key is None else KEYS[key]
            scene = DrawnScene(form=form, marks=tuple(marks), ground=ground).as_json()
        return PictureRequest(
            settings.model, candidate.prompt, seed=candidate.seed, width=width, height=height, scene=scene
        )

    def _look(self, candidate: Candidate, generated: Generated, key: Key | None) -> None:
        """Cut out and check a picture; it and its cut-out go to the run's store."""
        image = open_picture(generated.file.data, name="the picture").image
        about = generated.about()
        candidate.about |= {name: about[name] for name in ("revised_prompt", "steps", "unsupported")}
        candidate.about["effective_seed"] = about["seed"]
        candidate.image = image
        if key is None:
            candidate.checks, candidate.score = check_panorama(image), 1.0
            candidate.file = self._keep(panorama_of(image))
            return
        cut = self._cut(image, key)
        subject = Subject(self.reference.type, self.reference.name)
        candidate.cut, candidate.checks = cut, check_cut(cut, subject, self.settings.limits)
        candidate.score = composition(cut, self.reference.type)
        candidate.file, candidate.cut_file = self._keep(image), self._keep(cut.image)

    def _cut(self, image: "Image", key: Key) -> CutOut:
        name, colour = self.settings.segmenter, rgb_of(KEYS[key])
        if name is None:
            return cut_by_colour(image, colour)
        with _ONE_AT_A_TIME:
            model = opened(name, self.settings, "segmenter")
            mask = model.segment([image], [LAYOUTS[self.reference.type]])[0]
        return cut_by_mask(image, mask, model.identity, colour)

    def _keep(self, image: "Image") -> str:
        data = png_bytes(image)
        name = f"{sha256_bytes(data)}.png"
        if self.tools.store is not None:
            keep_file(data, name, self.tools.store)
        return name


def _read(text: str) -> Generated:
    """Return a picture that can be decoded."""
    try:
        generated = read_generated(text)
        open_picture(generated.file.data, name="the picture")
    except UserError as error:
        raise BadReply(f"the picture cannot be decoded: {error.what or error}") from error
    except ValueError as error:
        raise BadReply(str(error)) from error
    return generated


def sound_ones(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield the candidates that rules know nothing against."""
    return (candidate for candidate in candidates if candidate.sound)
