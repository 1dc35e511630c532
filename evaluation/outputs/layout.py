"""One layout for the outputs of every kind, ``UNIT/PART.ext``, and what else is read as that.

    kind      unit     part             a file
    katha     story    scene            kb25k_0001/01.png
    shots     story    shot             01/01.png
    entities  episode  scene and shot   ep_a/001_002.mp4
    events    prompt   none             A_cat_naps.mp4; of several, the seed: A_cat_naps/2.mp4

Numbers are padded or not, and may have words around them (``shot_01``, ``scene-1``, ``img01``, ``01_final``).
A unit is known by its id, its title or its number, whatever case, marks and padding. Files may lie flat:
``UNIT_PART.ext``. What cannot be told is never guessed silently: :func:`suggest` writes a map, which people
correct, and :func:`arrange` makes the layout of it.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath

from ...errors import InputError, TargetError, UserError
from ...schemas.canonical import csv_text, link_or_copy, new_folder, write_atomic
from ...schemas.plain_files import BadCsv, CsvTable, below, composed, read_plain, reason_of
from ...schemas.values import Issue
from .checked import finding, listed_names, listed_numbers

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".avif", ".gif", ".bmp")
VIDEOS = (".mp4", ".mov", ".mkv", ".webm", ".m4v", ".avi", ".mpg", ".mpeg", ".ts", ".ogv", ".wmv", ".flv")
"""Endings of files that are taken for pictures and videos; what is in them decides whether they are."""
MISSING, NUMBERED_FROM_ZERO, REPEATED, EXTRA = "missing", "numbered-from-zero", "repeated", "extra"
"""Codes of findings about numbers, and about what is not there."""

Key = tuple[int, ...]
"""The numbers that a file's name says: the scene or shot; of episodes, the scene and the shot in it."""
_WORD = r"[^\W\d](?:[^\W\d]|[ .-])*"  # an underscore is one of these
_NUMBER = r"([0-9]{1,6})"
_NAMED = {
    1: re.compile(rf"(?:{_WORD})?{_NUMBER}(?:[ .-]*{_WORD})?"),
    2: re.compile(rf"(?:{_WORD})?{_NUMBER}(?:[ .-]+|[ .-]*{_WORD}){_NUMBER}(?![0-9]).*", re.DOTALL),
}
_MARKS = re.compile(r"[\W_]+")
_APOSTROPHES = re.compile("['\u2018\u2019\u02bc\uff07`]")
_ZEROS = re.compile("(?<![0-9])0+(?=[0-9])")
_NOUN = re.compile("(?:story|episode|prompt|ep) ?(?=[0-9]+$)")
_LETTER_BEHIND = re.compile("[0-9][^\\W\\d_]")


def key_of(stem: str, numbers: int = 1) -> Key | None:
    """Return the numbers that the name of a file says; None where it says none, or more.

    >>> key_of("Scene2-final"), key_of("s1_sh02_take3", 2), key_of("shot_03_1"), key_of("3b")
    ((2,), (1, 2), None, None)
    """
    if numbers == 1 and _LETTER_BEHIND.search(stem):
        return None  # 3a, 3b: two of one number
    named = _NAMED[numbers].fullmatch(stem)
    return None if named is None else tuple(int(number) for number in named.groups())


def title_key(text: str) -> str:
    """Return what is the same for a title and a folder called like it.

    Case, punctuation, spaces, underscores and apostrophes do not count, nor does the form in which Unicode
    writes an accent; the accent itself does.

    >>> title_key("The Fox & the Grapes") == title_key("the_fox-the_grapes")
    True
    """
    plain = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", text)).casefold()
    return _MARKS.sub(" ", unicodedata.normalize("NFKC", plain)).strip()


def unit_key(text: str) -> str:
    """Return what is the same for a unit and what is called like it: also numbers padded otherwise.

    >>> unit_key("kb25k_0007") == unit_key("KB25K-7"), unit_key("story_01") == unit_key("1")
    (True, True)
    """
    return _NOUN.sub("", _ZEROS.sub("", title_key(text)))


class Names:
    """The units of a set, by the names that they may bear."""

    def __init__(self, known: Mapping[str, Iterable[str]]) -> None:
        """``known``: id of a unit -> its other names, such as its title."""
        self.ids = {composed(unit): unit for unit in known}
        self._by_key: dict[str, list[str]] = {}
        for unit, others in known.items():
            for key in {unit_key(name) for name in (unit, *others)} - {""}:
                self._by_key.setdefault(key, []).append(unit)

    def of(self, name: str) -> list[str]:
        """Return the units that a name may mean; an id means its unit alone."""
        exact = self.ids.get(composed(name))
        return self._by_key.get(unit_key(name), []) if exact is None else [exact]

    def flat(self, stem: str, numbers: int = 1) -> tuple[str, Key] | None:
        """Return unit and part of a file called ``UNIT_PART``; the longest unit that fits."""
        for cut in sorted((mark.start() for mark in re.finditer(r"[_. -]", stem)), reverse=True):
            units, key = self.of(stem[:cut]), key_of(stem[cut + 1 :], numbers)
            if key is not None and len(units) == 1:
                return units[0], key
        return None


