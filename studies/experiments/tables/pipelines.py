"""What was compared and how it was kept comparable: Tables 41, 42 and 44, from the study and its data.

What a study took: pictures and calls of each method, judges, and what that cost (Table 48).
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import get_args

from ....evaluation.recoverability.method import common_stories
from ....evaluation.report.model import CountRow, CountTable
from ....schemas.text import counted
from ....validators.resampling import LEAST
from ...pictures import PLANS
from ..study import MASTER_SEED, Renderer
from .results import Outcome, StudyResults

Cell = int | float | str | None
_PLANS = {plan.name: plan for plan in PLANS}


def pipelines(results: StudyResults) -> CountTable:
    """Table 41: for each method its plan, its renderer, what is held equal and how it is to be read."""
    rows = []
    for method, (plan_name, renderer_name) in results.cells.items():
        plan, renderer = _PLANS.get(plan_name), results.study.renderers[renderer_name]
        closed = renderer.closed
        values: dict[str, Cell] = {
            "plan": (plan_name or "its own") if plan is None else f"{plan.title}: {plan.representation}",
            "renderer": _made_with(renderer),
            "inputs": None if plan is None else plan.inputs,
            "fairness": _fairness(None if plan is None else plan.fairness, renderer),
            "closed": None if closed is None else closed.name,
            "version": None if closed is None else closed.version or "not told",
            "accessed": None if closed is None else closed.accessed or "not recorded",
            "options": None if closed is None else closed.options or "none",
        }
        rows.append(CountRow(label=method, values=values))
    columns = {
        "plan": "What the renderer is shown", "renderer": "Renderer", "inputs": "Held equal",
        "fairness": "How to read it",
    }  # fmt: skip
    closed_columns = {
        "closed": "Closed system",
        "version": "Version",
        "accessed": "Accessed",
        "options": "Options",
    }
    if any(renderer.closed for renderer in results.study.renderers.values()):
        columns |= closed_columns
    return CountTable(
        name="pipelines", title="Pipelines", heading="Plan + renderer",
        note="Questions and accepted answers are never part of what a renderer is shown.",
        columns=columns,
        rows=tuple(
            CountRow(label=row.label, values={name: row.values[name] for name in columns}) for row in rows
        ),
    )  # fmt: skip


def _made_with(renderer: Renderer) -> str:
    settings = [renderer.model or "finished storyboards"]
    if renderer.width is not None and renderer.height is not None:
        settings.append(f"{renderer.width} x {renderer.height} pixels")
    if renderer.steps is not None:
        settings.append(counted(renderer.steps, "step"))
    if renderer.negative is not None:
        settings.append(f"negative prompt: {renderer.negative}")
    return ", ".join(settings)


def _fairness(of_plan: str | None, renderer: Renderer) -> str:
    remarks = [of_plan] if of_plan else []
    if renderer.rewrite is not None:
        remarks.append(f"prompts written anew by {renderer.rewrite}, a condition of its own")
    if renderer.closed is not None:
        remarks.append("reported as a reference: what happens inside is not controlled")
    if renderer.model is None:
        remarks.append("made outside of the study, which does not know what it was shown")
    elif renderer.model.startswith("image:drawn"):
        remarks.append("drawn from data to try the path out; no generator to be compared")
    return "; ".join(remarks)


def controls(results: StudyResults) -> CountTable:
    """Table 42: what kept the comparison fair, as it was in this study."""
    rows = [
        CountRow(label=control, values={"here": here, "purpose": purpose})
        for control, here, purpose in _controls(results)
    ]
    return CountTable(
        name="controls_of_study", title="What kept the comparison fair", heading="Control",
        note="Counted from the files of this study.",
        columns={"here": "In this study", "purpose": "Purpose"}, rows=tuple(rows),
    )  # fmt: skip


def _controls(results: StudyResults) -> Iterator[tuple[str, str, str]]:
    judged, study = results.evaluation, results.study
    items, protocol = judged.items, judged.manifest.protocol
    splits = sorted({record.split or "without a split" for record in items.records})
    yield (
        "Story split", f"{counted(items.stories, 'story')} of {', '.join(splits)}, the same for every method",
        "no choice of examples by method",
    )  # fmt: skip
    yield (
        "Scene order", "pictures are numbered by scene and shown to judges in that order",
        "questions about transitions speak of the same neighbours",
    )  # fmt: skip
    seeds = [f"{name}: {_seeds(results, name)}" for name in results.judged_methods]
    yield "Seeds", "; ".join(seeds), "chance of the generator is averaged"
    yield (
        "Accepted answers",
        f"{counted(items.questions, 'question')} of release {judged.release.version}, SHA-256 "
        f"{judged.sha256[:12]}",
        "the key is fixed before anything is judged",
    )  # fmt: skip
    yield "Evidence packets", _packets(results), "no text of the story reaches a judge that sees images only"
    prompts = protocol.get("prompts")
    asked_with = (
        f"{len(prompts)} prompts, hashes in the manifest"
        if isinstance(prompts, (dict, list))
        else study.prompts
    )
    yield (
        "Judge prompts",
        f"{asked_with}; {counted(len(judged.replies.judges), 'judge')}",
        "the same words for every method",
    )
    yield "Invalid generations", _invalid(results), "failures are counted, not left away"
    yield (
        "Method-valid subset",
        "; ".join(
            f"{name}: {results.scores.methods[name].generations['stories_valid']:,} of "
            f"{counted(int(results.scores.methods[name].generations['stories_requested']), 'story')}"
            for name in results.judged_methods
        ),
        "text and images of a method are counted over the same generations",
    )  # fmt: skip
    yield (
        "Common-valid subset",
        f"{counted(int(common_stories(judged.methods).sum()), 'story')} and "
        f"{counted(_common(results), 'question')} valid for every method",
        "whether the ranking depends on whose stories failed",
    )  # fmt: skip
    closed = [renderer.closed.name for renderer in study.renderers.values() if renderer.closed is not None]
    yield (
        "Closed systems", f"{', '.join(closed)}: references" if closed else "none",
        "nothing is claimed of what cannot be controlled",
    )  # fmt: skip


def _common(results: StudyResults) -> int:
    """Return how many questions are valid for every method with every seed, or most."""
    masks = [method.outcomes.sets["common"].any(axis=0) for method in results.evaluation.methods]
    return int(sum(masks[1:], start=masks[0]).astype(bool).sum())


def _packets(results: StudyResults) -> str:
    scans = []
    for name in results.judged_methods:
        about = results.about(name)
        scanned, leaks = about.get("packets_scanned"), about.get("leaks")
        if isinstance(scanned, int):
            stopped = len(leaks) if isinstance(leaks, list) else 0
            scans.append(
                f"{name}: {counted(scanned, 'packet')} scanned, {counted(stopped, 'storyboard')} stopped"
            )
    return "; ".join(scans) or "the manifest does not say how many were scanned"


def _invalid(results: StudyResults) -> str:
    counts = []
    for name in results.judged_methods:
        made = results.scores.methods[name].generations
        counts.append(f"{name}: {made['generations_invalid']:,} of {made['generations_requested']:,}")
    return "; ".join(counts)


def _seeds(results: StudyResults, method: str) -> str:
    """Return the seeds that a method's pictures were asked for with."""
    cell = results.cells.get(method)
    if cell is not None and not results.study.renderers[cell[1]].seeded:
        return "one run without a seed"
    lines = results.pictures.get(method)
    seeds = (
        list(dict.fromkeys(line.seed for line in lines))
        if lines
        else list(results.about(method).get("seeds") or ())
    )
    named = sorted(seed for seed in seeds if isinstance(seed, int))
    return ", ".join(map(str, named)) if named else "one run without a seed"


