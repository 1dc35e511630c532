"""What is counted in the actions, prompts and overview of an episode."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...schemas.entities import TYPES, EntityType
from ..codes import show
from .view import EpisodeView, holds, named

_TOKEN = re.compile(r"[\w'-]+")

VERBS: Mapping[str, tuple[str, ...]] = {
    "stand": ("stand", "stands", "standing", "stood"),
    "look": ("look", "looks", "looking", "looked"),
    "sit": ("sit", "sits", "sitting", "sat"),
    "speak": ("speak", "speaks", "speaking", "spoke", "spoken"),
    "watch": ("watch", "watches", "watching", "watched"),
    "walk": ("walk", "walks", "walking", "walked"),
    "listen": ("listen", "listens", "listening", "listened"),
    "smile": ("smile", "smiles", "smiling", "smiled"),
    "hold": ("hold", "holds", "holding", "held"),
    "turn": ("turn", "turns", "turning", "turned"),
    "talk": ("talk", "talks", "talking", "talked"),
    "lean": ("lean", "leans", "leaning", "leaned", "leant"),
    "gaze": ("gaze", "gazes", "gazing", "gazed"),
    "nod": ("nod", "nods", "nodding", "nodded"),
    "stare": ("stare", "stares", "staring", "stared"),
    "observe": ("observe", "observes", "observing", "observed"),
    "glance": ("glance", "glances", "glancing", "glanced"),
    "show": ("show", "shows", "showing", "showed", "shown"),
}
"""The 18 verbs of Table 9 of the EntityBench paper and their forms."""

VERB_GROUPS: Mapping[str, tuple[str, ...]] = {
    "posture": ("stand", "sit", "lean"),
    "perception": ("look", "watch", "gaze", "stare", "observe", "glance"),
    "dialogue": ("speak", "talk", "listen"),
    "motion": ("walk", "turn", "hold"),
}
"""What section A.4 of the paper makes of them; it leaves smile, nod and show out."""

TAGS: Mapping[str, tuple[str, ...]] = {
    "indoor_outdoor": (
        "indoor", "indoors", "outdoor", "outdoors", "inside", "outside", "interior", "exterior",
    ),
    "time_of_day": (
        "night", "nighttime", "day", "daytime", "dusk", "dawn", "morning", "midday", "noon", "afternoon",
        "evening", "sunset", "sunrise", "twilight",
    ),
    "night": ("night", "nighttime", "nights"),
    "day": ("day", "daytime", "daylight"),
    "close_up": ("close-up", "close-ups"),
    "shot_type": (
        "close-up", "close-ups", "medium shot", "wide shot", "long shot", "full shot", "over-the-shoulder",
        "establishing shot", "tracking shot", "aerial shot", "low-angle", "high-angle",
    ),
    "style": (
        "anime", "animation", "cartoon", "cinematic", "stylized", "monochrome", "black-and-white",
        "black and white", "sepia", "grainy", "watercolor", "3d",
    ),
}  # fmt: skip
"""Tag of scene design -> words that name it. The lexicon of the paper is not published; this one is ours.

"Animated" is left out: mostly it says how people talk.
"""

_TAGGED = {
    tag: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})(?!\w)")
    for tag, words in TAGS.items()
}


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one episode in numbers.

    Attributes:
        tokens: lower-case token -> how often it is in the actions; a token is letters, digits, ``_ ' -``.
        action_tokens: tokens of each action.
        action_long_tokens: likewise, tokens of one character left out.
        action_words: words of each action, as white space parts them.
        prompt_words: words of each prompt, likewise.
        tags: tag of scene design -> actions that name it.
        mentions: type -> how actions name their slots (``exact``, ``case``, ``part``, ``none``) -> count.
        overview_words: words of the overview.
        overview_names: type -> names of the registry in the overview, and how many there are.
        odd_names: names of the registry with characters beyond ASCII; ``odd_actions`` likewise.
    """

    tokens: Counter[str]
    action_tokens: tuple[int, ...]
    action_long_tokens: tuple[int, ...]
    action_words: tuple[int, ...]
    prompt_words: tuple[int, ...]
    tags: Counter[str]
    mentions: Mapping[EntityType, Counter[str]]
    overview_words: int
    overview_names: Mapping[EntityType, tuple[int, int]]
    odd_names: int
    odd_actions: int


def read_texts(view: EpisodeView) -> Texts:
    """Return what is counted in the texts of an episode."""
    actions = [shot.action for shot in view.shots]
    lowered = [action.lower() for action in actions]
    tokens = [_TOKEN.findall(action) for action in lowered]
    overview = view.script.story_overview or ""
    return Texts(
        tokens=Counter(token for found in tokens for token in found),
        action_tokens=tuple(map(len, tokens)),
        action_long_tokens=tuple(sum(len(token) > 1 for token in found) for found in tokens),
        action_words=tuple(len(action.split()) for action in actions),
        prompt_words=tuple(len(shot.prompt.split()) for shot in view.shots),
        tags=Counter(tag for action in lowered for tag, words in _TAGGED.items() if words.search(action)),
        mentions={
            kind: Counter(
                named(shot.action, name) or "none"
                for shot in view.shots
                for name in shot.scheduled.names(kind)
            )
            for kind in TYPES
        },
        overview_words=len(overview.split()),
        overview_names={kind: _named_there(view, kind, overview) for kind in TYPES},
        odd_names=sum(not name.isascii() for name in view.labels),
        odd_actions=sum(not action.isascii() for action in actions),
    )


def beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII, each once, sorted, as a message shows them."""
    return show("".join(sorted({char for char in text if not char.isascii()})), 40)


def _named_there(view: EpisodeView, kind: EntityType, text: str) -> tuple[int, int]:
    names = [name.casefold() for name in view.labels if view.label_type(name) == kind]
    folded = text.casefold()
    return sum(holds(folded, name) for name in names), len(names)
