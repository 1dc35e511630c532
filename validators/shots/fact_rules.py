"""Rules about what is known of a story beyond its script: a line of ``stories.jsonl``."""

from collections.abc import Iterator

from ...schemas.issue import Issue
from ...schemas.shots import ShotScript, StoryFacts
from ...schemas.vocabulary import vocabulary
from ..codes import show
from .codes import issue

_HUMANS = {True: "realistic_human", False: "unrealistic_human"}


def check_facts(facts: StoryFacts, script: ShotScript, where: str) -> Iterator[Issue]:
    """Yield where facts use other words than the lists, name nobody of the script, or do not fit its tags."""
    for name, value in (("style_category", facts.style), ("culture", facts.culture)):
        yield from _word(name, value, where, "$.style" if name == "style_category" else "$.culture")
    for key, known in facts.characters.items():
        path = f"$.characters[{show(key)}]"
        if key not in script.characters:
            yield issue("facts-character", where, path, f"{show(key)} is no character of the script")
        yield from _word("gender", known.gender, where, f"{path}.gender")
    if facts.realistic is None:
        return
    other = _HUMANS[not facts.realistic]
    for key, sheet in script.characters.items():
        if sheet.tag == other:
            message = f"expected {_HUMANS[facts.realistic]} for {show(key)}, found {other}"
            yield issue("facts-realistic", where, "$.realistic", message)


def _word(name: str, value: str | None, where: str, path: str) -> Iterator[Issue]:
    words = vocabulary(name).values
    if value is not None and value not in words:
        yield issue("facts-word", where, path, f"expected one of {', '.join(words)}, found {show(value)}")
