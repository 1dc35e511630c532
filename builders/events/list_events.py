"""Stage: the events of a prompt and who leads it, where nobody has said: by a model, or else by rules.

The rules divide English prompts of the usual form (clauses joined by commas, "and then", "and finally") and
carry on the subject of the first clause: a baseline, not a reading of the text.
"""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from ...engine.stage import BadReply, Item, Made, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from ...schemas.events import PARTICIPANTS
from ..replies import ask
from ..text.words import word_set

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

SPEC = StageSpec(
    name="list_events",
    version=3,
    shape="map",
    reads=("drafted",),
    writes=("entry", "listed_by"),
    settings=ModelSettings,
    asks=(LIST,),
)


async def run(item: Item, tools: Tools) -> Outcome:
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
