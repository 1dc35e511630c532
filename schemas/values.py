"""Values that all formats share: base types, scores, issues, producers of fields, edits.

Own types are strict and frozen, wire types keep what they get.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

T = TypeVar("T")
Listed: TypeAlias = Annotated[
    tuple[T, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
]
"""Values of a setting; a text alone is a list of one."""


class Own(BaseModel):
    """Base of Fabula's own types: frozen, tuples instead of lists, unknown fields refused.

    Types hold shape only; what a value means is checked by the validators.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain JSON with lists, every field present."""
        return self.model_dump(mode="json")


def is_unset(value: object) -> bool:
    """Whether a setting that came later has its usual value: it is left out then, so that old keys hold."""
    return value is None or value is False or value == ()


class Wire(BaseModel):
    """Base of types that mirror somebody else's format: unknown fields kept, absent is not null."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    def as_json(self) -> dict[str, Any]:
        """Return what was read, equal as parsed JSON: absent fields stay absent, unknown ones stay."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def unknown_fields(self) -> tuple[str, ...]:
        """Return the names of the fields that the format does not define, in order."""
        return tuple(self.model_extra or ())


@cache
def wire_of(own: type[Own]) -> type[Wire]:
    """Return the wire type that mirrors an own type: every field optional and nullable, extras kept."""
    fields: dict[str, Any] = {
        name: (_wired(info.annotation) | None, None) for name, info in own.model_fields.items()
    }
    model: type[Wire] = create_model(f"Wire{own.__name__}", __base__=Wire, __doc__=own.__doc__, **fields)
    return model


def _wired(annotation: Any) -> Any:  # noqa: ANN401 - annotations are any object
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return wire_of(annotation) if issubclass(annotation, Own) else annotation
    if get_origin(annotation) is tuple:
        inner, *rest = get_args(annotation)
        return tuple[_wired(inner), *rest]  # type: ignore[misc]
    return annotation


class FieldProducer(Own):
    """Who made the fields at a path: ``rules@1``, a model, an author, a hand or an edit."""

    path: str = Field(description="JSON path; [*] stands for every element.")
    producer: str = Field(description="rules@1, author, author:<name>, hand:<name>, edit:<name> or a model.")


class Edit(Own):
    """One correction, as data."""

    id: str = Field(description="Record id.")
    path: str = Field(description="JSON path of an existing field of the draft.")
    old: object = Field(description="The value that the editor saw there.")
    new: object = Field(description="The value that replaces it.")
    who: str = Field(min_length=1, description="Who made the correction.")
    why: str = Field(min_length=1, description="The reason.")


class Check(Own):
    """The result of one check of a drafted record."""

    code: str = Field(description="Stable code of the check.")
    path: str = Field(description="JSON path of what was checked.")
    passed: bool | None = Field(description="True, false, or null where the check could not judge.")
    note: str = Field(description="What was found, in one line.")


class Envelope(Own):
    """The outer form that every benchmark's records share in run outputs."""

    kind: str = Field(description="What the payload is, such as katha.")
    schema_version: str = Field(description="Version of the payload's schema.")
    id: str = Field(description="Record id.")
    payload: dict[str, object] = Field(description="The record and what belongs to it.")


Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    """One finding of a validator."""

    where: str  # the file (and line) or the record id concerned
    path: str  # JSON path inside the record, ``$`` for the whole of it
    code: str  # stable code of the rule, such as ``scene-order``
    message: str  # what was expected and what was found
    cure: str  # what to do, in one line
    level: Level = "error"  # ``error`` makes a data set invalid, ``warning`` is worth a look

    @property
    def spot(self) -> str:
        """What is concerned, as people read it: the file or record, and the path inside it, if any."""
        return self.where if self.path == "$" else f"{self.where} {self.path}"

    def __str__(self) -> str:
        return f"{self.line}\n  fix: {self.cure}"

    @property
    def line(self) -> str:
        """What was found and where, without the cure."""
        return f"{self.spot} [{self.code}] {self.message}"

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


class Score(Own):
    """One value of a metric: the value itself, or why there is none.

    ``numerator`` and ``denominator`` are kept so that scores of parts can be pooled by adding.
    """

    value: float | None = Field(description="The value; null exactly when status is not ok.")
    status: Literal["ok", "undefined", "failed"] = Field(description="Whether there is a value.")
    reason: str | None = Field(default=None, description="Why there is none.")
    numerator: float | None = Field(default=None, description="Sum over what was counted.")
    denominator: float | None = Field(default=None, description="How much was counted.")
    low: float | None = Field(default=None, description="Lower end of the 95 % interval.")
    high: float | None = Field(default=None, description="Upper end of the 95 % interval.")
    counts: dict[str, int] = Field(default_factory=dict, description="Coverage: how many of what went in.")

    @model_validator(mode="after")
    def _value_fits_status(self) -> "Score":
        if (self.value is None) == (self.status == "ok"):
            raise ValueError("a score has a value exactly when its status is ok")
        return self

    @classmethod
    def ratio(cls, numerator: float, denominator: float, why_undefined: str, **counts: int) -> "Score":
        """Return numerator / denominator, undefined where nothing was counted."""
        if denominator == 0:
            return cls(value=None, status="undefined", reason=why_undefined, counts=counts)
        value = numerator / denominator
        return cls(value=value, status="ok", numerator=numerator, denominator=denominator, counts=counts)

    def between(self, low: float, high: float) -> "Score":
        """Return it with the ends of its interval; as it is where they are ``nan``, or there is no value."""
        if self.value is None or math.isnan(low):
            return self
        return self.model_copy(update={"low": float(low), "high": float(high)})


