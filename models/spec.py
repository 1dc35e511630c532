"""Which model, and who serves it: the spec that a user types, and the settings of a stage that asks one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field

from ..errors import ConfigError
from ..schemas.plain_files import open_plain
from ..schemas.values import Own

Provider: TypeAlias = str
"""``openai``, ``google``, ``anthropic``, ``compatible`` (a URL, or a name whose settings have one), one of
:data:`OPEN`, or a name that a plug-in registers."""

Makes: TypeAlias = Literal["text", "vectors", "image", "video"]
"""What a model gives back."""
ENCODES = "embedding:"
"""What stands before the spec of a model that is asked for vectors of texts (see :mod:`.vectors`)."""
GIVEN: Mapping[Makes, str] = {"text": "answers", "vectors": "vectors", "image": "pictures", "video": "videos"}
"""What a model makes -> what people call it."""
BEFORE: Mapping[str, Makes] = {ENCODES: "vectors", "image:": "image", "video:": "video"}
"""What stands before a spec -> what the model makes; a chat model has nothing before it."""

FORMS = (
    "openai:NAME, google:NAME, anthropic:NAME, http(s)://HOST[:PORT]/v1#NAME, vllm:ORG/NAME, sglang:ORG/NAME,"
    " llamacpp:FILE.gguf or hf:ORG/NAME"
)
COMPATIBLE: Literal["compatible"] = "compatible"
OPEN: Mapping[str, str] = {
    "vllm": "vllm:ORG/NAME[@REVISION], or a folder with its path, as in vllm:./FOLDER",
    "sglang": "sglang:ORG/NAME[@REVISION], or a folder with its path, as in sglang:./FOLDER",
    "llamacpp": "llamacpp:FILE.gguf or llamacpp:ORG/NAME[@REVISION]:QUANT, such as Q4_K_M",
    "hf": "hf:ORG/NAME[@REVISION], hf:FILE.gguf, or a folder with its path, as in hf:./FOLDER",
}
"""Providers of open chat models on this machine -> how their specs are written."""
SERVED = ("vllm", "sglang", "llamacpp")
"""Those of them whose server we start."""
LOCAL = frozenset(("command", "diffusers", "drawn", *OPEN))
"""Providers that run on this machine."""

_PLAIN = re.compile(r"([a-z][a-z0-9_-]*):([^\s#]+)")
_REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?(?::([\w.-]+))?")
_LONGEST = 300
_QUERY = re.compile(r"\?|(?:key|token|secret|passw(?:or)?d|sig|signature|auth\w*)=", re.IGNORECASE)
_LIKE_A_KEY = re.compile(
    r"(?:[a-z]+:)?(?:sk-|AIza|gsk_|hf_|xai-|gh[a-z]_|github_pat_|Bearer\b)|.*@", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class OpenWeights:
    """Which weights the spec of an open model names: a repository of the Hub, or what lies here."""

    repository: str = ""  # ``ORG/NAME`` on the Hub; empty for a path
    revision: str | None = None  # branch, tag or commit of the repository; None for its main branch
    quantization: str | None = None  # which of a repository's GGUF files, such as Q4_K_M
    path: Path | None = None  # a GGUF file, or a folder as transformers saves it

    @property
    def public(self) -> str:
        """Its name without the folder that it lies in, and without a revision."""
        name = self.repository if self.path is None else self.path.name
        return name if self.quantization is None else f"{name}:{self.quantization}"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model spec, read."""

    text: str  # the spec as the user wrote it
    provider: Provider  # who speaks the wire format; ``compatible`` for a URL
    name: str  # the model's name at the service
    base_url: str | None = None  # where a compatible server is; None for the others, and where settings say
    makes: Makes = "text"  # what it is asked for, and for nothing else

    def __str__(self) -> str:
        return self.text

    @property
    def encodes(self) -> bool:
        """Whether it is asked for vectors of texts."""
        return self.makes == "vectors"

    @property
    def draws(self) -> bool:
        """Whether it is asked for pictures or videos."""
        return self.makes in ("image", "video")

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine, started or loaded by us: nobody charges for it."""
        return self.provider in (OPEN if self.makes == "text" else LOCAL)

    @property
    def is_own(self) -> bool:
        """Whether who asks runs it: on this machine, or behind an address of their own."""
        return self.is_local or self.provider == COMPATIBLE

    @property
    def weights(self) -> OpenWeights | None:
        """The weights that an open model's spec names; None for models of services."""
        return _open_weights(self.provider, self.name) if self.makes == "text" else None

    @property
    def public(self) -> str:
        """The spec for published records: where a server or a file is is nobody else's business."""
        before = next((before for before, makes in BEFORE.items() if makes == self.makes), "")
        if self.provider == COMPATIBLE:
            return f"{before}{self.provider}:{self.name}"
        weights = self.weights
        return self.text if weights is None or weights.path is None else f"{self.provider}:{weights.public}"


