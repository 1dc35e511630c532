"""One try at a portrait or panorama: its candidates asked for, decoded, cut out and checked by rules.

Settings of the stage that draws references: who draws, cuts out, chooses and checks.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from ...builders.step import ask
from ...engine.stage import REHEARSED, UNAVAILABLE, Ask, BadReply, Item, Made, NoAnswer, Outcome, Tools, stage
from ...errors import UserError
from ...media.images import open_picture
from ...media.kept_files import keep_file
from ...models.chat import Image as ChatImage
from ...models.generators.drawn.scene import DrawnScene, Mark
from ...models.generators.request import Generated, PictureRequest, read_generated
from ...models.spec import ModelSettings, parse_spec
from ...models.vision.detectors import LAYOUTS
from ...models.vision.needs import VisionSettings, opened
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json, sha256_bytes
from ...schemas.entities import EntityType
from ...schemas.values import is_unset
from ..pictures import LABEL, OUTCOMES
from .bank import PANORAMA_SIZE, BankCheck
from .pictures import (
    KEYS,
    CheckLimits,
    CutOut,
    Key,
    Subject,
    bounds_of,
    check_cut,
    check_panorama,
    composition,
    cut_by_colour,
    cut_by_mask,
    grid_of,
    grounds_for,
    on_checkers,
    panorama_of,
    passes,
    png_bytes,
    rgb_of,
)
from .references import Reference
from .scripts import RULES

if TYPE_CHECKING:
    from PIL.Image import Image


# -- Stage: what a generator is asked for, for each entity that needs a picture (EntityBench, C.2 and E.2)
#
# Rules fill a template; a model writes for each type in its own words. The ground is added by us, so that
# another colour of it changes nothing else.

GROUND = "memory/ground"
FILLED: Mapping[EntityType, str] = {
    "character": "memory/character_picture",
    "object": "memory/object_picture",
    "location": "memory/location_picture",
}
"""Type -> the template that rules fill."""
WRITTEN: Mapping[EntityType, str] = {
    "character": "memory/write_character",
    "object": "memory/write_object",
    "location": "memory/write_location",
}
"""Type -> the prompt by which a model writes one."""
_LONGEST = 2000


@stage(
    version=1,
    reads=("reference",),
    writes=("prompt",),
    settings=ModelSettings,
    prompts=tuple(FILLED.values()),
    asks=tuple(WRITTEN.values()),
)
async def write_prompts(item: Item, tools: Tools) -> Outcome:
    """Return the ``text`` of the prompt, without the ground, and who wrote it; null where none is needed."""
    reference = Reference.model_validate(item["reference"])
    if reference.needs is None or reference.kept or reference.made != "generated":
        return Made({"prompt": None})
    inputs: dict[str, Json] = {
        "description": reference.description, "name": reference.name, "style": reference.style,
        "parts": [f"{part.name}: {part.description}" for part in reference.parts],
    }  # fmt: skip
    filled = load_prompt(FILLED[reference.type])
    by_rules = filled.render(**{name: inputs[name] for name in filled.card.inputs})
    if tools.asker is None:
        return Made({"prompt": {"text": by_rules, "by": RULES}})
    try:
        answer = await ask(tools, WRITTEN[reference.type], read_prompt, **inputs)
    except NoAnswer as none:
        if none.code == UNAVAILABLE:
            raise
        by = f"{RULES}, as the model gave no answer ({none.code})"
        return Made({"prompt": {"text": by_rules, "by": by}})
    return Made({"prompt": {"text": answer.value, "by": answer.maker}})


def read_prompt(reply: Json) -> str:
    text = " ".join(str(reply["prompt"]).split())
    if not text or len(text) > _LONGEST:
        raise BadReply(f"the prompt must have 1 to {_LONGEST} characters, not {len(text)}")
    return text


def with_ground(prompt: str, key: Key) -> str:
    """Return a prompt with the sentence that asks for a ground of one colour."""
    return f"{prompt}\n{load_prompt(GROUND).render(colour=key, code=KEYS[key])}"


# --


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


# -- Stage: the picture of each entity: candidates, a choice, a check, and another ground where it fails (C.2)
#
# What went wrong with a picture is an outcome, kept with it, and no failure of the run: an entity that never
# passes keeps its best picture, marked as unverified. Only a model that cannot be reached fails the item.

# -- A chat model that sees pictures: it chooses the best of several cut-outs, and checks the chosen one
#
# What it cannot answer, rules decide (a choice) or nobody does (a check); only a model that cannot be reached
# is an error.

CHOOSE, VERIFY = "memory/choose_candidate", "memory/verify_picture"
QUESTIONS = {
    "complete": "missing_parts",
    "opaque": "transparent",
    "clean": "leftovers",
    "single": "several",
    "traits_right": "wrong_traits",
}
"""Field of a reply -> what is wrong where it is false."""
_BY_RULES = "fewest failed checks, then size, place and proportions"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which candidate was chosen, why, and by whom; ``asked`` counts the questions."""

    candidate: Candidate
    why: str
    by: str
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a model said of a picture."""

    checks: tuple[BankCheck, ...]  # one for each question; not passed and not failed where there is no answer
    by: str  # who looked
    answered: bool  # whether there is an answer

    @property
    def passed(self) -> bool:
        """Whether it found nothing wrong."""
        return self.answered and all(check.passed for check in self.checks)


def choose_by_rules(candidates: Sequence[Candidate]) -> Choice:
    """Return the best candidate by rules; there must be one."""
    return Choice(min(candidates, key=lambda candidate: candidate.rank), _BY_RULES, "rules")


async def choose(
    candidates: Sequence[Candidate], reference: Reference, tools: Tools, settings: DrawSettings
) -> Choice:
    """Return the best of several candidates that passed all rules, by the viewer where there is one.

    One alone is chosen without asking.
    """
    if settings.viewer is None or len(candidates) < 2:
        return choose_by_rules(candidates)
    numbers = {candidate.number: candidate for candidate in candidates}

    def read(reply: Json) -> tuple[Candidate, str]:
        if reply["number"] not in numbers:
            raise BadReply(f"number {reply['number']} is none of {', '.join(map(str, numbers))}")
        return numbers[reply["number"]], " ".join(str(reply["reason"]).split())[:400]

    grid = grid_of([(candidate.number, _cut_of(candidate)) for candidate in candidates])
    try:
        answer = await ask(
            _viewing(tools, settings), CHOOSE, read, [_part(grid)], name=reference.name,
            description=reference.shown, kind=reference.type, numbers=list(numbers),
        )  # fmt: skip
    except NoAnswer as none:
        if none.code == UNAVAILABLE:
            raise
        by_rules = choose_by_rules(candidates)
        return replace(by_rules, by=f"rules, as the model gave no answer ({none.code})", asked=1)
    candidate, why = answer.value
    return Choice(candidate, why, answer.maker, 1)


async def verify(
    candidate: Candidate, reference: Reference, key: Key, tools: Tools, settings: DrawSettings
) -> Verdict:
    """Return what the viewer says of a chosen portrait."""
    picture = on_checkers(_cut_of(candidate))
    try:
        answer = await ask(
            _viewing(tools, settings), VERIFY, dict, [_part(picture)], name=reference.name,
            description=reference.shown, kind=reference.type, colour=key,
        )  # fmt: skip
    except NoAnswer as none:
        if none.code == UNAVAILABLE:
            raise
        by = str(settings.viewer)
        note = f"the model gave no answer: {none.code}"
        check = BankCheck(
            code="verification", passed=True if none.code == REHEARSED else None, note=note, by=by
        )
        return Verdict((check,), by, none.code == REHEARSED)
    reply, by = answer.value, answer.maker
    wrong = " ".join(str(reply["wrong"]).split())[:400]
    seen = " ".join(str(reply["seen"]).split())[:400]
    checks = tuple(
        BankCheck(code=code, passed=bool(reply[name]), note=seen if reply[name] else wrong or seen, by=by)
        for name, code in QUESTIONS.items()
    )
    return Verdict(checks, by, answered=True)


def _viewing(tools: Tools, settings: DrawSettings) -> Tools:
    return replace(tools, settings=settings.model_copy(update={"model": settings.viewer}))


def _cut_of(candidate: Candidate) -> "Image":
    """Return the cut-out; in a rehearsal, where there is none, an empty one of the same size."""
    if candidate.cut is not None:
        return candidate.cut.image
    from PIL import Image

    return Image.new("RGBA", (768, 1024))


def _part(image: "Image") -> ChatImage:
    return ChatImage(png_bytes(image), "image/png")


# -- The picture of each entity

# -- Tries at the picture of one entity, each with a ground of another colour, until one passes


@dataclass
class Try:
    key: Key | None  # its ground; None for a panorama
    candidates: list[Candidate]  # what was asked for
    choice: Choice | None = None  # which was chosen; None where no picture was made
    checks: tuple[BankCheck, ...] = ()  # of the chosen one, by rules and by the viewer
    passed: bool = False  # whether it did
    by: str = "rules"  # who let it pass or not
    retry: bool = True  # whether another ground might help: not where the viewer said nothing of use
    grid: str | None = field(default=None)

    @property
    def rank(self) -> tuple[int, int, float]:
        """By what the best of several that failed is found: what rules object to, the viewer, composition.

        Of what rules reject the viewer is not asked, so that its silence speaks for nothing.
        """
        assert self.choice is not None
        rules = sum(check.passed is False for check in self.choice.candidate.checks)
        every = sum(check.passed is False for check in self.checks)
        return rules, every - rules, -self.choice.candidate.score


class Rounds:
    """The tries at one entity.

    ``prompt``: what the generator is asked for, without the ground. ``tools``: of the stage.
    """

    def __init__(self, reference: Reference, prompt: str, tools: Tools) -> None:
        self._reference, self._tools = reference, tools
        self._settings = tools.own(DrawSettings)
        self._studio = Studio(reference, prompt, tools, self._settings)
        self._calls = {"picture": 0, "choice": 0, "verification": 0}

    async def drawn(self) -> dict[str, Json]:
        """Return all tries, and what the bank keeps of the picture that was taken."""
        tries: list[Try] = []
        for attempt, key in enumerate(self._grounds()):
            tries.append(await self._try(attempt, key))
            if tries[-1].passed or not tries[-1].retry:
                break
        return self._told(tries)

    def _grounds(self) -> Sequence[Key | None]:
        """Return the grounds to try; a panorama is tried anew with another seed."""
        settings = self._settings
        retries = settings.retries if settings.verify else 0
        if self._reference.needs == "panorama":
            return [None] * (retries + 1)
        return grounds_for(self._reference.shown, retries)

    async def _try(self, attempt: int, key: Key | None) -> Try:
        made = Try(key, await self._studio.candidates(attempt, key))
        self._calls["picture"] += len(made.candidates)
        rehearsed = [each for each in made.candidates if each.outcome == REHEARSED]
        usable = rehearsed or [each for each in made.candidates if each.file is not None]
        if not usable:
            return made
        made.grid = await asyncio.to_thread(self._grid, made.candidates)
        sound = rehearsed or list(sound_ones(usable))
        if key is None or not sound:
            made.choice = choose_by_rules(usable)
        else:
            made.choice = await choose(sound, self._reference, self._tools, self._settings)
            self._calls["choice"] += made.choice.asked
        made.checks = made.choice.candidate.checks
        made.passed = bool(sound)
        if made.passed and key is not None and self._settings.verify and self._settings.viewer is not None:
            await self._verify(made, key)
        return made

    async def _verify(self, made: Try, key: Key) -> None:
        assert made.choice is not None
        verdict = await verify(made.choice.candidate, self._reference, key, self._tools, self._settings)
        self._calls["verification"] += 1
        made.checks = (*made.checks, *verdict.checks)
        made.passed, made.by, made.retry = verdict.passed, verdict.by, verdict.answered

    def _grid(self, candidates: Sequence[Candidate]) -> str | None:
        """Return the name of the grid of candidates in the store; None where there is nothing to compare."""
        cuts = [(each.number, each.cut.image) for each in candidates if each.cut is not None]
        if not cuts:
            return None
        data = png_bytes(grid_of(cuts))
        name = f"{sha256_bytes(data)}.png"
        if self._tools.store is not None:
            keep_file(data, name, self._tools.store)
        return name

    def _told(self, tries: Sequence[Try]) -> dict[str, Json]:
        settings = self._settings
        chosen = [made for made in tries if made.choice is not None]
        best = next((made for made in chosen if made.passed), None)
        taken = best or min(chosen, key=lambda made: made.rank, default=None)
        status = "failed" if taken is None else "verified" if best and settings.verify else "unverified"
        result: dict[str, Json] = {
            "tries": [_try_json(made) for made in tries],
            "status": status,
            "reason": None if status == "verified" else self._reason(tries, taken),
            "verified_by": None if status != "verified" or taken is None else taken.by,
            "model": settings.model, "licence": settings.licence, "calls": dict(self._calls), "taken": None,
        }  # fmt: skip
        if taken is None or taken.choice is None or taken.choice.candidate.file is None:
            return result
        candidate = taken.choice.candidate
        return result | {
            "taken": {
                "round": tries.index(taken) + 1, "candidate": candidate.number, "file": candidate.file,
                "cutout": candidate.cut_file, "grid": taken.grid, "seed": candidate.seed,
                "prompt": candidate.prompt, "key_colour": None if taken.key is None else KEYS[taken.key],
                "checks": [check.as_json() for check in taken.checks], "why": taken.choice.why,
                "segmenter": None if candidate.cut is None else candidate.cut.by,
                "bounds": None if candidate.cut is None else _bounds(candidate.cut),
            }
        }  # fmt: skip

    def _reason(self, tries: Sequence[Try], taken: Try | None) -> str:
        if taken is None:
            causes = dict.fromkeys(
                f"{each.outcome}: {each.reason}" for made in tries for each in made.candidates if each.reason
            )
            return f"no picture was made ({'; '.join(causes) or 'no reply'})"[:600]
        if not self._settings.verify:
            return "nobody was to check it"
        failed = [check for check in taken.checks if check.passed is False]
        notes = "; ".join(f"{check.code}: {check.note}" for check in failed)
        tried = ", ".join(made.key for made in tries if made.key is not None)
        grounds = f" on {tried}" if tried else ""
        if not taken.retry:
            return "the model that checks gave no answer of use"
        return f"no try passed{grounds}; the best: {notes or 'nothing to be seen'}"[:600]


def _bounds(cut: CutOut) -> list[int] | None:
    edges = bounds_of(cut.mask)
    return None if edges is None else list(edges)


def _try_json(made: Try) -> dict[str, Json]:
    chosen = None if made.choice is None else {
        "number": made.choice.candidate.number, "why": made.choice.why, "by": made.choice.by,
    }  # fmt: skip
    return {
        "key": made.key, "candidates": [each.as_json() for each in made.candidates], "chosen": chosen,
        "checks": [check.as_json() for check in made.checks], "passed": made.passed, "by": made.by,
        "grid": made.grid,
    }  # fmt: skip


# -- The picture of each entity


@stage(
    version=2,
    reads=("reference", "prompt"),
    writes=("drawn",),
    libraries=("pillow", "numpy", "scipy"),
    settings=DrawSettings,
    prompts=(GROUND,),
    asks=(CHOOSE, VERIFY),
    patience=10.0,
)
async def draw_references(item: Item, tools: Tools) -> Outcome:
    """Return every round of candidates and which picture was taken; null where none is drawn here."""
    reference = Reference.model_validate(item["reference"])
    if item["prompt"] is None or tools.asker is None:
        return Made({"drawn": None})
    return Made({"drawn": await Rounds(reference, item["prompt"]["text"], tools).drawn()})
