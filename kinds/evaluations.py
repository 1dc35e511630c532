"""The verbs of evaluation with the protocol looked up by the name that archives bear."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..engine.hooks import Event, Hooks
from ..engine.manifest import read_manifest as read_run
from ..errors import ConfigError, InputError, RunError
from ..evaluation.archive.archive import read_manifest
from ..releases.loading import kind_of
from .kind import Judging
from .registry import judging_named, judgings, kind_named, kind_with, kinds, run_kind_of
from .verbs import load_stories

if TYPE_CHECKING:
    from ..evaluation.archive.archive import Archive, HubResults
    from ..evaluation.archive.merging import Merged
    from ..evaluation.protocol import Compared, Scoring, Shown, StillValid
    from ..evaluation.report.formats import Table
    from ..evaluation.report.model import ReportDocument
    from ..evaluation.running import Evaluating
    from ..people.study import HumanReport, Study, StudySettings
    from ..schemas import katha

VOTES = "votes.jsonl"
"""What the votes of people are called in what a study exports, and in a release."""
GENERAL = ("resamples", "seed", "interval", "correction", "least_coverage")
"""Options that scoring and comparing have under every protocol."""
Owners: TypeAlias = Mapping[str, tuple[str, ...]]
"""Option that not every kind of evaluation has -> what those are of that have it."""


def models_of_metrics(wanted: Sequence[str]) -> list[str]:
    """Return the default models of metrics; of all, in the paper's definitions, where none is named."""
    from ..evaluation.entities.quality import MODELS as QUALITY
    from ..evaluation.entities.requests import MODELS as PILLARS
    from ..evaluation.metrics.metric import NAMES, registered

    known: dict[str, list[str]] = {name: [] for name in NAMES}
    for name, metric in registered():
        for need in metric.needs:
            known.setdefault(name, []).extend([need.model] if isinstance(need.model, str) else need.model)
    known |= {f"pillar-{pillar}": list(models.values()) for pillar, models in PILLARS.items()}
    known["pillar-1"] = list(QUALITY["paper"].values())
    known["pillar-1-vbench"] = list(QUALITY["vbench"].values())
    for name in wanted:
        if name not in known:
            raise ConfigError(
                "--metrics", what=f"{name} is none; there are {', '.join(known)}", fix="check the spelling"
            )
    chosen = wanted or [name for name in known if name != "pillar-1-vbench"]
    return list(dict.fromkeys(model for name in chosen for model in known[name]))


def judging_of(folder: Path | str) -> Judging:
    """Return how an evaluation was made, by the name in its manifest."""
    return judging_named(read_manifest(folder).kind)


def evaluating_of(judged_by: Path, noun: str | None = None) -> "Evaluating":
    """Return how outputs are evaluated, by what they are judged by.

    ``noun``: as in ``fabula evaluate NOUN``; None for the one of the kind whose data lies there.
    """
    if noun is not None:
        judging: tuple[Judging, ...] = (judging_named(noun),)
    else:
        stated = kind_of(judged_by)
        kind = (
            kind_named(stated) if stated else next(k for k in reversed(kinds()) if k.marks.match(judged_by))
        )
        judging = kind.judging
    able = [each.evaluating for each in judging if each.evaluating is not None]
    if len(able) != 1:
        nouns = ", ".join(each.noun for each in judgings() if each.evaluating is not None)
        what = "nothing here says how outputs are evaluated by it"
        raise ConfigError(str(judged_by), what=what, fix=f"name the kind of evaluation: {nouns}")
    return able[0]()


def score(folder: Path, options: Mapping[str, Any] | None = None) -> "Shown":
    """Return the scores of an evaluation.

    ``options``: option of ``fabula score`` -> its value.
    """
    scoring, given = _scoring([folder], options, "score")
    made = scoring.score(folder, _chosen(given))
    hooks = Hooks(Path(folder), lambda text: warnings.warn(text, stacklevel=3))
    if hooks and scoring.tables is not None:
        from ..evaluation.report.formats import COLUMNS, score_rows

        rows = [row for table in tables_of(folder, made) for row in score_rows(table)]
        scores = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        hooks.tell(Event("score", data={"rows": scores}))
    return made


