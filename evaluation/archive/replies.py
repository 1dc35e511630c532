"""Several attempts at the same answer: all are kept in an archive, and the last one counts.

What every evaluation with judges says of their replies: how many of each kind, from which models.

What an unfinished evaluation says that it lacks, in the environment of its manifest.

What is still missing where unfinished evaluations are merged.

Whether an evaluation was made by programs that stand in for models, so that its numbers mean nothing.
"""

import json
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ...engine.journal import NAME as JOURNAL
from ...engine.journal import Journal
from ...engine.manifest import Manifest, made_with
from ...engine.stage import UNASKED, Item
from ...errors import ConfigError, TargetError
from ...models.spec import PROGRAMS, is_stand_in
from ...prompts.loader import load_prompt
from ...schemas.canonical import (
    Json,
    canonical_text,
    digest,
    jsonl_lines,
    plain_fields,
    write_atomic,
    writing,
)
from ...schemas.judgement import EvaluationManifest, Judgement
from ...schemas.text import counted, tallied
from .archive import Archive, merged, write_archive


def stand_in_judges(manifest: EvaluationManifest) -> list[str]:
    """Return the judges that a stand-in answered for: as their replies say, or else their names."""
    judged = manifest.environment.get("judges")
    accounts = judged.items() if isinstance(judged, Mapping) else ()
    reported = {
        judge: account.get("reported_models") for judge, account in accounts if isinstance(account, Mapping)
    }
    named = {*_texts(manifest.protocol.get("judges")), *reported}
    # What the replies say counts; the name that was asked for, only where they say nothing.
    return sorted(
        judge for judge in named if any(map(is_stand_in, list(_texts(reported.get(judge))) or [judge]))
    )


def stand_in_notes(manifest: EvaluationManifest) -> Iterator[str]:
    """Yield that judges, detectors or encoders were stand-ins, where some were."""
    if judges := stand_in_judges(manifest):
        named = ", ".join(judges)
        yield f"the replies of {named} are made up, by a stand-in for a judge: these scores mean nothing"
    seen = {text.partition("@")[0] for text in _texts(manifest.protocol)}
    programs = sorted(seen & PROGRAMS)
    if programs:
        yield (
            f"{', '.join(programs)}: small programs of fabula.testing in the place of models; what they give "
            "means nothing"
        )


TRAIN = "train"
"""The split of a release that methods may be trained on."""


def trained_on(training: int, judged: int) -> str:
    """Return what is said where stories for training are judged: a method may have learned from them."""
    are = "is" if training == 1 else "are"
    return (
        f"{training:,} of {tallied(judged, 'judged stories')} {are} of the split {TRAIN}, which methods may "
        "have learned from; evaluate with --split validation --split public_test to leave them out"
    )


def remarks_of(
    made: Any,  # noqa: ANN401 - the scores of any protocol
    manifests: Iterable[EvaluationManifest],
) -> Iterator[str]:
    """Yield what must travel with tables of scores: what was judged, by whom, the definitions, the notes."""
    for manifest in manifests:
        for noun in ("release", "suite", "set"):
            stated, about = manifest.protocol.get(noun), manifest.environment.get(noun)
            if isinstance(stated, Mapping) and stated.get("sha256"):
                version = about.get("version") if isinstance(about, Mapping) else None
                yield f"{noun}{f' {version}' if version else ''}: SHA-256 {stated['sha256']}"
        judges = list(_texts(manifest.protocol.get("judges")))
        yield f"judges: {', '.join(judges) or 'none'}"
    used: Any = getattr(made, "definitions", None)
    fields = plain_fields(used) if is_dataclass(used) else {}
    named = [used.named()] if hasattr(used, "named") else []
    listed = [*named, *(f"{name}={value}" for name, value in fields.items() if value not in (None, {}))]
    if listed:
        yield f"definitions: {', '.join(listed)}"
    yield from (f"note: {note}" for note in getattr(made, "notes", ()))


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


