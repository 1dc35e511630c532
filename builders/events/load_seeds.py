"""Stage: the seeds, written by people, and a slot for each prompt that a model adds (StoryEval, 2.1.1)."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...engine.stage import BadReply, Child, Item, Made, Outcome, StageSpec, Tools, stage
from ...errors import InputError, UserError, mismatch
from ...media.kept_files import keep_file
from ...models.spec import ModelSettings
from ...releases.events.form import load_suite
from ...schemas.canonical import Json, digest, pretty_bytes, sha256_bytes
from ...schemas.events import PARTICIPANTS, video_name
from ...schemas.paths import format_path
from ...schemas.plain_files import read_plain, reason_of, type_reason
from ...validators.events.rules import participants_in
from ..step import ask
from ..text.segments import word_set
from .prompts import LoadSettings, Seed, read_results

# -- Stage: the events of a prompt and who leads it, where nobody has said: by a model, or else by rules
#
# The rules divide English prompts of the usual form (clauses joined by commas, "and then", "and finally") and
# carry on the subject of the first clause: a baseline, not a reading of the text.

MAKER = "rules@1"
_JOINT = re.compile(r",?\s+(and finally|and then|then)\s+|,\s+(and)\s+|,\s+", re.IGNORECASE)
_OWN_SUBJECT = re.compile(
    r"(?:a|an|the|it|he|she|they|his|her|its|their|someone|somebody|people|another|one|two|three|both|all|some)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_AUXILIARY = frozenset(("is", "are", "was", "were", "has", "have", "does", "do", "gets"))


def split_events(prompt: str) -> tuple[str, ...]:
    """Return the events of a prompt as statements, each with a subject.

    >>> split_events("A cat naps, wakes up, and then runs.")
    ('A cat naps', 'The cat wakes up', 'And then the cat runs')
    """
    clauses, start, joint = [], 0, ""
    text = prompt.strip().rstrip(".!")
    for match in _JOINT.finditer(text):
        clauses.append((joint, text[start : match.start()].strip()))
        joint, start = (match.group(1) or "").lower(), match.end()
    clauses.append((joint, text[start:].strip()))
    subject = _subject(clauses[0][1])
    events = []
    for number, (word, clause) in enumerate((word, clause) for word, clause in clauses if clause):
        said = clause
        if number and not _has_subject(clause):
            said = f"the {subject} {clause}" if subject else clause
        if number and word:
            said = f"{'and ' if not word.startswith('and') else ''}{word} {said[:1].lower()}{said[1:]}"
        events.append(said[:1].upper() + said[1:])
    return tuple(events)


def participants_of(prompt: str) -> tuple[str, ...]:
    """Return who leads a story by its nouns, ``object`` where nothing is known."""
    lists = _keywords()
    known = {
        "human": {*word_set("nouns", "people", "titles"), *lists["human"], "person", "someone", "people"},
        "animal": {*word_set("nouns", "animals"), *lists["animal"]},
    }
    kinds = []
    for word in _WORD.findall(prompt.casefold()):
        for kind, words in known.items():
            if (word in words or word.removesuffix("s") in words) and kind not in kinds:
                kinds.append(kind)
    events = split_events(prompt)
    subject = _subject(events[0]).casefold() if events else ""
    if subject and not any(subject in words for words in known.values()):
        kinds.insert(0, "object")
    return tuple(kinds[:2]) or ("object",)


def keywords(kind: str) -> tuple[str, ...]:
    """Return subjects of a kind (``human``, ``animal``, ``object``) that prompts may be about."""
    return tuple(_keywords()[kind])


def keyword_of(number: int) -> tuple[str, str]:
    """Return kind and subject of the guided prompt with a number: the kinds in turn, then their subjects."""
    kind = PARTICIPANTS[number % len(PARTICIPANTS)]
    words = keywords(kind)
    return kind, words[number // len(PARTICIPANTS) % len(words)]


@cache
def _keywords() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((files(__package__) / "keywords.json").read_text("utf-8"))
    return document


def _has_subject(clause: str) -> bool:
    if _OWN_SUBJECT.match(clause):
        return True
    words = _WORD.findall(clause)
    # "Smoke rises": two words, the second of which looks like a verb while the first does not.
    return len(words) > 1 and not _looks_verb(words[0]) and _looks_verb(words[1])


def _subject(clause: str) -> str:
    """Return the head noun of a clause's subject: the last word before the first that looks like a verb."""
    words = _WORD.findall(clause)
    start = 1 if words and _OWN_SUBJECT.fullmatch(words[0]) else 0
    for index in range(start + 1, len(words)):
        if _looks_verb(words[index]):
            return str(words[index - 1])
    return ""


