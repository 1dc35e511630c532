"""How often a question may be asked to which no reply can be used, and when what failed is asked once more.

The number belongs to the run and stands in its ``run.json``. It is what the settings say; each retry of what
failed raises it by one, for every question alike. A retry that was stopped goes on with the number that it
had: the journal says which number the last pass had that came to its end. So a retry asks nothing twice.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ConfigError
from .config import MOST_ATTEMPTS, RunConfig
from .journal import NAME as JOURNAL
from .journal import Journal
from .manifest import NAME as MANIFEST
from .manifest import read_manifest

FACT = "attempts"
"""The fact in a journal that says how many attempts the last pass allowed that came to its end."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """What a pass through a run does about questions without a usable answer.

    Attributes:
        allowed: most attempts at each question.
        again: whether what failed before is made again.
    """

    allowed: int
    again: bool

    def config(self, config: RunConfig) -> RunConfig:
        """Return the settings of a run with this number of attempts."""
        return replace(config, run=replace(config.run, attempts=self.allowed))


def attempts_of(folder: Path, config: RunConfig, *, retry_failed: bool) -> Attempts:
    """Return what the next pass through the run in a folder, which may be new, does; reads only.

    Args:
        folder: the run folder.
        config: the settings that are given.
        retry_failed: whether the user asked for a retry.

    Raises:
        RunError: manifest or journal is damaged.
        ConfigError: more attempts are asked for than may be made.
    """
    kept = read_manifest(folder).run.attempts if (folder / MANIFEST).exists() else 1
    done = _done(folder)
    allowed = max(kept, config.run.attempts)
    if retry_failed and allowed <= done:
        allowed = done + 1
    if allowed > MOST_ATTEMPTS:
        raise ConfigError(
            "--retry-failed",
            what=f"{done} attempts were made already, the most that are allowed for one question",
            fix="change the model, its settings or what it is asked about",
        )
    return Attempts(allowed, retry_failed or allowed > done)


def is_under_way(folder: Path, allowed: int) -> bool:
    """Whether a run was stopped while it asked once more about what had failed."""
    return allowed > _done(folder)


def _done(folder: Path) -> int:
    """Return how many attempts the last pass allowed that came to its end."""
    if not (folder / JOURNAL).exists():
        return 1
    with Journal.open(folder, writable=False) as journal:
        return max(1, int(journal.fact(FACT) or 1))
