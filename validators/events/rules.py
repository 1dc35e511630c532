"""The rules of prompt suites and their codes: StoryEval, section 2.1.1, and near-duplicates.

``build events`` rejects by them, ``validate`` reports them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...schemas.canonical import Json
from ...schemas.events import DIFFICULTIES, ORIGINS, PARTICIPANTS, EventPrompt, SuiteRecord, video_name
from ...schemas.paths import Steps, quoted_path
from ...schemas.text import normalize_answer
from ...schemas.values import Issue
from ..report import issue_of, read_codes, show
from ..view import find_redacted

CODES = read_codes(__package__)
issue = partial(issue_of, CODES)
"""Code, place, path and message -> an issue."""


FEWEST, MOST = 2, 4
"""Fewest and most events of a prompt."""
MOST_WORDS, MOST_PARTICIPANTS = 50, 2
"""Most words of a prompt, and most kinds of participants, where nobody says otherwise."""
NEAR = 85.0
"""Token-set similarity, 0 to 100, from which two prompts are nearly the same, where nobody says otherwise."""

TOLD = 0.5
"""Least share of an event's words that its prompt has; no event of the official suite has less than 0.66."""

_FACES = """
    blush blushes cries cry crying frown frowning frowns giggle giggles glares grimace grimaces grin grinning
    grins laugh laughing laughs pout pouts scowl scowls smile smiles smiling smirk smirks sobs weep weeping
    weeps winks
"""
_FACIAL = frozenset(_FACES.split())
_SMALL = frozenset(("a", "an", "the", "and", "then", "finally", "its", "his", "her", "their", "it", "of"))
_OTHERS = "he she they him them this that these those who which someone somebody"
_REFERRING = _SMALL | frozenset(_OTHERS.split())
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_STEM = 4
"""Letters by which two forms of a word are taken for one."""


@dataclass(frozen=True, slots=True)
class Objection:
    """What speaks against a prompt: code of the condition, the field concerned, and what was found there."""

    code: str
    field: str
    message: str


def objections(
    prompt: str,
    events: Sequence[str],
    participants: Sequence[str],
    *,
    max_words: int = MOST_WORDS,
    max_participants: int = MOST_PARTICIPANTS,
) -> Iterator[Objection]:
    """Yield every condition that a prompt does not meet."""
    words, folded = len(prompt.split()), [event.casefold() for event in events]
    if video_name(prompt) == ".mp4":
        yield Objection("no-name", "prompt", f"no file name can be made of {show(prompt)}")
    if not FEWEST <= len(events) <= MOST:
        found = f"{len(events)}: {'; '.join(events)[:200]}"
        yield Objection("event-count", "event_list", f"expected {FEWEST} to {MOST} events, found {found}")
    if twice := [event for index, event in enumerate(events) if folded[index] in folded[:index]]:
        yield Objection("repeated-event", "event_list", f"{show(twice[0])} is there twice")
    if words > max_words:
        yield Objection("too-long", "prompt", f"expected at most {max_words} words, found {words}")
    if len(participants) > max_participants:
        expected = f"expected at most {max_participants} kinds of participants"
        found = f"{len(participants)}: {', '.join(participants)}"
        yield Objection("too-many-participants", "class", f"{expected}, found {found}")
    if (face := facial_expression(events)) is not None:
        yield Objection("facial-expression", "event_list", f"{show(face)} is a facial expression")


def untold_events(prompt: str, events: Sequence[str]) -> Iterator[Objection]:
    """Yield the events that a prompt does not tell: it lacks more than half of their words.

    What a build lists of a prompt has to pass; whoever gives a suite may word its events as they like.
    """
    words = set(_stems(prompt))
    for event in events:
        stems = [stem for stem in _stems(event) if stem not in _REFERRING]
        if stems and sum(stem in words for stem in stems) < TOLD * len(stems):
            yield Objection("event-elsewhere", "event_list", f"{show(event)} is not what the prompt tells")


def _stems(text: str) -> Iterator[str]:
    """Yield how each word begins; of scripts without spaces each character."""
    spaced = _UNSPACED.sub(lambda match: f" {match[0]} ", unicodedata.normalize("NFKC", text).casefold())
    return (word if word in _REFERRING else word[:_STEM] for word in _WORD.findall(spaced))