def setting_lines(spec: str, line: str) -> str:
    """Return a setting of a model as the lines that ``fabula.toml`` wants, to stand behind a colon."""
    return f'\n    [models."{spec}"]\n    {line}'


def parse_spec(text: str) -> ModelSpec:
    """Return the parts of a spec such as ``openai:gpt-4.1-mini`` or ``http://localhost:8000/v1#qwen3-vl``.

    A server may have a name of its own, as in ``compatible:qwen3-vl``: its settings then say where it is, and
    it can move without being asked anew. Open models on this machine are written as :data:`OPEN` says.

    An encoder has ``embedding:`` before it, as in ``embedding:openai:text-embedding-3-small``; a generator
    ``image:`` or ``video:``, as in ``image:openai:gpt-image-2`` (see :mod:`.generators.request`).

    Whether a provider other than the three exists is checked when the model is opened: plug-ins add some.
    """
    if _QUERY.search(text):
        raise _with_secret("it has a query in it (what begins with ?, or a word such as key=)")
    if len(text) <= _LONGEST and text.isprintable():
        for before, makes in BEFORE.items():
            if text.startswith(before):
                return replace(_parse_chat(text.removeprefix(before)), text=text, makes=makes)
        return _parse_chat(text)
    raise _no_form(text)


def _parse_chat(text: str) -> ModelSpec:
    if not text.startswith(tuple(BEFORE)):
        if text.lower().startswith(("http://", "https://")):
            return _parse_url(text)
        match = _PLAIN.fullmatch(text)
        if match is not None:
            if match[1] in OPEN and _open_weights(match[1], match[2]) is None:
                raise ConfigError(
                    "model spec", expected=OPEN[match[1]], found=ascii(text[:100]),
                    fix="for example hf:Qwen/Qwen2.5-VL-3B-Instruct or llamacpp:./smollm2.gguf",
                )  # fmt: skip
            return ModelSpec(text, match[1], match[2])
    raise _no_form(text)


def _open_weights(provider: str, name: str) -> OpenWeights | None:
    """Return the weights that a name says; None where the provider has no such names."""
    if provider not in OPEN:
        return None
    if provider in ("llamacpp", "hf") and name.lower().endswith(".gguf"):
        return OpenWeights(path=Path(name).expanduser())
    if provider != "llamacpp" and name.startswith(("/", "./", "../", "~/")):
        return OpenWeights(path=Path(name).expanduser())
    match = _REPOSITORY.fullmatch(name)
    if match is None or (match[3] is None) == (provider == "llamacpp"):
        return None
    return OpenWeights(match[1], match[2], match[3])


def _no_form(text: str) -> ConfigError:
    return ConfigError(
        "model spec", found="what looks like a key" if _LIKE_A_KEY.match(text) else ascii(text[:100]),
        expected=f"{FORMS} (for vectors, {ENCODES} before it; for generators image: or video:)",
        fix="for example openai:gpt-4.1-mini",
    )  # fmt: skip


def _with_secret(what: str) -> ConfigError:
    # A spec goes into journals and reports; a secret must not.
    return ConfigError(
        "model spec", what=what,
        fix='leave it out. A secret goes into an environment variable: name it in [models."SPEC"] as '
        'api_key_env, or in headers as "${VARIABLE}"',
    )  # fmt: skip


