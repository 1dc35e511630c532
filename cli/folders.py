"""What a folder is, which command fits it, and what a command takes: one sentence for a wrong folder."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ..errors import ConfigError
from ..schemas.plain_files import alike, read_json

LOOKED_AT = 2000
"""Entries of a folder that are looked at for pictures and videos."""
MEDIA = frozenset((".png", ".jpg", ".jpeg", ".webp", ".gif", ".mp4", ".webm", ".mkv", ".mov", ".avi"))


@dataclass(frozen=True, slots=True)
class What:
    """A kind of folder: its words after "is", the commands that it is for, and its words after "takes"."""

    words: str
    fits: tuple[str, ...] = ()
    taken: str = ""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A path that is nothing that a command takes."""

    text: str  # what it is, and what fits, in sentences
    alone: bool  # whether that says it all: it is of a kind that other commands take
    kind: str  # a key of :data:`KINDS`


_RUN = ("run status", "run show")
_OF_SCORES = ("score", "compare", "report", *_RUN)
_OF_RECORDS = ("validate", "stats", "release pack")
_OF_RELEASE = ("release verify", "release diff", "publish", "stats")

KINDS: dict[str, What] = {
    "run katha": What("a run of `fabula build stories`", (*_OF_RECORDS, "edit", "extend", *_RUN)),
    "run events": What("a run of `fabula build events`", (*_OF_RECORDS, *_RUN)),
    "run shots": What("a run of `fabula build shots`", (*_OF_RECORDS, "edit", "evaluate images", *_RUN)),
    "run entities": What(
        "a run of `fabula build entities`", (*_OF_RECORDS, "export entities", "outputs check", *_RUN)
    ),
    "run import-shots": What(
        "a set of scripts that `fabula import vistory` made", (*_OF_RECORDS, "evaluate images")
    ),
    "run import-entities": What(
        "a set of episodes that `fabula import entitybench` made",
        (*_OF_RECORDS, "export entities", "outputs check"),
    ),
    "run evaluate-katha": What("an evaluation of storyboards", _OF_SCORES, "an evaluation"),
    "run evaluate-events": What("an evaluation of videos", _OF_SCORES, "an evaluation"),
    "run evaluate-images": What("an evaluation of pictures of shots", _OF_SCORES, "an evaluation"),
    "run audit-katha": What("a model's answers to questions of drafts", _RUN, "an audit"),
    "run generate": What("a run in which pictures were made", _RUN),
    "run evaluator-questions": What("questions of an evaluator that a model wrote, part of a study"),
    "run memory": What("a memory of the entities of episodes", ("memory packets", *_RUN)),
    "run memory-packets": What(
        "packets for generators of shots", ("memory generate", "memory export", *_RUN)
    ),
    "run memory-generate": What("a run in which shots were made", _RUN),
    "study": What("a study", ("experiment status", "experiment tables")),
    "archive": What("the archive of an evaluation", ("score", "compare", "report"), "an evaluation"),
    "release katha": What("a release of stories", (*_OF_RELEASE, "evaluate stories", "outputs check")),
    "release events": What("a release of prompts", (*_OF_RELEASE, "evaluate events", "outputs check")),
    "release shots": What("a release of shot scripts", (*_OF_RELEASE, "evaluate images", "outputs check")),
    "release entities": What("a release of episodes", (*_OF_RELEASE, "export entities", "outputs check")),
    "hidden": What(
        "the hidden test of a release, which only its makers may see",
        ("release verify RELEASE --hidden",),
        "the hidden test of a release",
    ),
    "package katha": What("an official KathaBench package", ("import stories",)),
    "package shots": What("an official tree of shot scripts", ("import vistory", "validate", "stats")),
    "package entities": What(
        "an official tree of episodes", ("import entitybench", "validate", "stats", "outputs check")
    ),
    "outputs": What(
        "a folder of pictures or videos", ("outputs check", "evaluate stories --outputs", "import references")
    ),
    "empty": What("an empty folder"),
    "file": What("a file"),
    "missing": What("not there"),
    "folder": What("a folder without a run, a release, an evaluation, pictures or videos"),
}
"""What a path can be -> what it is called and which commands take it."""


def recognise(path: Path) -> str:
    """Return what a path is: a key of :data:`KINDS`. Nothing is changed, and no content is checked."""
    with suppress(OSError):
        if not path.exists():
            return "missing"
        if not path.is_dir():
            return "file"
        return _of_folder(path)
    return "folder"


