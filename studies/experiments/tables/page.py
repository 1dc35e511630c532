"""The page of a study: planted losses first, then results, effects, tables, stories by all methods."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ....errors import TargetError
from ....evaluation.recoverability.definitions import COMMONS, NONRESPONSES, SUPPORTS, Definitions
from ....evaluation.report.formats import Table
from ....evaluation.report.model import CountTable, Definition
from ....evaluation.report.page import with_parts
from ....evaluation.report.showing import resampling_definition, sentences
from ....pages.figures import Plot, PlotPoint
from ....schemas.canonical import pretty_bytes, write_atomic
from ....schemas.text import counted
from ..study import PAGE
from ..study import TABLES as FOLDER
from .leaderboard import main_of
from .registry import TABLES, absent_table, make_tables, save_tables
from .results import MadeTables, StudyResults, read_results
from .shown_stories import HOW, ShownStory, compass_stories, same_stories

GROUPS: Mapping[str, tuple[str, str]] = {
    "planted": (
        "Planted losses",
        "Whether the evaluators can be believed: what was lost is known here, because it was planted.",
    ),
    "results": ("Results", ""),
    "effects": (
        "Plans and renderers apart",
        "What changes with the plan while the renderer stays, and with the renderer while the plan stays.",
    ),
    "compass": (
        "Semantic Compass",
        "Selection among candidates and repair by one frame, judged with prompts and questions that "
        "selection has not seen.",
    ),
    "evaluators": ("Evaluators and ablations", "The same outputs, seen by other protocols."),
    "stories": ("The same story by all methods", ""),
    "parts": ("In detail", ""),
    "validity": (
        "Validity",
        "Raw and common-valid each mean two things in the paper; both are here, under names of their own.",
    ),
    "setup": ("What was compared, and how", ""),
    "cost": ("Cost", ""),
}
"""Section of the page -> its title, and what it is about; in this order."""
_MEANINGS = (
    (
        "STG", "R_text - R_image",
        "What is recovered from the text minus what is recovered from the images, over the same questions of "
        "the same generations; lower is better.",
    ),
    (
        "raw", "before ambiguity filtering (Table 26)",
        "All questions of valid generations, ambiguous ones included.",
    ),
    (
        "raw", "before validity filtering (Table 57)",
        "Questions of invalid generations count as not recovered from images; ambiguous ones are left out as "
        "far as they could be asked.",
    ),
    (
        "common-valid", "questions (Table 26)", "Questions that are valid for every method with every seed.",
    ),
    (
        "common-valid", "stories (Table 57)",
        "Valid questions of stories of which every method has a valid generation.",
    ),
    (
        "planner effect", "mean over renderers",
        "The difference between two plans with the same renderer, averaged over renderers, paired by story; "
        "the renderer effect is the same the other way round.",
    ),
    (
        "seeds", "averaged within the story",
        "Then stories are drawn; a closed system has one run without a seed.",
    ),
    (
        "invalid", "a generation with a picture that is missing or cannot be used",
        "It is counted, never left out silently, and never scored as if it had been judged.",
    ),
)  # fmt: skip
DEFINED = tuple(Definition(name=name, value=value, meaning=meaning) for name, value, meaning in _MEANINGS)
"""What the page calls by which name, whatever definitions the study uses."""


FOLD = 14
"""A table with more rows than this is folded on the page."""


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    name: str  # in links
    title: str  # of the section
    note: str = ""  # what it is about
    plot: Plot | None = None  # first
    # tables of scores and of counts, in order, each with whether it is one of counts
    tables: tuple[tuple[bool, Table], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()  # tables that are not there, and why
    stories: tuple[ShownStory, ...] = ()  # grids of stories


@dataclass(frozen=True)
class StudyPage:
    """All that the page shows."""

    title: str  # of the study
    heading: str  # of the page: the title behind name and version of the release
    facts: Mapping[str, str]  # label -> what the study is, in short
    warnings: tuple[str, ...]  # what readers must know first
    sections: tuple[Section, ...] = field(repr=False)  # in order; those with nothing in them are left out
    definitions: tuple[Definition, ...] = field(repr=False)  # named definitions in use
    study: Mapping[str, Any] = field(repr=False)  # the study as it was read


def study_page(results: StudyResults, made: MadeTables) -> StudyPage:
    """Return what the page of a study shows."""
    sections = [
        Section(
            name, title, note, _plot(results) if name == "results" else None, _tables(made, name),
            _absent(made, name), _stories(results, name),
        )
        for name, (title, note) in GROUPS.items()
    ]  # fmt: skip
    return StudyPage(
        f"Study {results.study.name}", _heading(results), _facts(results), tuple(_warnings(results)),
        tuple(
            section
            for section in sections
            if section.plot or section.tables or section.absent or section.stories
        ),
        (*_definitions(results), *DEFINED), results.study.model_dump(mode="json"),
    )  # fmt: skip


def render_study(page: StudyPage) -> str:
    """Return the page as HTML that needs nothing else."""
    template = files(__package__).joinpath("page.j2").read_text("utf-8")
    study = pretty_bytes(page.study).decode("utf-8")
    return with_parts(
        template,
        page=page,
        folder=FOLDER,
        how=HOW,
        study=study,
        fold=FOLD,
    )


def write_page(
    folder: Path, definitions: Definitions | None = None, release: Path | None = None
) -> tuple[Path, ...]:
    """Write the page of a study and its tables as files into its folder; return the files, the page first.

    ``definitions``: how replies become numbers; None for the study's. ``release``: the release that was
    judged; None for the place that the evaluation names.
    """
    results = read_results(folder, definitions, release)
    made = make_tables(results)
    text = render_study(study_page(results, made))
    left = absent_table(made)
    written = save_tables(folder, (*made.tables.values(), *([left] if left.rows else [])))
    path = folder / PAGE
    try:
        write_atomic(path, [text.encode("utf-8")])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the page cannot be written: {error.strerror or error}",
            fix="free the disk, or give yourself the right to write there",
        ) from error  # fmt: skip
    return (path, *written)


def _plot(results: StudyResults) -> Plot | None:
    """Return the gap of every plan by each renderer; None where nothing was judged."""
    if results.judged is None:
        return None
    groups: dict[str, list[PlotPoint]] = {}
    for method in results.judged_methods:
        plan, renderer = results.cells.get(method, (method, "other outputs"))
        score = main_of(results.scores.methods[method]).gap
        groups.setdefault(renderer, []).append(PlotPoint(series=plan, score=score))
    return Plot(
        name="headline_gap", axis="STG, text minus images", title="STG, by renderer and plan", unit="points",
        note="Text minus images, in percentage points: further left is better. Lines are 95 % intervals.",
        groups={renderer: tuple(points) for renderer, points in groups.items()},
    )  # fmt: skip


def _tables(made: MadeTables, group: str) -> tuple[tuple[bool, Table], ...]:
    names = [table.name for table in TABLES if table.group == group and table.name in made.tables]
    return tuple((isinstance(made.tables[name], CountTable), made.tables[name]) for name in names)


def _absent(made: MadeTables, group: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (table.caption, made.absent[table.name])
        for table in TABLES
        if table.group == group and table.name in made.absent
    )


def _stories(results: StudyResults, group: str) -> tuple[ShownStory, ...]:
    if group == "stories" and results.judged is not None:
        return same_stories(results)
    if group == "compass" and results.found_compass is not None:
        return compass_stories(results)
    return ()


def _heading(results: StudyResults) -> str:
    title = f"Study {results.study.name}"
    if results.judged is None:
        return title
    return f"{results.judged.release.name} {results.judged.release.version}: {title}"


def _facts(results: StudyResults) -> dict[str, str]:
    study = results.study
    facts = {
        "Plans": ", ".join(study.plans),
        "Renderers": ", ".join(dict.fromkeys(cell[1] for cell in results.cells.values())),
        "Seeds": ", ".join(map(str, study.seeds)),
    }
    if results.judged is not None:
        scope = results.scores.scope
        facts |= {
            "Stories": f"{scope['stories']:,}",
            "Questions": f"{scope['questions']:,}",
            "Judges": f"{len(scope['judges']):,}",
            "Release": str(results.scores.release["version"]),
        }
    asked = sum(map(len, results.pictures.values()))
    if asked:
        facts["Pictures asked for"] = f"{asked:,}"
    return facts


def _warnings(results: StudyResults) -> Iterator[str]:
    if any(renderer.model.startswith("image:drawn") for renderer in results.study.renderers.values()):
        yield (
            "Pictures of a renderer with the model drawn are drawn from data, by rules: they show that the "
            "study works, and are no generator's."
        )
    if results.judged is None:
        yield f"Nothing was judged yet: {results.absent['evaluation']}."
        return
    if results.evaluation.manifest.environment.get("simulation"):
        yield "The judgements are simulated: nothing here says anything about any plan, renderer or judge."
    yield from sentences(results.scores.notes)
    for name in results.judged_methods:
        made = results.scores.methods[name].generations
        if made["generations_invalid"]:
            verb = "is" if made["generations_invalid"] == 1 else "are"
            yield (
                f"{made['generations_invalid']:,} of {counted(made['generations_requested'], 'generation')} "
                f"of {name} {verb} invalid; see Validity."
            )


def _definitions(results: StudyResults) -> Sequence[Definition]:
    used = results.definitions
    return (
        Definition(
            name="matcher", value=used.matcher, meaning="How answers are compared with accepted ones."
        ),
        Definition(name="nonresponse", value=used.nonresponse, meaning=NONRESPONSES[used.nonresponse]),
        Definition(name="support", value=used.support, meaning=SUPPORTS[used.support]),
        Definition(name="common", value=used.common, meaning=f"{COMMONS[used.common].capitalize()}."),
        resampling_definition(used, "story"),
    )
