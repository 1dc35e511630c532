"""Which adapter serves which provider: an explicit list, and an entry-point group for users' own."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TypeAlias, cast

from ..errors import ConfigError, MissingRequirement
from ..schemas.plugins import plugins
from .chat import ChatModel
from .keys import Redactor
from .options import ModelOptions
from .spec import COMPATIBLE, ModelSpec

ADAPTERS: tuple[tuple[str, str], ...] = (
    ("openai", ".openai_models:OpenAIChat"),
    ("google", ".google_chat:GoogleChat"),
    ("anthropic", ".anthropic_chat:AnthropicChat"),
    (COMPATIBLE, ".openai_models:OpenAIChat"),
)
"""Provider and ``module:attribute`` of its adapter."""

ENCODERS: tuple[tuple[str, str], ...] = (
    ("openai", ".openai_models:OpenAIEmbedding"),
    (COMPATIBLE, ".openai_models:OpenAIEmbedding"),
)
"""The same for encoders, whose specs begin with ``embedding:``."""

GROUP = "fabula.chat_models"
"""Entry points of this group add providers: the name is what stands before the colon in a spec."""

ENCODER_GROUP = "fabula.text_encoders"
"""The same for encoders."""

Adapter: TypeAlias = Callable[[ModelSpec, ModelOptions, Redactor], ChatModel]
"""Makes the model. It registers with the redactor every secret that it reads."""


def providers(*, encoders: bool = False) -> tuple[str, ...]:
    """Return the names of all providers, of chat models or of encoders: our own, then those of plug-ins."""
    adapters, group = _registered(encoders)
    own = [name for name, _ in adapters]
    return (*own, *sorted({entry.name for entry in plugins(group)} - set(own)))


def _registered(encoders: bool) -> tuple[tuple[tuple[str, str], ...], str]:
    return (ENCODERS, ENCODER_GROUP) if encoders else (ADAPTERS, GROUP)


def check_provider(spec: ModelSpec) -> None:
    """Check that somebody serves a spec's provider.

    Raises:
        ConfigError: nobody does.
    """
    if spec.provider not in providers(encoders=spec.encodes):
        raise _nobody(spec)


def check_adapter(spec: ModelSpec) -> None:
    """Check that somebody serves a spec's provider and that its SDK is installed; imports nothing.

    Raises:
        ConfigError: nobody serves that provider.
        MissingRequirement: the SDK is missing.
    """
    check_provider(spec)
    if spec.provider == "anthropic" and find_spec("anthropic") is None:
        raise MissingRequirement(
            f"model {spec}", what="the library anthropic is not installed",
            fix="pip install 'fabula[anthropic]'",
        )  # fmt: skip


def open_model(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> ChatModel:
    """Return the model of a spec, ready to be asked; the first call for a provider imports its SDK.

    Raises:
        ConfigError: nobody serves that provider.
        MissingRequirement: a library or a key is missing.
    """
    adapters, group = _registered(spec.encodes)
    address = dict(adapters).get(spec.provider)
    if address is not None:
        module, _, attribute = address.partition(":")
        adapter = cast("Adapter", getattr(import_module(module, __package__), attribute))
        return adapter(spec, options, redactor)
    for entry in plugins(group):
        if entry.name == spec.provider:
            return cast("Adapter", entry.load())(spec, options, redactor)
    raise _nobody(spec)


def _nobody(spec: ModelSpec) -> ConfigError:
    return ConfigError(
        f"model spec {spec}",
        what=f"there is no provider {spec.provider}{' of vectors' if spec.encodes else ''}; there are: "
        + ", ".join(providers(encoders=spec.encodes)),
        fix="check the spelling, or install the plug-in that adds it",
    )  # fmt: skip
