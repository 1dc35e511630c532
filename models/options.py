"""Settings of one model: the section ``[models."SPEC"]`` of ``fabula.toml``."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError, model_validator

from ..errors import ConfigError, MissingRequirement
from ..schemas.canonical import Json, digest, sha256_file
from ..schemas.plain_files import type_reason
from ..schemas.values import Own
from .chat import ChatRequest, Structured
from .spec import COMPATIBLE, OPEN, ModelSpec, parse_spec

if TYPE_CHECKING:
    from .spec import OpenWeights


# -- Which weights the spec of an open model means: a commit of the Hub, or the SHA-256 of what lies here
#
# A reply's key holds it, so that a branch that moves, or a file that is replaced, is asked anew, and a server
# on another port, or a file in another folder, is not. What lies in the Hub's cache on this machine counts
# before what the Hub has now: nothing changes under a run. Where neither is known, a run is not begun; an
# estimate is.

MAIN = "main"
FILES = (".safetensors", ".bin", ".pt", ".gguf", ".json", ".jinja", ".model", ".txt")
"""Endings of the files of a folder that its answers depend on: weights, settings, templates, words."""
SECONDS = 5.0
"""How long the Hub may take to say which commit a branch is at."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def exact_weights(weights: "OpenWeights", projector: str | None = None) -> str | None:
    """Return a commit, or the hash of what lies here; None where it cannot be found out.

    ``projector``: the file that lets a GGUF file see.
    """
    return commit_of(weights) if weights.path is None else _hash_of(weights.path, projector)


def check_weights(spec: "ModelSpec", known: str | None) -> None:
    """Check that it is known which weights a spec means, so that replies can be kept under their name."""
    weights = spec.weights
    if weights is None or known is not None:
        return
    if weights.path is not None:
        raise ConfigError(
            f"model {spec}", what=f"{weights.path} does not exist, or holds no weights",
            fix="check the path; a folder holds config.json and the weights, as transformers saves them",
        )  # fmt: skip
    at = f" at {weights.revision}" if weights.revision else ""
    raise MissingRequirement(
        f"model {spec}",
        what=f"{weights.repository}{at} is not in the Hub's cache here, and the Hub does not say what it is",
        fix=f"hf download {weights.repository}{_revision(weights)} with network access (with a token where it"
        " is gated), or name the commit: ORG/NAME@COMMIT",
    )


def _revision(weights: "OpenWeights") -> str:
    return f" --revision {weights.revision}" if weights.revision else ""


def commit_of(weights: "OpenWeights") -> str | None:
    """Return the commit of a repository's revision; None where nobody here knows it."""
    revision = weights.revision or MAIN
    if _COMMIT.fullmatch(revision):
        return revision
    return _cached_commit(weights.repository, revision) or _hub_commit(weights.repository, revision)


def _cached_commit(repository: str, revision: str) -> str | None:
    from huggingface_hub import constants

    name = f"models--{repository.replace('/', '--')}"
    reference = Path(constants.HF_HUB_CACHE) / name / "refs" / revision
    try:
        commit = reference.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) else None


@lru_cache(maxsize=64)
def _hub_commit(repository: str, revision: str) -> str | None:
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return None
    try:
        return HfApi().model_info(repository, revision=revision, timeout=SECONDS).sha
    except Exception:  # noqa: BLE001 - adapter boundary: no network, no such model, no access
        return None


def _hash_of(path: Path, projector: str | None) -> str | None:
    """Return the SHA-256 of a file, with that of what lets it see, or of a folder; None where nothing is."""
    files = [path, *([] if projector is None else [Path(projector).expanduser()])]
    try:
        if path.is_dir():
            return _folder_hash(path)
        return "sha256:" + "+".join(_file_hash(file, *_state(file)) for file in files)
    except OSError:
        return None


def _folder_hash(folder: Path) -> str | None:
    files = sorted(path for path in folder.rglob("*") if path.suffix in FILES and path.is_file())
    if not any(path.name == "config.json" for path in files):
        return None
    listed = [[path.relative_to(folder).as_posix(), _file_hash(path, *_state(path))] for path in files]
    return f"sha256:{digest(listed)}"


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=1024)
def _file_hash(path: Path, size: int, changed: int) -> str:  # noqa: ARG001 - a changed file is read again
    return sha256_file(path)