def score_tables(folder: Path, release: Path | None, resamples: int) -> "list[Table]":
    """Return the scores of an evaluation as tables; the first has a row for each method."""
    scoring = judging_of(folder).scored()
    tables: list[Table] = []
    if scoring.tables is not None:
        made = score(folder, scoring_options(folder, release, resamples))
        by_method = () if scoring.by_method is None else (scoring.by_method(made),)
        tables = [*by_method, *scoring.tables(made)]
    if not tables:
        raise InputError.one(str(folder), what="its protocol gives no table of scores", fix="give another")
    return tables


def scoring_options(folder: Path, release: Path | None, resamples: int) -> dict[str, Any]:
    """Return the options with which an archive of a board is scored and compared."""
    takes_release = release is not None and "release" in judging_of(folder).scored().options
    return {"resamples": resamples, **({"release": release} if takes_release else {})}


def tables_of(folder: Path, made: "Shown", least: float | None = None) -> "tuple[Table, ...]":
    """Return what :func:`score` made as tables, with coverage; none where the protocol has none.

    ``least``: share of its outputs from which a method stands with the complete ones; None for the default.
    """
    from ..evaluation.report.model import LEAST, least_covered, with_coverage

    scoring = judging_of(folder).scored()
    covered = least_covered(read_manifest(folder))
    tables = () if scoring.tables is None else scoring.tables(made)
    covering = (with_coverage(table, covered, LEAST if least is None else least) for table in tables)
    return tuple(_marked(covering, folder))


def _marked(tables: Iterable["Table"], *folders: Path) -> "Iterator[Table]":
    """Yield tables whose captions say that a judge, or another model that looked, was made up, if one was."""
    made_up = _made_up(*folders)
    for table in tables:
        yield table.model_copy(update={"title": f"{table.title}{made_up}"})


def _made_up(*folders: Path) -> str:
    """Return what stands behind a title of numbers that a stand-in's replies are in; else nothing."""
    from ..evaluation.archive.replies import stand_in_notes

    return " (made-up judge)" if any(any(stand_in_notes(read_manifest(folder))) for folder in folders) else ""


def remarks_on(made: "Shown", *folders: Path) -> tuple[str, ...]:
    """Return what must stand beside tables of :func:`score` and :func:`compare` wherever they are pasted."""
    from ..evaluation.archive.replies import remarks_of

    return tuple(remarks_of(made, map(read_manifest, folders)))


def compare(
    first: Path,
    second: Path | None,
    options: Mapping[str, Any] | None = None,
    allowed: Collection[str] = (),
) -> "Compared":
    """Return the methods of two evaluations, or of one, against each other, in paired tests.

    ``options``: option of ``fabula compare`` -> its value.
    """
    scoring, given = _scoring([first, *([] if second is None else [second])], options, "compare")
    if second is None and scoring.within is not None:
        return scoring.within(first, _chosen(given))
    return scoring.compare(first, first if second is None else second, _chosen(given), allowed)


def comparison_tables(made: "Compared", *folders: Path) -> Iterable["Table"]:
    """Return what :func:`compare` found about the evaluation folders as tables."""
    from ..evaluation.report.formats import comparison_table

    scoring = judging_of(folders[0]).scored()
    if scoring.compared is not None:
        return _marked(scoring.compared(made), *folders)
    return _marked([comparison_table(made.comparisons, scoring.unit, scoring.difference)], *folders)


