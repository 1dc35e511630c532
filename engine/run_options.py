"""What everybody who makes a run may choose, whatever the run makes."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from .execute import RunRequest
    from .manifest import Source
    from .pipeline import Pipeline
    from .runner import Options


SETTINGS_FILE = "fabula.toml"
"""The settings file that is used where it lies in the working folder and none is named."""


class Sets:
    """Says of an option which settings it stands for, each as ``stage.key``."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run. Those of a builder or an evaluation add what it makes.

    Attributes:
        models: settings of models by spec, as in the sections ``[models."SPEC"]`` of the settings file.
        max_cost: most USD that the run may cost in all, or STAGE=USD that a stage of it may [no limit].
        stage_costs: most USD that stages may cost, by stage.
        reuse: a run whose results, stored files and replies are used instead of making them again.
        shard: only these items, as ``i/n``: the i-th of n shards, which ``fabula run merge`` makes one run.
        config: settings file; ``fabula.toml`` of the working folder is used if it is there and none is named.
        settings: one setting, as ``stage.key=value`` (in Python also a mapping of such keys to values); these
            go before everything else.
        workers: worker processes [one per core]; 0 works in this process.
        pool: where stages run that ask no model: ``local`` processes, or ``ray`` [local]; see docs/scale.md.
        created_at: creation time of a new run, RFC 3339.
        retry_failed: run failed items again, and ask once more what got no usable reply, nothing else.
        replace_sources: replace the run's sources by these, though items are gone in them.
        batch: send questions in batches, at half the price within a day, to services that take them.
        batch_deadline: with --batch: hours after which a batch is cancelled and the rest sent again.
        batch_then_single: with --batch: ask one by one, at the full price, what a batch left open.
        limit_share: this host's share of the models' limits per minute, such as 1/4 where four hosts work.
        others: gives the sections that the settings file may have for other kinds of run.
    """

    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    max_cost: float | None = None
    stage_costs: Mapping[str, float] = field(default_factory=dict)
    reuse: Sequence[Path | str] = ()
    shard: str | None = None
    config: Path | None = None
    settings: Sequence[str] | Mapping[str, object] = ()
    workers: int | None = None
    pool: str = "local"
    created_at: str | None = None
    retry_failed: bool = False
    replace_sources: bool = False
    batch: bool = False
    batch_deadline: float | None = None
    batch_then_single: bool = False
    limit_share: str | None = None
    others: Callable[[], Collection[str]] = frozenset

    @property
    def settings_file(self) -> Path | None:
        """The settings file that is named, else that of the working folder, if it is there."""
        if self.config is not None:
            return Path(self.config)
        path = Path(SETTINGS_FILE)
        return path if path.is_file() else None

    @property
    def texts(self) -> list[str]:
        """The single settings, each as ``stage.key=value``."""
        return setting_texts(self.settings)

    def chosen(self) -> list[str]:
        """Return the settings that given options stand for, each as ``stage.key=value``."""
        given: dict[str, object] = {}
        hints = get_type_hints(type(self), include_extras=True)
        for option in fields(self):
            value = getattr(self, option.name)
            if value is not None and (value or option.default != ()):
                for sets in getattr(hints[option.name], "__metadata__", ()):
                    given |= dict.fromkeys(sets.paths, value) if isinstance(sets, Sets) else {}
        return setting_texts(given)

    def request(
        self,
        pipeline: "Pipeline",
        out: Path | str,
        sources: "Sequence[Source]",
        texts: Sequence[str] = (),
        own: Collection[str] = (),
        **more: Any,  # noqa: ANN401 - the other fields of Options
    ) -> "RunRequest":
        from .config import resolve_config
        from .execute import RunRequest

        sets = [*texts, *self.chosen(), *self.texts]
        return RunRequest(
            folder=Path(out),
            pipeline=pipeline,
            config=resolve_config(
                pipeline, self.settings_file, sets, self.models, others=lambda: {*own, *self.others()}
            ),
            sources=tuple(sources),
            created_at=self.created_at,
            options=self.for_engine(**more),
        )

    def for_engine(self, **more: Any) -> "Options":  # noqa: ANN401 - the other fields of Options
        """Return them as the engine takes them."""
        from .batches.books import Batching
        from .pipeline import Shard
        from .runner import Options

        batching = Batching(on=self.batch, deadline=self.batch_deadline, then_single=self.batch_then_single)
        return Options(
            workers=self.workers,
            retry_failed=self.retry_failed,
            max_cost=self.max_cost,
            stage_costs=self.stage_costs,
            replace_sources=self.replace_sources,
            reuse=tuple(Path(folder) for folder in self.reuse),
            shard=None if self.shard is None else Shard.parse(self.shard),
            batching=batching,
            limit_share=None if self.limit_share is None else share_of(self.limit_share),
            pool=self.pool,
            **more,
        )


def costs_of(texts: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """Return the limit of all, and those of stages, from texts such as ``5`` and ``draft_scenes=2``."""
    total: float | None = None
    stages: dict[str, float] = {}
    for text in texts:
        stage, _, number = text.rpartition("=")
        try:
            usd = float(number)
        except ValueError:
            from ..errors import ConfigError

            raise ConfigError(
                "--max-cost", expected="USD such as 5, or STAGE=USD", found=text, fix="give a number"
            ) from None
        if stage:
            stages[stage.strip()] = usd
        else:
            total = usd
    return total, stages


def share_of(text: str) -> float:
    """Return a share that is written as ``1/4`` or ``0.25``."""
    try:
        share = float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        share = 0.0
    if not 0 < share <= 1:
        from ..errors import ConfigError

        raise ConfigError(
            "--limit-share", expected="a share such as 1/4 or 0.25, more than 0 and at most 1", found=text,
            fix="give 1/N where N hosts use the same key at the same time",
        )  # fmt: skip
    return share


def setting_texts(settings: Sequence[str] | Mapping[str, object]) -> list[str]:
    """Return settings as texts ``stage.key=value``, whichever way they are given."""
    if not isinstance(settings, Mapping):
        return list(settings)
    # A JSON value of these kinds is also a TOML value.
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