# --

ENV_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""How a setting refers to an environment variable: ``${NAME}``."""

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password|credential", re.IGNORECASE)
_OURS = frozenset(
    (
        *("model", "messages", "contents", "stream", "n", "candidateCount", "candidate_count"),
        *("max_tokens", "max_completion_tokens", "maxOutputTokens", "max_output_tokens"),
    )
)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Prices(Own):
    """What a model costs, in USD: per million tokens, and per picture, video or second that it makes."""

    input: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="Thinking included.")
    cached_input: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="By default as much as other input."
    )
    cache_write: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="By default as much as other input."
    )
    picture: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="For each picture or video."
    )
    second: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="For each second of a video."
    )
    batch: float = Field(
        default=0.5, gt=0, le=1, description="Share of input and output that requests in a batch cost."
    )

    @model_validator(mode="after")
    def _prices_are_whole(self) -> "Prices":
        tokens = (self.input, self.output)
        if None in tokens and (
            tokens != (None, None) or (self.cached_input, self.cache_write) != (None, None)
        ):
            raise ValueError("prices|both input and output, in USD per million tokens|one of them|give both")
        if tokens == (None, None) and self.picture is None and self.second is None:
            raise ValueError(
                "prices|input and output, picture, or second|none of them|give one of these prices"
            )
        return self


class ModelOptions(Own):
    """How a model is reached, how fast it may be asked, and what it can do."""

    model_config = ConfigDict(hide_input_in_errors=True)

    base_url: str | None = Field(default=None, description="Where the service is, if not at its usual place.")
    headers: dict[str, str] = Field(
        default_factory=dict, description="More headers; a value may be ${VARIABLE}, a secret one must be."
    )
    proxy: str | None = Field(default=None, description="Proxy address; may be or hold ${VARIABLE}.")
    api_key_env: str | None = Field(default=None, description="Environment variable that holds the key.")
    call_timeout: float = Field(default=180.0, gt=0, le=3600, description="Seconds for one whole call.")
    attempts: int = Field(default=6, ge=1, le=100, description="How often one call is tried.")
    patience: float = Field(
        default=120.0, ge=0, allow_inf_nan=False,
        description="Seconds without any success after which the model counts as down.",
    )  # fmt: skip
    concurrency: int = Field(default=32, ge=1, le=1024, description="Most calls at a time.")
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    limit_share: float = Field(
        default=1.0, gt=0, le=1, description="Share of these two limits that the processes of one host get."
    )
    structured: Structured = Field(
        default="schema", description="Who enforces a reply's schema: see docs/models.md."
    )
    unsupported: tuple[Literal["temperature", "seed"], ...] = Field(
        default=(), description="Parameters that the model refuses; they are not sent."
    )
    extra: dict[str, Json] = Field(default_factory=dict, description="More parameters, sent as they are.")
    prices: Prices | None = None
    image_tokens: int = Field(default=3000, ge=1, description="Most tokens that one image may count.")
    prompt_cache: bool | None = Field(
        default=None,
        description="Whether requests that begin alike are ordered and marked for the service's cache; by"
        " default for OpenAI, Google and Anthropic.",
    )
    batch_requests: int | None = Field(
        default=None, ge=1, description="Most requests of one batch; by default what the service takes."
    )
    batch_files: bool = Field(
        default=False,
        description="Whether larger pictures in batches go through the service's store of files.",
    )
    batch_megabytes: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="The same for its size in MB."
    )
    program: str | None = Field(
        default=None,
        description="Open models: the server's command, or the Python that has it.",
    )
    dtype: str = Field(default="auto", description="Open models: precision of the weights.")
    quantization: str | None = Field(default=None, description="Open models: how weights are made smaller.")
    context: int | None = Field(
        default=None, ge=256, description="Open models: most tokens of prompt and reply together."
    )
    images: int | None = Field(default=None, ge=0, description="Open models: most pictures in one prompt.")
    device: str = Field(default="auto", description="Models loaded in process: where they run.")
    mmproj: str | None = Field(default=None, description="llamacpp: the file that lets a GGUF file see.")
    args: tuple[str, ...] = Field(default=(), description="Open models: more arguments of the server.")
    weights: str | None = Field(
        default=None, description="Open models: commit, or SHA-256 of what lies here; found out by default."
    )

    @model_validator(mode="after")
    def _secrets_stand_elsewhere(self) -> "ModelOptions":
        _check_headers(self.headers)
        _check_extra(self.extra)
        if "picture" in self.extra:
            fix = "leave it out; what is chosen for a picture comes with its request"
            raise ValueError(f"extra.picture|only what Fabula does not set itself|this parameter|{fix}")
        if self.base_url is not None:
            _check_address(self.base_url, "base_url", ("http", "https"))
        if self.proxy is not None and not ENV_REFERENCE.fullmatch(self.proxy):
            _check_address(self.proxy, "proxy", ("http", "https", "socks5", "socks5h"))
        if self.api_key_env is not None and not _VARIABLE.fullmatch(self.api_key_env):
            # Whoever pastes the key itself here must not find it in an error text.
            raise ValueError("api_key_env|the name of an environment variable|something else")
        return self

    def identity(self) -> dict[str, Json]:
        """Return what changes the model's answers, as JSON."""
        own: dict[str, Json] = {"weights": self._weights()} if self.weights else {}
        return {
            "structured": self.structured,
            "unsupported": sorted(self.unsupported),
            "extra": self.extra,
            **own,
        }

    def _weights(self) -> dict[str, Json]:
        """Return what the answers of an open model depend on, beside its name."""
        own: dict[str, Json] = {"weights": self.weights, "dtype": self.dtype}
        named = {"quantization": self.quantization, "args": list(self.args)}
        return own | {name: value for name, value in named.items() if value}

    def apply(self, request: ChatRequest) -> ChatRequest:
        """Return the request as this model is to be asked: what it refuses left out, extras added.

        Adapters send what the request says and look at no options, so the request's key covers it all.
        """
        return replace(
            request,
            structured=self.structured,
            temperature=None if "temperature" in self.unsupported else request.temperature,
            seed=None if "seed" in self.unsupported else request.seed,
            extra={**request.extra, **self.extra},
            weights=self._weights_of(request.model) if self.weights else {},
        )

    def _weights_of(self, model: str) -> dict[str, Json]:
        spec = parse_spec(model)
        named = spec.weights
        name = model if named is None else f"{spec.provider}:{named.public}"
        if named is not None and named.path is not None:
            name = f"{spec.provider}:{self.weights}"  # whatever the file is called
        return {"model": name, **self._weights()}


