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

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeVar

from ...errors import InputError, TargetError, UserError
from ...media.images import MediaProblem, open_picture, read_bytes
from ...schemas.canonical import Json, csv_text, link_or_copy, new_folder, sha256_bytes, write_atomic
from ...schemas.plain_files import BadCsv, CsvTable, below, by_name, composed, read_plain, reason_of
from ...schemas.text import counted, slug
from ...schemas.values import Issue, Level
from ...validators.report import IssueBin, ValidationReport

# -- Outputs of one method, checked: what evaluations of every kind know of them, and how findings are told

NOTHING_FOUND = "nothing-found"
"""Code of the finding that says what lies in a folder in which no output was found."""
UNREADABLE = "unreadable-picture"
"""Code of an output with a file that cannot be read, or that holds no picture."""
UNTOLD = frozenset({
    NOTHING_FOUND, "stray-file", "unnumbered-file", "unknown-shot", "unknown-story",
    "unknown-episode", "ambiguous-title",
})  # fmt: skip
"""Codes of findings about names of which nobody can tell what they are of; a map may say it."""
_MOST_THREADS = 4
_SHOWN = 20
"""How many findings of a method are told that stop an evaluation."""
# What a picture may be and yet be worth a look: an animation, a single colour, another format than its name.
_ODD = ("misnamed", "animated", "blank")
SMALL = 64
"""Pictures whose longer side has fewer pixels are worth a look."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file that can be used."""

    number: int  # of the picture, from 1; of a video 1
    file: Path  # a picture, a video, or the clip whose first frame is the picture
    sha256: str = ""  # hash of the file; empty where it was not read whole
    # index of the scene that the picture shows; None for a bridge frame, and where pictures and scenes do not
    # correspond one to one
    scene: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What a method made of one story or prompt, with one seed."""

    unit: str  # the story's id, or the prompt's file name in the suite
    seed: int | None  # of the generation; None where there is one per unit
    files: tuple[OutputFile, ...] = ()  # those that can be used, by number
    codes: tuple[str, ...] = ()  # of what makes it invalid, sorted; none where it can be judged


@dataclass(frozen=True, slots=True)
class Outputs(ValidationReport):
    """The outputs of one method, checked; findings and counts as in every validation."""

    method: str  # the method's name, from ``outputs.json`` or else the folder's
    # the seeds expected of every unit; ``(None,)`` where there is one output per unit
    seeds: tuple[int | None, ...]
    # one of each unit and seed that was requested, whether it is there or not
    outputs: tuple[Output, ...] = field(repr=False)

    @property
    def valid(self) -> tuple[Output, ...]:
        """The outputs that can be judged."""
        return tuple(output for output in self.outputs if not output.codes)

    @property
    def invalid(self) -> tuple[Output, ...]:
        """The outputs that cannot be judged."""
        return tuple(output for output in self.outputs if output.codes)

    def accounting(self) -> dict[str, Any]:
        """Return how much was requested and is valid."""
        return {"method": self.method}

    def details(self) -> dict[str, Json]:
        """Return what else the report says as JSON."""
        return {}

    def told(self) -> str:
        return ""

    def about(self) -> dict[str, Json]:
        """Return the method, the accounting and what is invalid."""
        return {**ValidationReport.about(self), **self.accounting(), **self.details()}

    def summary(self) -> str:
        """Return the counts as lines for people."""
        return f"{ValidationReport.summary(self)}\n{self.method}: {self.told()}"


class Asked(Protocol):
    """One unit and seed that is asked for, and how it is checked."""

    def check(self) -> tuple[Output, list[Issue]]:
        """Return the output and the findings about it."""


Checked = TypeVar("Checked", bound=Outputs)


def look_at(asked: Sequence[Asked], findings: IssueBin) -> tuple[Output, ...]:
    """Return the outputs that are asked for, checked by a few threads; findings are added in order."""
    outputs = []
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        for output, issues in threads.map(lambda one: one.check(), asked):
            findings.extend(issues)
            outputs.append(output)
    return tuple(outputs)


def report_of(
    kind: type[Checked], folder: Path, findings: IssueBin, checked: dict[str, int], **about: object
) -> Checked:
    """Return the report on a method's outputs.

    ``checked``: what was looked at -> how many.
    """
    base = findings.report(str(folder), "outputs", checked)
    shared = {part.name: getattr(base, part.name) for part in fields(base)}
    own: dict[str, Any] = {"method": composed(folder.resolve().name), **about}
    return kind(**shared, **own)


@dataclass(frozen=True, slots=True)
class Looked:
    """What was seen of a file."""

    sha256: str | None  # hash of the file; None where it cannot be used
    issues: list[Issue]  # the findings about it
    size: tuple[int, int] | None = None  # width and height of a picture that was decoded, in pixels


def look_at_picture(file: Path, where: str, *, decode: bool = True, cure: str = "") -> Looked:
    """Return what is seen of a file that should hold a picture.

    ``cure``: what to do where it cannot be read; if not given, what the decoder advises.
    """
    try:
        data = read_bytes(file)
        picture = open_picture(data, name=file.name) if decode else None
    except MediaProblem as problem:
        return Looked(None, [unreadable(where, problem, UNREADABLE, cure)])
    if picture is None:
        return Looked(sha256_bytes(data), [])
    odd = [note for note in picture.notes if note.startswith(_ODD)]
    issues = [finding(where, "odd-picture", note, "have a look at it", "warning") for note in odd]
    return Looked(sha256_bytes(data), issues, (picture.width, picture.height))


def unreadable(where: str, problem: MediaProblem, code: str, cure: str = "") -> Issue:
    """Return the finding about a file that cannot be decoded."""
    message = f"[{problem.code}] expected {problem.expected}, found {problem.found}"
    return finding(where, code, message, cure or problem.fix)


def finding(where: str, code: str, message: str, cure: str, level: Level = "error") -> Issue:
    """Return a finding about a place in the outputs."""
    return Issue(where, "$", code, message, cure, level)


def repeated_names(folder: Path, prefix: str = "") -> Iterator[Issue]:
    """Yield a finding for each entry of a folder whose name is that of another in normal form C."""
    for first, second in by_name(sorted(entry.name for entry in folder.iterdir()))[1]:
        message = f"the same name as {first!a}, written otherwise in Unicode ({second!a})"
        yield finding(f"{prefix}{second}", "repeated-name", message, "keep one of the two")


def listed_numbers(numbers: Sequence[int]) -> str:
    """Return the first ten numbers, and how many more there are."""
    listed = ", ".join(map(str, numbers[:10]))
    return listed if len(numbers) <= 10 else f"{listed} and {len(numbers) - 10} more"


def listed_names(names: Sequence[str], shown: int = 5) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {counted(len(names) - shown, 'other')}" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def require_shots(reports: Sequence[Outputs], mismatched: Collection[str], what: str) -> None:
    """Check that there are shots to look at, and that each is judged by its own text."""
    problems = [
        UserError(
            f"{report.method}/{issue.where}",
            what=f"a {what} cannot be matched with a shot: [{issue.code}] {issue.message}",
            fix=issue.cure,
        )
        for report in reports
        for issue in [issue for issue in report.issues if issue.code in mismatched][:_SHOWN]
    ]
    if problems:
        raise InputError(problems)
    if not any(output.files for report in reports for output in report.outputs):
        raise nothing_to_judge("shot", reports)


def nothing_to_judge(noun: str, reports: Sequence[ValidationReport]) -> InputError:
    """Return the error for outputs of which none can be judged: what was seen in each folder, and the cure.

    It stops an evaluation before the first call.
    """
    return InputError([_nothing_in(noun, report) for report in reports])


def _nothing_in(noun: str, report: ValidationReport) -> UserError:
    for issue in report.issues:
        if issue.code == NOTHING_FOUND:
            return UserError(report.path, what=f"no judge was asked: {issue.message}", fix=issue.cure)
    errors = [issue for issue in report.issues if issue.level == "error"] or list(report.issues)
    codes = Counter(issue.code for issue in errors)
    told = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    first = f"; first: {errors[0].where}: {errors[0].message}" if errors else ""
    return UserError(
        report.path,
        what=f"no judge was asked: no {noun} can be judged ({told or 'none is there'}{first})",
        fix=f"{errors[0].cure if errors else 'generate them'}; fabula outputs check lists every finding",
    )


def doubtful_pictures(where: str, looked: Mapping[str, Looked]) -> Iterator[Issue]:
    """Yield what is worth a look in the pictures of a storyboard: too small, of unlike sizes, or the same."""
    sizes = {name: seen.size for name, seen in looked.items() if seen.size is not None}
    for name, (width, height) in sizes.items():
        if max(width, height) < SMALL:
            message = f"only {width} x {height} pixels: judges can see little in it"
            cure = f"generate it with {SMALL} pixels or more"
            yield finding(f"{where}/{name}", "small-picture", message, cure, "warning")
    if len(counts := Counter(sizes.values())) > 1:
        told = ", ".join(f"{count} of {width} x {height}" for (width, height), count in counts.most_common())
        message = f"pictures of unlike sizes: {told}"
        yield finding(where, "unlike-sizes", message, "generate them in one size, or leave it", "warning")
    same: dict[str | None, list[str]] = {}
    for name, seen in looked.items():
        same.setdefault(seen.sha256, []).append(name)
    for sha256, names in same.items():
        if sha256 is not None and len(names) > 1:
            message = f"the same picture: {', '.join(names)}"
            cure = "have a look: a file may have been copied in place of another"
            yield finding(where, "same-picture", message, cure, "warning")


# --

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
_BETWEEN = re.compile("[_. -]+")
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
        for mark in sorted(_BETWEEN.finditer(stem), key=lambda mark: mark.start(), reverse=True):
            units, key = self.of(stem[: mark.start()]), key_of(stem[mark.end() :], numbers)
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
        if self.numbers == 0:
            return Names({unit: (PurePosixPath(unit).stem,) for unit in self.parts})
        titles = {unit: self.titles.get(unit, "") for unit in self.parts}
        return Names({unit: (title, slug(title)) for unit, title in titles.items()})

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
        raise InputError.one(str(folder), what="it holds no picture and no video", fix=fix)
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
        raise InputError.one(str(table), what=reason_of(error)[:200], fix=fix) from error


def _target(wanted: Wanted, unit: str, part: str, seed: str, ending: str) -> str | None:
    """Return where a file of a unit belongs in the one layout; None where nothing asks for it."""
    if unit not in wanted.parts or (seed and not seed.isdecimal()):
        return None
    inside = f"seed_{int(seed)}/" if seed else ""
    if wanted.numbers == 0:
        return f"{inside}{PurePosixPath(unit).stem}{ending}"
    named = wanted.part(unit, key_of(part, wanted.numbers))
    return None if named is None else f"{unit}/{inside}{named}{ending}"
