"""Whether a new evaluation into a folder keeps what the one there shows."""

from pathlib import Path

from ...engine.execute import RunRequest
from ...errors import ConfigError, FabulaError
from ...releases.shot_tree import read_shot_set
from ..archive import EVALUATION, read_manifest
from ..judges.settings import public_judge
from ..metrics.registry import needs
from .load_stories import OUTPUTS, SHOTS, chosen_stories
from .needs import named_by
from .settings import AlignmentSettings, ShotSelection


def check_kept(request: RunRequest) -> None:
    """Refuse an evaluation by which a folder would lose methods, stories, judges or scores that it shows.

    The journal keeps what was found and answered, so that evaluating with all of it costs nothing again.

    Raises:
        ConfigError: it would.
    """
    folder = Path(request.folder)
    try:
        manifest = read_manifest(folder)
    except FabulaError:
        return  # nothing there, or nothing that anybody could read
    if manifest.kind != "images":
        return  # the engine refuses a run of another kind
    lost = [*_lost_methods(request, manifest.subject), *_lost_parts(request, manifest.protocol)]
    if lost:
        raise ConfigError(
            f"--out {folder}",
            what=f"{EVALUATION} there holds results that this evaluation would lose: {'; '.join(lost)}",
            fix="name all that was evaluated before as well, choose another folder, or give --replace",
        )


def _lost_methods(request: RunRequest, subject: dict[str, object]) -> list[str]:
    methods = subject.get("methods")
    named = {source.path.resolve().name for source in request.sources if source.role == OUTPUTS}
    gone = sorted(set(methods) - named) if isinstance(methods, dict) else []
    return [f"the methods {', '.join(gone)}"] if gone else []


def _lost_parts(request: RunRequest, protocol: dict[str, object]) -> list[str]:
    stages = request.config.stages
    selection, asking = stages["load_stories"], stages["judge_alignment"]
    assert isinstance(selection, ShotSelection)
    assert isinstance(asking, AlignmentSettings)
    lost = []
    judges, before = {public_judge(spec).spec for spec in asking.judges}, protocol.get("judges")
    if isinstance(before, list) and set(before) - judges:
        lost.append(f"ratings of {', '.join(sorted(set(before) - judges))}")
    whole, _ = read_shot_set(next(one.path for one in request.sources if one.role == SHOTS))
    had = protocol.get("stories")
    stories = set(had) if isinstance(had, list) else set(whole.by_id)
    if stories - set(chosen_stories(whole, selection).by_id):
        lost.append("some of its stories")
    models = protocol.get("models")
    for need in needs():
        if isinstance(models, dict) and need.part in models and not named_by(stages[need.stage], need):
            lost.append(f"what the {need.part} model{'s' if isinstance(need.model, tuple) else ''} found")
    return list(dict.fromkeys(lost))
