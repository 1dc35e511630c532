"""The items of a study: what the pages show of each, and, apart from it, what each stands for.

A page shows an :class:`Item`: opaque ids and pictures under opaque names. What it stands for, such as story
and method, is in :class:`Stands`, which no page reads. A source yields :class:`Drawn`, which has both.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from hmac import new as keyed
from pathlib import Path
from typing import Literal

from pydantic import Field

from ...builders.replies import texts_in
from ...schemas.canonical import Json
from ...schemas.values import Own
from ...validators.katha.votes import content_sha256
from .task import Texts

ITEMS, KEY = "items.jsonl", "key.jsonl"
_UNSPACED = re.compile(r"[\u3005\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


class Value(Own):
    """A value of a record that a reviewer may correct."""

    path: str  # where it stands in the record
    label: str  # what it is called
    value: Json  # what stands there
    # what may stand there: ``text``, ``number``, or a list of ``texts`` or ``numbers``
    takes: Literal["text", "number", "texts", "numbers"] = "text"
    options: tuple[Json, ...] = ()  # what may stand there, where that is a few values only
    optional: bool = False  # whether nothing may stand there: null, or an empty list


class Part(Own):
    """One of several things that are asked alike, such as one question of a story."""

    id: str  # opaque
    text: str  # what is shown of it
    detail: tuple[str, ...] = ()  # lines that explain it, such as accepted answers
    values: tuple[Value, ...] = ()  # what of it may be corrected


def _words(text: str) -> int:
    return len(text.split()) + len(_UNSPACED.findall(text)) // 2


class Media(Own):
    """A picture or a video: the name under which the pages get it, and its size in pixels."""

    name: str
    kind: str
    width: int
    height: int


class Item(Own):
    """What the pages show of one item."""

    item: str  # opaque id
    texts: Mapping[str, Json] = {}  # what the task's template shows; empty where reviewers see pictures only
    # the pictures or videos, in order; two sides where things are compared
    sides: tuple[tuple[Media, ...], ...] = ()
    parts: Mapping[str, tuple[Part, ...]] = {}  # list name -> parts
    values: tuple[Value, ...] = ()  # what of the whole may be corrected

    @property
    def part_ids(self) -> dict[str, tuple[str, ...]]:
        """List name -> ids of its parts."""
        return {name: tuple(part.id for part in parts) for name, parts in self.parts.items()}

    @cached_property
    def words(self) -> int:
        """How many words it shows; two letters of a script without spaces count as one."""
        parts = [part for listed in self.parts.values() for part in listed]
        asked = [text for part in parts for text in (part.text, *part.detail)]
        return sum(_words(text) for text in texts_in([dict(self.texts), asked]))

    @property
    def media(self) -> tuple[Media, ...]:
        """All that is shown, of all sides."""
        return tuple(medium for side in self.sides for medium in side)


class Stands(Own):
    """What an item stands for; only who runs a study reads it."""

    item: str  # opaque id
    about: str  # what votes name as item, such as a story id
    story: str  # the story or other cluster that it belongs to
    condition: str | None = None  # evidence condition, where there is one
    methods: tuple[str, ...] = ()  # whose outputs are shown, side by side; none where nothing generated is
    seed: int | None = None  # of the generation
    stratum: str = ""  # what the item was drawn among, where it was
    parts: Mapping[str, str] = {}  # opaque id of a part -> its own id
    files: Mapping[str, str] = {}  # opaque name of a picture or video -> the file in the study's ``media``
    # place of an answer -> the answers that are right; of training and check items
    expected: Mapping[str, tuple[Json, ...]] = {}
    explained: Texts = Field(default={})  # what training says after the answer
    digest: str = ""  # hash of the thing that was read, as the release or run has it
    # of a record under review, its draft and story, as corrections of it are applied
    record: Mapping[str, Json] = {}

    @cached_property
    def seen(self) -> str | None:
        """Hash of what reviewers are shown of a record; None of anything else."""
        return content_sha256(self.about, self.record["draft"]) if self.record else None


@dataclass(frozen=True)
class Drawn:
    """One item as its source gives it."""

    about: str  # what votes name as item
    story: str  # the story or other cluster that it belongs to
    texts: Mapping[str, Json] = field(default_factory=dict)  # what the template shows
    # files of pictures or videos; two sides where things are compared
    sides: tuple[tuple[Path, ...], ...] = ()
    # list name -> parts, with their own ids
    parts: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    values: tuple[Value, ...] = ()  # what of the whole may be corrected
    condition: str | None = None  # evidence condition
    methods: tuple[str, ...] = ()  # whose outputs the sides show
    seed: int | None = None  # of the generation
    stratum: str = ""  # what it was drawn among
    digest: str = ""  # hash of what is read
    # place of an answer, with the parts' own ids -> the answers that are right
    expected: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    explained: Texts = field(default_factory=dict)  # what training says after the answer
    record: Mapping[str, Json] = field(default_factory=dict)  # of a record under review, its draft and story

    @property
    def named(self) -> str:
        """What tells it from the other items of its study."""
        return "\n".join(map(str, (self.about, self.condition, self.seed, *self.methods, self.digest)))


def opaque(secret: bytes, *names: object, prefix: str = "") -> str:
    """Return a name that tells nothing of what it stands for, the same each time."""
    text = "\n".join(map(str, names)).encode("utf-8")
    return prefix + keyed(secret, text, sha256).hexdigest()[:20]


def hide(drawn: Drawn, secret: bytes, stored: Sequence[Sequence[tuple[str, Media]]]) -> tuple[Item, Stands]:
    """Return what pages show of an item, and what it stands for."""
    item = opaque(secret, "item", drawn.named, prefix="i")
    own = {
        part.id: opaque(secret, "part", drawn.named, part.id, prefix="p")[:9]
        for parts in drawn.parts.values()
        for part in parts
    }
    named = [
        [(opaque(secret, "media", drawn.named, side, turn, prefix="m"), file, medium) for turn, (file, medium)
         in enumerate(files)]
        for side, files in enumerate(stored)
    ]  # fmt: skip
    shown = Item(
        item=item,
        texts=dict(drawn.texts),
        sides=tuple(
            tuple(medium.model_copy(update={"name": name}) for name, _, medium in side) for side in named
        ),
        parts={
            name: tuple(part.model_copy(update={"id": own[part.id]}) for part in parts)
            for name, parts in drawn.parts.items()
        },
        values=drawn.values,
    )
    stands = Stands(
        item=item, about=drawn.about, story=drawn.story, condition=drawn.condition, methods=drawn.methods,
        seed=drawn.seed, stratum=drawn.stratum, parts={name: real for real, name in own.items()},
        files={name: file for side in named for name, file, _ in side},
        expected={_hidden_place(place, own): answers for place, answers in drawn.expected.items()},
        explained=drawn.explained, digest=drawn.digest, record=drawn.record,
    )  # fmt: skip
    return shown, stands


def _hidden_place(place: str, own: Mapping[str, str]) -> str:
    name, slash, part = place.partition("/")
    return f"{name}{slash}{own.get(part, part)}"


def shuffled_parts(item: Item, draw: str) -> dict[str, tuple[Part, ...]]:
    """Return the parts of an item in the order in which a seat sees them.

    Only lists whose order tells nothing are shuffled; a list whose name ends in ``_in_order`` stays.
    """
    ordered: dict[str, tuple[Part, ...]] = {}
    for name, parts in item.parts.items():
        listed = list(parts)
        if not name.endswith("_in_order"):
            random.Random(f"{draw}/{name}").shuffle(listed)
        ordered[name] = tuple(listed)
    return ordered


def distinct(items: Iterable[Drawn]) -> list[Drawn]:
    """Return items without those that are there twice, in order."""
    return list({each.named: each for each in items}.values())