def run_seeds(results: StudyResults) -> CountTable:
    """Table 44: how often each thing was done, with which seeds, and how the runs become one number."""
    used, judged = results.definitions, results.evaluation
    judging_seed = judged.manifest.protocol.get("seed", MASTER_SEED)
    rows = [
        (
            "Splits and questions", "fixed", "none needed", f"those of release {judged.release.version}",
            "shared by all methods",
        ),
        (
            "Order of questions for judges", "fixed", f"seed {judging_seed}",
            "the order in which packets are made", "shared by all methods",
        ),
        (
            "Intervals", f"{used.resamples:,} resamples", f"seed {used.seed}", "95 % intervals over stories",
            f"none below {LEAST} stories",
        ),
        *(_run_row(results, name) for name in results.methods),
        (
            "Judging", f"{_votes(results)} a judge and packet", "sampling as the manifest says",
            f"{counted(len(judged.replies.judges), 'judge')} by majority", "replies are archived",
        ),
    ]  # fmt: skip
    columns = {"runs": "Runs a story", "seeds": "Seeds", "rule": "What is reported", "notes": "Notes"}
    return CountTable(
        name="run_seeds", title="Runs and seeds", heading="Part",
        note="Counted from the pictures that were asked for. The seeds of a story are averaged before "
        "stories are drawn.",
        columns=columns,
        rows=tuple(
            CountRow(label=label, values=dict(zip(columns, cells, strict=True))) for label, *cells in rows
        ),
    )  # fmt: skip


