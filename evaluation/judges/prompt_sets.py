"""The sets of judges' prompts: the main one, and one in other words that nothing was chosen with.

Both ask for the same thing in the same form. Whoever picks candidates, weights or thresholds with the main
set reports with the held-out one, so that nothing fits one wording; and how much a ranking of methods depends
on the wording shows where the same outputs are judged with both.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias

from ...errors import ConfigError
from ...prompts.loader import Prompt, load_prompt

PromptSet: TypeAlias = Literal["main", "heldout"]
MAIN: PromptSet = "main"

FOLDERS: Mapping[PromptSet, str] = {"main": "judge/", "heldout": "judge/heldout/"}
"""Set -> what the ids of its prompts begin with."""

SHARED = frozenset({"judge/match_answer"})
"""Prompts beside the judges' own, the same whatever the set."""


def check_set(name: str) -> None:
    """Check that there is a set of prompts of this name.

    Raises:
        ConfigError: there is none.
    """
    if name not in FOLDERS:
        raise ConfigError(
            f"--prompts {name}", what="there is no such set of prompts",
            fix=f"use {' or '.join(FOLDERS)}; fabula prompts list shows what is in them",
        )  # fmt: skip


def judge_prompt(name: str, prompts: PromptSet = MAIN) -> Prompt:
    """Return a prompt of a set, such as ``question_image``."""
    return load_prompt(FOLDERS[prompts] + name)


def in_all_sets(*names: str) -> tuple[str, ...]:
    """Return the ids that prompts have in every set."""
    return tuple(folder + name for folder in FOLDERS.values() for name in names)


def of_sets(ids: Iterable[str], used: Collection[str]) -> list[str]:
    """Return those of some prompts that are used with some sets, sorted: the others are only declared."""
    sets = {folder: name for name, folder in FOLDERS.items()}
    return sorted(
        prompt_id
        for prompt_id in ids
        if prompt_id in SHARED or sets.get(prompt_id.rpartition("/")[0] + "/", "") in used
    )
