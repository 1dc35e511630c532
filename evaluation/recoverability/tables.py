"""The tables behind the scores: normalised answers, match decisions, valid masks and ambiguity flags."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...errors import TargetError
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.judgement import Judgement
from ...schemas.text import normalize_answer
from ..archive.archive import JUDGEMENTS, lines_of
from ..archive.replies import last_attempts
from .definitions import Definitions
from .items import CONDITIONS, DIMENSIONS
from .method import Method
from .pooling import SETS
from .replies import marker_for
from .score import Judged
from .votes import RIGHT_VERDICT, UNJUDGED

MATCHES, QUESTIONS = "matches.jsonl", "questions.jsonl"


def write_tables(target: Path, folder: Path, judged: Judged, definitions: Definitions) -> None:
    """Write both tables into a folder: a line per reply to a question, and per question that was scored.

    Raises:
        TargetError: the folder cannot be written.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        write_atomic(target / MATCHES, jsonl_lines(match_rows(folder, judged, definitions)))
        write_atomic(target / QUESTIONS, jsonl_lines(question_rows(judged)))
    except OSError as error:
        raise TargetError(
            str(target),
            what=f"the folder cannot be written: {error.strerror or error}",
            fix="choose another --tables",
        ) from error


def match_rows(folder: Path, judged: Judged, definitions: Definitions) -> Iterator[dict[str, Json]]:
    """Yield what each reply to a question said, normalised, and whether it is right (null: no answer)."""
    path = folder / JUDGEMENTS
    marker, places = marker_for(path, definitions), judged.items.question_places
    for one in last_attempts(lines_of(path)):
        if one.kind != "question" or one.item not in places:
            continue
        right = None
        if one.parsed is not None:
            right = bool(marker.marks(judged.items.keys[places[one.item]], one.condition, one.parsed)[0])
        yield {
            "method": one.method, "unit": one.unit, "seed": one.seed, "item": one.item,
            "condition": one.condition, "judge": one.judge.spec, "vote": one.vote, "outcome": one.outcome,
            "answer": _said(one), "matched": right,
        }  # fmt: skip


def question_rows(judged: Judged) -> Iterator[dict[str, Json]]:
    """Yield the verdicts on each question for each method and seed, and which sets it is in."""
    for method in judged.methods:
        yield from _question_rows(method, judged)


def _question_rows(method: Method, judged: Judged) -> Iterator[dict[str, Json]]:
    items, outcomes = judged.items, method.outcomes
    ambiguous = outcomes.ambiguous
    for seed, place in zip(*np.nonzero(outcomes.requested), strict=True):
        verdicts = outcomes.verdicts[seed, :, place]
        yield {
            "method": method.name, "seed": judged.replies.seeds[seed],
            "unit": items.records[items.story[place]].story_id, "item": items.keys[place].question_id,
            "dimension": DIMENSIONS[items.dimension[place]],
            **{
                name: None if verdict == UNJUDGED else bool(verdict == RIGHT_VERDICT)
                for name, verdict in zip(CONDITIONS, verdicts, strict=True)
            },
            "ambiguous": bool(ambiguous[seed, place]),
            "generation_valid": bool(outcomes.valid[seed, place]),
            **{name: bool(outcomes.sets[name][seed, place]) for name in SETS},
        }  # fmt: skip


def _said(judgement: Judgement) -> str | None:
    name = "final_answer" if judgement.condition == "text_image" else "answer"
    said = None if judgement.parsed is None else judgement.parsed.get(name)
    return normalize_answer(said) if isinstance(said, str) else None