LATER = "from_later_attempts"
"""Where the environment of a manifest says how many answers of a judge come from a later attempt."""


def last_attempts(judgements: Iterable[Judgement]) -> Iterator[Judgement]:
    """Yield the judgements that count, in their order."""
    last: Judgement | None = None
    for judgement in judgements:
        # The same attempt twice is left to whoever reads them.
        if last is not None and (judgement.attempt == last.attempt or judgement.asked() != last.asked()):
            yield last
        last = judgement
    if last is not None:
        yield last


class ReplyCounts:
    """Counts the replies of judges that count, by outcome; in any order of their attempts."""

    def __init__(self) -> None:
        self._outcomes: dict[str, Counter[str]] = {}
        self._reported: dict[str, set[str]] = {}
        self._tried: dict[tuple[Any, ...], tuple[int, str]] = {}

    def count(self, judgement: Judgement) -> None:
        judge, asked = judgement.judge, judgement.asked()
        outcomes = self._outcomes.setdefault(judge.spec, Counter())
        if judge.reported_model is not None:
            self._reported.setdefault(judge.spec, set()).add(judge.reported_model)
        before = self._tried.get(asked)
        if before is None and judgement.attempt == 1 and judgement.outcome == "answered":
            outcomes["answered"] += 1  # nobody asks any more: not worth to be remembered
            return
        if before is None or judgement.attempt > before[0]:
            if before is not None:
                outcomes[before[1]] -= 1
            outcomes[judgement.outcome] += 1
            self._tried[asked] = judgement.attempt, judgement.outcome

    def as_json(self) -> dict[str, Json]:
        """Return judge -> its outcomes, the models that it reported, and its answers from later attempts."""
        later = Counter(asked[6] for asked, (_, outcome) in self._tried.items() if outcome == "answered")
        return {
            spec: {
                "outcomes": {name: count for name, count in sorted(counts.items()) if count},
                "reported_models": sorted(self._reported.get(spec, ())),
                **({LATER: later[spec]} if later[spec] else {}),
            }
            for spec, counts in sorted(self._outcomes.items())
        }


IDENTITY = ("structured", "unsupported", "extra")
"""Those settings of a model that change its answers."""