def missing(where: str, noun: str, keys: Sequence[object]) -> Issue:
    """Return the finding that something is missing: ``shot 3 is missing``, for every kind."""
    several = len(keys) > 1
    listed = listed_names([*map(str, keys)], 10)
    message = f"{noun}{'s' if several else ''} {listed} {'are' if several else 'is'} missing"
    return finding(where, MISSING, message, "generate it; it counts as missing")


def check_numbers(
    where: str, noun: str, wanted: Sequence[int], files: Sequence[tuple[int, Path]]
) -> Iterator[Issue]:
    """Yield what is wrong with the numbers of a unit's parts, which are asked for from 1 on."""
    numbers = [number for number, _ in files]
    for number in sorted({number for number in numbers if numbers.count(number) > 1}):
        named = ", ".join(file.name for at, file in files if at == number)
        yield finding(where, REPEATED, f"{noun} {number} is there several times: {named}", "keep one of them")
    if 0 in numbers and max(wanted, default=0) not in numbers:
        message = f"the numbers begin at 0: expected {noun}s 1 to {len(wanted)}"
        yield finding(where, NUMBERED_FROM_ZERO, message, f"add 1 to every number; 1 is the first {noun}")
        return
    if lacking := sorted(set(wanted) - set(numbers)):
        yield missing(where, noun, lacking)
    if beyond := sorted(set(numbers) - set(wanted)):
        message = f"nothing asks for {noun} {listed_numbers(beyond)}: there are {len(wanted)}"
        yield finding(where, EXTRA, message, f"remove it, or correct the number of {noun}s")


# -- What cannot be told: a map of files, which people correct

COLUMNS = ("file", "unit", "part", "seed", "why")
_MOST_BYTES = 20_000_000
_LIKE = 0.6
"""Similarity of names, 0 to 1, from which a folder or file is taken for a unit in a suggestion."""
_SEED = re.compile("seed_?([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True)
class Wanted:
    """What is asked for, by what a kind calls it."""

    unit: str  # story, episode, prompt
    # id of a unit -> the parts of it in order, as their files are called; of prompts one that has no name
    parts: Mapping[str, Sequence[str]]
    titles: Mapping[str, str] = field(default_factory=dict)  # id of a unit -> another name that it has
    numbers: int = 1  # how many numbers a part is called by; 0 where a unit is one file
    endings: tuple[str, ...] = PICTURES + VIDEOS

    def names(self) -> Names:
        """Return the names that units may bear."""
        return Names({unit: (PurePosixPath(unit).stem, self.titles.get(unit, "")) for unit in self.parts})

    def part(self, unit: str, key: Key | None) -> str | None:
        """Return the part that numbers say; None where the unit has none such."""
        if self.numbers == 0:
            return ""
        return (
            None if key is None else next((p for p in self.parts[unit] if key_of(p, len(key)) == key), None)
        )


def suggest(folder: Path, wanted: Wanted) -> list[dict[str, str]]:
    """Return a row for each picture or video below a folder: what it is, or what it may be, and why.

    A guess takes the most similar name for the unit, and the order of the names for parts; where there is
    none, unit and part are empty.
    """
    names, rows = wanted.names(), list[dict[str, str]]()
    unsure: dict[tuple[str, str, Path], list[dict[str, str]]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.suffix.lower() not in wanted.endings or any(part.startswith(".") for part in name.parts):
            continue
        seed = next((said[1] for part in name.parts if (said := _SEED.fullmatch(part))), "")
        row = {"file": name.as_posix(), "unit": "", "part": "", "seed": seed, "why": "unknown"}
        rows.append(row)
        unit, key, why = _read(name, names, wanted)
        if unit is None:
            continue
        part = wanted.part(unit, key)
        row |= {"unit": unit, "part": part or "", "why": why if part is not None else "guessed by order"}
        if wanted.numbers == 0 and key is not None and not seed:
            row["seed"] = str(key[0])
        if part is None:
            unsure.setdefault((unit, seed, name.parent), []).append(row)
    if wanted.numbers == 0 and not any(row["unit"] for row in rows):
        _by_order(rows, [*wanted.parts])
    taken = {(row["unit"], row["seed"], row["part"]) for row in rows}
    for (unit, seed, _), several in unsure.items():
        free = iter([part for part in wanted.parts[unit] if (unit, seed, part) not in taken])
        for row in several:
            row["part"] = next(free, "")
            row["unit"], row["why"] = (unit, row["why"]) if row["part"] else ("", "unknown")
    return rows


def _by_order(rows: Sequence[dict[str, str]], units: Sequence[str]) -> None:
    """Take files that only have numbers for units in the order of the set, counted from 0 or 1."""
    keys = [key_of(PurePosixPath(row["file"]).stem) for row in rows]
    first = 0 if (0,) in keys else 1
    for row, key in zip(rows, keys, strict=True):
        if key is not None and 0 <= key[0] - first < len(units):
            row |= {"unit": units[key[0] - first], "why": "guessed by the order of the set"}


def _read(name: Path, names: Names, wanted: Wanted) -> tuple[str | None, Key | None, str]:
    """Return unit and numbers that a path says, and whether that is read or guessed."""
    key = key_of(name.stem, wanted.numbers or 1)
    flat = names.flat(name.stem, wanted.numbers or 1)
    if wanted.numbers == 0 and len(units := names.of(name.stem)) == 1:
        return units[0], None, "read"
    for folder in reversed(name.parts[:-1]):
        if len(units := names.of(folder)) == 1:
            return units[0], key, "read"
    if flat is not None:
        return *flat, "read"
    said = [*reversed(name.parts[:-1]), name.stem]
    likely = ((SequenceMatcher(None, unit_key(text), unit_key(unit)).ratio(), unit)
              for text in said for unit in wanted.parts if not _SEED.fullmatch(text))  # fmt: skip
    ratio, unit = max(likely, default=(0.0, ""))
    return (unit, key, f"guessed: {ratio:.0%} alike") if ratio >= _LIKE else (None, None, "")


def suggest_map(folder: Path, wanted: Wanted, path: Path) -> dict[str, int]:
    """Write what :func:`suggest` says as a new CSV file; returns how many are read, guessed, unknown."""
    if path.exists():
        raise TargetError(str(path), what="the file is there already", fix="choose another file")
    rows = suggest(folder, wanted)
    if not rows:
        fix = "give the folder of one method"
        raise InputError([UserError(str(folder), what="it holds no picture and no video", fix=fix)])
    write_atomic(path, [csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in rows)).encode()])
    said = Counter(row["why"].partition(" ")[0].rstrip(":") for row in rows)
    return {why: said[why] for why in ("read", "guessed", "unknown")}


