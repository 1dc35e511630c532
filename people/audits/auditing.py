"""``fabula audit``: drafts compared with gold records, answered blindly by a model, judged by people.

Nothing is asked unless a model is named. Its answers are a run of the engine in the folder of the audit: kept
in a journal, continued by the same command, never paid for twice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...builders.drafting import tell_plan, without_models
from ...builders.katha.checks.rules import read_answers
from ...builders.katha.measure_edits import SUMMARY
from ...builders.step import ask, public_name
from ...builders.step import language as prompt_language
from ...engine.execute import RunRequest, Source
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, Sets
from ...engine.running import RunKind
from ...engine.stage import Child, Item, Made, Outcome, Tools, stage
from ...engine.status import read_report
from ...errors import ConfigError
from ...evaluation.recoverability.matching import matcher_of
from ...evaluation.stats.uncertainty import Uncertainty
from ...models.spec import ModelSettings
from ...releases.loading import release_name
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json
from ...schemas.text import normalize_answer
from ...schemas.values import MEANINGS, Own, state_of
from ...validators.katha.dataset import Dataset, open_dataset
from ...validators.lines import ignore, read_objects
from .compare import Annotated as Record
from .compare import Blind, Case, Comparing, Counts, Pairs, pair_up, read_records, scores
from .form import Audit, judged, page_of, read_form

if TYPE_CHECKING:
    from ...engine.estimate import CallPlan
    from ...engine.hooks import Reporter


# -- Stage: a model answers the questions of a record from its text alone, without having seen an answer
#
# An item is a record of the draft or of the gold set. Its first stage reads them; the last writes the
# answers.

ANSWERS = "answers.jsonl"
"""What a finished run holds: one line per record that was answered."""
PROMPT = "katha/answer_questions"


class BlindSettings(ModelSettings):
    """Settings of the stage: who answers."""


@stage(
    version=2,
    reads=("role", "story", "scenes", "questions"),
    writes=("answers",),
    libraries=("jsonschema-rs",),
    settings=BlindSettings,
    asks=(PROMPT,),
)
async def answer_blind(item: Item, tools: Tools) -> Outcome:
    """Return one short answer per question, null where the text is unclear; none without a model."""
    questions = item["questions"]
    if not questions or not tools.own(BlindSettings).models():
        return Made({"answers": []})
    answered = await ask(
        tools,
        PROMPT,
        lambda reply: read_answers(reply, len(questions)),
        (),
        0,
        language=prompt_language(item["story"]),
        scenes=item["scenes"],
        questions=questions,
    )
    return Made({"answers": [texts[0] if texts else None for texts in answered.value]})


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the answers into the run folder; items come sorted by id."""

    def lines() -> Iterator[dict[str, object]]:
        for item in items:
            yield {"role": item["role"], "story_id": item["story"]["id"], "answers": item["answers"]}

    write_atomic(folder / ANSWERS, jsonl_lines(lines()))


PIPELINE = Pipeline(
    name="audit-katha",
    stages=(f"{__name__}:load_questions", f"{__name__}:answer_blind"),
    finish=f"{__name__}:finish",
    final_fields=("role", "story"),
    private=True,  # drafts may hold stories of a hidden test
)


# -- Stage: one item per record of the draft and of the gold set, with its questions and no answer

DRAFT, GOLD = "draft", "gold"
"""Roles of the sources; the sources are files of records."""


class Settings(Own):
    """Settings of the stage; there are none."""


