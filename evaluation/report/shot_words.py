"""What a report on shot images says in words: title, warnings, definitions; and its plots."""

from collections.abc import Iterator

from ...schemas.judgement import EvaluationManifest
from ..images.definitions import Definitions
from ..images.leaderboard import Leaderboard
from ..images.scores import ImageScores
from ..metrics.registry import base_of, in_order, metric_of, metrics
from ..words import counted
from .accounts import Accounts
from .comparing import resampling_definition
from .model import Definition, Plot, PlotPoint
from .shot_cards import Looked
from .shot_tables import measure_of, unit_of

FEW_ANSWERS = 0.95
"""Share of answers of a judge below which the page says so at its top."""
MOST_LINES = 8
"""Methods up to which scores are drawn on lines, too."""


def title_of(scores: ImageScores) -> str:
    """Return the title of the page."""
    methods = [one.method for one in scores.methods]
    if not methods:
        return "Shot images of no method"
    return f"Shot images of {methods[0]}" if len(methods) == 1 else f"Shot images of {len(methods)} methods"


def facts_of(scores: ImageScores, accounts: Accounts, manifest: EvaluationManifest) -> dict[str, str]:
    """Return what the evaluation is about, in short."""
    created = manifest.environment.get("created_at")
    stories = {story.story_id for one in scores.methods for story in one.stories}
    asked = [int(one.accounting.get("shots_requested") or 0) for one in scores.methods]
    there = [int(one.accounting.get("shots_valid") or 0) for one in scores.methods]
    return {
        "Stories": f"{len(stories):,}",
        "Methods": f"{len(scores.methods):,}",
        "Shots asked for": f"{sum(asked):,}",
        "With picture": f"{sum(there):,}",
        "Judges": f"{len(accounts.replies):,}",
        "Replies": f"{accounts.total:,}",
        **({"Evaluated": str(created)[:10]} if created else {}),
    }


def reading_of(board: Leaderboard) -> Iterator[str]:
    """Yield how to read the main numbers."""
    yield (
        "Models look for characters in every picture, compare them and its style with the references and "
        "with each other, and judges rate what the script asks for."
    )
    yield (
        "Every score is a mean over stories; shots without a picture, crop or rating are left out of it and "
        "counted separately. A failure is never counted as 0."
    )
    if len(board.methods) > 1:
        yield "Intervals that overlap do not mean that methods are equally good: look at the paired tests."


def warnings_of(scores: ImageScores, board: Leaderboard, accounts: Accounts, looked: Looked) -> Iterator[str]:
    """Yield what readers must know first."""
    stories = len({story.story_id for one in scores.methods for story in one.stories})
    if not stories:
        yield "The evaluation has no story."
    yield from (f"{note[:1].upper()}{note[1:]}." for note in scores.notes)
    for one in scores.methods:
        asked, there = one.accounting.get("shots_requested"), one.accounting.get("shots_valid")
        if isinstance(asked, int) and isinstance(there, int) and there < asked:
            yield f"{asked - there:,} of {asked:,} shots of {one.method} have no picture."
    for method, why in board.unranked.items():
        yield f"{method} is shown, but not ranked: {why}."
    for judge, count in sorted(accounts.replies.items()):
        answered = accounts.outcomes[judge]["answered"]
        if answered < FEW_ANSWERS * count:
            yield f"{judge} answered {answered:,} of {count:,} requests; see Coverage and outcomes."
    if looked.files.changed:
        yield (
            f"{counted(len(looked.files.changed), 'picture')} changed since the evaluation and "
            f"{'is' if len(looked.files.changed) == 1 else 'are'} not shown."
        )
    if looked.snaps.gone and not looked.snaps.made:
        yield "The pictures were not found: give their folders with --outputs and the set with --release."


def plots_of(scores: ImageScores, board: Leaderboard) -> Iterator[Plot]:
    """Yield similarities and ratings of several methods on lines."""
    if not 1 < len(board.methods) <= MOST_LINES:
        return
    methods = {one.method: one for one in scores.methods}
    alike: dict[str, list[str]] = {"similarities": [], "ratings": []}
    for name in board.names:
        if metric_of(name).group.endswith("similarity"):
            alike["similarities"].append(name)
        elif metric_of(name).judged:
            alike["ratings"].append(name)
    titles = {
        "similarities": "Similarities of characters and style",
        "ratings": "Ratings of prompt alignment, 0 to 4",
    }
    for kind, names in alike.items():
        if names:
            groups = {
                measure_of(name).label: tuple(
                    PlotPoint(series=method, score=methods[method].scores[name])
                    for method in board.methods
                    if name in methods[method].scores
                )
                for name in names
            }
            yield Plot(
                name=kind, title=titles[kind], unit=unit_of(names[0]), groups=groups,
                note="With 95 % intervals over stories.",
            )  # fmt: skip


def comparison_note_of(scores: ImageScores, pairs: int) -> str:
    """Return how methods were compared, or why they were not."""
    if len(scores.methods) < 2:
        return "There is only one method; fabula compare compares it with other evaluations."
    if not pairs:
        return "No two methods have a story in common that counts."
    return (
        "The first method minus the second, paired by story. p-values are corrected by Holm for the "
        "pairs of methods of one score, not for the number of scores."
    )


def definitions_of(used: Definitions, board: Leaderboard) -> Iterator[Definition]:
    """Yield every score with its definition, and how intervals were made."""
    present = {base_of(name) for name in board.names}
    for name in in_order(metric.name for metric in metrics()):
        if name in present:
            known = metric_of(name)
            value = ", ".join(used.of(choice) for choice in known.choices) or "as published"
            if known.whole:
                value = counted(used.splits, "split")
            yield Definition(name=known.label, value=value, meaning=known.meaning)
    least = "no lower limit" if used.least is None else f"{used.least:g}"
    yield Definition(
        name="least similarity of a match", value=least,
        meaning="Crops are assigned to expected characters so that the sum of similarities is largest.",
    )  # fmt: skip
    yield resampling_definition(used, "story")
    listed = ", ".join(f"{name}={value}" for name, value in used.all().items())
    yield Definition(name="chosen with --define", value=listed, meaning="docs/images.md says what they are.")
