"""The page of a study: planted losses first, then results, effects, tables, stories by all methods."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ....evaluation.recoverability.matching import (
    COMMONS,
    DIMENSIONS,
    LATENT,
    NONRESPONSES,
    SUPPORTS,
    Definitions,
    Items,
)
from ....evaluation.recoverability.method import Method
from ....evaluation.recoverability.pooling import sums_of
from ....evaluation.recoverability.recoverability import Rates
from ....evaluation.recoverability.score import Judged
from ....evaluation.report.formats import Table, with_parts
from ....evaluation.report.model import CountTable, Definition, Frame
from ....evaluation.report.showing import (
    Pictures,
    Thumbnails,
    pictures_of_run,
    resampling_definition,
    sentences,
)
from ....evaluation.stats.uncertainty import TOLERANCE
from ....pages.figures import Plot, PlotPoint
from ....pages.grid import label_text, value_text
from ....schemas.canonical import pretty_bytes, write_atomic, writing
from ....schemas.text import counted
from ...compass.arms import ARMS, FIRST, FULL
from ..study import EVALUATION, PAGE
from ..study import TABLES as FOLDER
from .compass_results import methods_by_name
from .leaderboard import main_of
from .registry import TABLES, absent_table, make_tables, save_tables
from .results import MadeTables, StudyResults, read_results

# -- The stories of a study's page, with their pictures and what was lost in each (Table 69)

# -- The same story by all methods: which stories a page shows, by rules that are data (K.2, Tables 68 and 69)
#
# A story can be shown where every method has a valid generation of it, with one seed that all seeded methods
# share; invalid generations are not used. Ambiguous questions are not used either: gaps are over the
# questions that are valid for all of these generations, and a story of which fewer than half of the questions
# are is left out. So what is shown can be nobody's favourite: the rules say which story it is.

Floats = NDArray[np.float64]
LEAST_VALID = 0.5
"""Share of a story's questions that must be valid for every generation that is shown."""


