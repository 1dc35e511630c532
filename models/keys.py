"""API keys: from the environment, else from a ``.env`` file in the working folder; nowhere else.

``os.environ`` is never changed. Every value that is read becomes known to the redactor.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import MissingRequirement
from .options import ENV_REFERENCE, ModelOptions
from .secrets import Redactor
from .spec import COMPATIBLE, ModelSpec

KEY_VARIABLES: dict[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY",),
}
"""Where each service's key is looked for. A server given by its address gets only a key named for it: the
key of one service must not be sent to another."""

NO_KEY = "none-needed"
"""What a compatible server is sent where no key is named; the SDK insists on something."""

ENV_FILE = ".env"


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """Whether a model's key is there.

    Attributes:
        variables: the environment variables looked at, in order; empty where no key is needed.
        variable: the one that holds it.
        source: ``environment`` or ``.env``; None where it was not found or none is needed.
    """

    variables: tuple[str, ...]
    variable: str | None = None
    source: str | None = None

    @property
    def found(self) -> bool:
        """Whether a call can be made as far as keys are concerned."""
        return not self.variables or self.source is not None


def key_status(spec: ModelSpec, options: ModelOptions | None = None) -> KeyStatus:
    """Return whether the key of a model is there, and where; never the key."""
    variables = _variables(spec, options)
    found = _find(variables)
    return KeyStatus(variables) if found is None else KeyStatus(variables, found[0], found[1])


def find_key(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> str:
    """Return the key for a model; :data:`NO_KEY` for a compatible server that names none.

    Raises:
        MissingRequirement: it is not there, or no HTTP header can carry it.
    """
    variables = _variables(spec, options)
    if not variables:
        return NO_KEY
    return _required(variables, f"API key of {spec}", redactor)


def expand(text: str, where: str, redactor: Redactor) -> str:
    """Return a setting with each ``${VARIABLE}`` replaced by its value.

    Raises:
        MissingRequirement: a variable is not set.
    """
    return ENV_REFERENCE.sub(lambda match: _required((match[1],), where, redactor), text)


def _variables(spec: ModelSpec, options: ModelOptions | None) -> tuple[str, ...]:
    if options is not None and options.api_key_env is not None:
        return (options.api_key_env,)
    return () if spec.provider == COMPATIBLE else KEY_VARIABLES.get(spec.provider, ())


def _required(variables: Sequence[str], where: str, redactor: Redactor) -> str:
    names = " or ".join(variables)
    found = _find(variables)
    if found is None:
        raise MissingRequirement(
            where, what=f"{names} is not set, in the environment or in {Path.cwd() / ENV_FILE}",
            fix=f"export {variables[0]}=..., or write the line {variables[0]}=... into that file",
        )  # fmt: skip
    value = found[2]
    redactor.add(value)
    if not (value.isascii() and value.isprintable()) or " " in value.strip():
        raise MissingRequirement(
            where, what=f"{found[0]} has characters that a key cannot have",
            fix="copy the key again, without quotes or line breaks",
        )  # fmt: skip
    return value


def _find(variables: Sequence[str]) -> tuple[str, str, str] | None:
    """Return variable, source and value of the first variable that is set and not blank."""
    for name in variables:
        value = os.environ.get(name, "").strip()
        if value:
            return name, "environment", value
    held = _env_file()
    for name in variables:
        value = (held.get(name) or "").strip()
        if value:
            return name, ENV_FILE, value
    return None


def _env_file() -> dict[str, str | None]:
    path = Path(ENV_FILE)
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    try:
        return dict(dotenv_values(path, interpolate=False))
    except (OSError, UnicodeDecodeError) as error:
        raise MissingRequirement(
            str(path.resolve()), what=f"cannot be read as lines NAME=value in UTF-8: {error}",
            fix="correct or remove it",
        ) from error  # fmt: skip
