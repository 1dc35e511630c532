"""Whether a program stood in for a model: the model's name in its replies says so, and nothing else is asked.

Every server of :mod:`fabula.testing` names :data:`MARK` in each reply, whatever model was asked for.
"""

from collections.abc import Iterable

MARK = "stand-in"
"""What stands in the model's name of each reply of a stand-in, toy or scripted model."""
ANSWERED = f"answered by a {MARK}"
"""What the producer of a field says where the name of the model that was asked does not."""
OLDER = frozenset({"drawn"})
"""Names that toy models gave before they named the mark."""
PROGRAMS = frozenset({
    "table-detector", "colour-encoder", "head-encoder", "colour-texts", "colour-classes", "colour-brightness",
    "still-flow", "truth-grounder", "truth-texts", "truth-vectors",
})  # fmt: skip
"""What the detectors and encoders of ``fabula.testing`` call themselves."""


def is_stand_in(name: str | None) -> bool:
    """Whether a reply, a producer or a judge of this name is a stand-in's."""
    return name is not None and (MARK in name.casefold() or name in OLDER)


def stand_ins_among(producers: Iterable[str | None]) -> list[str]:
    """Return the stand-ins among producers without their prompts, each once, sorted."""
    parts = (part for name in producers if name is not None for part in name.split("; "))
    return sorted({_named(part) for part in parts if is_stand_in(part)})


def _named(producer: str) -> str:
    model = producer.partition(" via ")[0].partition(", ")[0]
    return f"{model}, {ANSWERED}" if ANSWERED in producer else model


def notes_on(asked: str, reported: str | None) -> tuple[str, ...]:
    """Return what a producer says of who answered, beyond the name of the model that was asked."""
    return (ANSWERED,) if is_stand_in(reported) and not is_stand_in(asked) else ()
