"""The servers of open models: how each is found, started and told its key, and how one is made ready."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import ConfigError, FabulaError, MissingRequirement
from ...schemas.canonical import digest
from ..faults import one_line
from ..options import ModelOptions
from ..programs import allowed_environment
from ..spec import ModelSpec, OpenWeights, setting_lines

PASSED = (
    "HF_",
    "HUGGING_FACE_",
    "VLLM_",
    "SGLANG_",
    "SGL_",
    "LLAMA_ARG_",
    "GGML_",
    "CUDA_",
    "NCCL_",
    "ROCM_",
)
"""What variables begin with that a server gets beside the usual ones: its own, and a token for the Hub."""
KEPT_OUT = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSAFEPATH")
"""What would send another interpreter to our libraries."""
CONTEXT = 8192
"""Tokens of prompt and reply of a llama.cpp server, for each of the requests that it answers at once."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How one server is started; ``{port}``, ``{key}`` and ``{folder}`` are filled in by its keeper."""

    words: tuple[str, ...]  # program and arguments
    environment: Mapping[str, str]  # all variables that it gets
    own: Mapping[str, str]  # those of them that are about it
    files: Mapping[str, str] = field(default_factory=dict)  # private files that it reads: name -> text
    health: str = "/health"  # answers 200 when the server is ready

    @property
    def digest(self) -> str:
        """What tells servers apart: those of one launch are shared by the processes of a host."""
        return digest([list(self.words), dict(self.own), dict(self.files)])


@dataclass(frozen=True, slots=True)
class Server:
    """One program that serves open models."""

    program: str  # its command
    module: str | None  # what an interpreter runs in its place, after -m; None where it is no Python
    arguments: Callable[[OpenWeights, ModelOptions], list[str]]  # all but the place
    recipe: tuple[str, str]  # the two commands that make an environment, with {place}
    keyed: Mapping[str, str] = field(default_factory=dict)  # variables that hold the key
    files: Mapping[str, str] = field(default_factory=dict)  # private files that hold it


def _given(flags: Mapping[str, object]) -> list[str]:
    """Return the flags that have a value."""
    return [word for flag, value in flags.items() if value is not None for word in (flag, str(value))]


def _place(weights: OpenWeights) -> str:
    return weights.repository if weights.path is None else str(weights.path.resolve())


def _commit(weights: OpenWeights, options: ModelOptions) -> str | None:
    return options.weights if weights.path is None else None


def _pictures(options: ModelOptions) -> str | None:
    return None if options.images is None else json.dumps({"image": options.images})


def _vllm(weights: OpenWeights, options: ModelOptions) -> list[str]:
    # Nothing of the model's generation settings: what a request says is all that counts.
    flags = {
        "--revision": _commit(weights, options), "--served-model-name": weights.public,
        "--dtype": options.dtype, "--quantization": options.quantization,
        "--max-model-len": options.context, "--limit-mm-per-prompt": _pictures(options),
        "--generation-config": "vllm",
    }  # fmt: skip
    return [_place(weights), *_given(flags)]


def _sglang(weights: OpenWeights, options: ModelOptions) -> list[str]:
    flags = {
        "--model-path": _place(weights), "--revision": _commit(weights, options),
        "--served-model-name": weights.public, "--dtype": options.dtype,
        "--quantization": options.quantization, "--context-length": options.context,
        "--limit-mm-data-per-request": _pictures(options), "--sampling-defaults": "openai",
        "--config": "{folder}/sglang.yaml",
    }  # fmt: skip
    return _given(flags)


def _llamacpp(weights: OpenWeights, options: ModelOptions) -> list[str]:
    if weights.path is None:
        model, projector = gguf_files(weights, options.weights or "")
    else:
        model, projector = weights.path, None
    if options.mmproj is not None:
        projector = Path(options.mmproj).expanduser()
    flags = {
        "--model": model.resolve(), "--mmproj": None if projector is None else projector.resolve(),
        "--alias": weights.public, "--parallel": options.concurrency,
        "--ctx-size": options.concurrency * (options.context or CONTEXT),
    }  # fmt: skip
    return [*_given(flags), "--jinja"]


def gguf_files(weights: OpenWeights, commit: str) -> tuple[Path, Path | None]:
    """Return the GGUF file of a repository, and the one that lets it see if there is one; fetches them."""
    from ..vision.weights import hub_file

    where = f"model llamacpp:{weights.public}"
    try:
        names = _names(weights.repository, commit)
        quantization = re.compile(
            rf"(?<![A-Za-z0-9]){re.escape(weights.quantization or '')}(?![A-Za-z0-9_])", re.I
        )
        models = sorted(name for name in names if "mmproj" not in name.lower() and quantization.search(name))
        if not models:
            kinds = ", ".join(sorted(names)[:12]) or "none"
            raise ConfigError(
                where, what=f"no GGUF file of the repository that is known here has this name in it: {kinds}",
                fix="name one of them, for example Q4_K_M",
            )  # fmt: skip
        seeing = sorted(
            (name for name in names if "mmproj" in name.lower()),
            key=lambda name: (not quantization.search(name), "f16" not in name.lower(), name),
        )
        parts = [hub_file(weights.repository, name, commit) for name in models if _is_part(name, models[0])]
        return parts[0], hub_file(weights.repository, seeing[0], commit) if seeing else None
    except FabulaError:
        raise
    except Exception as error:  # adapter boundary: no network, no such commit, no access
        raise MissingRequirement(
            where, what=f"its files cannot be had: {one_line(str(error))}",
            fix=f'hf download {weights.repository} --revision {commit} --include "*{weights.quantization}*" '
            '"*mmproj*" with network access (with a token where it is gated)',
        ) from error  # fmt: skip


