"""What gives a hidden-test story away: its id, how its texts begin and end, a text that is much like it.

Ids are looked for where they look like ids (a digit, six characters or more). Texts are looked for by how
they begin and end, but for what a public story has as well: tales of one frame begin alike.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from pathlib import Path

from ..schemas.canonical import Json, canonical_text
from ..validators.similarity import DEFAULT_THRESHOLD, shingles, signature, similarity
from .layout import ANNOTATIONS, VARIANTS

_MARK = 120
_LIKE = DEFAULT_THRESHOLD - 0.2
"""Exact similarity from which two texts are compared by their signatures, as building compares them."""

CONTAINED = 0.9
"""Share of the word groups of a hidden story from which a text counts as holding the story."""

_FEWEST = 20
"""A text of fewer word groups is looked for as it stands only."""


@dataclass(slots=True)
class Marks:
    """What to look for.

    Attributes:
        ids: finds the id of a hidden story.
        texts: finds how a text of one begins or ends.
        stories: id -> text of the hidden stories.
        whole: every text of a hidden story or of its variants, as a whole.
        shortest: length from which a text may hold most of a hidden story, in characters.
    """

    ids: re.Pattern[bytes]
    texts: re.Pattern[bytes]
    stories: Mapping[str, str]
    whole: frozenset[str]
    shortest: int = 0
    _groups: dict[str, list[str]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.shortest = min((len(text) for text in self.stories.values()), default=0) // 2
        for story_id, text in self.stories.items():
            found = shingles(text)
            if len(found) >= _FEWEST:
                self._sizes[story_id] = len(found)
                for group in found:
                    self._groups.setdefault(group, []).append(story_id)

    def like(self, text: str) -> Iterator[tuple[str, float, str]]:
        """Yield the hidden stories that a text is much like, or holds: id, share, and which of the two.

        A text that comes again is compared once.
        """
        if hash(text) in self._seen or not self._sizes:
            return
        self._seen.add(hash(text))
        found = shingles(text)
        shared = Counter(story_id for group in found for story_id in self._groups.get(group, ()))
        for story_id, count in sorted(shared.items()):
            size = self._sizes[story_id]
            if count / (size + len(found) - count) >= _LIKE:
                share = similarity(signature(text), signature(self.stories[story_id]))
                if share >= DEFAULT_THRESHOLD:
                    yield story_id, share, "like"
                    continue
            if count / size >= CONTAINED:
                yield story_id, count / size, "holds"


def marks_of(public: Path, hidden: Path, ids: Iterable[str]) -> Marks:
    """Return what to look for in a public folder.

    Args:
        public: the public release, for what public stories share with hidden ones.
        hidden: the folder of the hidden-test stories.
        ids: the ids of the hidden records.

    Raises:
        OSError, ValueError, LookupError, TypeError: a folder is damaged.
    """
    marks = {mark for _, text in _texts(hidden) for mark in _ends(text)}
    for _, text in _texts(public):
        marks.difference_update(_ends(text))
    return Marks(
        ids=_any_of(name for name in ids if len(name) >= 6 and any(char.isdigit() for char in name)),
        texts=_any_of(form for _, mark in marks for form in (canonical_text(mark)[1:-1], mark)),
        stories={row["story_id"]: row["story_text"] for row in _rows(hidden / ANNOTATIONS)},
        whole=frozenset(text for whole, text in _texts(hidden) if whole),
    )


def public_has_whole(public: Path, marks: Marks) -> bool:
    """Return whether a record or variant of the public folder has the whole text of a hidden one."""
    return any(whole and text in marks.whole for whole, text in _texts(public))


def _texts(folder: Path) -> Iterator[tuple[bool, str]]:
    """Yield the texts of the stories of a folder and of their variants, and whether each is a whole story."""
    for row in _rows(folder / ANNOTATIONS):
        yield from ((True, row[name]) for name in ("source_text", "story_text"))
        yield from ((False, scene["scene_text"]) for scene in row["scenes"])
        yield from ((False, question["question"]) for question in row["questions"])
    for row in _rows(folder / VARIANTS):
        yield True, row["contrastive_story_text"]
        yield False, row["contrastive_scene_text"]


def _rows(path: Path) -> Iterator[dict[str, Json]]:
    with path.open("rb") as lines:
        for line in lines:
            yield json.loads(line)


def _ends(text: str) -> Iterator[tuple[str, str]]:
    """Yield how a text begins and how it ends, where that is long enough to tell."""
    if len(text) >= _MARK // 2:
        yield "opening", text[:_MARK]
        yield "ending", text[-_MARK:]


def _any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that finds any of the words, as a prefix tree that stays fast with many of them."""
    unique = sorted({word.encode("utf-8") for word in words})
    return re.compile(_tree(unique) if unique else rb"(?!)", re.DOTALL)


def _tree(words: Sequence[bytes]) -> bytes:
    # The words are sorted, so what the first and the last share, all share.
    prefix = bytes(
        one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(words[0], words[-1], strict=False))
    )
    rest = [word[len(prefix) :] for word in words]
    branches = [_tree(list(group)) for _, group in groupby(filter(None, rest), key=lambda word: word[0])]
    if not branches:
        return re.escape(prefix)
    optional = b"?" if b"" in rest else b""
    return re.escape(prefix) + b"(?:" + b"|".join(branches) + b")" + optional