def make_report(
    folder: Path,
    release: Path | None = None,
    outputs: Sequence[Path] = (),
    options: Mapping[str, Any] | None = None,
) -> "ReportDocument":
    """Return the report on an evaluation folder.

    ``release``: what was judged; None for the place that the evaluation names. ``options``: other options of
    ``fabula report`` -> their values.
    """
    whole = {"release": release, "outputs": tuple(outputs), **(options or {})}
    scoring, given = _scoring([folder], whole, "report")
    if scoring.report is None:
        raise ConfigError(
            str(folder), what=f"there is no page for an evaluation of {scoring.title}", fix="use fabula score"
        )
    from ..evaluation.report.model import LEAST, below_the_line, least_covered, with_coverage

    document, covered = scoring.report(folder, _chosen(given)), least_covered(read_manifest(folder))
    least = given.get("least_coverage", LEAST)
    headline = with_coverage(document.headline, covered, least)
    warned = (*document.warnings, *below_the_line(covered, least))
    return document.model_copy(update={"headline": headline, "warnings": warned})


def published_definitions(*folders: Path | str) -> tuple[str, Mapping[str, Any]] | None:
    """Return the published protocol of evaluations, and the options with its code's definitions of scores.

    They are the defaults of :func:`score`, :func:`compare`, :func:`make_report` and :func:`calibrate`.

    Returned: its name, and option -> value; None where they were made under none, under several, or where the
    definitions are the defaults anyway.
    """
    presets = [read_manifest(folder).protocol.get("preset") or {} for folder in folders]
    names = {str(preset.get("name", "")) for preset in presets}
    name = names.pop() if len(names) == 1 else ""
    options = judging_of(folders[0]).scored().published.get(name, {})
    return (name, options) if options else None


def definitions_said(*folders: Path | str) -> Iterator[str]:
    """Yield a line that says whose definitions of scores are the defaults of evaluations; none for ours."""
    found = published_definitions(*folders)
    if found is not None:
        name, options = found
        listed = " ".join(
            f"--{option} {value}"
            for option, values in options.items()
            for value in ([values] if isinstance(values, str) else values)
        )
        yield f"definitions of the protocol {name}: {listed} (those that you give win)"


def _with_published(given: Mapping[str, Any], folders: Sequence[Path | str]) -> dict[str, Any]:
    """Return options with the definitions of the published protocol; those that were given win."""
    found = published_definitions(*folders)
    whole = {**({} if found is None else found[1]), **given}
    if found is not None and "define" in found[1]:
        whole["define"] = (*found[1]["define"], *given.get("define", ()))  # the last of a name counts
    return whole


def _of(scoring: "Scoring", verb: str) -> tuple[str, ...]:
    return scoring.of_report if verb == "report" else scoring.options


def _scoring(
    folders: Sequence[Path], options: Mapping[str, Any] | None, verb: str
) -> tuple["Scoring", dict[str, Any]]:
    """Return how an evaluation is scored, and the options that were given."""
    scoring = judging_of(folders[0]).scored()
    given = {name: value for name, value in (options or {}).items() if value not in (None, (), [])}
    wrong = [name for name in given if name not in (*_of(scoring, verb), *GENERAL)]
    if wrong:
        owners = owners_of_reports() if verb == "report" else owners_of_scoring()
        raise _only_for_others(wrong, owners, scoring.title, verb)
    return scoring, _with_published(given, folders)


def scored_judgings() -> "Iterator[tuple[Judging, Scoring]]":
    """Yield the ways of evaluating that give scores: one of a package may only collect judgements."""
    for judging in judgings():
        try:
            scoring = judging.scored()
        except NotImplementedError:
            continue
        yield judging, scoring


def owners_of_scoring() -> Owners:
    """Return whose options those of ``fabula score`` and ``fabula compare`` are that not all have."""
    return owners_among((scoring.title, scoring.options) for _, scoring in scored_judgings())


def owners_of_reports() -> Owners:
    """Return whose options those of ``fabula report`` are that not all have."""
    return owners_among((scoring.title, scoring.of_report) for _, scoring in scored_judgings())


