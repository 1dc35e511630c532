"""A protocol of its own: how well judges find the order of a page's panels."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fabula.builders.drafting import tell_plan
from fabula.engine.execute import Source
from fabula.engine.manifest import read_manifest
from fabula.engine.pipeline import Pipeline
from fabula.engine.run_options import RunOptions, setting_texts
from fabula.engine.running import RunKind
from fabula.engine.stage import UNASKED, Item
from fabula.engine.status import RunReport
from fabula.evaluation.archive.archive import ArchiveForm, write_judgements, write_manifest
from fabula.evaluation.archive.replies import ReplyTally, labels_of
from fabula.evaluation.judging.answers import judgement_of
from fabula.evaluation.judging.settings import JUDGES, judges_of, public_judge, without_judges
from fabula.evaluation.katha.load_items import OUTPUTS, RELEASE
from fabula.evaluation.katha.pipeline import Accounting
from fabula.evaluation.protocol import Protocol, Scoring
from fabula.evaluation.running import check_request, run_evaluation
from fabula.examples.comic_pages.comic_pages.judge_order import PROMPT
from fabula.schemas.judgement import EvaluationManifest, Judgement

ORDER = "comic-order"
"""Name of the protocol."""
PIPELINE = Pipeline(
    name=f"evaluate-{ORDER}",
    stages=(
        "comic_pages.load_items",
        "fabula.evaluation.katha.judging:prepare_images",
        "comic_pages.judge_order:JUDGE_ORDER",
    ),
    finish="comic_pages.evaluating_order:finish",
    final_fields=("about", "shown", "unusable", "orders"),
)  # fmt: skip
ARCHIVE = ArchiveForm()


@dataclass(frozen=True, slots=True)
class OrderOptions(RunOptions):
    """Who judges, and which pages. What every run may choose comes as keywords.

    Attributes:
        judges: model specs of judges.
        stories: only the page with this id.
    """

    judges: Sequence[str] = ()
    stories: Sequence[str] = ()


class OrderTally(ReplyTally):
    """Counts of the replies about orders."""

    kind, first = ORDER, "load_items"


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write judgements and manifest into the run folder."""
    run = read_manifest(folder)
    tally, methods, release = OrderTally(run), dict[str, Accounting](), dict[str, Any]()

    def judgements() -> Iterator[Judgement]:
        for item in items:
            shown = item["shown"]
            release.update(item["about"]["release"])
            methods.setdefault(shown["method"], Accounting(item["about"]["outputs"])).add(item)
            for row in item["orders"]:
                if row["outcome"] == UNASKED:
                    tally.leave(row)
                else:
                    yield Judgement.model_validate(judgement_of(ORDER, row, shown, run.created_at))

    write_judgements(folder, judgements(), tally.count)
    asking = run.settings["judge_order"]
    protocol = {
        "release": {"sha256": release.get("sha256")},
        "judges": sorted(public_judge(spec).spec for spec in asking["judges"]),
        "votes": asking["votes"], "prompts": labels_of([PROMPT]), "images": run.settings["prepare_images"],
        "seed": run.seed, "attempts": run.run.attempts, "metrics": {"pairs_in_order": 1},
    }  # fmt: skip
    subject = {"methods": {name: methods[name].as_json() for name in sorted(methods)}}
    manifest = EvaluationManifest(
        kind=ORDER, protocol=protocol, subject=subject, environment=tally.environment()
    )
    write_manifest(folder, manifest)


def evaluate_order(release: Path, outputs: Sequence[Path], out: Path, options: OrderOptions) -> RunReport:
    """Ask judges for the order of the panels of drawn pages; an evaluation that is there is continued."""
    chosen = {"load_items.stories": options.stories, "judge_order.judges": judges_of(options, options.judges)}
    texts = setting_texts({name: value for name, value in chosen.items() if value})
    sources = [Source(RELEASE, release), *(Source(OUTPUTS, folder) for folder in outputs)]
    request = options.request(PIPELINE, out, sources, texts, {JUDGES})
    check_request(request)
    return PROTOCOL.run.make(request)


def _scoring() -> Scoring:
    from fabula.examples.comic_pages.comic_pages.scoring_order import SCORING

    return SCORING


PROTOCOL = Protocol(
    RunKind(
        PIPELINE,
        partial(tell_plan, stand_in=without_judges),
        runs=partial(run_evaluation, form=ARCHIVE),
    ),
    ARCHIVE,
    _scoring,
    frozenset({JUDGES}),
)