ALWAYS = 365 * 24 * 3600.0
"""Seconds of patience with what runs on this machine: its process is watched instead."""
_PATIENT = {"call_timeout": 3600.0, "patience": ALWAYS}
_OPEN_ONLY = ("program", "dtype", "quantization", "context", "images", "device", "mmproj", "args", "weights")
_USUAL: Mapping[str, Mapping[str, float]] = {
    "vllm": {"concurrency": 64, **_PATIENT},
    "sglang": {"concurrency": 64, **_PATIENT},
    "llamacpp": {"concurrency": 4, **_PATIENT},
    "hf": {"concurrency": 8, **_PATIENT},
    "loopback": {"call_timeout": 3600.0},
    "diffusers": {"concurrency": 1, "call_timeout": 3600.0},
    "command": {"concurrency": 1, "call_timeout": 3600.0},
    "video": {"call_timeout": 1800.0},
}
"""Provider, or what a model makes -> other defaults: this machine makes pictures one by one, and as many
texts together as the server of its models, or one batch, takes."""


def options_for(spec: ModelSpec, given: Mapping[str, Mapping[str, Any]]) -> ModelOptions:
    """Return the settings of a model.

    ``given``: the sections under ``models``: spec -> key -> value. Sections of other models are not used, but
    their names must be specs.
    """
    for name in given:
        parse_spec(name)
    values = given.get(spec.text, {})
    usual = _usual(spec, values)
    where = f'[models."{spec.text}"]'
    if not isinstance(values, Mapping):
        raise ConfigError(where, what="is a value, and must be a section with keys", fix="see docs/models.md")
    for key in values:
        if key not in ModelOptions.model_fields:
            raise ConfigError(
                f"{where} {key}",
                what=f"there is no such key; there are: {', '.join(ModelOptions.model_fields)}",
                fix="check the spelling",
            )  # fmt: skip
        if key in _OPEN_ONLY and spec.weights is None:
            raise ConfigError(
                f"{where} {key}", what=f"this key is for open models on this machine: {', '.join(OPEN)}",
                fix="leave it out",
            )  # fmt: skip
    try:
        options = ModelOptions.model_validate({**usual, **values})
    except ValidationError as error:
        problem = _config_error(error, where)
    else:
        if spec.weights is None or options.weights is not None:
            return options
        return options.model_copy(update={"weights": exact_weights(spec.weights, options.mmproj)})
    raise problem  # out here it drags along no exception that holds the values