def _is_part(name: str, first: str) -> bool:
    """Whether a file is the first one, or another part of it."""
    part = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)")
    return part.sub("", name) == part.sub("", first)


def _names(repository: str, commit: str) -> list[str]:
    """Return the GGUF files of a commit: what the Hub lists, or what is here where it cannot be asked."""
    from huggingface_hub import HfApi, constants

    from ..vision.weights import unreachable

    folder = Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}/snapshots" / commit
    here = [path.relative_to(folder).as_posix() for path in folder.rglob("*.gguf")]
    lost = unreachable()
    if lost is None:
        listed = HfApi().list_repo_files(repository, revision=commit)
        return [name for name in listed if name.endswith(".gguf")]
    if not here:
        raise ConnectionError(f"none of them is in the cache, and {lost}")
    return here


SERVERS: Mapping[str, Server] = {
    "vllm": Server(
        "vllm", "vllm.entrypoints.cli.main", _vllm,
        ("python3 -m venv {place}", "{place}/bin/pip install vllm"), keyed={"VLLM_API_KEY": "{key}"},
    ),
    "sglang": Server(
        "sglang", "sglang.launch_server", _sglang,
        ("python3 -m venv {place}", "{place}/bin/pip install sglang"),
        files={"sglang.yaml": "api-key: {key}\n"},  # on its command line others would see it
    ),
    "llamacpp": Server(
        "llama-server", None, _llamacpp,
        ("git clone https://github.com/ggml-org/llama.cpp {place} && cmake -S {place} -B {place}",
         "cmake --build {place} --target llama-server"),
        keyed={"LLAMA_API_KEY": "{key}"},
    ),
}  # fmt: skip
"""Provider -> its server."""


def place_of(provider: str) -> Path:
    """Return the folder in which the environment of a server is looked for."""
    from platformdirs import user_data_path

    return user_data_path("fabula") / provider


def recipe_of(provider: str) -> str:
    """Return the two commands that make the environment of a server."""
    return "; ".join(SERVERS[provider].recipe).replace("{place}", str(place_of(provider)))


def find_program(provider: str, named: str | None = None) -> list[str] | None:
    """Return the words that start a server; None where its program is not there.

    ``named``: the setting ``program``, a command or the Python of another environment.
    """
    server = SERVERS[provider]
    here = place_of(provider) / "bin"
    for program in [named] if named is not None else [server.program, str(here / server.program)]:
        path = shutil.which(str(Path(program).expanduser()))
        if path is None:
            continue
        if Path(path).name.startswith("python") and server.module is not None:
            return [path, "-m", server.module, *(["serve"] if provider == "vllm" else [])]
        return [path, *(["serve"] if server.module is not None else [])]
    return None


def check_server(spec: ModelSpec, options: ModelOptions) -> list[str]:
    """Return the words that start the server of a spec, if its program is there."""
    words = find_program(spec.provider, options.program)
    if words is None:
        wanted = options.program or SERVERS[spec.provider].program
        raise MissingRequirement(
            f"model {spec}", what=f"{wanted} is not on this machine",
            fix=f"{recipe_of(spec.provider)}; then it is found there. Or name another one in fabula.toml:"
            + setting_lines(str(spec), f'program = "/PATH/OF/ITS/bin/{SERVERS[spec.provider].program}"'),
        )  # fmt: skip
    if sys.platform == "win32":
        raise MissingRequirement(
            f"model {spec}", what="servers are started on Linux and macOS only",
            fix="start it yourself, and name its address: http://127.0.0.1:PORT/v1#NAME",
        )  # fmt: skip
    return words


def launch_of(spec: ModelSpec, options: ModelOptions) -> Launch:
    """Return how the server of a spec is started; fetches what lies at the Hub and the server does not."""
    server, weights = SERVERS[spec.provider], spec.weights
    assert weights is not None, "only open models have servers"
    words = [*check_server(spec, options), *server.arguments(weights, options)]
    words += ["--host", "127.0.0.1", "--port", "{port}", *options.args]
    own = {name: value for name, value in os.environ.items() if name.startswith(PASSED)}
    environment = {**allowed_environment(more=own), **server.keyed}
    for name in KEPT_OUT:
        environment.pop(name, None)
    environment["PATH"] = os.pathsep.join((str(Path(words[0]).parent), environment.get("PATH", os.defpath)))
    return Launch(tuple(words), environment, own, server.files)


OUT_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemory|not enough memory|no available memory|insufficient memory|MemoryError"
    r"|less than desired GPU memory|larger than the (?:maximum|available).{0,40}(?:KV cache|memory)"
    r"|failed to allocate|unable to allocate|cannot allocate",
    re.IGNORECASE,
)


def told_of_end(lines: Sequence[str], status: int | None) -> str:
    """Return why a server ended, from its last lines and its exit status, as a clause."""
    if OUT_OF_MEMORY.search("\n".join(lines)) or status == -9:
        killed = " (the system killed it)" if status == -9 else ""
        return f"memory did not suffice{killed}"
    how = (
        "" if status is None else f", with signal {-status}" if status < 0 else f", with exit status {status}"
    )
    return f"it ended{how}"
