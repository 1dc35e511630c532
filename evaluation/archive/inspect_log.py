"""An archive as a log of inspect_ai, which its viewer opens; inspect_ai is not needed to write it.

The form is log schema version 2: a ZIP with ``header.json``, ``summaries.json``, ``_journal/start.json``, and
a file for each sample. A sample is what one judge was asked once; votes are its epochs. Of several attempts
at a vote the last one is taken. A sample has the outcome of its reply as a score, with what was read from
it; where the accepted answers are at hand, an answered question also has ``correct``, C or I. A reply that
does not answer has none: how it counts is a matter of scoring, whose scores the header has.
"""

import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ...errors import ConfigError, TargetError
from ...schemas.canonical import Json, canonical_text, digest, write_atomic
from ...schemas.judgement import Judgement
from .archive import Archive
from .replies import last_attempts

SCHEMA = 2
"""Version of the log's form."""
ENDING = ".eval"
"""How the name of such a log ends, by which inspect_ai knows it."""
SUMMARY = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage")
"""What a log's list of samples tells of each."""
_WHEN = (1980, 1, 1, 0, 0, 0)
_NEVER = "1970-01-01T00:00:00+00:00"
"""The time of an archive that states none."""


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, where the release is at hand."""

    text: str  # the question
    accepted: tuple[str, ...]  # the accepted answers


@dataclass(frozen=True, slots=True)
class InspectLog:
    """What goes into a log."""

    archive: Archive  # the evaluation
    title: str  # what it is called
    # item -> what was asked; others are named by kind, item and unit
    questions: Mapping[str, Question] = field(default_factory=dict)
    # method -> its scores, measure -> value, as they were computed
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    # whether a reply answers its question rightly; None where that cannot be said of it
    is_right: Callable[[Judgement], bool | None] = lambda _: None

    def samples(self) -> Iterator[dict[str, Json]]:
        """Yield what judges were asked, a sample each, in the order of the archive."""
        for judgement in last_attempts(self.archive.judgements):
            yield self._sample(judgement)

    def header(self, count: int) -> dict[str, Json]:
        """Return the log without its samples."""
        judgements, manifest = self.archive.judgements, self.archive.manifest
        times = [judgement.time for judgement in judgements if judgement.time]
        judges = list(dict.fromkeys(judgement.judge.spec for judgement in judgements))
        created = min(times, default=_NEVER)
        spec = {
            "eval_id": digest(manifest.model_dump(mode="json"))[:22], "created": created, "task": self.title,
            "task_id": self.title, "dataset": {"name": self.title, "samples": count},
            "model": judges[0] if len(judges) == 1 else "several judges", "config": {},
            "metadata": {"judges": judges, "methods": list(manifest.subject.get("methods", {}))},
        }  # fmt: skip
        results = {"total_samples": count, "completed_samples": count, "scores": list(self._scores())}
        return {
            "version": SCHEMA, "status": "success", "eval": spec, "plan": {"name": "plan", "steps": []},
            "results": results, "stats": {"started_at": created, "completed_at": max(times, default=_NEVER)},
        }  # fmt: skip

    def _sample(self, judgement: Judgement) -> dict[str, Json]:
        asked = self.questions.get(judgement.item)
        about = (judgement.method, judgement.unit, judgement.seed, judgement.item, judgement.condition)
        parts = (*about, judgement.kind, judgement.judge.spec)
        named = ":".join(str(part) for part in parts if part is not None)
        parsed = judgement.parsed or {}
        said = parsed.get("answer", parsed.get("final_answer", ""))
        score = {
            "value": judgement.outcome, "answer": str(said) or None,
            "explanation": judgement.reason or (canonical_text(parsed) if parsed else None),
        }  # fmt: skip
        right = self.is_right(judgement)
        correct = {} if right is None else {"correct": {**score, "value": "C" if right else "I"}}
        message = {"role": "assistant", "content": judgement.raw or "", "source": "generate"}
        usage = {
            "input_tokens": judgement.input_tokens or 0, "output_tokens": judgement.output_tokens or 0,
            "total_tokens": (judgement.input_tokens or 0) + (judgement.output_tokens or 0),
        }  # fmt: skip
        text = f"{judgement.kind}: {judgement.item} of {judgement.unit}" if asked is None else asked.text
        model = judgement.judge.spec
        return {
            "id": named, "epoch": judgement.vote + 1, "input": text,
            "target": [] if asked is None else list(asked.accepted),
            "messages": [{"role": "user", "content": text}, message],
            "output": {"model": model, "choices": [{"message": message}], "usage": usage},
            "scores": {**correct, "outcome": score}, "model_usage": {model: usage},
            "metadata": {
                "method": judgement.method, "unit": judgement.unit, "seed": judgement.seed,
                "condition": judgement.condition, "kind": judgement.kind, "prompt": judgement.prompt,
                "cost": judgement.cost,
            },
        }  # fmt: skip

    def _scores(self) -> Iterator[dict[str, Json]]:
        for method, values in self.scores.items():
            metrics = {name: {"name": name, "value": value} for name, value in values.items()}
            yield {"name": method, "scorer": "fabula", "metrics": metrics}


def write_inspect_log(target: Path, log: InspectLog) -> int:
    """Write a log, whole or not at all, and return how many samples it has.

    The same archive, the same bytes.
    """
    if target.suffix != ENDING:
        what, fix = f"the name of such a log ends with {ENDING}", f"for example {target.stem}{ENDING}"
        raise ConfigError(f"--out {target}", what=what, fix=fix)
    if target.exists():
        raise TargetError(str(target), what="the file is there already", fix="choose another --out")
    summaries: list[Json] = []
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for sample in log.samples():
                _add(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
                summaries.append({name: sample[name] for name in SUMMARY} | {"completed": True})
            header = log.header(len(summaries))
            _add(archive, "_journal/start.json", {name: header[name] for name in ("version", "eval", "plan")})
            _add(archive, "summaries.json", summaries)
            _add(archive, "header.json", header)
        file.seek(0)
        try:
            write_atomic(target, iter(partial(file.read, 1 << 20), b""))
        except OSError as error:
            what = f"the file cannot be written: {error.strerror or error}"
            raise TargetError(str(target), what=what, fix="choose another --out") from error
    return len(summaries)


def _add(archive: zipfile.ZipFile, name: str, value: Json) -> None:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, json.dumps(value, ensure_ascii=False))