@dataclass(frozen=True)
class Facts:
    """What rules choose by; ``nan`` for stories that cannot be shown."""

    methods: tuple[str, ...]  # the methods, in order
    cells: Mapping[str, tuple[str, str]]  # method -> plan and renderer; those outside the study have none
    # story -> the seed that is shown of seeded methods; None where there are none
    seeds: tuple[int | None, ...]
    usable: NDArray[np.bool_] = field(repr=False)  # which stories can be shown, shape (stories,)
    gaps: Floats = field(repr=False)  # STG of the generation that is shown, shape (methods, stories)
    images: Floats = field(repr=False)  # what is recovered from its images, shape (methods, stories)
    dimensions: Floats = field(repr=False)  # STG per dimension, shape (methods, stories, dimensions)

    def mean_gap(self) -> Floats:
        """Return the mean STG over methods, shape (stories,)."""
        return np.asarray(self.gaps.mean(axis=0), dtype=np.float64)

    def fall(self, first: str, second: str) -> Floats:
        """Return how much lower the second method's STG is, shape (stories,); ``nan`` without one of both."""
        if first not in self.methods or second not in self.methods:
            return np.full(self.gaps.shape[1], np.nan)
        ours, theirs = (self.gaps[self.methods.index(name)] for name in (first, second))
        return np.asarray(ours - theirs, dtype=np.float64)

    def spread(self, part: Literal[0, 1]) -> Floats:
        """Return how far plans (0) or renderers (1) differ in mean STG, shape (stories,); ``nan`` if one."""
        levels: dict[str, list[int]] = {}
        for position, method in enumerate(self.methods):
            if method in self.cells:
                levels.setdefault(self.cells[method][part], []).append(position)
        if len(levels) < 2:
            return np.full(self.gaps.shape[1], np.nan)
        means = np.stack([self.gaps[places].mean(axis=0) for places in levels.values()])
        return np.asarray(means.max(axis=0) - means.min(axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Rule:
    """A rule that chooses one story."""

    name: str  # in data
    label: str  # what the story is shown as
    why: str  # why such a story is shown
    value: Callable[[Facts], Floats] = field(repr=False)  # what stories are compared by, shape (stories,)
    # the highest value, the lowest, or the one nearest to the median
    takes: Literal["highest", "lowest", "median"] = "highest"

    def choose(self, facts: Facts, taken: Sequence[int]) -> int | None:
        """Return the position of the story, the earlier of those that are alike; None where there is none."""
        values = np.where(facts.usable, self.value(facts), np.nan)
        if np.isnan(values).all():
            return None
        if self.takes == "median":
            values = -np.abs(values - np.nanmedian(values))
        elif self.takes == "lowest":
            values = -values
        values[list(taken)] = np.nan
        return None if np.isnan(values).all() else int(np.nanargmax(np.round(values, 9)))


def _of_dimension(dimension: str) -> Callable[[Facts], Floats]:
    position = DIMENSIONS.index(dimension)

    def value(facts: Facts) -> Floats:
        return np.asarray(facts.dimensions[:, :, position].mean(axis=0), dtype=np.float64)

    return value


def _repair(facts: Facts) -> Floats:
    return facts.fall(FIRST, FULL)


RULES: tuple[Rule, ...] = (
    Rule("high_collapse", "Largest gap", "much is lost, by all methods together", Facts.mean_gap),
    Rule("typical", "Typical gap", "nearest to the median: what usually happens", Facts.mean_gap, "median"),
    Rule("low_collapse", "Smallest gap", "what images can tell", Facts.mean_gap, "lowest"),
    Rule("plan_effect", "Plans differ most", "what the plan changes", lambda facts: facts.spread(0)),
    Rule(
        "renderer_effect", "Renderers differ most", "what the renderer changes", lambda facts: facts.spread(1)
    ),
    *(
        Rule(
            f"dimension_{name}", f"Largest gap: {label_text(name).lower()}",
            f"what of {label_text(name).lower()} meaning is lost", _of_dimension(name),
        )
        for name in LATENT
    ),
)  # fmt: skip
"""The rules of Table 68, with the smallest gap and what differs most added; in this order, each a story."""
COMPASS_RULES: tuple[Rule, ...] = (
    Rule("repair", "Semantic Compass helps most", "what a repair can do", _repair),
    Rule("repair_boundary", "Semantic Compass helps least", "where it does not help", _repair, "lowest"),
)
"""The rules of Table 68 for Semantic Compass, whose arms are shown instead of all methods."""


@dataclass(frozen=True)
class Chosen:
    """A story that is shown."""

    rule: Rule  # by which
    story: int  # its position
    value: float  # what it was chosen by


def chosen_stories(facts: Facts, rules: Sequence[Rule] = RULES) -> tuple[Chosen, ...]:
    """Return a story for each rule that has one, no story twice."""
    chosen: list[Chosen] = []
    for rule in rules:
        position = rule.choose(facts, [each.story for each in chosen])
        if position is not None:
            chosen.append(Chosen(rule, position, float(rule.value(facts)[position])))
    return tuple(chosen)


def facts_of(
    methods: Sequence[Method], items: Items, seeds: Sequence[int | None], cells: Mapping[str, tuple[str, str]]
) -> Facts:
    """Return what is known of every story.

    ``cells``: method -> plan and renderer.
    """
    seeded = [position for position, seed in enumerate(seeds) if seed is not None]
    shared = _shared_seed(methods, seeded, items.stories)
    shown = [_shown(method, shared, seeded) for method in methods]
    there = np.all([rows.any(axis=0) for rows in shown], axis=0)
    valid = [
        method.outcomes.those("filtered") & rows[:, items.story]
        for method, rows in zip(methods, shown, strict=True)
    ]
    common = np.all([mask.any(axis=0) for mask in valid], axis=0)
    counts = np.bincount(items.story, minlength=items.stories)
    kept = np.bincount(items.story, weights=common.astype(np.float64), minlength=items.stories)
    usable = there & (kept > 0) & (kept >= LEAST_VALID * counts)
    rates = [
        Rates.of(sums_of(method.outcomes, mask & common, items))
        for method, mask in zip(methods, valid, strict=True)
    ]
    return Facts(
        tuple(method.name for method in methods), cells,
        tuple(None if position < 0 else seeds[position] for position in shared.tolist()), usable,
        np.stack([rate.overall()[2] for rate in rates]), np.stack([rate.overall()[1] for rate in rates]),
        np.stack([rate.gaps for rate in rates]),
    )  # fmt: skip


def _shared_seed(methods: Sequence[Method], seeded: Sequence[int], stories: int) -> NDArray[np.int64]:
    """Return the position of the first seed with which all seeded methods have a valid story; -1 for none."""
    shared = np.full(stories, -1, dtype=np.int64)
    asked = [method for method in methods if _is_seeded(method, seeded)]
    for position in reversed(seeded if asked else ()):
        everywhere = np.all([method.made.valid[position] for method in asked], axis=0)
        shared[everywhere] = position
    return shared


def _is_seeded(method: Method, seeded: Sequence[int]) -> bool:
    return bool(method.made.requested[list(seeded)].any())


def _shown(method: Method, shared: NDArray[np.int64], seeded: Sequence[int]) -> NDArray[np.bool_]:
    """Return which generation of each story is shown, shape (seeds, stories): one at most of each story."""
    valid = method.made.valid
    if not _is_seeded(method, seeded):
        return valid
    rows = np.zeros_like(valid)
    known = np.flatnonzero(shared >= 0)
    rows[shared[known], known] = valid[shared[known], known]
    return rows


# -- The stories of a study's page, with their pictures and what was lost in each (Table 69)

SIDE = 240
"""Longer side of a picture in a grid, in pixels."""
COMPASS_ROWS = (FIRST, "rerank-only", "bridge-only", FULL)
"""Arms that are shown beside each other."""
HOW = (
    "Chosen by rules, not by eye, among stories of which every method has a valid generation with one shared "
    f"seed and at least {LEAST_VALID:.0%} of the questions valid for all of these. Gaps are over those "
    "questions alone."
)


@dataclass(frozen=True)
class ShownMethod:
    label: str  # the method, or arm
    seed: int | None  # of the generation that is shown
    values: Mapping[str, str]  # label -> value, as text
    frames: tuple[Frame, ...] = field(repr=False)  # its pictures


@dataclass(frozen=True)
class ShownStory:
    """One story by several methods."""

    story_id: str  # the story
    title: str  # its title
    label: str  # what it is shown as
    why: str  # why such a story is shown, and by what value it was chosen
    moral: str | None  # its moral label; None where it has none
    scenes: tuple[str, ...]  # the texts of its scenes
    methods: tuple[ShownMethod, ...]  # the methods


def same_stories(results: StudyResults) -> tuple[ShownStory, ...]:
    """Return the stories that the rules choose, by all methods of the evaluation."""
    judged = results.evaluation
    names = {name: name for name in results.judged_methods}
    pictures = _pictures(results.folder / EVALUATION)
    return _shown_stories(judged, names, results.cells, RULES, pictures)


def compass_stories(results: StudyResults) -> tuple[ShownStory, ...]:
    """Return the stories in which Semantic Compass helps most and least, by its arms."""
    compass = results.compass
    judged = compass.reported
    if judged is None:
        return ()
    there = methods_by_name(judged)
    labels = {arm.name: arm.label for arm in ARMS if arm.name in there and arm.name in COMPASS_ROWS}
    folder = next(compass.folders[cell] for cell, each in compass.cells.items() if each is judged)
    return _shown_stories(judged, labels, {}, COMPASS_RULES, _pictures(folder)) if labels else ()


def _pictures(folder: Path) -> Pictures:
    return Pictures(pictures_of_run(folder).shown, Thumbnails(SIDE))


def _shown_stories(
    judged: Judged, labels: Mapping[str, str], cells: Mapping[str, tuple[str, str]], rules: Sequence[Rule],
    pictures: Pictures,
) -> tuple[ShownStory, ...]:  # fmt: skip
    methods = methods_by_name(judged)
    facts = facts_of([methods[name] for name in labels], judged.items, judged.replies.seeds, cells)
    return tuple(_story(judged, labels, facts, each, pictures) for each in chosen_stories(facts, rules))


def _story(
    judged: Judged, labels: Mapping[str, str], facts: Facts, chosen: Chosen, pictures: Pictures
) -> ShownStory:
    record = judged.items.records[chosen.story]
    shown = []
    for position, (name, label) in enumerate(labels.items()):
        seed = facts.seeds[chosen.story]
        frames = pictures.every((name, record.story_id, seed))
        if not frames and (frames := pictures.every((name, record.story_id, None))):
            seed = None
        shown.append(ShownMethod(label, seed, _values(facts, position, chosen.story), frames))
    why = f"{chosen.rule.why} ({value_text(chosen.value, 'points')} points)"
    return ShownStory(
        record.story_id, record.title, chosen.rule.label, why, record.moral_label,
        tuple(scene.scene_text for scene in record.scenes), tuple(shown),
    )  # fmt: skip


def _values(facts: Facts, position: int, story: int) -> dict[str, str]:
    """Return the fields of Table 69 that can be computed; the others need people or a rubric."""
    gaps = facts.dimensions[position, story]
    values = {
        "From images": f"{value_text(float(facts.images[position, story]), 'percent')} %",
        "STG": value_text(float(facts.gaps[position, story]), "points"),
    }
    if not np.isnan(gaps).all() and np.nanmax(gaps) > 0:
        most = np.nanmax(gaps) - TOLERANCE
        worst = [name for name, gap in zip(DIMENSIONS, gaps, strict=True) if gap >= most]
        dimension = label_text(worst[0]).lower() if len(worst) == 1 else counted(len(worst), "dimension")
        values["Lost most"] = f"{dimension} {value_text(float(np.nanmax(gaps)), 'points')}"
    return values


# --

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
    title: str  # of the study
    heading: str  # of the page: the title behind name and version of the release
    facts: Mapping[str, str]  # label -> what the study is, in short
    warnings: tuple[str, ...]  # what readers must know first
    sections: tuple[Section, ...] = field(repr=False)  # in order; those with nothing in them are left out
    definitions: tuple[Definition, ...] = field(repr=False)  # named definitions in use
    study: Mapping[str, Any] = field(repr=False)  # the study as it was read


def study_page(results: StudyResults, made: MadeTables) -> StudyPage:
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
    with writing(path, "free the disk, or give yourself the right to write there", what="the page"):
        write_atomic(path, [text.encode("utf-8")])
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
        "Plans": ", ".join(study.plans) or "none",
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
    if any((renderer.model or "").startswith("image:drawn") for renderer in results.study.renderers.values()):
        yield (
            "Pictures of a renderer with the model drawn are drawn from data, by rules: they show that the "
            "study works, and are no generator's."
        )
    if results.judged is None:
        yield f"Nothing was judged yet: {results.absent['evaluation']}."
        return
    if results.evaluation.manifest.environment.get("simulation"):
        yield "The judgements are simulated: nothing here says anything about any plan, renderer or judge."
    yield from sentences(results.scores.notes, results.scores.methods)
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
