"""An evaluator's questions as a release beside the benchmark's, judged like any: rules, or a model's run.

``evaluator.json`` beside the derived release says who made the questions, what depends on what, what blind
answers get, and which stories have no question, with the reason.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....builders.drafting import tell_plan
from ....builders.step import LONGEST_TAG, ask
from ....engine.execute import RunRequest, Source
from ....engine.pipeline import Pipeline
from ....engine.run_options import RunOptions
from ....engine.running import RunKind
from ....engine.stage import Child, Item, Made, Outcome, Tools, stage
from ....errors import ConfigError, InputError
from ....models.spec import ModelSettings
from ....releases.katha.selection import write_derived
from ....releases.loading import Release, load
from ....schemas.canonical import Json, jsonl_lines, plain_fields, pretty_bytes, write_atomic
from ....schemas.katha import StoryRecord
from ....schemas.plain_files import MISSHAPEN, explaining, json_lines, read_json
from ....schemas.values import Own
from ..study import MASTER_SEED
from .evaluator import WORDED, Asked, Evaluator, Material, Pool, evaluator_of, is_worded

if TYPE_CHECKING:
    from ....engine.hooks import Reporter


# -- Stage: one item per story of a release whose questions a model is to write

RELEASE = "release"
"""Role of the source."""


class StorySelection(Own):
    """Which stories."""

    split: tuple[str, ...] = ()


@stage(version=1, shape="expand", reads=("sources",), writes=("record",), settings=StorySelection)
def load_stories(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per story, in the order of ids."""
    (path,) = tools.of_role(item, RELEASE)
    splits = tools.own(StorySelection).split
    chosen = [record for record in load(path) if not splits or record.split in splits]
    if not chosen:
        raise ConfigError(str(path), what="no story is in these splits", fix="choose another split")
    for record in chosen:
        yield Child(record.story_id, Made({"record": record.as_json()}))


# -- Stage: a model writes an evaluator's questions about a story, and what they become in a folder

QUESTIONS = "questions.jsonl"
"""What a finished run holds: one line per story."""
PROMPTS = ("evaluators/story_questions", "evaluators/scene_questions", "evaluators/statements")


class WriterSettings(ModelSettings):
    """Who writes, and for which evaluator."""

    evaluator: str = "generic-story"


@stage(
    version=1,
    reads=("record",),
    writes=("questions", "maker"),
    libraries=("jsonschema-rs",),
    settings=WriterSettings,
    asks=PROMPTS,
)
async def write_questions(item: Item, tools: Tools) -> Outcome:
    """Return the questions about a story and who wrote them; none without a model."""
    settings = tools.own(WriterSettings)
    evaluator, record = evaluator_of(settings.evaluator), StoryRecord.model_validate(item["record"])
    if not settings.models() or evaluator.prompt is None or evaluator.read is None:
        return Made({"questions": [], "maker": None})
    read = evaluator.read

    def rows(reply: Json) -> list[dict[str, Any]]:
        return [question.as_json() for question in read(reply, record)]

    shown: dict[str, Json] = {"language": record.language[:LONGEST_TAG]}
    if evaluator.prompt == PROMPTS[0]:
        shown["story"] = record.story_text
    else:
        shown["scenes"] = [scene.scene_text for scene in record.scenes]
    written = await ask(tools, evaluator.prompt, rows, **shown)
    return Made({"questions": written.value, "maker": written.maker})


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the questions into the run folder; items come sorted by id."""
    lines = (
        {"story_id": item.id, "questions": item["questions"], "maker": item["maker"]}
        for item in items
    )  # fmt: skip
    write_atomic(folder / QUESTIONS, jsonl_lines(lines))


PIPELINE = Pipeline(
    name="evaluator-questions",
    stages=tuple(f"{__name__}:{name}" for name in ("load_stories", "write_questions")),
    finish=f"{__name__}:finish",
    private=True,  # questions and answers about stories of a hidden test may be among them
)


# --

SIDECAR = "evaluator.json"
"""In the folder of a derived release: what is known of its questions beside the questions."""
RUN = RunKind(PIPELINE, tell_plan)


@dataclass(frozen=True)
class Sidecar:
    """What is known of an evaluator's questions."""

    evaluator: str  # its name
    makers: tuple[str, ...]  # who made the questions
    # question -> those that must be right for it to count; only where there are some
    parents: Mapping[str, tuple[str, ...]] = field(repr=False)
    # question -> share of blind answers that are right; only where that is known
    chance: Mapping[str, float] = field(repr=False)
    left_out: Mapping[str, str] = field(repr=False)  # story -> why it has no question


