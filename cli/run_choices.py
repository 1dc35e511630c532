"""What every command that makes a run lets its user choose: written once, and given to the command as one."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from .common import (
    ConfigOption,
    CreatedAtOption,
    MaxCostOption,
    RetryFailedOption,
    ReuseOption,
    SettingsOption,
    WorkersOption,
)

RunChoices: TypeAlias = dict[str, Any]
"""Fields of :class:`fabula.engine.run_options.RunOptions`, as the user chose them."""


def takes_run_choices(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a run to those of a command, before its last one, ``--json``.

    The command gets them in its parameter ``run``, which is no option of its own.
    """
    signature = inspect.signature(command)
    *own, last = (one for one in signature.parameters.values() if one.name != "run")
    added = inspect.signature(_choices).parameters

    @functools.wraps(command)
    def taking(**given: Any) -> int:  # noqa: ANN401 - the options of any command
        chosen = {name: given.pop(name) for name in added}
        return command(**given, run=_choices(**chosen))

    taking.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *added.values(), last]
    )
    return taking


def _choices(
    max_cost: MaxCostOption = None,
    reuse: ReuseOption = None,
    config: ConfigOption = None,
    settings: SettingsOption = None,
    workers: WorkersOption = None,
    retry_failed: RetryFailedOption = False,
    created_at: CreatedAtOption = None,
) -> RunChoices:
    from ..kinds.registry import foreign_sections

    return {
        "others": foreign_sections,
        "max_cost": max_cost,
        "reuse": tuple(reuse or ()),
        "config": config,
        "settings": tuple(settings or ()),
        "workers": workers,
        "retry_failed": retry_failed,
        "created_at": created_at,
    }
