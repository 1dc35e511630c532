"""What may be chosen when judges are asked about storyboards."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...engine.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class EvaluateOptions(RunOptions):
    """How to judge. What every run may choose comes as keywords.

    Attributes:
        judges: model specs of the judges, or names that the section ``[judges]`` of the settings file gives.
        preset: an ensemble of judges; see :data:`.presets.PRESETS`.
        votes: answers of each judge to each question; None for the settings' number, else 1.
        split: only stories of these splits.
        subset: only the stories that this file of the release lists, such as ``strict_gold_400``.
        stories: only these story ids.
        limit: only the first so many of those stories.
        matcher: spec or name of a model that also says which answers mean the same as an accepted one, of an
            encoder (``embedding:SPEC``) whose vectors say so, or one of each.
        prompts: the set of judges' prompts, ``main`` or ``heldout``; None for the settings' one, else main.
        questions_only: leave out moral targets and contrastive pairs.
        items: only these items of the run: method, story and seed as in ``model-x/kb25k_0001/seed_42``.
        replace: let replies of an earlier evaluation in the folder go that this one does not ask for.
    """

    judges: Sequence[str] = ()
    preset: str | None = None
    votes: int | None = None
    split: Sequence[str] = ()
    subset: str | None = None
    stories: Sequence[str] = ()
    limit: int | None = None
    matcher: Sequence[str] | str | None = None
    prompts: str | None = None
    questions_only: bool = False
    items: Sequence[str] = ()
    replace: bool = False