def _of_folder(path: Path) -> str:  # noqa: PLR0911 - a table of what lies in which folder
    for name, prefix in (("run.json", "run "), ("release.json", "release ")):
        if (path / name).is_file():
            kind = _kind_in(path / name, prefix)
            if kind == "release katha" and path.name.endswith("-hidden"):
                return "hidden"
            return kind
    if (path / "study.json").is_file():
        return "study"
    if (path / "judgements.jsonl").is_file() or (path / "evaluation.json").is_file():
        return "archive"
    if (path / "annotations.jsonl").is_file():
        return "package katha"
    if any(next((path / tree).glob("*/story.json"), None) for tree in ("", "ViStory")):
        return "package shots"
    if any(next((path / tree).glob("*.json"), None) for tree in ("data/scripts", "scripts")):
        return "package entities"
    entries = list(islice(path.rglob("*"), LOOKED_AT))
    if not entries:
        return "empty"
    return "outputs" if any(entry.suffix.lower() in MEDIA for entry in entries) else "folder"


def _kind_in(path: Path, prefix: str) -> str:
    """Return the kind that a run or release says it is of; stories where it says nothing that is known."""
    kind: object = None
    with suppress(OSError, ValueError):
        document = read_json(path, follow=True)
        kind = document.get("kind") if isinstance(document, dict) else None
    text = f"{prefix}{kind}"
    return text if text in KINDS else f"{prefix}katha" if kind is None else "folder"


BUILT = ("run katha", "run events", "run shots", "run entities")
IMPORTED = ("run import-shots", "run import-entities")
AUDITED = ("run audit-katha",)
MADE = ("run generate", "run memory", "run memory-packets", "run memory-generate")
EVALUATED = ("run evaluate-katha", "run evaluate-events", "run evaluate-images")
RELEASED = ("release katha", "release events", "release shots", "release entities")
OF_SHOTS = ("run shots", "run import-shots", "release shots", "package shots")
OF_ENTITIES = ("run entities", "run import-entities", "release entities", "package entities")
SCORED = (*EVALUATED, "archive")
_ANY_DATA = ("release katha", "release events", "file", *OF_SHOTS)

_READ = (
    "run katha", "run events", "release katha", "release events", "hidden", "package katha", "file",
    *OF_SHOTS, *OF_ENTITIES,
)  # fmt: skip

_TAKEN: dict[tuple[str, ...], tuple[str, ...]] = {
    ("run katha", "release katha", "hidden", "file"): ("audit draft", "audit gold"),
    ("run katha", "run shots"): ("edit run",),
    ("run katha",): ("extend run",),
    ("file", "folder"): ("extend sources", "build stories sources", "build shots sources"),
    RELEASED: ("publish folder", "release pack since"),
    _READ: ("stats path", "validate path"),
    SCORED: (
        "calibrate run", "score run", "compare first", "compare second", "report run",
        "import archive folders", "export archive folder", "export inspect folder", "leaderboard init like",
        "leaderboard submit run",
    ),
    ("file",): ("build events seeds", "experiment run study"),
    ("file", "outputs"): ("build entities videos",),
    (*RELEASED, "hidden"): ("release diff old", "release diff new"),
    (*BUILT, *IMPORTED): ("release pack run",),
    (*RELEASED, "hidden", "file"): ("release verify path",),
    ("hidden",): ("release verify hidden",),
    (*BUILT, *EVALUATED, *AUDITED, *MADE): (
        "run status run", "run spend run", "run show run", "run retry run",
    ),
    (*BUILT, *EVALUATED): ("run merge shards",),
    ("outputs",): (
        "outputs check folders", "outputs keyframes videos", "import references folder",
        "evaluate stories outputs", "evaluate events outputs", "evaluate images outputs",
        "export storyboards outputs", "baseline compass tune outputs", "baseline compass apply outputs",
        "experiment plant outputs",
    ),
    (*_ANY_DATA, *OF_ENTITIES): ("outputs check release",),
    OF_SHOTS: (
        "outputs keyframes release", "import vistory source", "evaluate images release",
        "export vistory folder", "export shots folder", "export lite folder", "baseline copy-paste release",
    ),
    ("package katha",): ("import stories source",),
    OF_ENTITIES: (
        "import entitybench source", "export entitybench folder", "export entities folder",
        "memory build source",
    ),
    ("run shots", "run import-shots", "package shots"): ("import references out",),
    ("release katha",): (
        "evaluate stories release", "export stories folder", "export storyboards folder",
        "baseline compass questions release", "baseline compass tune release",
        "baseline compass apply release", "experiment plant release",
    ),
    ("release events",): ("evaluate events release",),
    ("file", "release events", "run events"): ("evaluate events suite",),
    ("release katha", "hidden"): ("export plans folder",),
    ("study",): ("experiment status folder", "experiment tables folder"),
    ("run memory",): ("memory packets run",),
    ("run memory-packets", "run memory"): ("memory generate run", "memory export run"),
    _ANY_DATA: ("score release", "report release"),
}  # fmt: skip
"""What is taken -> the commands with their parameters that take it."""
TAKES = {each: taken for taken, parameters in _TAKEN.items() for each in parameters}
"""Command and parameter -> what it takes. A parameter that is not here is never looked at."""


