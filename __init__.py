"""Fabula builds, validates, releases and evaluates visual-story benchmarks.

    import fabula

    run = fabula.build("stories", "stories.jsonl", "runs/mine")
    fabula.pack("runs/mine", "dist/mine-0.1.0", version="0.1.0", license="CC-BY-4.0")
    release = fabula.load("dist/mine-0.1.0")
    evaluation = fabula.evaluate(release.path, "boards/x", "runs/eval", judges=["openai:gpt-4.1-mini"])
    evaluation.score().to_pandas()

Records: ``build``, ``extend``, ``validate``, ``audit``. Releases: ``pack``, ``verify``, ``load``, ``diff``,
``publish``, ``fetch``. Evaluations: ``evaluate``, ``score``, ``compare``, ``report``, ``experiment``. Each
does what the command of its name does, and its result is an object that a notebook shows: ``to_pandas()``,
``to_polars()``, ``to_latex()``, ``plot()``. Classes are the options of these functions; each option can be
given by keyword as well. docs/python.md has a tour.

Nothing is imported here: attributes are loaded on first use, so that ``import fabula`` is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .api.evaluations import compare as compare
    from .api.evaluations import evaluate as evaluate
    from .api.evaluations import experiment as experiment
    from .api.evaluations import report as report
    from .api.evaluations import score as score
    from .api.metrics import metric as metric
    from .api.records import audit as audit
    from .api.records import build as build
    from .api.records import extend as extend
    from .api.records import validate as validate
    from .api.releases import diff as diff
    from .api.releases import fetch as fetch
    from .api.releases import load as load
    from .api.releases import pack as pack
    from .api.releases import publish as publish
    from .api.releases import verify as verify
    from .builders.entities.building import EntityOptions as EntityOptions
    from .builders.events.building import SuiteOptions as SuiteOptions
    from .builders.katha.building import BuildOptions as BuildOptions
    from .builders.katha.extend import ExtendOptions as ExtendOptions
    from .builders.shots.building import ShotOptions as ShotOptions
    from .evaluation.entities.requests import EpisodeOptions as EpisodeOptions
    from .evaluation.events.requests import EventOptions as EventOptions
    from .evaluation.katha.requests import EvaluateOptions as EvaluateOptions
    from .evaluation.shots.requests import ImageOptions as ImageOptions
    from .people.audits.auditing import AuditOptions as AuditOptions
    from .releases.hub.fetch import FetchOptions as FetchOptions
    from .releases.hub.publish import PublishOptions as PublishOptions
    from .releases.options import PackOptions as PackOptions
    from .studies.experiments.study import ExperimentOptions as ExperimentOptions

_LAZY = {
    "AuditOptions": ".people.audits.auditing",
    "BuildOptions": ".builders.katha.building",
    "EntityOptions": ".builders.entities.building",
    "EpisodeOptions": ".evaluation.entities.requests",
    "EvaluateOptions": ".evaluation.katha.requests",
    "EventOptions": ".evaluation.events.requests",
    "ExperimentOptions": ".studies.experiments.study",
    "ExtendOptions": ".builders.katha.extend",
    "FetchOptions": ".releases.hub.fetch",
    "ImageOptions": ".evaluation.shots.requests",
    "PackOptions": ".releases.options",
    "PublishOptions": ".releases.hub.publish",
    "ShotOptions": ".builders.shots.building",
    "SuiteOptions": ".builders.events.building",
    "audit": ".api.records",
    "build": ".api.records",
    "compare": ".api.evaluations",
    "diff": ".api.releases",
    "evaluate": ".api.evaluations",
    "experiment": ".api.evaluations",
    "extend": ".api.records",
    "fetch": ".api.releases",
    "load": ".api.releases",
    "metric": ".api.metrics",
    "pack": ".api.releases",
    "publish": ".api.releases",
    "report": ".api.evaluations",
    "score": ".api.evaluations",
    "validate": ".api.records",
    "verify": ".api.releases",
}

__all__ = ["__version__", *_LAZY]  # noqa: PLE0604 - names alone


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type is that of the attribute loaded
    if name not in _LAZY:
        raise AttributeError(f"module 'fabula' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
