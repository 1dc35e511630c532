"""Stage: the picture of each entity: candidates, a choice, a check, and another ground where it fails (C.2).

What went wrong with a picture is an outcome, kept with it, and no failure of the run: an entity that never
passes keeps its best picture, marked as unverified. Only a model that cannot be reached fails the item.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...builders.step import ask
from ...engine.stage import REHEARSED, UNAVAILABLE, BadReply, Item, Made, NoAnswer, Outcome, StageSpec, Tools
from ...media.kept_files import keep_file
from ...models.chat import Image as ChatImage
from ...schemas.canonical import Json, sha256_bytes
from .bank import BankCheck
from .candidates import Candidate, DrawSettings, Studio, sound_ones
from .keying import KEYS, CutOut, Key, bounds_of, grounds_for
from .pictures import grid_of, on_checkers, png_bytes
from .references import Reference
from .write_prompts import GROUND

if TYPE_CHECKING:
    from PIL.Image import Image


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
    """One try."""

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

    Args:
        reference: the entity.
        prompt: what the generator is asked for, without the ground.
        tools: of the stage.
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

SPEC = StageSpec(
    name="draw_references", version=2, shape="map", reads=("reference", "prompt"), writes=("drawn",),
    libraries=("pillow", "numpy", "scipy"), settings=DrawSettings, prompts=(GROUND,), asks=(CHOOSE, VERIFY),
    patience=10.0,
)  # fmt: skip


async def run(item: Item, tools: Tools) -> Outcome:
    """Return every round of candidates and which picture was taken; null where none is drawn here."""
    reference = Reference.model_validate(item["reference"])
    if item["prompt"] is None or tools.asker is None:
        return Made({"drawn": None})
    return Made({"drawn": await Rounds(reference, item["prompt"]["text"], tools).drawn()})
