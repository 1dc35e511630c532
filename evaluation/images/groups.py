"""Of which kinds a story and its characters are, for scores by kind (sections C and C.1 of the supplement).

Facts come from the set: the type of the story from its script, the tag of a character from its sheet, all
else from ``stories.jsonl``. Where nothing says whether a story is realistic, its human characters do: it is
where all of them are realistic humans, and is not where none is; a mixed one is of neither kind.
"""

from collections.abc import Mapping

from ..metrics.story import FoundStory

Group = tuple[str, str]
"""What is told apart, such as ``gender``, and the kind, such as ``female``."""

STORY_KINDS = ("realism", "story_type", "culture", "style")
CHARACTER_KINDS = ("tag", "gender", "ethnicity")
UNSTATED = "not stated"
_REALISTIC, _HUMANS = "realistic_human", ("realistic_human", "unrealistic_human")


def kinds_of_story(found: FoundStory) -> dict[str, str]:
    """Return of which kind a story is, in each respect of :data:`STORY_KINDS`."""
    facts = found.facts
    realistic = facts.realistic if facts.realistic is not None else _by_tags(found)
    realism = None if realistic is None else "realistic" if realistic else "unrealistic"
    told = dict(zip(STORY_KINDS, (realism, facts.story_type, facts.culture, facts.style), strict=True))
    return {name: value or UNSTATED for name, value in told.items()}


def kinds_of_characters(found: FoundStory) -> Mapping[Group, frozenset[str]]:
    """Return which characters of a story are of each kind, in each respect of :data:`CHARACTER_KINDS`."""
    kinds: dict[Group, set[str]] = {}
    for key, tag in found.characters.items():
        facts = found.facts.characters.get(key)
        told = (tag, facts.gender if facts else None, facts.ethnicity if facts else None)
        for name, value in zip(CHARACTER_KINDS, told, strict=True):
            kinds.setdefault((name, value or UNSTATED), set()).add(key)
    return {group: frozenset(keys) for group, keys in sorted(kinds.items())}


def _by_tags(found: FoundStory) -> bool | None:
    humans = {tag == _REALISTIC for tag in found.characters.values() if tag in _HUMANS}
    return humans.pop() if len(humans) == 1 else None
