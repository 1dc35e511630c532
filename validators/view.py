"""What a rule looks at: one story with its variants, and what several rules derive from it.

The rule about texts out of which a secret was taken; the same for data sets of every kind.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from ..models.keys import MARK
from ..schemas.canonical import Json
from ..schemas.paths import Steps, quoted_path
from ..schemas.text import contains_phrase, normalize_answer, normalize_text
from ..schemas.values import Issue
from .report import issue, show


@dataclass(frozen=True, slots=True)
class Part:
    """A JSON object and where it stands: file, line and id."""

    where: str
    data: Mapping[str, Json]


@dataclass(frozen=True)
class Story:
    """A record with its variants."""

    where: str  # file, line and id of the record
    record: Mapping[str, Json]  # the record
    variants: Sequence[Part] = ()  # its variants, each with its own place
    # fields with schema errors, such as ``scenes`` or ``provenance.created_at``, ``variants`` for any
    # variant, ``*`` for the whole; rules that read them do not run
    broken: Collection[str] = ()
    # producers and checks, where the record comes from a run
    bundle: Mapping[str, Json] = field(default_factory=dict)

    def readable(self, fields: Collection[str]) -> bool:
        """Return whether none of these fields, and nothing around or inside them, has a schema error."""
        return not any(_touches(broken, name) for broken in self.broken for name in fields)

    @property
    def id(self) -> str:
        return str(self.record.get("story_id"))

    @property
    def scenes(self) -> Sequence[Mapping[str, Json]]:
        scenes: Sequence[Mapping[str, Json]] = self.record["scenes"]
        return scenes

    @cached_property
    def normal_source(self) -> str:
        """The source text in its normal form."""
        return normalize_text(self.record["source_text"])

    @cached_property
    def answer_text(self) -> str:
        """The story text as answers are compared."""
        return normalize_answer(self.record["story_text"])

    @cached_property
    def scene_answers(self) -> tuple[str, ...]:
        """The scene texts as answers are compared."""
        return tuple(normalize_answer(scene["scene_text"]) for scene in self.scenes)


def _touches(broken: str, name: str) -> bool:
    return broken in ("*", name) or name.startswith(f"{broken}.") or broken.startswith(f"{name}.")


def first_difference(expected: str, found: str) -> tuple[str, str]:
    """Return where two texts part: a few characters before that, and what each has there."""
    pairs = enumerate(zip(expected, found, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(found)))
    start = max(0, at - 10)
    return expected[start : at + 20], found[start : at + 20]


def squeezed(text: str) -> str:
    """Return a text without its white space."""
    return "".join(text.split())


def mentions(normal: str, phrase: str) -> bool:
    """Return whether a text, as answers are compared, contains a phrase; see ``contains_phrase``."""
    return contains_phrase(normal, _as_answer(phrase))


# Names come again in scene after scene and variant after variant.
_as_answer = lru_cache(maxsize=1024)(normalize_answer)


CODE = "secret-removed"


def find_redacted(document: Json, where: str, start: Steps = ()) -> Iterator[Issue]:
    """Yield every text, and every name of a field, in which the mark of a removed secret stands."""
    if MARK not in repr(document):  # nearly always so, and found out much faster
        return
    for steps, text in _strings(document, start):
        if MARK in text:
            yield issue(CODE, where, quoted_path(steps), f"found {show(text)}")


def check_redacted(story: Story) -> Iterator[Issue]:
    """Check that no secret was taken out of a text of the record or of its variants."""
    yield from find_redacted(story.record, story.where)
    for variant in story.variants:
        yield from find_redacted(variant.data, variant.where)


def _strings(value: Json, steps: Steps) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, str):
        yield steps, value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield (*steps, key), key
            yield from _strings(entry, (*steps, key))
    elif isinstance(value, list | tuple):
        for position, entry in enumerate(value):
            yield from _strings(entry, (*steps, position))
