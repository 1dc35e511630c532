"""What every part of a study works with: the study, its release, its folder, the money that is left."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.calls import model_uses
from ...engine.journal_file import NAME as JOURNAL
from ...engine.run_options import RunOptions
from ...errors import BudgetStop, ConfigError
from ...releases.loading import Release, load
from ...schemas.canonical import Json, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json
from .study import RESOLVED, Study, read_study, resolved

if TYPE_CHECKING:
    from ...engine.progress import Reporter

LOCAL = (
    *("workers", "pool", "created_at", "retry_failed", "reuse"),
    *("batch", "batch_deadline", "batch_then_single", "limit_share"),
)
"""Options of the command that every run of a study gets."""
FEW = 100
"""Stories times seeds up to which runs work in this process: starting others would take longer."""


@dataclass(frozen=True, slots=True)
class ExperimentOptions(RunOptions):
    """How to run a study. What every run may choose comes as keywords."""


@dataclass(frozen=True)
class Desk:
    """A study at work."""

    study: Study  # what is to be done
    models: Mapping[str, Mapping[str, Any]]  # settings of models that stand in the study's file
    release: Release = field(repr=False)  # what outputs are judged by
    folder: Path  # of the study; runs, outputs and tables lie below it
    # how its runs are executed
    options: ExperimentOptions = field(default_factory=ExperimentOptions, repr=False)
    reporter: "Reporter | None" = field(default=None, repr=False)  # takes the progress

    def run_options(self, folder: Path) -> dict[str, Any]:
        """Return what runs in a folder of the study are executed with, their share of the money included."""
        given = {name: getattr(self.options, name) for name in LOCAL}
        if given["workers"] is None and len(self.reported) * len(self.study.seeds) <= FEW:
            given["workers"] = 0
        limit = self.options.max_cost
        if limit is not None:
            others = self.spent() - spent_below(folder)
            if others >= limit:
                raise BudgetStop(
                    f"stopped at the cost limit: {others:.4f} of {limit:g} USD are spent\n  fix: raise"
                    " --max-cost and give the same command again: finished work is kept, and nothing is asked"
                    " twice"
                )
            given["max_cost"] = limit - others
        return {
            **given,
            "models": {**self.options.models, **self.models},
            "config": self.options.config,
            "settings": self.options.settings,
            "others": self.options.others,
        }

    def spent(self) -> float:
        """Return the USD that all runs of the study have cost, what may have been charged included."""
        return spent_below(self.folder)

    @cached_property
    def reported(self) -> tuple[str, ...]:
        """The ids of the stories that are reported on."""
        from .ordering import chosen_stories

        return tuple(
            story for split in self.study.split for story in chosen_stories(self.study, self.release, split)
        )

    def outputs(self, method: str) -> Path:
        """Return the folder of a method's outputs."""
        from .study import OUTPUTS

        return self.folder / OUTPUTS / method


def spent_below(folder: Path) -> float:
    """Return the USD that the runs in and below a folder have cost so far; 0 where there is none."""
    uses = (use for journal in sorted(folder.rglob(JOURNAL)) for use in model_uses(journal))
    return math.fsum(use.cost + use.uncertain_cost for use in uses)


def open_study(
    file: Path, folder: Path, options: ExperimentOptions, reporter: "Reporter | None" = None
) -> Desk:
    """Return a study ready for work, from its file."""
    study, models = read_study(file)
    placed = _placed(study, file.parent)
    return Desk(placed, models, load(placed.release), folder, options, reporter)


def keep_study(desk: Desk) -> None:
    """Write ``study.json``."""
    path = desk.folder / RESOLVED
    if path.is_file():
        name = _known(path).get("study", {}).get("name")
        if name != desk.study.name:
            raise ConfigError(
                f"--out {desk.folder}", what=f"the folder holds the study {name!r}, not {desk.study.name!r}",
                fix="choose another folder, or the file of that study",
            )  # fmt: skip
    desk.folder.mkdir(parents=True, exist_ok=True)
    write_atomic(path, [pretty_bytes(resolved(desk.study))])


def reopen_study(folder: Path) -> Desk:
    """Return the study of a folder for looking at it; nothing can be asked from it."""
    document = _known(folder / RESOLVED)
    study = Study.model_validate(document["study"])
    return Desk(study, {}, load(study.release), folder)


def _known(path: Path) -> dict[str, Json]:
    try:
        return dict(read_json(path, follow=True))
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            str(path.parent), what=f"this is no folder of a study: {error}",
            fix="give the --out of fabula experiment run",
        ) from error  # fmt: skip


def _placed(study: Study, beside: Path) -> Study:
    """Return a study whose folders are found from here: in its file they are relative to it."""
    from ...releases.hub.client import looks_like_reference

    changes = {}
    if not looks_like_reference(study.release):
        changes["release"] = str((beside / study.release).absolute())
    else:
        from ...releases.hub.fetch import release_folder

        changes["release"] = str(release_folder(study.release))
    for name in ("drafts", "people", "labelled"):
        if (given := getattr(study, name)) is not None:
            changes[name] = str((beside / given).absolute())
    return study.model_copy(update=changes)
