"""How seeds become a suite of event prompts: what may be chosen, and what that asks of the engine."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...engine.execute import RunRequest, Source, check_sources, execute
from ...engine.manifest import NAME as MANIFEST
from ...engine.pipeline import Pipeline
from ...engine.run_options import RunOptions, Sets
from ...engine.running import RunKind
from ...engine.stage import Item
from ...engine.status import RunReport
from ...errors import ConfigError
from ...releases.events.form import PROMPTS, SUITE, write_suite
from ...schemas.canonical import jsonl_lines, write_atomic
from ...schemas.events import EventPrompt, Suite
from ..drafting import Drafting, estimate, tell_plan
from .prompts import RESULTS, write_results

if TYPE_CHECKING:
    from ...engine.hooks import Reporter


# -- The stages of the StoryEval suite builder, in order, and the files that a finished run holds

STAGES = (
    "load_seeds",
    "prompts:write_prompts",
    "load_seeds:list_events",
    "prompts:check_conditions",
    "prompts:select_prompts",
    "prompts:grade_prompts",
    "prompts:settle_prompts",
)

PIPELINE = Pipeline(
    name="events",
    stages=tuple(f"{__package__}.{name}" for name in STAGES),
    finish=f"{__name__}:finish",
    final_fields=("place",),
    identity=f"{__package__}.load_seeds:identity",
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the suite in the official form, and the same with its history, sorted by file name.

    Prompts of a suite that was given come first, in its order; the others follow, sorted by file name.
    """
    entries = sorted(
        ((item["place"], item["record"]) for item in items), key=lambda entry: str(entry[1]["unit"])
    )
    records = [record for _, record in entries]
    entries.sort(key=lambda entry: math.inf if entry[0] is None else entry[0])
    prompts = {record["unit"]: EventPrompt.model_validate(record["entry"]) for _, record in entries}
    write_suite(folder / SUITE, Suite(prompts))
    write_atomic(folder / PROMPTS, jsonl_lines(records))


# -- How seeds become a suite

Rates = Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True, slots=True)
class SuiteOptions(RunOptions):
    """How to build a suite. What every run may choose comes as keywords.

    Attributes:
        model: the model that captions videos, writes prompts and lists events [none: people's prompts alone].
        generate: how many prompts the model is asked to write [as set, else 0].
        keep_all: if the seeds are a suite: keep every prompt, also those that break a condition or are
            near-duplicates.
        most: keep at most this many prompts [as set, else all].
        results: method -> file name -> completion rate of judged videos; None for those that the run has, if
            it has any. They filter the prompts and say how hard each is.
        people: the same by people, for the filter that compares them with the judge.
    """

    model: Annotated[str | None, Sets("write_prompts.model", "list_events.model")] = None
    generate: Annotated[int | None, Sets("load_seeds.generate")] = None
    keep_all: Annotated[bool | None, Sets("load_seeds.keep_all")] = None
    most: Annotated[int | None, Sets("select_prompts.most")] = None
    results: Rates | None = None
    people: Rates | None = None


def suite_request(seeds: Sequence[Path | str], out: Path | str, options: SuiteOptions) -> RunRequest:
    """Return what the engine is to execute; results that lie in the run folder are sources, too."""
    if not seeds:
        raise ConfigError("seeds", what="no file is given", fix="name a file of seeds")
    results = Path(out) / RESULTS
    sources = [Source("seeds", Path(path)) for path in seeds]
    return options.request(
        PIPELINE, out, [*sources, Source("results", results)] if results.is_file() else sources
    )


def take_results(seeds: Sequence[Path | str], out: Path | str, options: SuiteOptions) -> None:
    """Put results into a run folder; a run that is not there yet is built without them first."""
    folder = Path(out)
    if not (folder / MANIFEST).is_file():
        execute(suite_request(seeds, folder, options))
    else:
        check_sources(suite_request(seeds, folder, options))
    write_results(folder, options.results or {}, options.people)


def build_suite(
    seeds: Sequence[Path | str],
    out: Path | str,
    options: SuiteOptions | None = None,
    *,
    reporter: "Reporter | None" = None,
) -> RunReport:
    """Build a prompt suite from seeds; an existing run folder is continued."""
    chosen = options or SuiteOptions()
    if chosen.results is not None:
        take_results(seeds, out, chosen)
    return DRAFTING.run.make(suite_request(seeds, out, chosen), reporter)


DRAFTING = Drafting(
    RunKind(PIPELINE, tell_plan, plan=estimate), suite_request, SuiteOptions, building=build_suite
)
"""How suites of event prompts are drafted."""