def derive(
    release: Release, evaluator: Evaluator, out: Path, splits: Sequence[str] = (), written: Path | None = None
) -> Path:
    """Write the release that an evaluator's judges are asked from; return its folder.

    It is judged by ``evaluate stories`` with ``questions_only`` where the evaluator has no contrastive pairs.

    ``written``: the finished run in which a model wrote the questions; None for rules, or the release's own.
    """
    records = [record for record in release.records if not splits or record.split in splits]
    asked, left_out, makers = _questions(release, evaluator, records, written)
    if not any(asked.values()):
        why = next(iter(left_out.values()), "there is no story")
        raise InputError.one(str(release.path), what=f"{evaluator.name} has no question: {why}", fix=FIX)
    made = [
        record.model_copy(update={"questions": tuple(each.question for each in asked[record.story_id])})
        for record in records
    ]
    every = [each for story in asked.values() for each in story]
    sidecar = Sidecar(
        evaluator.name, makers,
        {each.question.question_id: each.parents for each in every if each.parents},
        {each.question.question_id: each.chance for each in every if each.chance is not None},
        left_out,
    )  # fmt: skip
    how = {"evaluator": evaluator.name, "makers": list(makers), "seed": MASTER_SEED, "splits": list(splits)}
    variants = None if evaluator.contrasts else ()
    folder = write_derived(release, out, made, how, variants)
    write_atomic(folder / SIDECAR, [pretty_bytes(plain_fields(sidecar))])
    return folder


FIX = "let a model write the questions, or choose other stories"


def _questions(
    release: Release, evaluator: Evaluator, records: Sequence[StoryRecord], written: Path | None
) -> tuple[dict[str, list[Asked]], dict[str, str], tuple[str, ...]]:
    """Return story -> questions, story -> why it has none, and who made them."""
    if evaluator.reuses:
        own = {record.story_id: [Asked(question) for question in record.questions] for record in records}
        return own, {}, ("release",)
    if written is not None:
        return _written(records, written)
    if evaluator.build is None:
        raise ConfigError(evaluator.name, what="it has no rules", fix="let a model write its questions")
    pool, asked, left_out = Pool.of(release.records), {}, {}
    for record in records:
        worded = is_worded(record)
        asked[record.story_id] = evaluator.build(Material(record, pool)) if worded else []
        if not worded:
            left_out[record.story_id] = f"rules have words for {', '.join(WORDED)}, not {record.language}"
        elif not asked[record.story_id]:
            left_out[record.story_id] = "its annotations give rise to no question"
    return asked, left_out, ("rules@1",)


def _written(
    records: Sequence[StoryRecord], folder: Path
) -> tuple[dict[str, list[Asked]], dict[str, str], tuple[str, ...]]:
    path = folder / QUESTIONS
    with explaining(path, "make the run anew", of=MISSHAPEN):
        rows = {str(row["story_id"]): row for row in json_lines(path)}
        read = {
            name: [Asked.of_json(question) for question in row["questions"]] for name, row in rows.items()
        }
    asked = {record.story_id: read.get(record.story_id, []) for record in records}
    left_out = {name: "the model wrote no usable questions" for name, each in asked.items() if not each}
    makers = sorted({str(row["maker"]) for row in rows.values() if row["maker"]})
    return asked, left_out, tuple(makers)


def writing_request(
    release: Path,
    evaluator: Evaluator,
    out: Path,
    model: str,
    options: RunOptions,
    splits: Sequence[str] = (),
) -> RunRequest:
    """Return what the engine is to execute for a model to write an evaluator's questions."""
    if evaluator.prompt is None:
        raise ConfigError(evaluator.name, what="no model writes its questions", fix="leave the model out")
    texts = [
        f'write_questions.evaluator="{evaluator.name}"', f'write_questions.model="{model}"',
        f"load_stories.split={list(splits)}",
    ]  # fmt: skip
    return options.request(PIPELINE, out, [Source(RELEASE, release)], texts)


def write_by_model(request: RunRequest, reporter: "Reporter | None" = None) -> Path:
    """Let a model write the questions, or go on with it; return the finished run's folder."""
    RUN.make(request, reporter)
    return request.folder


def read_sidecar(folder: Path) -> Sidecar:
    """Return what lies beside a derived release."""
    path = folder / SIDECAR
    with explaining(path, "make the evaluator's release again", of=MISSHAPEN):
        row = read_json(path)
        return Sidecar(
            str(row["evaluator"]), tuple(row["makers"]),
            {str(name): tuple(map(str, parents)) for name, parents in row["parents"].items()},
            {str(name): float(chance) for name, chance in row["chance"].items()},
            {str(name): str(why) for name, why in row["left_out"].items()},
        )  # fmt: skip