def _parse_url(text: str) -> ModelSpec:
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if "@" in parts.netloc:
        raise _with_secret("the address has a user name or password in it")
    if not host or not parts.fragment or re.search(r"\s", text):
        raise ConfigError(
            "model spec", expected="http(s)://HOST[:PORT]/v1#NAME", found=ascii(text[:100]),
            fix="give the server's address, # and the model's name, for example "
            "http://localhost:8000/v1#qwen3-vl",
        )  # fmt: skip
    return ModelSpec(text, COMPATIBLE, parts.fragment, text.split("#", 1)[0].rstrip("/"))


ATTEMPT = 1_000_000
"""Between the sample numbers of two attempts at the same question: no setting and no vote reaches so far."""


class ModelSettings(Own):
    """The part of a stage's settings that says which model it asks, and how.

    A stage whose settings name no model (:meth:`models` is empty) runs without one.
    """

    model: str | None = Field(default=None, description="Model spec, such as openai:gpt-4.1-mini.")
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    max_tokens: int | None = Field(
        default=None, ge=1, description="Most tokens of a reply; by default what the prompt says."
    )
    max_input_tokens: int = Field(
        default=100_000, ge=1, description="A request estimated to be longer is not sent; the item fails."
    )
    sample: int = Field(
        default=0, ge=0, lt=ATTEMPT, description="Which answer to take; a higher number asks again."
    )

    keeps_unanswered: ClassVar[bool] = False
    """Whether the stage makes its item also where questions got no usable answer, and keeps these."""

    encodes: ClassVar[bool] = False
    """Whether the stage asks an encoder for vectors, and no model for answers."""

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that the stage asks."""
        return () if self.model is None else (self.model,)


# -- Whether a program stood in for a model
#
# Every server of :mod:`fabula.testing` names :data:`MARK` in each reply, whatever model was asked for.

MARK = "stand-in"
"""What stands in the model's name of each reply of a stand-in, toy or scripted model."""
ANSWERED = f"answered by a {MARK}"
"""What the producer of a field says where the name of the model that was asked does not."""
OLDER = frozenset({"drawn"})
"""Names that toy models gave before they named the mark."""
PROGRAMS = frozenset({
    "table-detector", "colour-encoder", "head-encoder", "colour-texts", "colour-classes", "colour-brightness",
    "still-flow", "truth-grounder", "truth-texts", "truth-vectors",
})  # fmt: skip
"""What the detectors and encoders of ``fabula.testing`` call themselves."""


def is_stand_in(name: str | None) -> bool:
    """Whether a reply, a producer or a judge of this name is a stand-in's."""
    return name is not None and (MARK in name.casefold() or name in OLDER)


def stand_ins_among(producers: Iterable[str | None]) -> list[str]:
    """Return the stand-ins among producers without their prompts, each once, sorted."""
    parts = (part for name in producers if name is not None for part in name.split("; "))
    return sorted({_named(part) for part in parts if is_stand_in(part)})


def stand_ins_in(path: Path) -> list[str]:
    """Return stand-ins that made records in a file, or in the files of a run or release.

    Of each file the first line that names one is read: to know that there are some takes no more.
    """
    found: list[str] = []
    for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        with (
            suppress(OSError),
            open_plain(file, follow=True) as lines,
        ):  # whoever reads records says so
            makers = (name.decode("utf-8", "replace") for line in lines for name in _MAKER.findall(line))
            found += next((named for maker in makers if (named := stand_ins_among([maker]))), [])
    return list(dict.fromkeys(found))


_VIA = rb'[^"]* via [^"]*'
_MAKER = re.compile(rb'"([^"]*%b%b|%b%b[^"]*)"' % (MARK.encode(), _VIA, _VIA, ANSWERED.encode()))
"""The name of a stand-in as the producer of a field."""


def made_up(stand_ins: Sequence[str]) -> str:
    """Return what readers of records that stand-ins made must know; empty without any."""
    if not stand_ins:
        return ""
    return f"a stand-in for a model ({', '.join(stand_ins)}) wrote or checked records here: they mean nothing"


def _named(producer: str) -> str:
    model = producer.partition(" via ")[0].partition(", ")[0]
    return f"{model}, {ANSWERED}" if ANSWERED in producer else model


def notes_on(asked: str, reported: str | None) -> tuple[str, ...]:
    """Return what a producer says of who answered, beyond the name of the model that was asked."""
    return (ANSWERED,) if is_stand_in(reported) and not is_stand_in(asked) else ()