def arrange(folder: Path, table: Path, wanted: Wanted, out: Path) -> int:
    """Write a new folder in the one layout, as a corrected map says; returns how many files it has.

    Files are linked where the disk allows it, else copied. Rows without a unit are left out.
    """
    problems: list[UserError] = []
    places: dict[str, Path] = {}
    for line, row in _rows(table):
        unit, part, seed = (row.get(name, "").strip() for name in ("unit", "part", "seed"))
        if not unit:
            continue
        source, what = below(folder, row["file"]), None
        if not source.is_file():  # a name that a spreadsheet would compute has an apostrophe before it
            source = below(folder, row["file"].removeprefix("'"))
        target = _target(wanted, unit, part, seed, source.suffix.lower())
        if target is None:
            known = ", ".join(wanted.parts.get(unit, ())) or listed_names([*wanted.parts])
            what = f"there is no {wanted.unit} {unit!r} with {part!r}; known are {known}"
        elif ".." in PurePosixPath(row["file"]).parts or not source.is_file():
            what = f"there is no file {row['file']!r} below {folder}"
        elif target in places:
            what = f"{target} is {places[target].relative_to(folder).as_posix()} already"
        if what is None and target is not None:
            places[target] = source
        else:
            problems.append(UserError(f"{table}:{line}", what=what or "", fix="correct the row"))
    if problems or not places:
        nothing = UserError(str(table), what="no row names a unit", fix="fill the column unit")
        raise InputError(problems or [nothing])
    with new_folder(out):
        for target, source in places.items():
            (out / target).parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(source, out / target)
    return len(places)


def _rows(table: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        read = CsvTable(read_plain(table, _MOST_BYTES, follow=True).decode("utf-8-sig"), ",;\t")
        if not {"file", "unit"} <= {*read.columns}:
            raise ValueError(f"the columns {', '.join(read.columns)}, without file and unit")
        return list(read.named())
    except (OSError, ValueError, BadCsv) as error:
        fix = "give the file that fabula outputs check --suggest wrote"
        raise InputError([UserError(str(table), what=reason_of(error)[:200], fix=fix)]) from error


def _target(wanted: Wanted, unit: str, part: str, seed: str, ending: str) -> str | None:
    """Return where a file of a unit belongs in the one layout; None where nothing asks for it."""
    if unit not in wanted.parts or (seed and not seed.isdecimal()):
        return None
    inside = f"seed_{int(seed)}/" if seed else ""
    if wanted.numbers == 0:
        return f"{inside}{PurePosixPath(unit).stem}{ending}"
    named = wanted.part(unit, key_of(part, wanted.numbers))
    return None if named is None else f"{unit}/{inside}{named}{ending}"
