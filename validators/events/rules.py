"""The conditions of section 2.1.1 of StoryEval, its first filter, and near-duplicates.

`build events` rejects by them, and `validate` reports them: they stand here once.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...schemas.events import PARTICIPANTS, EventPrompt, video_name
from ...schemas.issue import Issue
from ...schemas.paths import Steps
from ...schemas.quoted_paths import quoted_path
from ...schemas.text import normalize_answer
from ..codes import show
from ..redacted import find_redacted
from ..suites.codes import issue

FEWEST, MOST = 2, 4
"""Fewest and most events of a prompt."""
MOST_WORDS, MOST_PARTICIPANTS = 50, 2
"""Most words of a prompt, and most kinds of participants, where nobody says otherwise."""
NEAR = 85.0
"""Token-set similarity, 0 to 100, from which two prompts are nearly the same, where nobody says otherwise."""

_FACES = """
    blush blushes cries cry crying frown frowning frowns giggle giggles glares grimace grimaces grin grinning
    grins laugh laughing laughs pout pouts scowl scowls smile smiles smiling smirk smirks sobs weep weeping
    weeps winks
"""
_FACIAL = frozenset(_FACES.split())
_SMALL = frozenset(("a", "an", "the", "and", "then", "finally", "its", "his", "her", "their", "it", "of"))
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")


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
    if twice := [event for place, event in enumerate(events) if folded[place] in folded[:place]]:
        yield Objection("repeated-event", "event_list", f"{show(twice[0])} is there twice")
    if words > max_words:
        yield Objection("too-long", "prompt", f"expected at most {max_words} words, found {words}")
    if len(participants) > max_participants:
        expected = f"expected at most {max_participants} kinds of participants"
        found = f"{len(participants)}: {', '.join(participants)}"
        yield Objection("too-many-participants", "class", f"{expected}, found {found}")
    if (face := facial_expression(events)) is not None:
        yield Objection("facial-expression", "event_list", f"{show(face)} is a facial expression")


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

    Args:
        text: what :func:`compared` returns of a prompt.
        others: the same of others.
        near: token-set similarity, 0 to 100, from which texts are near.
    """
    from rapidfuzz import fuzz, process

    found = process.extractOne(text, others, scorer=fuzz.token_set_ratio, score_cutoff=near)
    return None if found is None else (float(found[1]), int(found[2]))


def check_prompts(prompts: Mapping[str, EventPrompt], where: str) -> Iterator[Issue]:
    """Yield everything that is wrong with the prompts of a suite.

    As in a build, near-duplicates are sought among the prompts that meet the conditions, and the first stays.

    Args:
        prompts: file name of the video -> its prompt.
        where: the file that holds them.
    """
    names: list[str] = []
    texts: list[str] = []
    for name, prompt in prompts.items():
        yield from check_entry(prompt, where, (name,))
        against = list(objections(prompt.prompt, prompt.event_list, participants_in(prompt.labels)))
        for found in against:
            yield issue(found.code, where, quoted_path((name, found.field)), found.message)
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
    """Yield what makes an entry unsound, whether or not it meets the conditions.

    Args:
        prompt: the entry.
        where: the file or record.
        steps: path of the entry in it.
    """
    yield from find_redacted(prompt.as_json(), where, steps)
    size = f"{len(prompt.event_list)}_events"
    if stated := [label for label in prompt.labels if label.endswith("_events") and label != size]:
        message = f"labelled {', '.join(stated)}, and has {size.replace('_', ' ')}"
        yield issue("event-label", where, quoted_path((*steps, "class")), message)