def misfits(command: str, given: Mapping[str, object]) -> Iterator[Misfit]:
    """Yield what is said of each path that is nothing that a command takes: what it is, and what fits."""
    for name, value in given.items():
        takes = TAKES.get(f"{command} {name}")
        for path in paths_in(value) if takes else ():
            kind = recognise(path)
            if takes and kind not in takes and not (kind == "missing" and _is_named(path)):
                yield Misfit(_sentence(command, path, kind, takes), bool(KINDS[kind].fits), kind)


def _is_named(path: Path) -> bool:
    """Return whether a path that is not there names a version on a Hub, or a benchmark."""
    from ..kinds.benchmarks.benchmark import is_benchmark

    return "@" in str(path) or str(path).startswith("hf:") or is_benchmark(str(path))


CHECKED_FIRST = frozenset(
    ("import references", "export vistory", "export shots", "export lite", "export entitybench",
     "export entities", "baseline copy-paste", "import entitybench")
)  # fmt: skip
"""Commands that find nothing wrong in a folder without anything for them, and would write an empty result."""


def refuse_misfits(command: str, given: Mapping[str, object]) -> None:
    """Refuse folders that are nothing that a command takes, where it is one of :data:`CHECKED_FIRST`.

    A path that is missing or a file is left to the command, which says so. A release may be too damaged
    to be recognised, and is verified all the same; a run is never one.

    Raises:
        ConfigError: as said of the first.
    """
    for misfit in misfits(command, given) if command in (*CHECKED_FIRST, "release verify") else ():
        if misfit.kind in ("missing", "file"):
            continue
        if command == "release verify" and not misfit.kind.startswith("run "):
            continue
        raise ConfigError(f"fabula {command}", what=misfit.text, fix="give a path of the kind it takes")


def paths_in(value: object) -> Iterable[Path]:
    """Return the paths of a parameter, which may have several, or none."""
    values = value if isinstance(value, list | tuple) else [value]
    return [Path(path) for path in values if isinstance(path, Path | str)]


FEW = 3
"""Of a path that is not there, so many kinds that a command takes are named."""


def _sentence(command: str, path: Path, kind: str, takes: tuple[str, ...]) -> str:
    together = [*_together(takes)]
    if kind == "missing" and len({*together}) > FEW:
        return f"{path} is {KINDS[kind].words}{alike(path)}."
    words = _either(together)
    fits = [f"`fabula {fit}`" for fit in KINDS[kind].fits]
    other = f" Commands for it: {', '.join(fits)}." if fits else ""
    how = _in_its_files(kind) if command == "edit" else ""
    near = alike(path) if kind == "missing" else ""
    return f"{path} is {KINDS[kind].words}{near}; `fabula {command}` takes {words}.{how}{other}"


def _together(takes: tuple[str, ...]) -> Iterator[str]:
    """Yield what a command takes, all releases and all runs in one word each."""
    together = {RELEASED: "a release", BUILT: "a run of `fabula build`", EVALUATED: "an evaluation"}
    whole = {kind: words for kinds, words in together.items() if {*kinds} <= {*takes} for kind in kinds}
    for kind in takes:
        if kind != "folder":
            yield whole.get(kind) or KINDS[kind].taken or KINDS[kind].words


def _in_its_files(kind: str) -> str:
    """Return how what a run holds is corrected where there is no `fabula edit` for it."""
    from ..kinds.verbs import corrected_in_files

    how = corrected_in_files(kind.removeprefix("run "))
    return f" To correct it, {how}." if how else ""


def _either(words: list[str]) -> str:
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last
