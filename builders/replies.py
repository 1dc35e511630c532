"""Asking a model with one prompt, and what all readers of replies share: gathering problems, tidying texts.

A reader is given JSON that satisfies the prompt's schema. It never trusts the reply with anything that is
known otherwise: ids and scene texts are filled in from the draft, numbers only choose among what is there.
A reply in the wrong language is known by the script that it is written in.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar

from ..engine.stage import MOST_REPAIRS, Ask, BadReply, Tools
from ..models.chat import Message, Part
from ..models.spec import ModelSettings, parse_spec
from ..prompts.loader import load_prompt, read_prompt
from ..schemas.canonical import Json
from ..schemas.text import contains_phrase, normalize_answer, normalize_text
from ..schemas.values import Issue

T = TypeVar("T")

LONGEST_TAG = 35
"""Characters of a language tag that are shown; longer ones are private extensions."""

LONGEST_TEXT = 1000
"""Most characters of one field."""

LONGEST_LIST = 30
"""Most entries of one list of words or answers."""

_SHOWN = 8
_GAP = re.compile(r"\.{2,}|…")


@dataclass(frozen=True, slots=True)
class Drafted(Generic[T]):
    """A part of a record, and who made it."""

    value: T  # the part
    maker: str  # what the producer sidecar says: ``rules@1``, or the model and the prompt


async def ask(
    tools: Tools, prompt_id: str, read: Callable[[Json], T], pictures: Sequence[Part] = (),
    repairs: int = MOST_REPAIRS, /, **inputs: Json,
) -> Drafted[T]:  # fmt: skip
    """Return a model's answer to a prompt.

    ``tools``: what the stage may use; its settings name the model, its asker must be there.
    """
    settings = tools.own(ModelSettings)
    assert tools.asker is not None, "a stage whose settings name a model is given an asker"
    own = getattr(settings, "prompts", {}).get(prompt_id)
    prompt = load_prompt(prompt_id) if own is None else read_prompt(prompt_id, own.encode("utf-8"))
    request = prompt.request(settings, tools.seed, **inputs)
    if pictures:
        *before, last = request.messages
        request = replace(request, messages=(*before, Message(last.role, (*pictures, *last.parts))))
    answer = await tools.asker.ask(Ask(request, read, prompt.label, repairs, settings.sample))
    return Drafted(answer.value, ", ".join([f"{public_name(settings)} via {prompt.label}", *answer.notes]))


def public_name(settings: ModelSettings) -> str:
    """Return a model's spec for published records; a server's address is nobody else's business."""
    return parse_spec(settings.model or "").public


def language(story: Json) -> str:
    """Return the language tag of a story, cut to the length of a usual one."""
    return str(story["language"])[:LONGEST_TAG]


class Problems:
    """Problems of one reply, told to the model all at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note a problem, worded so that the model can act on it."""
        self.found.append(problem)

    def add_issues(self, issues: Iterable[Issue]) -> None:
        """Note what rules of ``fabula validate`` found."""
        self.found += [f"{issue.path}: {issue.message}" for issue in issues]

    def check_script(self, story: Json, values: Json) -> None:
        """Note it if the texts in some values are not in the story's script."""
        problem = script_problem(story["normalized_text"], story["language"], " ".join(texts_in(values)))
        if problem is not None:
            self.add(problem)

    def settle(self) -> None:
        """Do nothing if no problem was noted."""
        if not self.found:
            return
        more = len(self.found) - _SHOWN
        raise BadReply("; ".join(self.found[:_SHOWN]) + (f"; and {more} more" if more > 0 else ""))