class Story(Own):
    """A source story.

    ``text`` is kept exactly as it was given; ``normalized_text`` is what the builders work on.
    """

    id: str = Field(description="Story id.")
    title: str = Field(description="Title.")
    language: str = Field(description="BCP 47 language tag.")
    text: str = Field(description="The text, untouched.")
    normalized_text: str = Field(description="NFC, control characters removed, white space collapsed.")
    source_collection: str = Field(description="Source family; see the vocabulary source_dataset.")
    source_reference: str | None = Field(description="Where in the collection, such as an index number.")
    rights_status: str = Field(description="Rights-screening result; see the vocabulary rights_status.")
    narrative_type: str | None = Field(default=None, description="Given by the author, if at all.")
    moral_label: str | None = Field(default=None, description="Given by the author, if at all.")
    moral: Literal["not_applicable"] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="not_applicable where its author says that it supports no value.",
    )
    dataset_license: str | None = Field(default=None, description="Licence that its record is to have.")


class SourceDetails(Own):
    """What is known of where one story is from, beyond its collection (paper, A.17 and Table 24)."""

    edition: str | None = Field(default=None, description="Edition that the text is from.")
    translator: str | None = Field(default=None, description="Who translated it.")
    year: str | None = Field(default=None, description="Year of the edition.")
    page: str | None = Field(default=None, description="Page on which it begins.")
    chapter: str | None = Field(default=None, description="Headings above it, outermost first.")
    url: str | None = Field(default=None, description="Where the text was taken from.")
    rights_reason: str | None = Field(default=None, description="Why it has its rights status.")
    catalogue_number: str | None = Field(
        default=None, description="Number in a catalogue (Perry, ATU), or book and number."
    )
    frame: str | None = Field(default=None, description="Id of the story that it is told in.")


# -- The closed word lists of the formats, kept as data files in ``schemas/vocabularies``


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One word list."""

    name: str  # its name, such as ``moral_label``
    source: str  # the paper's table or section, and what is ours
    closed: bool  # whether other values are errors (else they are kept and reported)
    entries: dict[str, dict[str, Any]]  # value -> its description and attributes, in the file's order

    @property
    def values(self) -> tuple[str, ...]:
        """The values, in the file's order."""
        return tuple(self.entries)

    @property
    def targets(self) -> dict[str, int]:
        """Target count of each value that has one: the published distribution."""
        return {value: entry["target"] for value, entry in self.entries.items() if "target" in entry}

    def having(self, attribute: str) -> tuple[str, ...]:
        """Return the values whose attribute is true, such as ``reviewed`` or ``releasable``."""
        return tuple(value for value, entry in self.entries.items() if entry.get(attribute) is True)

    def resolve(self, text: str) -> str:
        """Return the value that a text stands for (itself, or an alias in any case), else the text."""
        folded = text.strip().casefold()
        for value, entry in self.entries.items():
            if folded in (value, *entry.get("aliases", ())):
                return value
        return text


NAMES = (
    "answerability",
    "camera_angle",
    "camera_type",
    "change_type",
    "character_tag",
    "culture",
    "decision",
    "gender",
    "moral_label",
    "narrative_type",
    "question_type",
    "resolution",
    "rights_status",
    "shot_distance",
    "source_dataset",
    "split",
    "story_type",
    "style_category",
    "transition_type",
    "validation_status",
    "variant_kind",
)


@cache
def vocabulary(name: str) -> Vocabulary:
    if name not in NAMES:
        raise KeyError(f"no vocabulary {name!r}; there are: {', '.join(NAMES)}")
    document = json.loads((files(__package__) / "vocabularies" / f"{name}.json").read_text("utf-8"))
    entries = {entry.pop("value"): entry for entry in document["values"]}
    return Vocabulary(document["name"], document["source"], document["closed"], entries)


# -- What may be said of a record of stories: one word, with one meaning everywhere

State = Literal["draft", "checked", "reviewed", "withdrawn"]
UNREAD: tuple[State, ...] = ("draft", "checked")
"""Nobody but their makers has read them: a draft, or what rules, models or its author passed besides."""
CHECKED = "auto_checked"
MEANINGS: Mapping[State, str] = {
    "draft": "nobody has read it",
    "checked": "rules, models or its author passed all that applies; nobody else has read it",
    "reviewed": "people read it as it stands, and accepted it",
    "withdrawn": "taken out for good, and not here",
}
"""State of a record -> what it means; in this order and with these words wherever states are told."""


def states_told(counts: Mapping[Any, int]) -> str:
    """Return how many records are in each state, in order: ``2 draft, 21 checked, 1 withdrawn``."""
    return ", ".join(f"{counts[state]:,} {state}" for state in MEANINGS if counts.get(state))


def state_of(status: str, checks: Sequence[Mapping[str, Any]] = ()) -> State:
    """Return the state of a record that is there, from its status, of any version.

    *reviewed*: people accepted it as it stands. *checked*: nobody has read it, and rules, models or its
    author passed all that applies. *draft*: nobody has read it.
    """
    if status in vocabulary("validation_status").having("reviewed"):
        return "reviewed"
    passed = status == CHECKED and all(check["passed"] for check in checks)
    return "checked" if passed else "draft"
