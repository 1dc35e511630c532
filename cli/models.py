"""``fabula models``: see whether language models, and those that look at pictures, can be worked with."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, ExitCode
from .command import command
from .common import show

if TYPE_CHECKING:
    from ..models.vision.fetching import Fetching


@command("models check")
def check(
    spec: str,
    *,
    full: bool = False,
    model: Sequence[str] = (),
    device: str = "cpu",
    config: Path | None = None,
    known: bool = False,
    record: bool = False,
    as_json: bool = False,
) -> int:
    """Ask a model one small question to see if it can be used.

    The question asks for structured output and costs a fraction of a cent. With --full, more questions, whose
    answers are known, tell what the model is fit for: drafting, judging or neither; models that cost nothing
    are asked these anyway. A model that makes pictures or videos is asked for one, at its price. Exits with
    1 if the model cannot be used, with 3 if its key is missing. `models check vision` loads the models that
    look at pictures instead (on first use it downloads them) and runs them on two drawings; it exits with 3
    if libraries or weights are missing.

    Options:
        spec: The model: openai:NAME, google:NAME, anthropic:NAME, http(s)://HOST/v1#NAME, vllm:ORG/NAME,
            sglang:ORG/NAME, llamacpp:FILE.gguf or hf:ORG/NAME; embedding:, image: or video: before it;
            or vision: the models that look at pictures.
        full: Ask questions about a story and two pictures, too; what they cost at most is told first.
        model: With vision: only this model.
        device: With vision: cpu, cuda, mps, or auto for the fastest here.
        config: Settings file; fabula.toml here is used if present.
        known: With vision: compare what each gives for three pictures with recorded values.
        record: With vision: write these values down beside the weights, for --known.

    Examples:
        fabula models check openai:gpt-4.1-mini
        fabula models check openai:gpt-4.1-mini --full
        fabula models check http://localhost:8000/v1#qwen3-vl --config fabula.toml --json
        fabula models check embedding:openai:text-embedding-3-small
        fabula models check image:openai:gpt-image-2
        fabula models check vision --model clip-vit-l-14
        fabula models check vision --known
    """
    if spec == "vision":
        return _check_vision(model, device, config, as_json, (known, record))
    if model or device != "cpu" or known or record:
        raise ConfigError(
            "--model, --device, --known, --record", what="these options are for `fabula models check vision`",
            fix="leave them out",
        )  # fmt: skip
    from .model_check import check_model

    checked = check_model(spec, _sections(config), full=full)
    show(checked, as_json=as_json)
    return 0 if checked.passed else 1


@command("models fetch", folder="--from")
def fetch(
    what: str,
    *,
    model: Sequence[str] = (),
    metrics: Sequence[str] = (),
    everything: bool = False,
    plan: bool = False,
    folder: Path | None = None,
    accept_licence: bool = False,
    as_json: bool = False,
) -> int:
    """Fetch the weights of models that look at pictures.

    Without --model, --metrics and --all: the default models of all metrics. Sizes and terms are told first;
    terms that restrict have to be accepted. What broke off is resumed. Every file is checked by SHA-256; one
    whose hash is not recorded yet is pinned as it comes. Exits with 3 if something could not be had.

    Options:
        what: Vision, in small letters.
        model: Only this model.
        metrics: Only models of this metric: {evaluation.metrics.metric:NAMES}, pillar-1, pillar-1-vbench,
            pillar-2, pillar-3.
        everything: All models that Fabula knows.
        plan: Fetch nothing: say what is missing, and the commands that fetch it elsewhere.
        folder: Folder with files that were fetched elsewhere, as --plan has them.
        accept_licence: Accept the terms of all that is fetched.

    Examples:
        fabula models fetch vision
        fabula models fetch vision --metrics csd --metrics shot-similarity
        fabula models fetch vision --plan
        fabula models fetch vision --from weights --accept-licence
    """
    from ..kinds.evaluations import models_of_metrics
    from ..models.vision.fetching import fetch as bring
    from ..models.vision.fetching import survey, tell
    from ..models.vision.registry import MODELS

    if what != "vision":
        raise ConfigError(
            what, what="there are weights of the models that look at pictures only",
            fix="fabula models fetch vision",
        )  # fmt: skip
    if everything + bool(model) + bool(metrics) > 1:
        raise ConfigError("--all, --model, --metrics", what="they exclude each other", fix="give one of them")
    if folder is not None and not folder.is_dir():
        raise ConfigError(str(folder), what="there is no such folder", fix="check the spelling of --from")
    names = [known.name for known in MODELS] if everything else list(model) or models_of_metrics(metrics)
    surveyed = survey(names, is_plan=plan)
    if plan or not surveyed.lacking:
        show(surveyed, as_json=as_json)
        return 0
    for line in surveyed.lines():
        tell(line)
    if not (accept_licence or not surveyed.asking or _agrees(surveyed)):
        raise ConfigError(
            "licence", what=f"{_terms(surveyed)}: nobody accepted these terms",
            fix="read them where the weights are published; repeat with --accept-licence, or leave these"
            " models out",
        )  # fmt: skip
    made = bring(surveyed, folder, tell)
    show(made, as_json=as_json)
    return int(ExitCode.MISSING if made.lacking else ExitCode.OK)


def _terms(surveyed: "Fetching") -> str:
    return "; ".join(f"{row.weights.source.repo} ({row.weights.licence})" for row in surveyed.asking)


def _agrees(surveyed: "Fetching") -> bool:
    """Ask at a terminal whether terms are accepted; nobody there says no."""
    import sys

    import typer

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return typer.confirm(f"Do you accept these terms: {_terms(surveyed)}?", default=False, err=True)


def _check_vision(
    names: Sequence[str], device: str, config: Path | None, as_json: bool, values: tuple[bool, bool]
) -> int:
    from ..engine.config import read_settings
    from ..models.vision.needs import check_models
    from ..models.vision.registry import MODELS
    from ..models.vision.weights import Place, choose

    path = config or Path("fabula.toml")
    sections = read_settings(path) if config is not None or path.is_file() else {}
    options: dict[str, dict[str, Any]] = {}
    for section in sections.values():  # the stages that open models have their loaders' settings there
        if isinstance(section, dict) and isinstance(section.get("options"), dict):
            for name, given in section["options"].items():
                options.setdefault(name, {}).update(given)
    device_place = Place() if device == "cpu" else choose(device)
    known = {"known": values[0], "record": values[1]}
    wanted = names or [registered.name for registered in MODELS]
    models = check_models(wanted, device_place, options, **known)
    show(models, as_json=as_json)
    if models.has("failed"):
        return int(ExitCode.FINDINGS)
    return int(ExitCode.MISSING if models.has("missing") else ExitCode.OK)


def _sections(named: Path | None) -> dict[str, Any]:
    """Return the settings of models that a settings file has: spec -> key -> value."""
    from ..engine.config import MODELS, read_settings

    path = named or Path("fabula.toml")
    if named is None and not path.is_file():
        return {}
    sections = read_settings(path).get(MODELS, {})
    if not isinstance(sections, dict):
        raise ConfigError(
            f"{path}: {MODELS}", what='it must hold sections such as [models."openai:gpt-4.1-mini"]',
            fix="see docs/models.md",
        )  # fmt: skip
    return sections
