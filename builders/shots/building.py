"""How stories become shot scripts: what may be chosen, and what that asks of the engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...engine.estimate import CallPlan
from ...engine.execute import RunRequest, Source
from ...engine.report import RunReport
from ...engine.run_options import Sets
from ...engine.running import RunKind
from ..drafting import Drafting, DraftOptions, listed, planner_texts
from ..spending import estimate, tell_plan
from .pending_edits import EDITING
from .pipeline import PIPELINE

if TYPE_CHECKING:
    from ...engine.progress import Reporter

TRANSLATING = ("translate_names.languages", "translate_script.languages", "translate_edits.languages")


@dataclass(frozen=True, slots=True)
class ShotOptions(DraftOptions):
    """How to build shot scripts. What every run may choose comes as keywords.

    Attributes:
        scripts: JSONL with what authors give about stories: labels and characters; see docs/shots.md.
        one_prompt: have a model write each script with one prompt, five fields for each shot.
        narration: have a model rewrite plots as narration and dialogue; spans.jsonl keeps the story's words.
        shots: number of shots of every story, 4 to 30 [as set, else by its length].
        languages: languages to write, ``en`` and ``ch``, with a comma between them [as set, else both].
    """

    scripts: Path | None = None
    one_prompt: Annotated[bool | None, Sets("plan_script.one_prompt")] = None
    narration: Annotated[bool | None, Sets("narrate_plots.narration")] = None
    shots: Annotated[int | None, Sets("plan_shots.shots", "plan_script.shots")] = None
    languages: Annotated[Sequence[str] | None, Sets(*TRANSLATING)] = None


def shot_request(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: ShotOptions
) -> RunRequest:
    """Return what the engine is to execute."""
    scripts = [] if options.scripts is None else [Source("scripts", Path(options.scripts))]
    stories = listed(sources, "stories", "stories")
    return options.drafting(PIPELINE, out, [*stories, *scripts], planner_texts(PIPELINE, options))


def build_shots(
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: ShotOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> RunReport:
    """Build shot scripts from stories; an existing run folder is continued.

    The run folder then holds the official tree in ``ViStory/``.
    """
    return DRAFTING.run.make(shot_request(sources, out, options or ShotOptions()), reporter)


def estimate_shots(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: ShotOptions | None = None
) -> CallPlan:
    """Tell what :func:`build_shots` would ask of the model now, and about what that costs. Asks nothing."""
    return estimate(shot_request(sources, out, options or ShotOptions()))


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan, plan=estimate),
    build_shots,
    ShotOptions,
    EDITING,
    "copy its folder ViStory, correct NN/story.json there, and give the copy to"
    " `fabula import vistory`: facts and rights of images come along",
    lambda stories, run, **chosen: shot_request(stories, run, ShotOptions(**chosen)),
    estimate_shots,
)
"""How shot scripts are drafted."""