def _looks_verb(word: str) -> bool:
    low = word.casefold()
    if low in _AUXILIARY:
        return True
    nouns = word_set("nouns", "animals", "people", "objects")
    return low.endswith("s") and not low.endswith(("ss", "us", "'s")) and low not in nouns


LIST = "events/list_events"


@stage(version=3, reads=("drafted",), writes=("entry", "listed_by"), settings=ModelSettings, asks=(LIST,))
async def list_events(item: Item, tools: Tools) -> Outcome:
    """Return the prompt with events, participants and origin; and who listed the events."""
    drafted, maker = item["drafted"], "given"
    if drafted["given"] is not None:
        return Made({"entry": drafted, "listed_by": maker})
    prompt = " ".join(drafted["prompt"].split())
    parts = {"event_list": drafted["event_list"], "participants": drafted["participants"]}
    creative = drafted["creative"]
    if not parts["event_list"] or not parts["participants"]:
        if tools.asker is None:
            listed, maker = (
                {"event_list": list(split_events(prompt)), "participants": list(participants_of(prompt))},
                MAKER,
            )
        else:
            answer = await ask(tools, LIST, _read, prompt=prompt)
            listed, maker = answer.value, answer.maker
            creative = listed["creative"] if creative is None else creative
        parts = {name: parts[name] or listed[name] for name in parts}
    entry = {"prompt": prompt, **parts, "creative": creative}
    entry |= {"origin": drafted["origin"], "given": None}
    return Made({"entry": entry, "listed_by": maker})


def _read(reply: Json) -> dict[str, Json]:
    events = [" ".join(str(event).split()) for event in reply["event_list"]]
    # One event, or five, may be the truth about a prompt: the conditions then reject it.
    if not events or not all(events):
        raise BadReply("$.event_list: expected the events of the prompt, found none, or an empty one")
    if not reply["participants"]:
        raise BadReply("$.participants: expected at least one, found none")
    kinds = list(dict.fromkeys(reply["participants"]))
    return {"event_list": events, "participants": kinds, "creative": bool(reply["creative"])}


# --

_FIX = "see docs/events.md for the form of seeds"
_problem = partial(mismatch, fix=_FIX)

SEEDS, RESULTS = "seeds", "results"
"""Roles of the sources."""

