"""Which replies of an earlier archive a run folder would lose by another evaluation into it.

What stays is what the new evaluation asks for as well: more methods, judges, votes or stories lose nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..engine.execute import RunRequest
from ..errors import ConfigError, FabulaError
from ..models.spec import ENCODES
from ..prompts.loader import load_prompt
from ..releases.loading import load
from ..releases.suites import load_suite
from ..schemas.canonical import Json
from ..schemas.judgement import EvaluationManifest, Judgement
from ..schemas.paths import format_path
from ..schemas.plain_files import open_plain
from .archive import EVALUATION, JUDGEMENTS, read_manifest
from .completion.load_videos import SUITE_ROLE
from .completion.load_videos import chosen_prompts as chosen_videos
from .completion.pipeline import KIND as EVENTS
from .completion.settings import EventJudgeSettings, VideoSelection
from .hashes import release_sha256
from .judges.load_items import OUTPUTS, RELEASE, chosen_records
from .judges.presets import PromptSet, of_sets
from .judges.settings import JudgeSettings, SelectionSettings, public_judge
from .outputs.named import read_manifest as read_outputs
from .outputs.storyboards import OutputsManifest
from .words import counted

STAGES = {"contrast": "judge_contrasts", "match": "match_answers", "completion": "judge_events"}
"""Kind of a judgement -> the stage that asked; questions and labels go by their condition."""
CONDITIONS = {"text": "judge_text", "image": "judge_images", "text_image": "judge_both"}
ENCODING = {"katha": ("images", "prepare_images"), "events": ("frames", "take_frames")}
"""Kind of an evaluation -> where its protocol says how pictures are made, and the stage that makes them."""
ASKED = {"contrast": "contrastive pairs", "match": "answers to be matched", "completion": "videos"}
"""Kind of a judgement -> what was asked, where it is not a question."""
SHOWN = 6


@dataclass(frozen=True)
class Plan:
    """What an evaluation is about to ask.

    Attributes:
        source: ``release`` or ``suite``, and its SHA-256.
        units: stories, or names of videos.
        methods: whose outputs are shown.
        stages: asking stage -> its settings.
        encoding: how pictures are made.
        seed: of the run.
    """

    source: tuple[str, str]
    units: Collection[str] = field(repr=False)
    methods: Collection[str]
    stages: Mapping[str, JudgeSettings] = field(repr=False)
    encoding: Mapping[str, Json] = field(repr=False)
    seed: int

    @cached_property
    def specs(self) -> dict[tuple[str, str], str]:
        """Stage and judge, as archives name it -> its spec."""
        return {
            (name, public_judge(spec).spec): spec
            for name, settings in self.stages.items()
            for spec in settings.judges
        }


def check_kept(request: RunRequest) -> tuple[str, ...]:
    """Refuse an evaluation by which a run folder would lose replies that it shows.

    Returns:
        What a person should know: lines there that nobody can read, and that finishing the run replaces.

    Raises:
        ConfigError: it would; what would go is listed with how many replies each.
    """
    folder = Path(request.folder)
    if not (folder / JUDGEMENTS).is_file() or not (folder / EVALUATION).is_file():
        return ()
    try:
        manifest = read_manifest(folder)
    except FabulaError:
        return ()  # damaged: nobody could read it, and finishing the run writes it anew
    kind = "events" if request.pipeline.name == EVENTS else "katha"
    if manifest.kind != kind:
        return ()  # the engine refuses a run of another kind
    unread: list[str] = []
    total, lost = _losses(_judgements(folder / JUDGEMENTS, unread), manifest, _plan(request, kind))
    if not lost:
        return _told(folder / JUDGEMENTS, unread)
    listed = [f"{count} {why}" for why, count in lost.most_common(SHOWN)]
    more = ["others"] if len(lost) > SHOWN else []
    raise ConfigError(
        f"--out {folder}",
        what=f"{lost.total()} of the {total} replies there would be lost: {'; '.join([*listed, *more])}",
        fix="name all that was judged before as well, choose another folder, or let them go with --replace;"
        " the journal keeps them, so that asking for them again costs nothing",
    )


def _told(path: Path, unread: Sequence[str]) -> tuple[str, ...]:
    """Return the lines that cannot be read, one by one as far as they are few, and how many they are."""
    if not unread:
        return ()
    more = [f"{path}: {len(unread) - SHOWN} more"] if len(unread) > SHOWN else []
    count = f"{counted(len(unread), 'line')} of {path} cannot be read and will be replaced from the journal"
    return (count, *unread[:SHOWN], *more)


def _losses(
    judgements: Iterable[Judgement], manifest: EvaluationManifest, plan: Plan
) -> tuple[int, Counter[str]]:
    """Return how many replies an archive has, and why how many of them would go."""
    protocol, lost, total = manifest.protocol, Counter[str](), 0
    everything = _changed_ground(protocol, plan)
    pictures = _changed_pictures(manifest, plan)
    decoding = {stage: _changed_settings(protocol, stage, plan) for stage in plan.stages}
    votes = protocol.get("votes")
    before: Mapping[str, Json] = votes if isinstance(votes, Mapping) else {}
    for one in judgements:
        total += 1
        why = everything or (pictures if one.condition != "text" else None)
        why = why or _gone(one, plan, before) or decoding.get(_stage(one))
        if why is not None:
            lost[why] += 1
    return total, lost


def _gone(one: Judgement, plan: Plan, votes_before: Mapping[str, Json]) -> str | None:
    """Return why a reply would go: its method, judge, unit, vote or prompt is not in the plan."""
    if one.method is not None and one.method not in plan.methods:
        return f"about {one.method}, which is not among the outputs"
    if one.unit not in plan.units:
        return "about stories or prompts that are not chosen"
    return _unasked(one, plan, votes_before)


def _unasked(one: Judgement, plan: Plan, votes_before: Mapping[str, Json]) -> str | None:
    """Return why a question that was answered would not be asked in the same way."""
    stage, judge = _stage(one), one.judge.spec
    settings, spec = plan.stages.get(stage), plan.specs.get((stage, judge))
    if settings is None or spec is None:
        return f"of {judge} to {ASKED.get(one.kind, 'questions')}, for which it is not named"
    if one.kind == "moral_label" and not getattr(settings, "labels", True):
        return "about moral targets, which are left out"
    if _is_extra_vote(one, settings, spec, votes_before):
        return f"of {judge}, as it has fewer votes"
    if one.prompt and not _is_current(one.prompt, getattr(settings, "prompts", None)):
        return "to other prompts"
    return None


def _is_extra_vote(one: Judgement, settings: JudgeSettings, spec: str, before: Mapping[str, Json]) -> bool:
    if one.kind == "match":
        return False
    if isinstance(settings, EventJudgeSettings):
        required, had = settings.votes_of(spec), before.get(one.judge.spec)
        return isinstance(had, int) and required < had and one.vote >= required
    return one.vote >= settings.votes


@lru_cache(maxsize=256)
def _is_current(label: str, chosen: PromptSet | None) -> bool:
    """Whether a prompt is still the one that is sent: of the chosen set, and unchanged."""
    name, _, _ = label.partition("@")
    if chosen is not None and not of_sets([name], [chosen]):
        return False
    try:
        return load_prompt(name).label == label
    except KeyError:
        return False


def _changed_ground(protocol: Mapping[str, Any], plan: Plan) -> str | None:
    part, sha256 = plan.source
    named = protocol.get(part)
    before = named.get("sha256") if isinstance(named, Mapping) else None
    if before != sha256:
        return f"about another {part} (SHA-256 {str(before)[:12]}, now {sha256[:12]})"
    return None if protocol.get("seed") in (None, plan.seed) else "of a run with another seed"


def _changed_pictures(manifest: EvaluationManifest, plan: Plan) -> str | None:
    name, _ = ENCODING[manifest.kind]
    before, now = manifest.protocol.get(name), plan.encoding
    told = before if isinstance(before, Mapping) else {}
    same = all(told[key] == now[key] for key in told if key in now)
    return None if same else f"on pictures made with other settings ({name})"


def _changed_settings(protocol: Mapping[str, Any], stage: str, plan: Plan) -> str | None:
    """Return why replies of a stage would go as it asks with other settings."""
    told = protocol.get("decoding")
    own = told.get(stage, told) if isinstance(told, Mapping) else None
    before: Mapping[str, Json] = own if isinstance(own, Mapping) else {}
    now = plan.stages[stage].as_json()
    names = ("temperature", "max_tokens", "max_input_tokens", "sample", "reply")
    changed = [name for name in names if name in before and name in now and before[name] != now[name]]
    return f"asked with other settings ({', '.join(changed)})" if changed else None


def _stage(one: Judgement) -> str:
    if one.kind == "match" and one.judge.spec.startswith(ENCODES):
        return "match_vectors"
    return STAGES.get(one.kind) or CONDITIONS.get(one.condition, "")


def _judgements(path: Path, unread: list[str]) -> Iterator[Judgement]:
    """Yield what anybody could read of a file of judgements; the other lines are named in the list."""
    try:
        with open_plain(path, follow=True) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield Judgement.model_validate_json(line)
                except ValidationError as error:
                    first = error.errors(include_url=False, include_input=False)[0]
                    unread.append(f"{path}:{number} {format_path(first['loc'])}: {first['msg']}")
    except OSError as error:
        unread.append(f"{path}: {error.strerror}")


def _plan(request: RunRequest, kind: str) -> Plan:
    stages = request.config.stages
    asking = {name: one for name, one in stages.items() if isinstance(one, JudgeSettings)}
    folders = [source.path for source in request.sources if source.role == OUTPUTS]
    encoding = stages[ENCODING[kind][1]].as_json()
    seed = request.config.run.seed
    if kind == "events":
        selection = stages["load_videos"]
        assert isinstance(selection, VideoSelection)
        suite = load_suite(next(one.path for one in request.sources if one.role == SUITE_ROLE))
        units = frozenset(chosen_videos(suite, selection).prompts)
        names = frozenset(folder.name for folder in folders)
        return Plan(("suite", suite.sha256()), units, names, asking, encoding, seed)
    chosen = stages["load_items"]
    assert isinstance(chosen, SelectionSettings)
    place = next(one.path for one in request.sources if one.role == RELEASE)
    records = chosen_records(load(place), chosen)
    methods = frozenset(
        read_outputs(folder, OutputsManifest).method or folder.resolve().name for folder in folders
    )
    stories = frozenset(record.story_id for record in records)
    return Plan(("release", release_sha256(place)), stories, methods, asking, encoding, seed)
