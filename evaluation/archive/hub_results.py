"""Scores as the Hub's evaluation results: a file for ``.eval_results/`` of the repository of a model.

The form is the Hub's own (https://huggingface.co/docs/hub/eval-results), written by its client. A measure is
a task of the data set that the release was published as; what is undefined is left out, never 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ...errors import ConfigError, TargetError
from ...schemas.canonical import write_atomic
from ...schemas.text import tallied
from .archive import Archive


@dataclass(frozen=True, slots=True)
class HubResults:
    """Which scores are written, and of what.

    Attributes:
        dataset: Data set on the Hub that the release was published as, such as user/mine.
        method: Method whose scores they are [the only one of the evaluation].
        measures: Only these measures [all of the main table].
        commit: Commit of the data set on the Hub, 40 hexadecimal digits.
        source: Address where the evaluation can be looked at.
    """

    dataset: str
    method: str | None = None
    measures: Sequence[str] = ()
    commit: str | None = None
    source: str | None = None


def write_results(
    target: Path, results: HubResults, scores: Mapping[str, Mapping[str, float]], archive: Archive
) -> int:
    """Write the scores of a method; return how many there are.

    ``scores``: method -> measure -> value.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    if target.exists():
        raise TargetError(str(target), what="the file is there already", fix="choose another --out")
    method = results.method or (next(iter(scores)) if len(scores) == 1 else None)
    if method is None or method not in scores:
        raise ConfigError(
            f"--method {results.method or ''}".strip(),
            what="the evaluation has no scores of it"
            if results.method
            else "the evaluation has several methods",
            fix=f"use one of: {', '.join(scores) or 'none: score it first with its release at hand'}",
        )
    known = scores[method]
    unknown = [name for name in results.measures if name not in known]
    if unknown or not known:
        raise ConfigError(
            f"--measure {', '.join(unknown)}".strip(), what=f"{method} has no such score, or it is undefined",
            fix=f"use some of: {', '.join(known)}",
        )  # fmt: skip
    own = [judgement for judgement in archive.judgements if judgement.method == method]
    judges = ", ".join(dict.fromkeys(judgement.judge.spec for judgement in own))
    entries = [
        EvalResultEntry(
            dataset_id=results.dataset,
            task_id=name,
            value=known[name],
            dataset_revision=results.commit,
            date=max((judgement.time for judgement in own if judgement.time), default=None),
            source_url=results.source,
            notes=f"{method}, {tallied(len(own), 'judgements')}" + (f" by {judges}" if judges else ""),
        )
        for name in results.measures or known
    ]
    text = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, [text.encode("utf-8")])
    return len(entries)
