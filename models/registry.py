"""Which adapter serves which provider: an explicit list, and an entry-point group for users' own."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias, cast

from ..errors import ConfigError, MissingRequirement
from ..schemas.plugins import plugins
from .chat import ChatModel
from .keys import Redactor
from .options import ModelOptions, check_weights
from .spec import COMPATIBLE, SERVED, Makes, ModelSpec, setting_lines

if TYPE_CHECKING:
    from .batches.service import BatchService

ADAPTERS: tuple[tuple[str, str], ...] = (
    ("openai", ".openai_models:OpenAIChat"),
    ("google", ".google_chat:GoogleChat"),
    ("anthropic", ".anthropic_chat:AnthropicChat"),
    (COMPATIBLE, ".openai_models:OpenAIChat"),
    ("hf", ".local.generation:InProcess"),
    ("vllm", ".local.served:ServedChat"),
    ("sglang", ".local.served:ServedChat"),
    ("llamacpp", ".local.served:ServedChat"),
)
"""Provider and ``module:attribute`` of its adapter."""

ENCODERS: tuple[tuple[str, str], ...] = (
    ("openai", ".openai_models:OpenAIEmbedding"),
    (COMPATIBLE, ".openai_models:OpenAIEmbedding"),
)
"""The same for encoders, whose specs begin with ``embedding:``."""

BATCHES: Mapping[str, str] = {
    "openai": ".batches.service:OpenAIBatches",
    "google": ".batches.google_batches:GoogleBatches",
    "anthropic": ".batches.anthropic_batches:AnthropicBatches",
}
"""Provider -> what sends many requests to one of its chat models together, as a batch."""

GROUP = "fabula.chat_models"
"""Entry points of this group add providers: the name is what stands before the colon in a spec."""

ENCODER_GROUP = "fabula.text_encoders"
"""The same for encoders."""

IMAGES: tuple[tuple[str, str], ...] = (
    ("openai", ".generators.openai_images:OpenAIImages"),
    ("google", ".generators.google_videos:GoogleImages"),
    (COMPATIBLE, ".generators.openai_images:OpenAIImages"),
    ("diffusers", ".generators.diffusers_images:DiffusersImages"),
    ("command", ".generators.command:CommandImages"),
    ("drawn", ".generators.drawn.images:DrawnImages"),
)
"""The same for models that make pictures, whose specs begin with ``image:``."""

VIDEOS: tuple[tuple[str, str], ...] = (
    ("google", ".generators.google_videos:GoogleVideos"),
    ("diffusers", ".generators.diffusers_images:DiffusersVideos"),
    ("command", ".generators.command:CommandVideos"),
    ("drawn", ".generators.drawn.images:DrawnVideos"),
)
"""The same for models that make videos, whose specs begin with ``video:``."""

REGISTERED: Mapping[Makes, tuple[tuple[tuple[str, str], ...], str]] = {
    "text": (ADAPTERS, GROUP),
    "vectors": (ENCODERS, ENCODER_GROUP),
    "image": (IMAGES, "fabula.image_models"),
    "video": (VIDEOS, "fabula.video_models"),
}
"""What a model makes -> our adapters, and the group in which entry points add providers."""

_WHAT: Mapping[Makes, str] = {
    "text": "",
    "vectors": " of vectors",
    "image": " of images",
    "video": " of videos",
}

Adapter: TypeAlias = Callable[[ModelSpec, ModelOptions, Redactor], ChatModel]
"""Makes the model. It registers with the redactor every secret that it reads."""


def providers(makes: Makes = "text") -> tuple[str, ...]:
    """Return the names of all providers of models that make something: our own, then those of plug-ins."""
    adapters, group = REGISTERED[makes]
    own = [name for name, _ in adapters]
    return (*own, *sorted({entry.name for entry in plugins(group)} - set(own)))


def check_provider(spec: ModelSpec) -> None:
    """Check that somebody serves a spec's provider."""
    if spec.provider not in providers(spec.makes):
        raise _nobody(spec)


def check_adapter(spec: ModelSpec, options: ModelOptions | None = None) -> None:
    """Check that somebody serves a spec, and all that can be told without asking: SDK, renderer, program."""
    check_provider(spec)
    check_place(spec, options or ModelOptions())
    check_weights(spec, None if options is None else options.weights)
    if spec.provider in SERVED and spec.makes == "text":
        from .local.servers import check_server

        check_server(spec, options or ModelOptions())
    if spec.draws and spec.provider == "diffusers":
        from .generators.diffusers_images import check_library

        check_library(spec)
    if spec.draws and spec.provider == "drawn":
        open_model(spec, options or ModelOptions(), Redactor())
    if spec.draws and spec.provider == "command":
        from .generators.command import check_command

        check_command(spec, options or ModelOptions())
    if spec.provider == "hf" and spec.makes == "text":
        open_model(spec, options or ModelOptions(), Redactor())
    if spec.provider == "anthropic" and find_spec("anthropic") is None:
        raise MissingRequirement(
            f"model {spec}", what="the library anthropic is not installed",
            fix="pip install 'fabula[anthropic]'",
        )  # fmt: skip


def check_place(spec: ModelSpec, options: ModelOptions) -> None:
    """Check that a server with a name of its own has an address."""
    if spec.provider == COMPATIBLE and not (spec.base_url or options.base_url):
        raise ConfigError(
            f"model {spec}", what="nothing says where this server is",
            fix="write into fabula.toml:" + setting_lines(str(spec), 'base_url = "http://HOST:PORT/v1"'),
        )  # fmt: skip


def open_model(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> ChatModel:
    """Return the model of a spec, ready to be asked; the first call for a provider imports its SDK."""
    check_place(spec, options)
    adapters, group = REGISTERED[spec.makes]
    address = dict(adapters).get(spec.provider)
    if address is not None:
        module, _, attribute = address.partition(":")
        adapter = cast("Adapter", getattr(import_module(module, __package__), attribute))
        return adapter(spec, options, redactor)
    for entry in plugins(group):
        if entry.name == spec.provider:
            return cast("Adapter", entry.load())(spec, options, redactor)
    raise _nobody(spec)


def has_batches(spec: ModelSpec) -> bool:
    """Return whether a model's service takes requests in batches."""
    return spec.makes == "text" and spec.provider in BATCHES


def open_batches(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> "BatchService":
    """Return what sends batches to a model that has them (see :func:`has_batches`)."""
    module, _, attribute = BATCHES[spec.provider].partition(":")
    service: BatchService = getattr(import_module(module, __package__), attribute)(spec, options, redactor)
    return service


def _nobody(spec: ModelSpec) -> ConfigError:
    return ConfigError(
        f"model spec {spec}",
        what=f"there is no provider {spec.provider}{_WHAT[spec.makes]}; there are: "
        + ", ".join(providers(spec.makes)),
        fix="check the spelling, or install the plug-in that adds it",
    )  # fmt: skip