def owners_of_studies() -> Owners:
    """Return whose options those of ``fabula calibrate`` are that not all have."""
    studied = ((scoring.title, judging.study) for judging, scoring in scored_judgings())
    return owners_among((title, study().options) for title, study in studied if study is not None)


def owners_among(having: Iterable[tuple[str, Sequence[str]]]) -> Owners:
    """Return option -> who has it, of those that not all have. ``having``: who, and which options."""
    every = tuple(having)
    names = dict.fromkeys(name for _, options in every for name in options)
    owners = {name: tuple(title for title, options in every if name in options) for name in names}
    return {name: titles for name, titles in owners.items() if len(titles) < len(every)}


def require_options_of_study(folder: Path, given: Mapping[str, object]) -> None:
    """Refuse options of ``fabula calibrate`` that say nothing about this kind of evaluation.

    ``given``: option -> its value; what is empty was not given.
    """
    wrong = [name for name, value in given.items() if value and name not in study_of(folder).options]
    if wrong:
        raise _only_for_others(wrong, owners_of_studies(), judging_of(folder).scored().title, "calibrate")


def _only_for_others(wrong: Sequence[str], owners: Owners, title: str, verb: str) -> ConfigError:
    owner = " or ".join(owners.get(wrong[0], ("another kind",)))
    return ConfigError(
        ", ".join(map(_flag, wrong)), what=f"only for an evaluation of {owner}; this is one of {title}",
        fix=f"leave it out; `fabula {verb} --help` lists the options of each kind",
    )  # fmt: skip


FLAGS = {
    "stories": "--story", "methods": "--method", "megabytes": "--pictures-mb", "measures": "--measure",
    "references": "--reference",
}  # fmt: skip


def _flag(option: str) -> str:
    return FLAGS.get(option, f"--{option.replace('_', '-')}")