SPEC = StageSpec(
    name="load_seeds",
    version=3,
    shape="expand",
    reads=("sources",),
    writes=("seed", "slot", "results", "place", "stays"),
    settings=LoadSettings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per seed, and one per prompt that is to be generated."""
    settings = tools.own(LoadSettings)
    problems: list[UserError] = []
    roles = dict(zip(tools.paths, (source["role"] for source in item["sources"]), strict=True))
    results = next((_kept(path, tools) for path, role in roles.items() if role == RESULTS), None)
    seeds: dict[str, dict[str, Json]] = {}
    for path in (path for path, role in roles.items() if role == SEEDS):
        for where, seed in (_suite if path.suffix == ".json" else _seeds)(path, problems):
            name = _name(seed)
            if name in seeds:
                problems.append(_problem(where, "each prompt once", f"{name} again"))
            seeds[name] = seed
    if not seeds and not problems:
        problems.append(_problem(", ".join(map(str, tools.paths)), "at least one seed", "none"))
    if problems:
        raise InputError(problems)
    usual = {"seed": None, "slot": None, "results": results, "place": None, "stays": False}
    for index, (name, seed) in enumerate(seeds.items()):
        # Only the prompts of a suite have an order of their own; it is no part of what a prompt is.
        order = {} if "given" not in seed else {"place": index, "stays": settings.keep_all}
        yield Child(name, Made({**usual, "seed": seed, **order}))
    written = [seed["prompt"] for seed in seeds.values() if seed["prompt"]]
    for number in range(settings.generate):
        kind, subject = keyword_of(number)
        slot = {
            "number": number, "kind": kind, "subject": subject,
            "creative": _is_creative(number, settings.creative_share),
            "examples": _examples(written, number, (settings.examples, tools.seed)),
        }  # fmt: skip
        yield Child(f"guided_{number + 1:05d}", Made({**usual, "slot": slot}))


def identity(fields: Mapping[str, Json]) -> Json:
    """Return what makes a prompt the same prompt; None for one that a model writes."""
    return fields["seed"]


def _kept(path: Path, tools: Tools) -> str:
    """Check results, keep them in the run by their hash, and return the name."""
    assert tools.store is not None
    content = pretty_bytes(read_results(path))
    name = f"{RESULTS}-{sha256_bytes(content)}.json"
    keep_file(content, name, tools.store)
    return name


def _suite(path: Path, problems: list[UserError]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield the prompts of a suite in the official form as seeds, each with its entry as it was read."""
    try:
        suite = load_suite(path)
    except InputError as error:
        problems.extend(error.problems)
        return
    for name, prompt in suite.prompts.items():
        labels = prompt.labels
        seed = Seed(
            prompt=prompt.prompt,
            origin="retrieval" if "retrieval" in labels else "brainstorm",
            event_list=prompt.event_list,
            creative="creative" in labels,
        )
        given = {"unit": name, "entry": prompt.as_json()}
        kinds = list(participants_in(labels))
        yield f"{path} {name}", {**seed.as_json(), "participants": kinds, "given": given}


def _wrong_fields(where: str, error: ValidationError) -> Iterator[UserError]:
    """Yield a problem for each value that a seed may not have, and one for all fields that no seed has."""
    details = error.errors(include_url=False)
    strange = [str(detail["loc"][-1]) for detail in details if detail["type"] == "extra_forbidden"]
    if strange:
        what = f"a seed has no field {', '.join(strange)}; it has {', '.join(Seed.model_fields)}"
        yield UserError(where, what=what, fix=_FIX)
    for detail in details:
        if detail["type"] != "extra_forbidden":
            yield UserError(f"{where} {format_path(detail['loc'])}", what=type_reason(detail), fix=_FIX)


def _seeds(path: Path, problems: list[UserError]) -> Iterator[tuple[str, dict[str, Json]]]:
    try:
        lines = read_plain(path, follow=True).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        problems.append(_problem(str(path), "JSONL in UTF-8", reason_of(error)))
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            seed = Seed.model_validate(json.loads(line))
        except ValidationError as error:
            problems.extend(_wrong_fields(where, error))
            continue
        except (ValueError, RecursionError) as error:
            problems.append(_problem(where, "one JSON object", reason_of(error)[:200]))
            continue
        if not (seed.prompt or "").strip() and not seed.video:
            problems.append(_problem(where, "a prompt or a video", "neither"))
            continue
        video = None if seed.video is None else (path.parent / seed.video).absolute()
        if video is not None and not seed.prompt and not video.is_file():
            problems.append(_problem(where, "a video that is there", str(video)))
        yield where, {**seed.as_json(), "video": None if video is None else str(video)}


def _name(seed: dict[str, Json]) -> str:
    if "given" in seed:
        name = str(seed["given"]["unit"])
        return name.removesuffix(".mp4") or name
    if seed["prompt"]:
        stem = video_name(seed["prompt"]).removesuffix(".mp4")
        return stem or f"seed_{digest(seed['prompt'])[:12]}"
    return f"caption_{Path(seed['video']).stem}"


def _is_creative(number: int, share: float) -> bool:
    """Whether the running total of creative prompts goes up at this number, so that the share is kept to."""
    return int((number + 1) * share + 1e-9) > int(number * share + 1e-9)


def _examples(written: Sequence[str], number: int, chosen: tuple[int, int]) -> list[str]:
    """Return the examples of one request, in an order that depends on seed and number alone."""
    count, seed = chosen
    return sorted(written, key=lambda prompt: digest([seed, number, prompt]))[:count]
