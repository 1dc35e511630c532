"""What may be chosen when stories become shot scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class ShotOptions(RunOptions):
    """How to build shot scripts. What every run may choose comes as keywords.

    Attributes:
        scripts: JSONL with what authors give about stories: labels and characters; see docs/shots.md.
        shots: number of shots of every story, 4 to 30 [as set, else by its length].
        languages: languages to write, ``en`` and ``ch``, with a comma between them [as set, else both].
        planner: who drafts, in every stage: ``rules`` or ``model`` [as set, else rules].
        model: the model that drafts, such as ``openai:gpt-4.1-mini`` or ``http://HOST/v1#NAME``; implies the
            planner ``model``.
        limit: only the first so many stories.
        items: only this story id.
    """

    scripts: Path | None = None
    shots: int | None = None
    languages: Sequence[str] | None = None
    planner: str | None = None
    model: str | None = None
    limit: int | None = None
    items: Sequence[str] = ()
