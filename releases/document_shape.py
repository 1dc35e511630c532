"""The shape of ``release.json``: of which kind each value has to be, whoever made the file."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr, ValidationError

from ..schemas.paths import format_path

Hashes = dict[StrictStr, StrictStr]
Counts = dict[StrictStr, StrictInt]


class _Part(BaseModel):
    """Part of a document; what is not named here may be anything, what is absent is asked for elsewhere."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Version(_Part):
    version: StrictStr
    sha256: StrictStr | None = None


class _Commitments(_Part):
    scheme: StrictStr
    salt: StrictStr
    values: list[StrictStr]


class _About(_Part):
    name: StrictStr
    title: StrictStr
    creators: list[StrictStr]
    url: StrictStr | None = None
    contact: StrictStr | None = None
    citation: StrictStr | None = None


class _Story(_Part):
    id: StrictStr


class _Withdrawn(_Part):
    stories: list[_Story] = []
    hidden_test_stories: StrictInt = 0


class _LeftOut(_Withdrawn):
    prompts: list[_Story] = []
    episodes: list[_Story] = []
    files: list[dict[StrictStr, StrictStr]] = []


class _Imported(_Part):
    files: dict[StrictStr, dict[StrictStr, Any]] = {}
    missing: list[StrictStr] = []
    skipped: list[Any] = []
    fields: list[dict[StrictStr, Any]] = []
    hidden_in_place: dict[StrictStr, Any] = {}


class _File(_Part):
    bytes: StrictInt
    sha256: StrictStr


class _Document(_Part):
    format: StrictInt
    kind: StrictStr
    version: StrictStr
    schema_version: StrictStr | None = None
    visibility: StrictStr | None = None
    license: StrictStr | None = None
    created_at: StrictStr | None = None
    about: _About | None = None
    tools: Hashes = {}
    run: dict[StrictStr, Any] = {}
    prompts: dict[StrictStr, Any] = {}
    previous: _Version | None = None
    commitments: _Commitments | None = None
    canary: StrictStr | None = None
    counts: Counts = {}
    hidden_test: Counts = {}
    splits: Counts = {}
    checks: dict[StrictStr, Counts] = {}
    left_out: _LeftOut = _LeftOut()
    withdrawn: _Withdrawn | None = None
    imported: _Imported | None = None
    records: dict[StrictStr, Hashes] = {}
    files: dict[StrictStr, _File] = {}


_SAID = {
    "missing": "the field is missing",
    "dict_type": "an object is wanted here",
    "model_type": "an object is wanted here",
    "list_type": "a list is wanted here",
    "tuple_type": "a list is wanted here",
    "string_type": "a text is wanted here",
    "int_type": "a whole number is wanted here",
}
"""Kind of a mistake -> how it is said, where the checking library speaks of its own things."""


def misshapen(document: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    """Yield the JSON path of every value of a ``release.json`` that is of another kind, and what is wrong."""
    try:
        _Document.model_validate(document)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            yield format_path(detail["loc"]), _SAID.get(detail["type"], str(detail["msg"]))
    if isinstance(document, dict):
        for name in _NOT_NULL & document.keys():
            if document[name] is None:
                yield format_path((name,)), "null stands here, and must not"


_NOT_NULL = frozenset({"about", "previous", "commitments", "withdrawn", "imported", "canary"})
