"""Values that the benchmark formats share."""

from pydantic import Field

from .base import Own


class FieldProducer(Own):
    """Who made the fields at a path: ``rules@1``, a model, the story's author, a hand or an edit."""

    path: str = Field(description="JSON path; [*] stands for every element.")
    producer: str = Field(description="rules@1, author, hand:<name>, edit:<name> or a model's name.")


class Edit(Own):
    """One correction, as data."""

    id: str = Field(description="Record id.")
    path: str = Field(description="JSON path of an existing field of the draft.")
    old: object = Field(description="The value that the editor saw there.")
    new: object = Field(description="The value that replaces it.")
    who: str = Field(min_length=1, description="Who made the correction.")
    why: str = Field(min_length=1, description="The reason.")


class Check(Own):
    """The result of one automatic check of a drafted record."""

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