def _run_row(results: StudyResults, method: str) -> tuple[str, str, str, str, str]:
    lines = results.pictures.get(method, ())
    seeds = _seeds(results, method)
    runs = 1 if seeds.startswith("one run") else len(seeds.split(", "))
    rule = "the one run" if runs == 1 else "mean over seeds for each story, then over stories"
    ignored = sum("seed" in line.unsupported for line in lines)
    notes = [f"{ignored:,} pictures of a system that takes no seed"] if ignored else []
    other = sum(
        line.effective_seed is not None and line.seed is not None and line.effective_seed != line.seed
        for line in lines
    )
    if other:
        notes.append(f"{other:,} pictures with another seed than asked for")
    if not lines:
        notes.append("no list of pictures asked for")
    return method, str(runs), seeds, rule, "; ".join(notes) or "as asked for"


def _votes(results: StudyResults) -> str:
    columns = results.evaluation.replies.columns["question"]
    votes = int(columns.vote.max()) + 1 if len(columns) else 0
    return counted(votes, "answer")


OUTCOMES: tuple[str, ...] = get_args(Outcome)


def picture_costs(results: StudyResults) -> CountTable:
    """Pictures of each method: how many were asked for, what came back, and what they cost."""
    rows = []
    for method, lines in results.pictures.items():
        outcomes = Counter(line.outcome for line in lines)
        costs = [line.cost for line in lines if line.cost is not None]
        values: dict[str, int | float | str | None] = {
            "asked": len(lines), **{name: outcomes[name] for name in OUTCOMES},  # type: ignore[index]
            "usd": round(math.fsum(costs), 6) if costs else None, "without_price": len(lines) - len(costs),
        }  # fmt: skip
        rows.append(CountRow(label=method, values=values))
    return CountTable(
        name="picture_costs", title="Pictures asked for, and their cost", heading="Plan + renderer",
        note="USD if the price is known. A picture that was refused or blocked may have been paid for, too.",
        columns={
            "asked": "Asked for", **{name: name.capitalize() for name in OUTCOMES}, "usd": "USD",
            "without_price": "Of unknown price",
        }, rows=tuple(rows),
    )  # fmt: skip


def judge_costs(results: StudyResults) -> CountTable:
    """What the judges of the main evaluation took."""
    return results.accounts.cost_table().model_copy(update={"name": "judge_costs"})


def leaderboard_cost(results: StudyResults) -> CountTable:
    """Table 48: pictures and calls that one method with one seed takes, by split, for one judge."""
    items = results.evaluation.items
    groups = items.groups("split")
    rows = []
    for name, stories in groups.items():
        questions = int(stories[items.story].sum())
        rows.append(
            CountRow(
                label=name,
                values={
                    "stories": int(stories.sum()),
                    "pictures": sum(
                        len(record.scenes)
                        for record, there in zip(items.records, stories, strict=True)
                        if there
                    ),
                    "questions": questions,
                    "calls": 3 * questions,
                },
            )
        )
    return CountTable(
        name="leaderboard_cost", title="What evaluating one more method takes", heading="Split",
        note="For one seed and one judge: a call for each question under each of the three evidence "
        "conditions. Text-only calls are the same for all methods and are asked once; moral labels and "
        "contrastive pairs come on top.",
        columns={
            "stories": "Stories", "pictures": "Pictures", "questions": "Questions", "calls": "Judge calls",
        }, rows=tuple(rows),
    )  # fmt: skip
