"""The two kinds of types: own types are strict and frozen, wire types keep what they get."""

from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model


class Own(BaseModel):
    """Base of Fabula's own types: frozen, tuples instead of lists, unknown fields refused.

    Types hold shape only; what a value means is checked by the validators.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain JSON with lists, every field present."""
        return self.model_dump(mode="json")


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
