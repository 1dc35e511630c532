"""What a run has so far, stopped, killed or still at work: a pass through its journal that asks nobody.

Stages that ask models are run on what models answered already; a question without a reply in the journal is
answered by NoAnswer with the code :data:`.asking.UNASKED`, and the stage says what becomes of it. Other
stages are not run: items whose results are not in the journal are left out. The run's folder is only read.
"""

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..models.chat import ChatRequest, Reply
from . import journal_file
from .asker import Desk
from .asking import UNASKED, NoAnswer
from .attempts import is_under_way
from .budget import Budget
from .calls import Calls
from .execute import STORE
from .items import LazyItems
from .journal import Journal
from .journal_file import explained
from .manifest import Manifest, read_manifest
from .model_pool import ModelPool
from .pipeline import LoadedPipeline, Pipeline, load_pipeline
from .pool import WorkerPool
from .progress import SilentReporter
from .runner import Means, Options, Runner


@dataclass(frozen=True, slots=True)
class Replay:
    """A run as far as it has come.

    Attributes:
        manifest: the manifest of the run.
        loaded: its pipeline.
        items: those that reach the end on what is known, with the fields that ``finish`` needs.
        totals: how many items there are, by what became of them; ``pending`` are not far enough.
    """

    manifest: Manifest
    loaded: LoadedPipeline
    items: LazyItems
    totals: Mapping[str, int]


@contextmanager
def replayed(folder: Path, pipeline: Pipeline) -> Iterator[Replay]:
    """Give a run as far as it has come; whoever works on it meanwhile is not disturbed.

    Args:
        folder: the run folder.
        pipeline: what it was made by.

    Raises:
        RunError: the folder is no run, or its journal cannot be read.
        ConfigError: a setting of the run is not known to this version.
    """
    manifest = read_manifest(folder)
    loaded = load_pipeline(pipeline)
    config = manifest.config(loaded)
    asking = tuple(stage.name for stage in loaded.stages if stage.is_async)
    with tempfile.TemporaryDirectory(prefix="fabula-replay-") as name:
        _copy_journal(folder / journal_file.NAME, Path(name) / journal_file.NAME)
        with (
            Journal.open(Path(name)) as journal,
            WorkerPool(0, manifest.run.item_timeout) as pool,
            _KnownReplies(journal, config.models, attempts=config.run.attempts) as models,
        ):
            means = Means(
                pool, models, SilentReporter(), lambda: False,
                Options(stages=asking, retry_failed=is_under_way(folder, config.run.attempts)),
                manifest.created_at, (), folder / STORE,
            )  # fmt: skip
            runner = Runner(loaded, config, journal, means)
            sources = [entry.as_json() for entry in manifest.sources]
            root = runner.put_root(
                [{key: source[key] for key in ("role", "name", "sha256")} for source in sources]
            )
            journal.flush()
            runner.walk(root)
            totals = {"made": len(runner.items.live)}
            for stop in runner.items.stops.values():
                totals[stop.status] = totals.get(stop.status, 0) + 1
            ids = sorted(runner.items.live)
            items = LazyItems(runner.items, journal, ids, loaded.outputs)
            yield Replay(manifest, loaded, items, totals)


def _copy_journal(path: Path, target: Path) -> None:
    """Copy a journal as it is at this moment, also while somebody writes to it."""
    with (
        explained(path),
        closing(journal_file.connect(path, read_only=True)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        journal_file.check_format(path, source)
        source.backup(copy)


class _KnownReplies(ModelPool):
    """Runs model stages on the replies that the journal holds."""

    def desk(self, calls: Calls, budget: Budget) -> Desk:
        """Return a desk that asks nobody."""
        return _KnownDesk(calls, budget, self._options, self._open_line, self._attempts)


class _KnownDesk(Desk):
    async def reply(self, request: ChatRequest, sample: int, stage: str) -> tuple[str, Reply]:
        """Return the key of a request and the reply to it from the journal.

        Raises:
            NoAnswer: there is none.
        """
        # A request with pictures takes its time to be hashed: not where the stage has asked nothing at all.
        key = request.key() if stage in self._asking else ""
        known = self.calls.find(key, sample) if key else None
        if known is None:
            raise NoAnswer(UNASKED, "not asked yet")
        return key, known

    @cached_property
    def _asking(self) -> frozenset[str]:
        return self.calls.stages()
