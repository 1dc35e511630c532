"""What may be chosen when judges are asked about storyboards."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...engine.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class EvaluateOptions(RunOptions):
    """How to judge. What every run may choose comes as keywords.

    Attributes:
        judges: a judge: ``openai:NAME``, ``http://HOST/v1#NAME``, or a name that the section ``[judges]`` of
            the settings file gives.
        preset: a published ensemble of judges: {evaluation.judges.presets:PRESETS}.
        votes: how often each judge answers each question [as set, else 1].
        split: only stories of this split.
        subset: only the stories that this file of the release lists, such as ``strict_gold_400``.
        stories: only this story id.
        limit: only the first so many of those stories.
        matcher: also compare answers with accepted ones by a model, or by the vectors of an encoder
            (``embedding:SPEC``); one of each.
        prompts: the judges' prompts: ``main``, or ``heldout`` for another wording [as set, else main].
        questions_only: leave out moral targets and contrastive pairs.
        items: only these items of the run: method, story and seed as in ``model-x/kb25k_0001/seed_42``.
        replace: remove earlier replies from the folder that this evaluation does not ask for.
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