def texts_in(values: Json) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from texts_in(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from texts_in(value)


def needed(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> str:
    """Return a text of an entry in its normal form; note it where it is empty or too long."""
    text = normalize_text(str(entry[name]))
    if not normalize_answer(text):
        problems.add(f"{where}: {name} says nothing")
    elif len(text) > LONGEST_TEXT:
        problems.add(f"{where}: {name} has {len(text)} characters; one sentence is asked for")
    return text


def optional(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> str | None:
    """Return a text of an entry in its normal form, None for null and for nothing."""
    if entry[name] is None or not normalize_answer(entry[name]):
        return None
    return needed(entry, name, where, problems)


def is_told(words: str | None, text: str) -> bool:
    """Return whether words that a reply copies, pieces joined by dots, stand in a text, each piece whole."""
    plain = normalize_answer(text)
    pieces = [normalize_answer(piece) for piece in _GAP.split(words or "")]
    return any(pieces) and all(contains_phrase(plain, piece) for piece in pieces if piece)


def told_feeling(entry: Mapping[str, Json], text: str, where: str, problems: Problems) -> str | None:
    """Return the emotion of an entry where the words that it copies stand in the text; else None."""
    return optional(entry, "emotion", where, problems) if is_told(entry["emotion_words"], text) else None


def listed(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> list[str]:
    """Return a list of texts in their normal form, without empty and repeated ones."""
    kept: dict[str, str] = {}
    for text in map(normalize_text, entry[name]):
        kept.setdefault(normalize_answer(text), text)
    kept.pop("", None)
    if len(kept) > LONGEST_LIST or any(len(text) > LONGEST_TEXT for text in kept.values()):
        problems.add(f"{where}: {name} is too long; a few short phrases are asked for")
    return list(kept.values())


def by_number(entries: Sequence[Json], key: str, numbers: Sequence[int], what: str) -> list[Json]:
    """Return the entries with given numbers, in the order of these; see :func:`by_key`."""
    return by_key(entries, key, numbers, f"{what} {_range(numbers)}" if numbers else f"no {what}")


def by_key(entries: Sequence[Json], key: str, wanted: Sequence[Json], what: str) -> list[Json]:
    """Return the entries with given values of a key, in the order of these.

    ``wanted``: the values that there must be, each once.
    """
    listed = [entry[key] for entry in entries]
    if sorted(listed) != sorted(wanted):
        shown = ", ".join(map(str, listed[:20])) or "none"
        raise BadReply(
            f"expected {what}, each once: the values of {key} must be"
            f" {', '.join(map(str, wanted[:20])) or 'none'}; found {shown}"
        )
    by_value = {entry[key]: entry for entry in entries}
    return [by_value[value] for value in wanted]


def _range(numbers: Sequence[int]) -> str:
    whole = list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]} to {numbers[-1]}" if whole and len(numbers) > 1 else ", ".join(map(str, numbers))


def check_count(entries: Sequence[Json], count: int, what: str) -> None:
    """Check how many entries there are."""
    if len(entries) != count:
        raise BadReply(f"expected exactly {count} {what}, found {len(entries)}")


MAIN_SHARE = 0.6
"""Share of a story's letters from which on its script counts as settled."""

LEAST_SHARE = 0.5
"""Share of a reply's letters that must be in the story's script."""

LEAST_LETTERS = 24
"""A reply with fewer letters is not judged."""

# Japanese mixes the three, and any of them may be missing from a short text.
_ALIKE = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC"), "HAN AND KANA")


@lru_cache(maxsize=4096)
def _script(char: str) -> str | None:
    if not char.isalpha():
        return None
    word = unicodedata.name(char, "").replace("-", " ").partition(" ")[0]
    return _ALIKE.get(word, word) or None


def _count(text: str) -> Counter[str]:
    return Counter(script for char in text if (script := _script(char)) is not None)


def main_script(text: str) -> str | None:
    """Return the script of most letters of a text, such as ``LATIN``; None where none clearly leads."""
    counts = _count(text)
    if not counts:
        return None
    script, number = counts.most_common(1)[0]
    return script if number >= MAIN_SHARE * counts.total() else None


def script_problem(story: str, language: str, reply: str) -> str | None:
    """Return what is wrong with the script of a reply about a story, or None.

    Languages that share a script are not told apart.
    """
    wanted, counts = main_script(story), _count(reply)
    if wanted is None or counts.total() < LEAST_LETTERS or counts[wanted] >= LEAST_SHARE * counts.total():
        return None
    letters = counts.most_common(1)[0][0]
    return (
        f"the values are mostly in {letters.lower()} letters, the story (language {language}) in"
        f" {wanted.lower()}: write every value in the language and script of the story"
    )
