"""What the shell offers after an option: names that Fabula declares, and those that a folder holds."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FabulaError

if TYPE_CHECKING:
    from ..engine.running import RunKind

MOST = 500
"""So many ids of a file are offered."""
Context = Any  # Typer's, of a type that it does not publish


def _declared(where: str) -> Callable[[Context], Iterable[str]]:
    """Return what offers the names that ``module:NAMES`` holds, or ``module:function`` returns."""

    def offered(_: Context) -> Iterable[str]:
        module, _, name = where.partition(":")
        names = getattr(import_module(f"..{module}", __package__), name)
        return names() if callable(names) else names  # type: ignore[no-any-return]

    return offered


def _run_kind(context: Context) -> "RunKind":
    """Return what executes the runs of a command: by the run that is named, else by its verb and noun."""
    from ..kinds.registry import judging_named, kind_named, run_kind_of

    if context.params.get("run"):
        return run_kind_of(Path(context.params["run"]))
    if context.parent.info_name == "build":
        return kind_named(context.info_name).drafting().run
    return judging_named(context.info_name).protocol().run


def _settings(context: Context) -> Iterator[str]:
    from ..engine.pipeline import load_pipeline

    for stage in load_pipeline(_run_kind(context).pipeline).stages:
        yield from (f"{stage.name}.{field}=" for field in stage.spec.settings.model_fields)


def _stages(context: Context) -> Iterable[str]:
    from ..engine.pipeline import load_pipeline

    return load_pipeline(_run_kind(context).pipeline).names()


def _ids(context: Context) -> Iterator[str]:
    for name in ("run", "release", "path", "stories"):
        given = context.params.get(name)
        files = () if not given else [given] if Path(given).is_file() else Path(given).glob("*.jsonl")
        for file in sorted(map(Path, files)):
            with file.open(encoding="utf-8") as lines:
                for record in map(json.loads, islice(lines, MOST)):
                    yield str(record.get("story_id") or record.get("id") or record.get("prompt_id"))


OFFERS: Mapping[str, Callable[[Context], Iterable[str]]] = {
    "prompt_id": _declared("prompts.loader:prompt_ids"),
    "metrics": _declared("evaluation.metrics.metric:names"),
    "preset": _declared("people.review.plan:preset_names"),
    "form": _declared("cli.common:FORMS"),
    "settings": _settings, "stage": _stages, "item": _ids, "story": _ids, "record": _ids, "stories": _ids,
}  # fmt: skip
"""Parameter -> what offers its values."""


def completer(parameter: str) -> Callable[..., list[str]] | None:
    """Return what completes a parameter, as Typer calls it; None where there is nothing to offer but files.

    Where a folder is missing, unreadable or of another kind, nothing is offered.
    """
    offers = OFFERS.get(parameter)
    if offers is None:
        return None

    def complete(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401 - see Context
        with suppress(FabulaError, OSError, ValueError, AttributeError):
            return [name for name in dict.fromkeys(offers(ctx)) if name.startswith(incomplete)]
        return []

    return complete
