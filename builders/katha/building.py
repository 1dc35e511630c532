"""How stories become KathaBench records: what may be chosen, and what that asks of the engine."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ...engine.execute import RunRequest, Source
from ...engine.pipeline import Pipeline, stages_through
from ...engine.run_options import Sets
from ...engine.running import RunKind
from ...engine.stage import Item
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ...schemas.katha import SCHEMA_VERSION
from ...schemas.paths import ASSIGNMENTS, BALANCE, RECORDS, RETELLINGS, SOURCES
from ...validators.katha.set_rules import RunBalance
from ..drafting import Drafting, StoryOptions, estimate, listed, planner_texts, tell_plan
from ..step import added_fields, keeping_added, with_packages
from .apply_edits import EDITING
from .choosing.choose_stories import QuotaTally, execute_told
from .measure_edits import ROWS, SUMMARY, EditSummary

# -- The stages of the KathaBench builder, in order, and the files that a finished run holds

STAGES = (
    "load_stories",
    "sign_stories",
    "find_duplicates",
    "analyze_story",
    "screen_stories",
    "assess_story",
    "normalise_story",
    "draft_scenes",
    "choose_stories",
    "leave_surplus",
    "annotate_transitions",
    "write_questions",
    "write_contrastives",
    "repair_draft",
    "grow_answers",
    "apply_edits",
    "measure_edits",
    "verify_record",
    "embed_stories",
    "find_retellings",
    "assign_splits",
    "assemble_records",
)

_ELSEWHERE = {
    "analyze_story": "fabula.builders.text.boundaries:analyze_story",
    "verify_record": f"{__package__}.checks.verify_record",
    **{name: f"{__package__}.choosing.{name}" for name in ("screen_stories", "choose_stories")},
    **{
        name: f"{__package__}.choosing.likeness:{name}"
        for name in ("sign_stories", "find_duplicates", "embed_stories", "find_retellings")
    },
    "assess_story": f"{__package__}.choosing.screen_stories:ASSESS_STORY",
    "assign_splits": f"{__package__}.choosing.choose_stories:assign_splits",
    "normalise_story": f"{__package__}.drafts:NORMALISE_STORY",
    "assemble_records": f"{__package__}.drafts:assemble_records",
    "leave_surplus": f"{__package__}.choosing.choose_stories:leave_surplus",
}
"""Stages that stand in another package than this, or beside others -> where they stand."""

_PLACES = tuple(_ELSEWHERE.get(name, f"{__package__}.{name}") for name in STAGES)
_ADDED = added_fields("katha", _PLACES)

PIPELINE = Pipeline(
    name="katha",
    stages=with_packages("katha", _PLACES, before="apply_edits"),
    finish=f"{__name__}:finish",
    final_fields=("source", "split", "stratum", "group", "links", "edit_distances", *_ADDED),
    identity=f"{__package__}.load_stories:identity",
    adding="to add stories to this run: fabula extend {folder} NEW",
    private=True,  # the stories of the hidden test
)


HELD = 2**23
"""Bytes of edit distances that are held in memory; more go to the disk."""


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write records, assignments, balance and edit distances into the run folder; items come sorted by id.

    The items are gone through once and written as they come; only counts and assignments are held. The edit
    distances wait in a file without a name while the records are written.
    """
    balance, edited, quotas = RunBalance(), EditSummary(), QuotaTally.of_run(folder)
    assignments: list[Json] = []
    groups: dict[str, list[str]] = {}
    links: list[Json] = []
    sources: list[Json] = []

    def envelopes() -> Iterator[Json]:
        for item in keeping_added(folder, items, _ADDED):
            bundle, fields = item["bundle"], item["edit_distances"]
            balance.add(bundle["record"], item["stratum"])
            quotas.add(bundle["record"])
            assignments.append({"id": item.id, "split": item["split"], "stratum": item["stratum"]})
            links.extend(item["links"])
            if item["source"] is not None:
                sources.append({"id": item.id, **item["source"]})
            if item["group"] is not None:
                groups.setdefault(item["group"], []).append(item.id)
            edited.add(fields)
            distances.writelines(jsonl_lines([{"id": item.id, "fields": fields}]))
            yield {"kind": "katha", "schema_version": SCHEMA_VERSION, "id": item.id, "payload": bundle}

    with tempfile.SpooledTemporaryFile(HELD, dir=str(folder)) as distances:
        write_atomic(folder / RECORDS, jsonl_lines(envelopes()))
        write_atomic(folder / ASSIGNMENTS, jsonl_lines(assignments))
        write_atomic(folder / SOURCES, jsonl_lines(sources))
        write_atomic(folder / RETELLINGS, jsonl_lines(retelling_lines(groups, links)))
        write_atomic(folder / BALANCE, [pretty_bytes(balance.document())])
        distances.seek(0)
        write_atomic(folder / ROWS, distances)
    write_atomic(folder / SUMMARY, [pretty_bytes(edited.document())])
    quotas.write(folder)


def retelling_lines(groups: Mapping[str, Sequence[str]], links: Sequence[Json]) -> Iterator[Json]:
    """Yield the groups of stories that retell one another, each with the links between stories of the run.

    A group bears the smallest id that it ever had; a group of which one story is left is none.

    ``groups``: id of a group -> its stories, sorted.
    """
    group_of = {story: name for name, stories in groups.items() for story in stories}
    evidence: dict[str, list[Json]] = {}
    for link in links:
        first, second = (group_of.get(story) for story in link["stories"])
        if first is not None and first == second:
            evidence.setdefault(first, []).append(link)
    for name, stories in sorted(groups.items()):
        if len(stories) > 1:
            yield {"id": name, "stories": list(stories), "links": evidence.get(name, [])}


# -- How stories become records


@dataclass(frozen=True, slots=True)
class BuildOptions(StoryOptions):
    """How to build. What every run may choose comes as keywords.

    Attributes:
        records: JSONL of hand-written records for some of the stories.
        answers: JSONL of answers that people gave: ``story_id``, ``question_id``, ``answer``, ``who``.
        verifier: the model that checks the drafts, or ``none`` [the one that drafts].
        stage: stop after this stage.
        balance: choose so many stories of a larger pool, towards the quotas of the paper or of
            ``choose_stories``.
        keep_unfit: keep stories that contiguous scenes cannot tell, marked for review.
    """

    records: Path | None = None
    answers: Path | None = None
    verifier: str | None = None
    stage: str | None = None
    balance: Annotated[int | None, Sets("choose_stories.stories")] = None
    keep_unfit: Annotated[bool | None, Sets("draft_scenes.keep_unfit")] = None


def build_request(
    sources: Sequence[Path | str] | Path | str, out: Path | str, options: BuildOptions
) -> RunRequest:
    beside = [("records", options.records), ("answers", options.answers)]
    return options.drafting(
        PIPELINE,
        out,
        [
            *listed(sources, "stories", "stories"),
            *(Source(role, Path(path)) for role, path in beside if path is not None),
        ],
        planner_texts(PIPELINE, options, options.verifier),
        stages_through(PIPELINE, options.stage) if options.stage else (),
    )


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan, runs=execute_told, plan=estimate),
    build_request,
    BuildOptions,
    EDITING,
    of_stories=True,
)
"""How KathaBench records are drafted."""
build_katha = DRAFTING.build