def _chosen(given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a Chosen, whose module is imported late
    from ..evaluation.protocol import Chosen

    return Chosen(given, load_stories)


def affected_judgements(folder: Path, old: Path, new: Path) -> "StillValid":
    """Return which judgements of an evaluation of one version of a release stay valid under another."""
    judging = judging_of(folder)
    affected = judging.scored().affected
    if affected is None:
        able = [other.noun for other in judgings() if other.scored().affected is not None]
        raise InputError.one(
            str(folder),
            what=f"this is an evaluation of kind {judging.noun}, not {' or '.join(able)}",
            fix=f"give the folder of a `fabula evaluate {able[0]}` run",
        )
    return affected(folder, old, new, _chosen({}))


def export_archive(folder: str | Path, target: Path) -> "Archive":
    """Copy the archive of an evaluation; see :func:`fabula.evaluation.archive.archive.export_archive`."""
    from ..evaluation.archive.archive import export_archive as export

    return export(folder, target, judging_of(folder).protocol().archive)


def export_inspect(folder: Path, target: Path, release: Path | None = None) -> int:
    """Write an evaluation as a log of inspect_ai, and return how many samples it has.

    ``release``: what was judged, for questions and scores; None for the place that the evaluation names.
    Where it is not there, the log has the replies without them.
    """
    from ..evaluation.archive.archive import read_archive, sources_of
    from ..evaluation.archive.replies import InspectLog, Question, write_inspect_log
    from ..evaluation.recoverability.replies import rightness

    archive = read_archive(folder)
    known = dict(sources_of(folder, archive.manifest)).get("release")
    judged_by = release or (known if known is not None and known.is_dir() else None)
    questions: dict[str, Question] = {}
    asked: list[katha.Question] = []
    if judged_by is not None and any(
        kind.stories is not None and kind.name == kind_of(judged_by) for kind in kinds()
    ):
        asked = [question for record in load_stories(judged_by) for question in record.questions]
        questions = {each.question_id: Question(each.question, each.accepted_answers) for each in asked}
    scores = {} if judged_by is None else main_scores(folder, release)
    title = f"{archive.manifest.kind}: {Path(folder).resolve().name}"
    return write_inspect_log(target, InspectLog(archive, title, questions, scores, rightness(asked)))


def main_scores(folder: Path, release: Path | None = None) -> dict[str, dict[str, float]]:
    """Return method -> measure -> value of the main table of an evaluation; what is undefined is left out."""
    from ..evaluation.report.model import ScoreTable

    scoring = judging_of(folder).scored()
    if scoring.tables is None:
        return {}
    options = {"resamples": 0} if release is None else {"release": release, "resamples": 0}
    tables = scoring.tables(scoring.score(folder, _chosen(_with_published(options, [folder]))))
    main = next((table for table in tables if isinstance(table, ScoreTable)), None)
    return {
        row.label: {name: score.value for name, score in row.scores.items() if score.value is not None}
        for row in (() if main is None else main.rows)
    }


def export_results(folder: Path, target: Path, results: "HubResults", release: Path | None = None) -> int:
    """Write scores in the form in which the Hub keeps evaluation results; return how many there are.

    ``release``: what was judged; None for the place that the evaluation names.
    """
    from ..evaluation.archive.archive import read_archive, write_results

    scores = main_scores(folder, release)
    return write_results(target, results, scores, read_archive(folder), _made_up(folder))


def export_so_far(run: Path, target: Path) -> "Archive":
    """Write what an unfinished evaluation has so far; see :mod:`fabula.evaluation.archive.keeping`."""
    from ..evaluation.archive import keeping

    name = read_run(run).kind
    kind = kind_with(name)
    nouns = [] if kind is None else [f"evaluate-{judging.noun}" for judging in kind.judging]
    if kind is None or name not in nouns:
        raise RunError(
            str(run), what=f"this is a run of kind {name}, not an evaluation",
            fix="give the --out of fabula evaluate",
        )  # fmt: skip
    form = kind.judging[nouns.index(name)].protocol().archive
    return keeping.export_so_far(run, target, run_kind_of(run).pipeline, form)


def merge_archives(
    folders: Sequence[str | Path],
    target: str | Path,
    *,
    allowed: Collection[str] = (),
    first_wins: bool = False,
) -> "Merged":
    """Write several archives as one; see :func:`fabula.evaluation.archive.merging.merge_archives`."""
    from ..evaluation.archive.archive import ArchiveForm
    from ..evaluation.archive.merging import merge_archives as merge

    form = judging_of(folders[0]).protocol().archive if folders else ArchiveForm()
    return merge(folders, target, form, allowed=allowed, first_wins=first_wins)


def study_of(folder: str | Path) -> "Study":
    """Return how an evaluation is compared with what people say."""
    judging = judging_of(folder)
    if judging.study is None:
        raise ConfigError(
            str(folder), what=f"evaluations of kind {judging.noun} are not compared with people",
            fix="give an evaluation of another kind",
        )  # fmt: skip
    return judging.study()


def calibrate(
    folder: str | Path,
    human: str | Path,
    source: str | Path | None = None,
    settings: "StudySettings | None" = None,
    key: str | Path | None = None,
    define: Sequence[str] = (),
) -> "HumanReport":
    """Compare an evaluation of any kind with what people said.

    ``settings``: definitions; None for the defaults.
    """
    from ..evaluation.archive.archive import read_archive
    from ..people.study import Evaluated, calibrate

    archive, study = read_archive(folder), study_of(folder)
    source, key = (None if path is None else Path(path) for path in (source, key))
    defined = _with_published({"define": tuple(define)}, [folder])["define"]
    said = Path(human) / VOTES if Path(human).is_dir() else Path(human)
    evaluated = Evaluated(archive, Path(folder), said, source, key, defined)
    return calibrate(evaluated, study, settings)
