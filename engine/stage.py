"""What a stage is: its declaration, what it is given, and what can come out of it.

A stage is one module, named ``verb_noun``, with a frozen ``Settings`` type, a ``SPEC`` and ``run``:

=======  ==================================================  ==========================================
shape    ``run``                                             outcome
=======  ==================================================  ==========================================
expand   ``run(item, tools) -> Iterator[Child]``             new items, each with the fields in writes
map      ``run(item, tools) -> Outcome``                     the fields in writes of the same item
map      ``run_batch(items, tools) -> Sequence[Outcome]``    the same, for several items at once
gather   ``run(items, tools) -> dict[id, fields]``           the fields in writes of every item
group    ``run(members, tools) -> Outcome``                  the fields in writes of the item that the
                                                            members were expanded from, which goes on
                                                            in their place
=======  ==================================================  ==========================================

Field values are plain JSON. A map stage runs in the worker pool, so it must be importable and pure; expand,
gather and group run in the main process and are kept cheap. A map stage with ``run_batch`` owns a device or a
large model: it runs in one worker process of its own, whatever the number of workers, and gives one outcome
per item, in order. What comes out for an item may not depend on the others that came with it.

A group undoes the last expand: it is called once for each item that was expanded, with those of its children
that are alive, in their order. It waits until none of them is pending; an item without living children does
not come back.

A map stage whose ``run`` is ``async`` is a model stage, and its settings are ``ModelSettings``. Where they
name a model, it runs in an event loop beside the main thread and asks through ``tools.asker``; where they
name none, it runs in the worker pool like any other, and must not wait for anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from ..schemas.base import Own
from ..schemas.canonical import Json
from .asking import Asker

S = TypeVar("S", bound=Own)
Shape = Literal["expand", "map", "gather", "group"]


class NoSettings(Own):
    """Settings of a stage that has none."""


@dataclass(frozen=True, slots=True)
class StageSpec:
    """The declaration of a stage.

    Attributes:
        name: the module's name, ``verb_noun``.
        version: to be raised whenever the code changes what can come out.
        shape: ``expand``, ``map``, ``gather`` or ``group``.
        reads: fields of the item that ``run`` may look at; nothing else is passed.
        writes: fields that it produces, all of them in every Made outcome.
        libraries: distributions whose version is part of the result's key.
        reject_codes: the codes that it may reject with, and what each means.
        settings: the type of its own settings slice.
        stateful: a gather stage that is also given what it decided before (``tools.previous``).
        prompts: ids of the prompts that it uses; the hash of each file is part of the result's key.
        asks: ids of the prompts that it asks a model with; they count only where the settings name a model.
        patience: how many times the usual limit one item may take, where items are as long as a film.
    """

    name: str
    version: int
    shape: Shape
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    reject_codes: Mapping[str, str] = field(default_factory=dict)
    settings: type[Own] = NoSettings
    stateful: bool = False
    prompts: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    patience: float = 1.0


@dataclass(frozen=True, slots=True)
class Item:
    """What a stage is given: an id and the fields that it reads."""

    id: str
    fields: Mapping[str, Json]

    def __getitem__(self, name: str) -> Json:
        return self.fields[name]


@dataclass(frozen=True, slots=True)
class Made:
    """The stage produced its fields."""

    fields: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Rejected:
    """The item does not qualify; not an error. ``code`` is one of the stage's ``reject_codes``."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The stage could not do its work on the item.

    Codes of the engine itself: ``exception``, ``crashed`` (the worker died), ``timeout``.
    """

    code: str
    reason: str
    evidence: str | None = None


Outcome: TypeAlias = Made | Rejected | Failed


@dataclass(frozen=True, slots=True)
class Child:
    """One item that an expand stage brings forth."""

    id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Tools:
    """What a stage may use besides its item.

    Attributes:
        settings: the stage's own settings slice, of its ``settings`` type.
        created_at: when the run was created (RFC 3339, UTC); the only clock there is.
        seed: the run's master seed.
        previous: for a stateful gather, what it last decided: item id -> fields.
        paths: for the first stage, the input files and folders, in the order of its ``sources`` field.
        asker: where the stage's settings name a model, what answers its questions.
        store: a folder of the run for files that fields name by their hash, made by whoever writes first;
            None where there is no run folder. What it holds can be made again from the sources.
    """

    settings: Own
    created_at: str
    seed: int = 42
    previous: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    asker: Asker | None = None
    store: Path | None = None

    def own(self, kind: type[S]) -> S:
        """Return the stage's settings as the type that they have."""
        assert isinstance(self.settings, kind)
        return self.settings
