"""Reading published StoryEval result files into an archive that is scored like our own."""

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ... import version
from ...errors import InputError, UserError, mismatch
from ...releases.events.form import SUITE, read_named, write_suite
from ...schemas.canonical import new_folder, sha256_file
from ...schemas.events import Suite
from ...schemas.judgement import EvaluationManifest, Judge, Judgement, JudgementOutcome
from ..archive.archive import Archive, merged, write_archive
from .votes import Unreadable, parse_completion, parsed_completion

_problem = partial(mismatch, fix="give the suite that the results belong to")

_VOTE = re.compile(r"output(\d{1,3})")
_NAMED = re.compile(r"(?P<method>.+?)_(?P<judge>[^_]+)(?:_final)?")
_BLOCKED = ("ResponsibleAIPolicyViolation", "content_filter", "content_policy")


@dataclass(frozen=True)
class Results:
    """One published result file."""

    path: Path  # the file
    # the video model; None takes it from a name such as ``METHOD_JUDGE_final.json``
    method: str | None = None
    judge: str | None = None  # spec or name of the verifier; None likewise


@dataclass(frozen=True)
class Difference:
    """A reply whose list, read from its text, is not the published one."""

    unit: str
    vote: int
    published: list[Any] | None
    parsed: list[int] | None
    reason: str | None


@dataclass(frozen=True)
class Imported:
    """What came of an import."""

    archive: Archive  # the judgements and their manifest
    replies: int  # how many replies were read
    differences: tuple[Difference, ...]  # those whose list is read otherwise than published


def import_results(files: Sequence[Results], suite: Suite) -> Imported:
    """Read result files as an archive; completion lists are read from the replies' texts, not taken over."""
    problems: list[UserError] = []
    parts: list[tuple[str, list[Judgement]]] = []
    differences: list[Difference] = []
    sources: list[dict[str, str]] = []
    for results in files:
        method, judge = _whose(results)
        judged = list(_judgements(results.path, method, judge, suite, problems))
        parts.append((str(results.path), [judgement for judgement, _ in judged]))
        differences.extend(difference for _, difference in judged if difference is not None)
        sources.append({"file": results.path.name, "sha256": sha256_file(results.path)})
    if problems:
        raise InputError(problems)
    judgements = merged(parts)
    return Imported(
        Archive(_manifest(judgements, suite, sources, differences), judgements),
        len(judgements),
        tuple(differences),
    )


def _whose(results: Results) -> tuple[str, Judge]:
    named = _NAMED.fullmatch(results.path.stem)
    method = results.method or (named and named["method"])
    judge = results.judge or (named and named["judge"])
    if not method or not judge:
        raise InputError.one(
            str(results.path),
            what="the name of the file does not tell method and judge, as in METHOD_JUDGE_final.json",
            fix="say whose results they are: --method and --judge",
        )
    provider, colon, model = judge.partition(":")
    if not colon:
        provider, model = "published", judge
    return method, Judge(spec=f"{provider}:{model}", provider=provider, model=model, reported_model=None)


def _judgements(
    path: Path, method: str, judge: Judge, suite: Suite, problems: list[UserError]
) -> Iterator[tuple[Judgement, Difference | None]]:
    for unit, entry in read_named(path).items():
        where = f"{path} {unit}"
        prompt = suite.prompts.get(unit)
        if prompt is None:
            problems.append(_problem(where, "a video of the suite", "none with that name"))
            continue
        if not isinstance(entry, dict) or entry.get("event_list") != list(prompt.event_list):
            problems.append(_problem(where, "the events of the suite", "other events"))
            continue
        votes = {int(match[1]): value for name, value in entry.items() if (match := _VOTE.fullmatch(name))}
        if not votes:
            problems.append(_problem(where, "replies under output0, output1, ...", "none"))
        for vote, value in sorted(votes.items()):
            if not isinstance(value, dict) or not isinstance(value.get("scoring_output"), str):
                problems.append(
                    _problem(f"{where} output{vote}", "an object with scoring_output", "another value")
                )
                continue
            yield _judgement(unit, vote, len(prompt.event_list), method, judge, value)


def _judgement(
    unit: str, vote: int, events: int, method: str, judge: Judge, value: Mapping[str, Any]
) -> tuple[Judgement, Difference | None]:
    text, said, reason = value["scoring_output"], None, None
    outcome: JudgementOutcome = "answered"
    try:
        said = parse_completion(text, events)
    except Unreadable as why:
        outcome, reason = _silence(text, str(why))
    description = value.get("description")
    judgement = Judgement(
        protocol="events", kind="completion", method=method, unit=unit, seed=None, item=unit,
        condition="video", judge=judge, vote=vote, prompt="", outcome=outcome, reason=reason, raw=text,
        parsed=None if said is None else {**parsed_completion(said), "description": description or ""},
        input_tokens=None, output_tokens=None, cost=None, time=None,
    )  # fmt: skip
    published = None if value.get("completion_score") is None else value.get("completion_list")
    listed = None if said is None else list(said.flags)
    same = published == listed
    return judgement, None if same else Difference(unit, vote, published, listed, reason)


def _silence(text: str, why: str) -> tuple[JudgementOutcome, str]:
    """Return outcome and reason of a reply without a list; errors were published in place of replies."""
    if not text.startswith("Error:"):
        return ("malformed", why) if text.strip() else ("failed", "an empty reply")
    if any(mark in text for mark in _BLOCKED):
        return "blocked", "the service's content policy"
    return "failed", " ".join(text.split())[:120]


def _manifest(
    judgements: Sequence[Judgement],
    suite: Suite,
    sources: Sequence[Mapping[str, str]],
    differences: Sequence[Difference],
) -> EvaluationManifest:
    votes: dict[str, int] = {}
    methods: dict[str, set[str]] = {}
    for judgement in judgements:
        votes[judgement.judge.spec] = max(votes.get(judgement.judge.spec, 0), judgement.vote + 1)
        methods.setdefault(judgement.method or "", set()).add(judgement.unit)
    return EvaluationManifest(
        kind="events",
        protocol={
            "suite": {"sha256": suite.sha256(), "prompts": len(suite.prompts)},
            "units": None,
            "judges": sorted(votes),
            "votes": dict(sorted(votes.items())),
            "retries": 0,
            "prompts": [],
            "frames": None,
        },
        subject={
            "methods": {
                method: {"requested": len(suite.prompts), "valid": len(units), "seeds": []}
                for method, units in sorted(methods.items())
            },
        },
        environment={
            "fabula": version.__version__,
            "python": platform.python_version(),
            "imported_from": [dict(source) for source in sources],
            "differences": [vars(difference) for difference in differences],
        },
    )


def save_import(folder: Path, imported: Imported, suite: Suite) -> None:
    """Write an import into a new folder: the archive, and a copy of the suite."""
    with new_folder(folder):
        write_suite(folder / SUITE, suite)
        write_archive(folder, imported.archive.manifest, imported.archive.judgements)