def _usual(spec: ModelSpec, values: Mapping[str, Any]) -> Mapping[str, float]:
    if spec.provider == COMPATIBLE and spec.makes == "text":
        address = values.get("base_url") if isinstance(values, Mapping) else None
        return _USUAL["loopback"] if is_loopback(str(address or spec.base_url or "")) else {}
    return _USUAL.get(spec.provider) or _USUAL.get(spec.makes, {})


def is_loopback(address: str) -> bool:
    """Whether an address is one of this machine."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    return host in ("localhost", "::1") or host.startswith("127.")


def _config_error(error: ValidationError, where: str) -> ConfigError:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "value_error":
        # Raised below as "key|expected|found|fix", so that a value that may be a secret is not repeated.
        key, expected, found, *fix = str(first["ctx"]["error"]).split("|", 3)
        usual = "name an environment variable that holds the secret"
        return ConfigError(f"{where} {key}", expected=expected, found=found, fix=fix[0] if fix else usual)
    harmless = key.split(".")[0] not in ("headers", "proxy", "api_key_env")
    return ConfigError(
        f"{where} {key}".rstrip(), what=type_reason(first if harmless else first | {"input": "another"}),
        fix="change the value",
    )  # fmt: skip


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"headers|header names as HTTP allows them|{name[:50]!a}")
        if _SECRET_HEADER.search(name) and not ENV_REFERENCE.search(value):
            raise ValueError(
                f"headers.{name}|a value such as ${{VARIABLE}}, as the header looks like a secret"
                "|the value itself"
            )
        if "\n" in value or "\r" in value or not value.isascii():
            raise ValueError(f"headers.{name}|printable ASCII|other characters")


def _check_extra(extra: Json, key: str = "extra") -> None:
    """Refuse what would change the meaning of a call, or make it cost more than is set aside for it."""
    if isinstance(extra, float) and not math.isfinite(extra):
        raise ValueError(f"{key}|a number that JSON has|{extra}|change the value")
    if isinstance(extra, list):
        for entry in extra:
            _check_extra(entry, key)
    if isinstance(extra, Mapping):
        for name, value in extra.items():
            if name in _OURS:
                fix = "leave it out; a stage's model and max_tokens are settings of the stage"
                raise ValueError(f"{key}.{name}|only what Fabula does not set itself|this parameter|{fix}")
            _check_extra(value, f"{key}.{name}")


def _check_address(address: str, key: str, schemes: tuple[str, ...]) -> None:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    user, at, _ = parts.netloc.rpartition("@")
    # A user name alone may be a token; before a colon it is no secret.
    secret = user.partition(":")[2] if ":" in user else user
    if ENV_REFERENCE.sub("", secret):
        raise ValueError(f"{key}|the password of the address as ${{VARIABLE}}|the password itself")
    if key == "base_url" and at:
        raise ValueError(f"{key}|an address without user name and password|an address with them")
    if parts.query or "?" in parts.fragment:
        raise ValueError(f"{key}|an address without a query|an address with ? in it")
    if parts.scheme not in schemes or not host:
        raise ValueError(f"{key}|an address that starts with {' or '.join(schemes)}://|something else")


# -- The files of an open model that runs in this process: where they lie, and how much memory they take
#
# Nothing is downloaded here: what is missing is named, with the command that fetches it. Pickles are not
# read.

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "f8_e4m3": 1, "i8": 1, "u8": 1}
"""Precision of numbers -> bytes of each."""
_STORED = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_LONGEST_HEADER = 100_000_000


@dataclass(frozen=True, slots=True)
class Files:
    folder: Path  # what transformers is given
    weights: tuple[Path, ...]  # those that hold weights
    gguf: str | None = None  # the name of the one file in the folder, where that is a GGUF file

    def size(self, dtype: str) -> tuple[int, int, str]:
        """Return parameters, bytes in memory and precision, without reading the weights.

        ``dtype``: the precision that they are loaded in, or ``auto``.
        """
        counted = [_counted(path) for path in self.weights]
        parameters = sum(sum(counts.values()) for counts in counted)
        if self.gguf is not None and dtype == "auto":
            dtype = "float32"  # transformers takes quantised numbers apart into these
        if dtype != "auto":
            return parameters, parameters * BYTES[dtype], dtype
        kinds = sorted(set().union(*counted))
        stored = {kind: sum(counts.get(kind, 0) for counts in counted) for kind in kinds}
        most = max(stored, key=lambda kind: stored[kind], default="float32")
        return parameters, sum(BYTES.get(kind, 4) * count for kind, count in stored.items()), most


def find_files(spec: ModelSpec, options: ModelOptions) -> Files:
    """Return the files of the weights that a spec names: a folder, a GGUF file, or a commit of the Hub."""
    named = spec.weights
    assert named is not None  # the providers of this room have specs that name weights
    where, path = f"model {spec}", named.path
    if path is None:
        return _of_the_hub(named.repository, options.weights or named.revision, where)
    if path.suffix.lower() != ".gguf":
        return Files(path, _weights(path, where, "give a folder that transformers saved"))
    if find_spec("gguf") is None:
        raise MissingRequirement(
            where, what="the library gguf, which reads this file, is not installed",
            fix="pip install 'fabula[local]'",
        )  # fmt: skip
    if not path.is_file():
        raise MissingRequirement(where, what=f"there is no file {path}", fix="check the path")
    return Files(path.parent, (path,), path.name)


def _of_the_hub(repository: str, commit: str | None, where: str) -> Files:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    command = f"hf download {repository}{f' --revision {commit}' if commit else ''}"
    try:
        folder = Path(snapshot_download(repository, revision=commit, local_files_only=True))
    except LocalEntryNotFoundError:
        raise MissingRequirement(
            where, what="its weights are not on this machine", fix=f"fetch them: {command}"
        ) from None
    return Files(folder, _weights(folder, where, f"fetch the rest: {command}"))


def _weights(folder: Path, where: str, fix: str) -> tuple[Path, ...]:
    """Return the files with weights of a folder; all of them must be there."""
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    missing = [name for name in ("config.json", *names) if not (folder / name).is_file()]
    if missing:
        raise MissingRequirement(where, what=f"{folder} has no {missing[0]}", fix=fix)
    return tuple(folder / name for name in names)


@lru_cache(maxsize=64)
def _counted(path: Path) -> dict[str, int]:
    """Return how many numbers of each precision a file of weights holds."""
    if path.suffix.lower() == ".gguf":
        from gguf import GGUFReader

        return {"gguf": sum(int(tensor.n_elements) for tensor in GGUFReader(path).tensors)}
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(min(length, _LONGEST_HEADER)))
    counts: dict[str, int] = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            kind = _STORED.get(tensor["dtype"], tensor["dtype"].lower())
            counts[kind] = counts.get(kind, 0) + prod(tensor["shape"])
    return counts
