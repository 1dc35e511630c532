"""The KathaBench builder: stories in, a run of drafted records out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigError

if TYPE_CHECKING:
    from ...engine.progress import Reporter
    from ...engine.report import RunReport

__all__ = ["BuildOptions", "build_katha"]

SETTINGS_FILE = "fabula.toml"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to build.

    Attributes:
        records: JSONL of hand-written records for some of the stories.
        planner: who drafts, for every stage that a planner drafts for; None for the settings' own, which
            are ``rules`` by default. ``rules`` needs neither model nor network.
        config: settings file; ``fabula.toml`` of the working folder where it is there and none is named.
        settings: single settings, each as ``stage.key=value``, or as a mapping of such keys to values; they
            go before ``planner`` and the file.
        workers: worker processes; None for the settings' number, else one per core; 0 works in this process.
        limit: only the first so many stories.
        items: only these story ids.
        stage: stop after this stage.
        created_at: creation time of a new run, RFC 3339.
        retry_failed: run failed stories again.
    """

    records: Path | None = None
    planner: str | None = None
    config: Path | None = None
    settings: Sequence[str] | Mapping[str, object] = ()
    workers: int | None = None
    limit: int | None = None
    items: Sequence[str] = ()
    stage: str | None = None
    created_at: str | None = None
    retry_failed: bool = False


def build_katha(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: BuildOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Build KathaBench records from stories; an existing run folder is continued.

    Args:
        sources: JSONL or CSV files, or folders of ``.txt`` and ``.md`` files.
        out: the run folder.
        options: how to build; by default the rules planner with its default settings.
        reporter: takes the progress; none by default.

    Returns:
        What was made, rejected and failed, also written as ``report.json``.

    Raises:
        FabulaError: a source, a setting or the folder is wrong, too few stories were made, or the
            user stopped it; see :mod:`fabula.errors`.
    """
    from ...engine.config import resolve_config
    from ...engine.execute import Options, RunRequest, Source, execute
    from ...engine.pipeline import stages_through
    from .pipeline import PIPELINE

    chosen = options if options is not None else BuildOptions()
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    listed = [Source("stories", Path(path)) for path in named]
    if not listed:
        raise ConfigError(
            "sources", expected="at least one file or folder", found="none", fix="name the stories"
        )
    if chosen.records is not None:
        listed.append(Source("records", Path(chosen.records)))
    request = RunRequest(
        folder=Path(out),
        pipeline=PIPELINE,
        config=resolve_config(
            PIPELINE,
            _settings_file(chosen.config),
            [*_planner_texts(chosen.planner), *_setting_texts(chosen.settings)],
        ),
        sources=tuple(listed),
        created_at=chosen.created_at,
        options=Options(
            workers=chosen.workers,
            limit=chosen.limit,
            items=tuple(chosen.items),
            stages=stages_through(PIPELINE, chosen.stage) if chosen.stage else (),
            retry_failed=chosen.retry_failed,
        ),
    )
    return execute(request, reporter)


def _settings_file(named: Path | None) -> Path | None:
    if named is not None:
        return Path(named)
    found = Path(SETTINGS_FILE)
    return found if found.is_file() else None


def _planner_texts(planner: str | None) -> list[str]:
    """Return the planner as a setting of every stage that has one.

    Raises:
        ConfigError: there is no such planner.
    """
    if planner is None:
        return []
    from ...engine.pipeline import load_pipeline
    from .pipeline import PIPELINE
    from .planner import PlannerSettings, check_planner

    check_planner(planner)
    stages = load_pipeline(PIPELINE).stages
    drafting = [stage.name for stage in stages if issubclass(stage.spec.settings, PlannerSettings)]
    return [f"{name}.planner={planner}" for name in drafting]


def _setting_texts(settings: Sequence[str] | Mapping[str, object]) -> list[str]:
    if not isinstance(settings, Mapping):
        return list(settings)
    import json

    # A JSON value of these kinds is also a TOML value.
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
