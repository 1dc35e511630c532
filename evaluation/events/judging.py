"""Stage: the judges' votes on which events a video shows completed, each described first and then scored.

What the public code asks and how it reads replies: ``evaluate.py`` at d095e63; its texts are of a set. A
system text, the question, then all frames without numbers, in three messages; the list of a reply is every
number behind its last mark.
"""

import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ... import version
from ...engine.stage import (
    REHEARSED,
    UNASKED,
    Answer,
    Ask,
    BadReply,
    Item,
    NoAnswer,
    Receipt,
    StageSpec,
    Tools,
)
from ...errors import InputError, UserError, mismatch
from ...models.chat import ChatRequest, Image, Message
from ...models.spec import parse_spec
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json, new_folder, sha256_file
from ...schemas.events import Suite
from ...schemas.judgement import EvaluationManifest, Judge, Judgement, JudgementOutcome
from ..archive.archive import Archive, merged, write_archive
from ..judging.answers import OUTCOMES, Asking, Published, attempt, pictures_of, row_of, together
from .load_videos import EventJudgeSettings
from .votes import MARK, Completion, Unreadable, parse_completion, parsed_completion

# -- Completion rate of one video, from the replies of a verifier: read, laid out by video, and counted
#
# Question: what share of the events that its prompt names does the video show completed?
# Formula: the mean over the events of s*, where s* of an event comes from the votes of one verifier (Eq. 1).
# Input: the completion list of each vote, one 0 or 1 per event, null for a vote without an answer.
# Output: a share in [0, 1]; higher is better.
# Undefined when: no vote has an answer. Whether that counts as 0 is decided where prompts are pooled.
# Source: StoryEval, sections 2.2.3 and 6.1, Eq. 1.
# Departures from the source: none. The paper does not say what a prompt with some answers counts; its tables
# follow from the votes that were answered, which alone count here.
# Example: votes (1, 0) and (1, 1) under unanimous voting give (1, 0), a rate of 0.5.


# --

DESCRIBE = "events/describe_video"
SCORE = {"mark": "events/score_events", "structured": "events/score_events_structured"}
STAND_IN = "Something moves from frame to frame. " * 40
"""As long as a usual description: what a rehearsal scores by."""
ANSWERED = "answered"
AGAIN = ("refused", "blocked")
"""Outcomes in whose place another vote is asked for."""
MAX_TOKENS = 2000
"""Most tokens of a reply to the public code's questions."""
END = "{END}"
"""What a reply ends with, as the system text asks: nothing behind it is generated."""
_STOPPING: Mapping[str, Json] = {
    "anthropic": {"stop_sequences": [END]},
    "google": {"generationConfig": {"stopSequences": [END]}},
}
_NUMBER = re.compile(r"(?:(?<!\d)[-\N{MINUS SIGN}])?\d{1,9}(?:\.\d{1,9})?")
_FLAGS = {"0": 0, "1": 1, "\N{FULLWIDTH DIGIT ZERO}": 0, "\N{FULLWIDTH DIGIT ONE}": 1}
_LIST = re.compile(r"\[COMPLETE_LIST\]:\s*(.*)")

