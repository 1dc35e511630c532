"""Pictures of a video's shots and people, kept in the run by their content; and what colours they have.

A picture is named by the SHA-256 of its bytes, ``<sha256>.jpg``, in the run's store.
"""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from ...media.kept import keep_file, kept_bytes
from ...models.chat import Image
from ...schemas.base import Own
from ...schemas.canonical import sha256_bytes

MEDIA_TYPE = "image/jpeg"


class ShotView(Own):
    """What a shot looks like.

    Attributes:
        shot: its number.
        files: names of its keyframes, in order of time.
        colours: histogram of its keyframes in thousandths: 64 bins, four levels of red, green and blue each.
        tone: the colour word that fits most of its first keyframe; None without keyframes.
    """

    shot: int
    files: tuple[str, ...]
    colours: tuple[int, ...] = ()
    tone: str | None = None


class PersonView(Own):
    """What a person looks like.

    Attributes:
        person: id of the person.
        files: names of the crops, best first.
        tone: the colour word that fits most of the lower half of the best crop; None without crops.
        shots: numbers of the shots that the crops are from.
    """

    person: str
    files: tuple[str, ...]
    tone: str | None = None
    shots: tuple[int, ...] = ()


class Views(Own):
    """Pictures of a video."""

    shots: tuple[ShotView, ...] = ()
    people: tuple[PersonView, ...] = ()

    def of_shot(self, number: int) -> ShotView:
        """Return the view of a shot; one without pictures where there is none."""
        found = self._by_shot.get(number)
        return ShotView(shot=number, files=()) if found is None else found

    @cached_property
    def _by_shot(self) -> dict[int, ShotView]:
        return {view.shot: view for view in self.shots}

    def of_person(self, person: str) -> PersonView:
        """Return the view of a person; one without pictures where there is none."""
        found = (view for view in self.people if view.person == person)
        return next(found, PersonView(person=person, files=()))

    def part(self, numbers: Iterable[int], people: Iterable[str]) -> "Views":
        """Return the views of some shots and people."""
        shots, persons = frozenset(numbers), frozenset(people)
        return Views(
            shots=tuple(view for view in self.shots if view.shot in shots),
            people=tuple(view for view in self.people if view.person in persons),
        )


def keep(data: bytes, store: Path | None) -> str:
    """Write a picture into the store, unless it is there; return its name. Without a store, only name it."""
    name = f"{sha256_bytes(data)}.jpg"
    if store is not None:
        keep_file(data, name, store)
    return name


def picture(name: str, store: Path | None) -> Image:
    """Return a kept picture as a part of a message; without a store, what stands for it in a rehearsal.

    Raises:
        InputError: it is not there, or its bytes are others.
    """
    if store is None:
        return Image(name.encode("ascii"), MEDIA_TYPE, name.partition(".")[0])
    fix = "build into a new folder; --reuse takes over what models answered in this one"
    return Image(kept_bytes(store, name, fix=fix), MEDIA_TYPE)
