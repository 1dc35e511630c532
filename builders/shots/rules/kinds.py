"""Story type by cue words of an English text, culture by its collection; null where neither settles it."""

from ...katha.rules.words import lower_words
from .lexicon import cues_of

STORY_TYPE = "story_type"
LEAST, LEAD = 3, 1.5
CULTURES = {"aesop": "euro_american", "kathasaritasagara": "indian", "panchatantra": "indian"}
"""Source collection -> the culture that its stories come from."""


def story_type(text: str) -> str | None:
    """Return the story type whose words a text has most of, if they are enough and clearly the most."""
    words = lower_words(text)
    counts = {name: sum(word in cues for word in words) for name, cues in cues_of(STORY_TYPE).items()}
    (first, top), (_, second) = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:2]
    return first if top >= LEAST and top >= LEAD * second else None