PUBLISHED = Published(
    "events",
    "storyeval",
    ("system", "image_token", "describe", "score"),
    {
        "storyeval@d095e63": {
            "take_frames.size": [512, 320], "take_frames.stretching": "area", "take_frames.quality": 95,
            "take_frames.subsampled": True, "judge_events.votes": 3, "judge_events.retries": 0,
            "run.attempts": 3,
        },
    },
    {"take_frames.stretching": "area"},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Video:
    """What is asked about one video."""

    pictures: Sequence[Image]
    prompt: Json


@dataclass(frozen=True, slots=True)
class _Case:
    """What one judge is asked about one video; ``attempts`` as in :class:`fabula.engine.stage.Ask`."""

    spec: str
    video: _Video
    settings: EventJudgeSettings
    tools: Tools
    attempts: int | None = 1


def _videos(item: Item, tools: Tools) -> Iterator[_Video]:
    if item["frames"]:
        yield _Video(pictures_of(item["frames"], tools.store), item["prompt"])


async def _ask_about(videos: Sequence[_Video], tools: Tools) -> list[Json]:
    """Return one row per video, judge, vote and attempt."""
    settings = tools.own(EventJudgeSettings)
    cases = [_Case(spec, video, settings, tools) for video in videos for spec in settings.judges]
    return [row for rows in await together(map(_votes, cases)) for row in rows]


async def _votes(case: _Case) -> list[Json]:
    """Return all votes of a judge: those that are required, and then others in place of refusals.

    Where there are too few answers all the same, votes without one are asked again, if the run allows that.
    """
    required = case.settings.votes_of(case.spec)
    votes = await together(_vote(case, number) for number in range(required))
    for _ in range(case.settings.retries):
        refused = sum(rows[-1]["outcome"] in AGAIN for rows in votes)
        if len(votes) - refused >= required:
            break
        votes.append(await _vote(case, len(votes)))
    again = replace(case, attempts=None)
    for number, rows in enumerate(votes):
        if sum(vote[-1]["outcome"] == ANSWERED for vote in votes) >= required:
            break
        if rows[-1]["outcome"] not in (ANSWERED, UNASKED):
            votes[number] = await _vote(again, number)
    return [row for rows in votes for row in rows]


async def _vote(case: _Case, number: int) -> list[Json]:
    """Return one vote: the video is described, and its events are scored by frames and description.

    Each attempt at it has a row; the last one counts.
    """
    came: list[tuple[dict[str, Json], list[Receipt | None]]] = []
    description: Answer[str] | None = None

    def note(missed: Iterable[NoAnswer]) -> None:
        step, described = ("describing", []) if description is None else ("scoring", [description.receipt])
        for miss in missed:
            reason = f"{step}: {miss.code}: {miss.reason}"
            said = {"outcome": OUTCOMES[miss.code], "reason": reason, "parsed": None}
            came.append((said, [*described, miss.receipt]))

    try:
        described = await _describe(case, number)
        note(described.missed)
        description = described
        answer = await _score(case, number, description.value)
    except NoAnswer as none:
        if none.code not in OUTCOMES:
            if none.code == REHEARSED and description is None:
                await _score(case, number, STAND_IN)  # so that it is written down, too
            raise
        note((*none.missed, none))
    else:
        note(answer.missed)
        parsed = {**parsed_completion(answer.value), "description": description.value}
        said = {"outcome": ANSWERED, "reason": None, "parsed": parsed}
        came.append((said, [description.receipt, answer.receipt]))
    texts = case.settings.texts
    label = load_prompt(SCORE[case.settings.reply]).label if texts is None else texts.label("score")
    return [
        row_of(case.spec, number, label, said | attempt(index), receipts)
        for index, (said, receipts) in enumerate(came, 1)
    ]


async def _describe(case: _Case, number: int) -> Answer[str]:
    texts = case.settings.texts
    if texts is not None:
        return await _ask_official(case, "describe", texts.text("describe"), number, _text)
    return await _ask(case, DESCRIBE, {}, number, _text)


async def _score(case: _Case, number: int, description: str) -> Answer[Completion]:
    prompt, events, texts = case.video.prompt["prompt"], case.video.prompt["event_list"], case.settings.texts
    if texts is not None:
        listed = "\n".join(f"{place}. {event}" for place, event in enumerate(events, 1))
        slots = {"description": description.strip(), "prompt": prompt, "count": len(events), "events": listed}
        read = partial(read_completion, events=len(events))
        return await _ask_official(case, "score", texts.fill("score", slots), number, read)
    inputs = {"description": description, "events": events, "prompt": prompt}
    if case.settings.reply == "mark":
        inputs["example"] = ", ".join("0" if index % 2 else "1" for index in range(len(events)))
    return await _ask(case, SCORE[case.settings.reply], inputs, number, partial(_flags, events=len(events)))


async def _ask(
    case: _Case, name: str, inputs: Mapping[str, Json], number: int, read: Callable[[Json], Any]
) -> Answer[Any]:
    prompt, pictures = load_prompt(name), case.video.pictures
    settings = case.settings.for_judge(case.spec)
    plain = prompt.request(settings, case.tools.seed + number, count=len(pictures), **inputs)
    *system, user = plain.messages
    parts = [part for index, picture in enumerate(pictures, 1) for part in (f"Frame {index}", picture)]
    request = replace(plain, messages=(*system, Message(user.role, (*parts, *user.parts))))
    return await _sent(case, request, read, prompt.label, number)


async def _ask_official(
    case: _Case, name: str, question: str, number: int, read: Callable[[Json], Any]
) -> Answer[Any]:
    """Ask as the public code does."""
    settings, texts = case.settings.for_judge(case.spec), case.settings.texts
    assert settings.model is not None and texts is not None
    provider = parse_spec(settings.model).provider
    request = ChatRequest(
        model=settings.model,
        messages=(
            Message("system", (texts.text("system"),)),
            Message("user", (f"{texts.text('image_token')}\n{question}",)),
            Message("user", tuple(case.video.pictures)),
        ),
        temperature=settings.temperature,
        max_tokens=settings.max_tokens or MAX_TOKENS,
        extra=_STOPPING.get(provider, {"stop": END, "user": f"seed_{number}"}),
    )
    return await _sent(case, request, read, texts.label(name), number)


async def _sent(
    case: _Case, request: ChatRequest, read: Callable[[Json], Any], label: str, number: int
) -> Answer[Any]:
    assert case.tools.asker is not None
    sample = case.settings.sample + number
    return await case.tools.asker.ask(
        Ask(request, read, label, repairs=0, sample=sample, attempts=case.attempts)
    )


def _text(reply: Json) -> str:
    if not str(reply).strip():
        raise BadReply("an empty description")
    return str(reply).strip()


def _flags(reply: Json, events: int) -> Completion:
    """Return the flags of a reply, marked or structured."""
    if isinstance(reply, dict):
        numbers = [event["number"] for event in reply["events"]]
        if numbers != list(range(1, events + 1)):
            raise BadReply(f"$.events: expected the events 1 to {events} in order, found {numbers[:20]}")
        return Completion(tuple(int(event["completed"]) for event in reply["events"]), (None,) * events)
    try:
        return parse_completion(str(reply), events)
    except Unreadable as why:
        raise BadReply(str(why)) from why


def read_completion(reply: Json, events: int) -> Completion:
    """Return the completion list of a reply, as the public code reads it.

    Departure: a number that is neither 0 nor 1 is no flag here, and no two flags as 0.1 or one as -1 would be
    there; none of the 6,345 published lists has one.
    """
    lists = _LIST.findall(str(reply))
    if not lists:
        raise BadReply(f"no {MARK} in the reply")
    numbers = _NUMBER.findall(lists[-1])
    if len(numbers) != events:
        raise BadReply(f"{len(numbers)} flags for {events} events")
    if any(number not in _FLAGS for number in numbers):
        raise BadReply(f"flags that are neither 0 nor 1: {', '.join(numbers)[:80]}")
    flags = tuple(_FLAGS[number] for number in numbers)
    return Completion(flags, (None,) * events)


JUDGE_EVENTS = Asking(
    StageSpec(
        name="judge_events", version=3, shape="map", reads=("prompt", "frames"), writes=("votes",),
        settings=EventJudgeSettings, asks=(DESCRIBE, *SCORE.values()),
    ),
    _videos,
    _ask_about,
)  # fmt: skip


# -- Reading published StoryEval result files into an archive that is scored like our own

_published_problem = partial(mismatch, fix="give the suite that the results belong to")

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
    from ...releases.events.form import read_named

    for unit, entry in read_named(path).items():
        where = f"{path} {unit}"
        prompt = suite.prompts.get(unit)
        if prompt is None:
            problems.append(_published_problem(where, "a video of the suite", "none with that name"))
            continue
        if not isinstance(entry, dict) or entry.get("event_list") != list(prompt.event_list):
            problems.append(_published_problem(where, "the events of the suite", "other events"))
            continue
        votes = {int(match[1]): value for name, value in entry.items() if (match := _VOTE.fullmatch(name))}
        if not votes:
            problems.append(_published_problem(where, "replies under output0, output1, ...", "none"))
        for vote, value in sorted(votes.items()):
            if not isinstance(value, dict) or not isinstance(value.get("scoring_output"), str):
                problems.append(
                    _published_problem(
                        f"{where} output{vote}", "an object with scoring_output", "another value"
                    )
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
    from ...releases.events.form import SUITE, write_suite

    with new_folder(folder):
        write_suite(folder / SUITE, suite)
        write_archive(folder, imported.archive.manifest, imported.archive.judgements)