class ReplyTally:
    """Counts the replies of judges, and what was not asked yet; with what the manifest of a protocol says."""

    kind: ClassVar[str]
    """Name of the protocol."""
    first: ClassVar[str]
    """The stage whose settings say what was chosen."""

    def __init__(self, run: Manifest) -> None:
        self._run = run
        self._made_with: dict[str, Any] = {}  # read where the archive is written
        self._outputs: dict[str, Json] = {}  # method -> what checking its outputs said
        self._replies = ReplyCounts()
        self._unasked: Counter[str] = Counter()

    def count(self, judgement: Judgement) -> None:
        self._replies.count(judgement)

    def leave(self, row: Json) -> None:
        """Take in one question that was not asked yet."""
        self._unasked[row["judge"]["spec"]] += 1

    def answered(self, rows: Iterable[Json], **fixed: Json) -> Iterator[Judgement]:
        """Yield rows of replies as judgements with some fields in common; what was not asked is taken in."""
        for row in rows:
            if row["outcome"] == UNASKED:
                self.leave(row)
            else:
                yield Judgement.model_validate({**fixed, "time": self._run.created_at, **row})

    def write(self, folder: Path, judgements: Iterable[Judgement]) -> None:
        """Write an archive of judgements, each once, with the manifest that counts them."""
        if (folder / JOURNAL).exists():
            with Journal.open(folder, writable=False) as journal:
                self._made_with = made_with(journal)
        kept = merged([("the run", judgements)])
        for judgement in kept:
            self.count(judgement)
        write_archive(folder, self.manifest(), kept)

    def add(self, item: Item) -> None:
        raise NotImplementedError

    def finish(
        self, folder: Path, items: Iterable[Item], name: str, line_of: Callable[[Item], Json],
        rows_of: Callable[[Item], Iterable[Json]],
    ) -> None:  # fmt: skip
        """Write the archive, and a line for each item into the file of that name.

        ``rows_of``: item -> the rows of its replies.
        """

        def lines() -> Iterator[Json]:
            for item in items:
                self.add(item)
                yield line_of(item)

        def judgements() -> Iterator[Judgement]:
            for item in items:
                method, _, unit = item.id.partition("/")
                yield from self.answered(
                    rows_of(item), protocol=self.kind, method=method, unit=unit, seed=None
                )

        write_atomic(folder / name, jsonl_lines(lines()))
        self.write(folder, judgements())

    def manifest(self) -> EvaluationManifest:
        return EvaluationManifest(
            kind=self.kind,
            protocol={
                **self.protocol(), "seed": self._run.seed, "attempts": self._run.run.attempts,
            },
            subject={"methods": {name: self.method(name) for name in sorted(self._outputs)}},
            environment=self.environment(),
        )  # fmt: skip

    def protocol(self) -> dict[str, Any]:
        """Return how it was judged: what must be the same for scores to be compared."""
        raise NotImplementedError

    def method(self, name: str) -> dict[str, Any]:
        """Return what was asked for of a method and is there."""
        raise NotImplementedError

    def identities(self, specs: Iterable[str]) -> dict[str, Any]:
        """Return judges by their names in archives, with those settings that change their answers."""
        from ..judging.settings import public_judge  # scoring needs none of what it loads

        return {public_judge(spec).spec: identity_of(self._run.models.get(spec, {})) for spec in specs}

    def environment(self) -> dict[str, Any]:
        """Return when, where and how it went."""
        run = self._run
        return {
            "fabula": run.fabula_version,
            "libraries": {name: text for stage in run.stages for name, text in stage.libraries.items()},
            **self._made_with,
            "created_at": run.created_at,
            "selection": run.settings[self.first],
            "sources": [{"role": source.role, "name": source.name} for source in run.sources],
            "judges": self._replies.as_json(),
            **({"incomplete": {"unasked": dict(sorted(self._unasked.items()))}} if self._unasked else {}),
        }


def identity_of(options: Mapping[str, Json]) -> dict[str, Any]:
    """Return those settings of a model that change its answers."""
    return {name: options[name] for name in IDENTITY if name in options}


def labels_of(prompts: Iterable[str]) -> dict[str, str]:
    """Return id -> id, version and hash of prompts, sorted."""
    return {name: load_prompt(name).label for name in sorted(prompts)}


INCOMPLETE = "incomplete"
"""Where the environment says that an evaluation is not finished, and what is missing."""


def lacks(environment: Mapping[str, Json]) -> tuple[int, int]:
    """Return how many questions were not asked yet, and how many outputs were not reached."""
    told = environment.get(INCOMPLETE)
    if not isinstance(told, Mapping):
        return 0, 0
    unasked, unreached = told.get("unasked"), told.get("unreached")
    counts = unasked.values() if isinstance(unasked, Mapping) else ()
    asked = sum(count for count in counts if isinstance(count, int))
    return asked, unreached if isinstance(unreached, int) else 0


def lacking(unasked: int, unreached: int) -> str:
    parts = []
    if unasked:
        parts.append(f"{counted(unasked, 'question')} not asked yet")
    if unreached:
        parts.append(f"{counted(unreached, 'output')} not reached")
    return ", ".join(parts) or "nothing is missing"


def notes_of_both(folders: Mapping[str, EvaluationManifest]) -> tuple[str, ...]:
    """Return the same for evaluations that are compared, each with its name before it."""
    return tuple(f"{name}: {note}" for name, one in folders.items() for note in archive_notes(one))