def participants_in(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of participants that the classes of a prompt name, in their usual order."""
    return tuple(kind for kind in PARTICIPANTS if kind in labels)


def facial_expression(events: Sequence[str]) -> str | None:
    """Return the event that is a facial expression, which judges do not reliably see; None for none."""
    for event in events:
        if _FACIAL & set(_WORD.findall(event.casefold())):
            return event
    return None


def compared(prompt: str) -> str:
    """Return what of a prompt is compared with others: its normalised words without articles and the like."""
    return " ".join(word for word in normalize_answer(prompt).split() if word not in _SMALL)


def nearest(text: str, others: Sequence[str], near: float = NEAR) -> tuple[float, int] | None:
    """Return similarity and position of the text that is most like one, None where none is near.

    ``near``: token-set similarity, 0 to 100, from which texts are near.
    """
    from rapidfuzz import fuzz, process

    best = process.extractOne(text, others, scorer=fuzz.token_set_ratio, score_cutoff=near)
    return None if best is None else (float(best[1]), int(best[2]))


def check_names(
    prompts: Mapping[str, EventPrompt], where: str, built: Collection[str] = ()
) -> Iterator[Issue]:
    """Yield the prompts that the file name of their video contradicts.

    A suite may name its files as it likes. Where most are named after their prompts, all are.

    ``prompts``: file name of the video -> its prompt.
    """
    named = {name: video_name(prompt.prompt) for name, prompt in prompts.items()}
    most = sum(name == made for name, made in named.items()) * 2 > len(named)
    for name, made in named.items():
        if name != made and (most or name in built):
            message = f"the video of this prompt would be called {show(made, 240)}"
            yield issue("unit-name", where, quoted_path((name, "prompt")), message)


def check_prompts(prompts: Mapping[str, EventPrompt], where: str) -> Iterator[Issue]:
    """Yield everything that is wrong with the prompts of a suite.

    As in a build, near-duplicates are sought among the prompts that meet the conditions, and the first stays.

    ``prompts``: file name of the video -> its prompt.
    """
    yield from check_names(prompts, where)
    names: list[str] = []
    texts: list[str] = []
    for name, prompt in prompts.items():
        yield from check_entry(prompt, where, (name,))
        against = list(objections(prompt.prompt, prompt.event_list, participants_in(prompt.labels)))
        for objection in against:
            yield issue(objection.code, where, quoted_path((name, objection.field)), objection.message)
        if against:
            continue
        text = compared(prompt.prompt)
        if near := nearest(text, texts):
            message = f"{near[0]:.0f} of 100 like {show(names[near[1]], 240)}"
            yield issue("near-duplicate", where, quoted_path((name, "prompt")), message)
            continue
        names.append(name)
        texts.append(text)


def check_entry(prompt: EventPrompt, where: str, steps: Steps) -> Iterator[Issue]:
    """Yield what makes an entry unsound, whether or not it meets the conditions."""
    yield from find_redacted(prompt.as_json(), where, steps)
    size = f"{len(prompt.event_list)}_events"
    if stated := [label for label in prompt.labels if label.endswith("_events") and label != size]:
        message = f"labelled {', '.join(stated)}, and has {size.replace('_', ' ')}"
        yield issue("event-label", where, quoted_path((*steps, "class")), message)


def check_events(prompt: EventPrompt, where: str, steps: Steps) -> Iterator[Issue]:
    """Yield the events that a build listed and the prompt does not tell; arguments as for an entry."""
    for untold in untold_events(prompt.prompt, prompt.event_list):
        yield issue(untold.code, where, quoted_path((*steps, untold.field)), untold.message)


def prompt_statistics(prompts: Iterable[EventPrompt]) -> dict[str, Json]:
    """Return what can be counted over prompts without their history; shares are of the prompts.

    A prompt has several classes, so that their shares do not add to one.
    """
    labels, sizes = Counter[str](), Counter[str]()
    words: list[int] = []
    for prompt in prompts:
        labels.update(set(prompt.labels))
        sizes[str(len(prompt.event_list))] += 1
        words.append(len(prompt.prompt.split()))
    total = len(words)
    known = [name for name in (*PARTICIPANTS, *ORIGINS, *DIFFICULTIES) if labels[name]]
    return {
        "kind": "events",
        "totals": {"prompts": total, "events": sum(int(size) * count for size, count in sizes.items())},
        "classes": _shares(labels, [*known, *sorted(set(labels) - set(known))], total),
        "events_per_prompt": _shares(sizes, sorted(sizes, key=int), total),
        "words_per_prompt": {
            "least": min(words, default=0),
            "most": max(words, default=0),
            "mean": round(sum(words) / total, 6) if total else 0.0,
        },
    }


def suite_statistics(records: Iterable[SuiteRecord]) -> dict[str, Json]:
    """Return the content of a suite's ``statistics.json``: counts over its prompts and over their makers."""
    prompts: list[EventPrompt] = []
    origins, makers = Counter[str](), Counter[str]()
    for record in records:
        prompts.append(record.entry)
        origins[record.origin] += 1
        makers.update(f"{part}: {maker}" for part, maker in record.producers.items())
    return {
        **prompt_statistics(prompts),
        "origins": _shares(origins, sorted(origins), len(prompts)),
        "producers": {name: makers[name] for name in sorted(makers)},
    }


def _shares(counts: Mapping[str, int], order: Iterable[str], total: int) -> dict[str, Json]:
    return {name: {"count": counts[name], "share": round(counts[name] / total, 6)} for name in order}
