"""What an evaluation asks of the engine: sources, settings and options in the engine's terms."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ...engine.config import RunConfig, read_settings, resolve_config
from ...engine.execute import RunRequest, Source
from ...engine.run_options import setting_texts
from ...engine.running import RunKind
from ...errors import ConfigError
from ...models.spec import parse_spec
from ..protocol import Protocol
from ..running import run_evaluation
from .load_items import OUTPUTS, RELEASE
from .options import EvaluateOptions
from .pipeline import PIPELINE
from .presets import JUDGES, PRESETS, check_set, check_they_answer, judge_specs
from .spending import tell_judging

LABELLED = ("judge_text", "judge_images", "judge_both")
ASKING = (*LABELLED, "judge_contrasts")
MATCHING = {"match_answers": False, "match_vectors": True}
"""Stage that compares answers -> whether it asks for vectors."""


def evaluation_request(
    release: Path | str, outputs: Sequence[Path | str], out: Path | str, options: EvaluateOptions
) -> RunRequest:
    """Return what the engine is to execute.

    Raises:
        ConfigError: a setting or an option is wrong, or no judge is named.
    """
    config = evaluation_config(options)
    if not config.models:
        raise ConfigError(
            "--judge", what="no judge is named",
            fix=f"name models with --judge, or an ensemble with --preset: {', '.join(PRESETS)}",
        )  # fmt: skip
    return RunRequest(
        folder=Path(out),
        pipeline=PIPELINE,
        config=config,
        sources=(Source(RELEASE, Path(release)), *(Source(OUTPUTS, Path(folder)) for folder in outputs)),
        created_at=options.created_at,
        options=options.for_engine(
            items=tuple(options.items),
        ),
    )


def evaluation_config(options: EvaluateOptions) -> RunConfig:
    """Return the settings of an evaluation.

    Raises:
        ConfigError: a setting or an option is wrong.
    """
    toml = options.settings_file
    named = {} if toml is None else read_settings(toml).get(JUDGES, {})
    judges = judge_specs(options.judges, options.preset, named, toml)
    check_they_answer(judges)
    if options.matcher is not None:
        matchers = [options.matcher] if isinstance(options.matcher, str) else options.matcher
        options = replace(options, matcher=judge_specs(matchers, None, named, toml))
    if options.prompts is not None:
        check_set(options.prompts)
    sets = [*_option_texts(options, judges), *options.texts]
    return resolve_config(PIPELINE, toml, sets, options.models, others=lambda: {JUDGES, *options.others()})


def _option_texts(options: EvaluateOptions, judges: Sequence[str]) -> Iterator[str]:
    """Yield the options as settings of the stages."""
    given: dict[str, object] = {}
    asked: dict[str, object] = {}
    for name in ("split", "stories"):
        if values := list(getattr(options, name)):
            given[f"load_items.{name}"] = values
    for name in ("subset", "limit"):
        if (value := getattr(options, name)) is not None:
            given[f"load_items.{name}"] = value
    if options.prompts is not None:
        asked["prompts"] = given["scan_packets.prompts"] = options.prompts
    if options.votes is not None:
        asked["votes"] = options.votes
    if judges:
        asked["judges"] = list(judges)
    given |= {f"{stage}.{name}": value for stage in ASKING for name, value in asked.items()}
    if options.questions_only:
        given["judge_contrasts.judges"] = []
        given |= {f"{stage}.labels": False for stage in LABELLED}
    yield from setting_texts(given | _matchers(options.matcher or ()))


def _matchers(specs: Sequence[str]) -> dict[str, object]:
    """Return whom the stages that compare answers ask."""
    named = {
        stage: [spec for spec in specs if parse_spec(spec).encodes == encodes]
        for stage, encodes in MATCHING.items()
    }
    return {f"{stage}.judges": some for stage, some in named.items() if some}


PROTOCOL = Protocol(RunKind(PIPELINE, tell_judging, runs=run_evaluation), sections=frozenset({JUDGES}))