@stage(
    version=3,
    shape="expand",
    reads=("sources",),
    writes=("role", "story", "scenes", "questions"),
    settings=Settings,
)
def load_questions(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per record that is compared; without gold records, one per draft."""
    roles = [source["role"] for source in item["sources"]]
    records = {role: read_records(path) for role, path in zip(roles, tools.paths, strict=True)}
    shown = pair_up(records[DRAFT], records[GOLD]).pairs if GOLD in records else records[DRAFT]
    for role in records:
        for story_id in sorted(shown):
            record = records[role][story_id].record
            texts = records[role][story_id].texts
            asked = [f"({part['question_type']}) {part['question']}" for part in record["questions"]]
            story = {"id": story_id, "language": record["language"]}
            fields = {"role": role, "story": story, "scenes": texts, "questions": asked}
            yield Child(f"{role}-{story_id}", Made(fields))


# --

RESULT, PAGE, FORM = "audit.json", "audit.html", "form.csv"
"""What an audit writes into its folder: the result, the page, a form for people."""
MATCHER = "token-f1"


@dataclass(frozen=True, slots=True)
class AuditOptions(RunOptions):
    """How to audit. What every run may choose comes as keywords.

    Attributes:
        model: a model that answers the questions from the text alone, such as ``openai:gpt-4.1-mini``.
        matcher: when two texts say the same: accepted, exact, keyword, or token-f1, with a setting as in
            token-f1=0.4.
        resamples: resamples of the stories for intervals; 0 for none.
        seed: of the resamples, and of the draw of a form.
        readings: a filled form; may be given twice and more.
    """

    model: Annotated[str | None, Sets("answer_blind.model")] = None
    matcher: str = MATCHER
    resamples: int = 10_000
    seed: int = 42
    readings: Sequence[Path] = ()


def audit_request(draft: Path, gold: Path | None, out: Path, options: AuditOptions) -> RunRequest:
    """Return what the engine is to execute: a model's answers to the questions of drafts and gold records."""
    if options.model is None:
        raise ConfigError("--model", what="no model is named", fix="name one, such as openai:gpt-4.1-mini")
    sources = [Source(DRAFT, open_dataset(draft).main_file)]
    sources += [] if gold is None else [Source(GOLD, open_dataset(gold).main_file)]
    return options.request(PIPELINE, out, sources)


def tell_audit(request: RunRequest, reporter: "Reporter") -> None:
    """Tell how many calls of a model an audit makes, and about what they cost."""
    tell_plan(request, reporter)


RUN = RunKind(PIPELINE, tell_audit)


def estimate_audit(draft: Path, gold: Path | None, out: Path, options: AuditOptions) -> "CallPlan":
    """Tell what an audit would ask of its model now, and about what that costs. Asks nothing."""
    from ...engine.estimate import plan_calls

    request = audit_request(draft, gold, out, options)
    return plan_calls(request, without_models(request.config))


def audit(
    draft: Path,
    gold: Path | None = None,
    out: Path | None = None,
    options: AuditOptions | None = None,
    reporter: "Reporter | None" = None,
) -> Audit:
    """Return how good the drafts of a planner are."""
    options = options or AuditOptions()
    blind: dict[tuple[str, str], Blind] = {}
    if options.model is not None:
        if out is None:
            raise ConfigError("--out", what="the folder of the audit is not given", fix="--out runs/audit")
        RUN.make(audit_request(draft, gold, out, options), reporter)
        blind = read_answers_of(out)
    drafts = read_records(draft)
    uncertainty = Uncertainty(resamples=options.resamples, seed=options.seed)
    pairs = Pairs({}) if gold is None else pair_up(drafts, read_records(gold))
    counts, cases = _compared(pairs, options, blind)
    tags = [draft.record["language"] for draft, _ in pairs.pairs.values()]
    reached = Counter(state_of(each.record["validation_status"], each.checks) for each in drafts.values())
    made = Audit(
        facts=_facts(draft, gold, options, len(drafts), pairs),
        scores=scores(counts, uncertainty) if counts else {},
        cases=cases,
        states={state: reached[state] for state in MEANINGS if reached[state]},
        languages=_languages(drafts, list(zip(tags, counts, strict=True)), uncertainty),
        edits=_edits(open_dataset(draft)),
        people=_people(options.readings, drafts, uncertainty),
        name=release_name(draft) or draft.name,
        notes=(*_notes(pairs), *uncertainty.notes(len(counts), "story")) if counts else (),
    )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_atomic(out / RESULT, [pretty_bytes(made.as_json())])
        write_atomic(out / PAGE, [page_of(made).encode("utf-8")])
    return made


def read_answers_of(folder: Path) -> dict[tuple[str, str], Blind]:
    """Return what a model answered: (role, story id) -> its answers in order; nothing before it was asked."""
    path = folder / ANSWERS
    if not path.is_file():
        return {}
    rows = (line.data for line in read_objects(path, path.name, ignore))
    return {(str(row["role"]), str(row["story_id"])): row["answers"] for row in rows}


def _compared(
    pairs: Pairs, options: AuditOptions, blind: Mapping[tuple[str, str], Blind]
) -> tuple[list[Counts], list[Case]]:
    compare = matcher_of(options.matcher, {})
    counts, cases = [], []
    for story_id, (draft, gold) in pairs.pairs.items():
        answers = blind.get((DRAFT, story_id)), blind.get((GOLD, story_id))
        made = Comparing(draft, gold, compare, answers).result()
        counts.append(made.counts)
        cases += made.cases
    return counts, sorted(cases, key=lambda case: (case.group, case.good, case.story_id, case.path))


def _facts(
    draft: Path, gold: Path | None, options: AuditOptions, drafts: int, pairs: Pairs
) -> dict[str, str]:
    whose = "; ".join(f"{name} ({count})" for name, count in pairs.whose.items())
    facts = {"gold records by": whose} if gold is not None else {}
    facts["draft"] = f"{draft} ({drafts} records)"
    if gold is not None:
        facts |= {"gold": f"{gold} ({len(pairs.pairs)} of the same stories)", "matcher": options.matcher}
    if options.model is not None:
        facts["answers"] = public_name(BlindSettings(model=options.model))
    return facts


def _notes(pairs: Pairs) -> list[str]:
    counted = (
        (pairs.undrafted, "gold records have no draft"),
        (pairs.without_gold, "drafts have no gold record"),
        (pairs.other_text, "stories have another text in gold and are left out"),
        (
            pairs.unread,
            "records given as gold are nobody's (not by a person, not reviewed), and are left out",
        ),
    )
    return [f"{len(ids)} {what}, such as {ids[0]}" for ids, what in counted if ids]


BY_LANGUAGE = (
    "near_boundaries_f1",
    "characters_recall",
    "answers",
    "blind_draft",
    "variants_valid",
    "complete",
)
"""The measures that are also shown by language, where there are several."""


def _languages(
    drafts: Mapping[str, Record], counts: Sequence[tuple[str, Counts]], uncertainty: Uncertainty
) -> dict[str, Json]:
    """Return for each language how many questions there are, how diverse they are, and the main measures."""
    rows: dict[str, Json] = {}
    for language in sorted({str(draft.record["language"]) for draft in drafts.values()}):
        records = [draft.record for draft in drafts.values() if draft.record["language"] == language]
        asked = [normalize_answer(part["question"]) for record in records for part in record["questions"]]
        own = [count for tag, count in counts if tag == language]
        measured = scores(own, uncertainty) if own and len({tag for tag, _ in counts}) > 1 else {}
        rows[language] = {
            "records": len(records),
            "questions": len(asked),
            "distinct": len(set(asked)),
            "openings": len({tuple(text.split()[:3]) for text in asked}),
            "scores": {name: measured[name].as_json() for name in BY_LANGUAGE if name in measured},
        }
    return rows


def _edits(dataset: Dataset) -> Json:
    """Return what became of drafts afterwards, where a run keeps it: rejected, failed, edited by stage."""
    if dataset.kind != "run":
        return None
    report = read_report(dataset.path)
    path = dataset.path / SUMMARY
    stages = read_json(path, follow=True)["stages"] if path.is_file() else {}
    names = ("compared", "changed", "repaired", "edited", "share_changed", "mean_distance")
    return {
        "totals": dict(report.totals),
        "rejected": dict(Counter(str(item.code) for item in report.items if item.status == "rejected")),
        "stages": {stage: {name: row["all"][name] for name in names} for stage, row in stages.items()},
    }


def _people(paths: Sequence[Path], drafts: Mapping[str, Record], uncertainty: Uncertainty) -> Json:
    if not paths:
        return None
    return judged([read_form(Path(path), drafts) for path in paths], drafts, uncertainty)