def archive_notes(manifest: EvaluationManifest) -> Iterator[str]:
    """Yield what readers of scores must know: stand-ins, what is not finished, what came later."""
    yield from stand_in_notes(manifest)
    unasked, unreached = lacks(manifest.environment)
    if unasked or unreached:
        yield (
            f"the evaluation is not finished ({lacking(unasked, unreached)}): the scores are of what was "
            "answered so far, and coverage is of what was asked"
        )
    judges = manifest.environment.get("judges")
    told = judges.values() if isinstance(judges, Mapping) else ()
    later = sum(
        count for one in told if isinstance(one, Mapping) and isinstance(count := one.get(LATER), int)
    )
    if later:
        yield (
            f"{counted(later, 'answer')} came from a later attempt, after a reply that could not be used;"
            f" each question was asked at most {manifest.protocol.get('attempts', 1)} times"
        )


def not_judged(judged: Mapping[str, Collection[str]], judges: Iterable[str] = ()) -> Iterator[str]:
    """Yield which methods were not judged by which judges: such a pair has no score.

    ``judged``: method -> the judges with a judgement of it.
    """
    every = sorted({*judges, *(judge for some in judged.values() for judge in some)})
    for method, some in sorted(judged.items()):
        if missing := [judge for judge in every if judge not in some]:
            yield (
                f"{method} has no judgement by {', '.join(missing)}, and so no score by "
                f"{'it' if len(missing) == 1 else 'them'}"
            )


SCOPE = ("conditions", "labels", "matcher", "prompts", "stories", "units", "votes")
"""The parts of a protocol that say what is asked of a judge; who the judges are is not one of them."""


def still_lacking(manifests: Sequence[EvaluationManifest]) -> dict[str, Json] | None:
    """Return what the whole lacks, as its environment says it; None where nothing is missing.

    What one part has not asked of a judge counts as missing unless another part of the same stories, methods
    and prompts has asked that judge everything.
    """
    unasked, unreached = Counter[str](), 0
    for one in manifests:
        same = [other for other in manifests if other is not one and _scope(other) == _scope(one)]
        for judge, count in _unasked(one).items():
            if not any(_is_done(other, judge) for other in same):
                unasked[judge] += count
        if not any(lacks(other.environment) == (0, 0) for other in same):
            unreached += lacks(one.environment)[1]
    if not unasked and not unreached:
        return None
    return {"unasked": dict(sorted(unasked.items())), "unreached": unreached}


def _scope(manifest: EvaluationManifest) -> tuple[object, ...]:
    return (sorted(manifest.subject.get("methods") or ()), *map(manifest.protocol.get, SCOPE))


def _unasked(manifest: EvaluationManifest) -> Mapping[str, int]:
    told = manifest.environment.get(INCOMPLETE)
    unasked = told.get("unasked") if isinstance(told, Mapping) else None
    return unasked if isinstance(unasked, Mapping) else {}


def _is_done(manifest: EvaluationManifest, judge: str) -> bool:
    """Whether a judge was asked everything in an evaluation that reached all outputs."""
    asked = judge in (manifest.environment.get("judges") or ())
    return asked and judge not in _unasked(manifest) and not lacks(manifest.environment)[1]


# -- An archive as a log of inspect_ai, which its viewer opens; inspect_ai is not needed to write it
#
# The form is log schema version 2: a ZIP with ``header.json``, ``summaries.json``, ``_journal/start.json``,
# and a file for each sample. A sample is what one judge was asked once; votes are its epochs. Of several
# attempts at a vote the last one is taken. A sample has the outcome of its reply as a score, with what was
# read from it; where the accepted answers are at hand, an answered question also has ``correct``, C or I. A
# reply that does not answer has none: how it counts is a matter of scoring, whose scores the header has.

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
        with writing(target, "choose another --out", what="the file"):
            write_atomic(target, iter(partial(file.read, 1 << 20), b""))
    return len(summaries)


def _add(archive: zipfile.ZipFile, name: str, value: Json) -> None:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, json.dumps(value, ensure_ascii=False))
