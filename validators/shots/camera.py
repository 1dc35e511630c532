"""Shot Perspective Design as words of the closed lists: distance, angle and camera type.

The scripts and the judge of the source system use different words: what the scripts call a close up, the
judge calls an extreme close-up, and its close-up begins at the chest. :meth:`Camera.for_judge` maps them.
"""

import re
from dataclasses import dataclass

from ...schemas.vocabulary import vocabulary

LISTS = ("shot_distance", "camera_angle", "camera_type")
_MARKS = re.compile(r"[,，、;；]")


@dataclass(frozen=True, slots=True)
class Camera:
    """One perspective."""

    # value of the vocabulary ``shot_distance``, if one is named; ``angle`` and ``type`` likewise
    distance: str | None = None
    angle: str | None = None
    type: str | None = None
    unknown: tuple[str, ...] = ()  # the parts that are in no list

    @property
    def words(self) -> tuple[str | None, str | None, str | None]:
        """Distance, angle and type."""
        return self.distance, self.angle, self.type

    @property
    def rank(self) -> int | None:
        """How near the camera is: 0 for a wide shot to 5 for a close up."""
        if self.distance is None:
            return None
        return int(vocabulary("shot_distance").entries[self.distance]["rank"])

    def text(self, language: str) -> str:
        """Return the perspective in a language of the format, ``en`` or ``ch``."""
        words = [
            str(vocabulary(name).entries[value][language])
            for name, value in zip(LISTS, self.words, strict=True)
            if value is not None
        ]
        if language == "ch":
            return "，".join(words)
        joined = ", ".join(words)
        return joined[:1].upper() + joined[1:]

    def for_judge(self) -> tuple[str, ...]:
        """Return distance and type in the words of the judge's rubric; what it has no word for is left out.

        An angle is left in the script's words: the rubric has none of its own.
        """
        words = []
        for name, value in zip(LISTS, self.words, strict=True):
            if value is not None:
                entry = vocabulary(name).entries[value]
                words.append(entry.get("judge", entry["en"]))
        return tuple(word for word in words if word is not None)


def read_camera(text: str) -> Camera:
    """Return the perspective that a text names, in either language; parts may come in any order.

    Of two words of one list the first counts, the other is unknown.
    """
    values: dict[str, str] = {}
    unknown = []
    for part in filter(None, (piece.strip(" .。\t\n") for piece in _MARKS.split(text))):
        name, value = _listed(part)
        if name is None or name in values:
            unknown.append(part)
        else:
            values[name] = value
    distance, angle, kind = (values.get(name) for name in LISTS)
    return Camera(distance, angle, kind, tuple(unknown))


def _listed(part: str) -> tuple[str | None, str]:
    """Return the list that has a word, and the value that it stands for there."""
    for name in LISTS:
        value = vocabulary(name).resolve(part)
        if value in vocabulary(name).values:
            return name, value
    return None, part


def is_repeated(before: Camera, after: Camera) -> bool:
    """Return whether two neighbouring shots are composed alike, as far as both are known."""
    return before.distance is not None and before.words == after.words


def is_jump(before: Camera, after: Camera) -> bool:
    """Return whether two neighbouring shots jump from the farthest distance to the nearest, or back."""
    first, second = before.rank, after.rank
    widest = len(vocabulary("shot_distance").values) - 1
    return first is not None and second is not None and abs(first - second) == widest
