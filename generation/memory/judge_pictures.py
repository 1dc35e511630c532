"""A chat model that sees pictures: it chooses the best of several cut-outs, and checks the chosen one.

What it cannot answer, rules decide (a choice) or nobody does (a check); only a model that cannot be reached
is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...builders.replies import ask
from ...engine.stage import REHEARSED, UNAVAILABLE, BadReply, NoAnswer, Tools
from ...models.chat import Image as ChatImage
from ...schemas.canonical import Json
from .bank import BankCheck
from .candidates import Candidate, DrawSettings
from .keying import Key
from .pictures import grid_of, on_checkers, png_bytes
from .references import Reference

if TYPE_CHECKING:
    from PIL.Image import Image

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
