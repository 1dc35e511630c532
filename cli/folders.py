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

TAKES: dict[str, tuple[str, ...]] = {
    "audit draft": ("run katha", "release katha", "hidden", "file"),
    "audit gold": ("run katha", "release katha", "hidden", "file"),
    "edit run": ("run katha", "run shots"),
    "extend run": ("run katha",),
    "extend sources": ("file", "folder"),
    "publish folder": RELEASED,
    "stats path": _READ,
    "validate path": _READ,
    "calibrate run": SCORED,
    "score run": SCORED,
    "compare first": SCORED,
    "compare second": SCORED,
    "report run": SCORED,
    "build stories sources": ("file", "folder"),
    "build shots sources": ("file", "folder"),
    "build events seeds": ("file",),
    "build entities videos": ("file", "outputs"),
    "release diff old": (*RELEASED, "hidden"),
    "release diff new": (*RELEASED, "hidden"),
    "release pack run": (*BUILT, *IMPORTED),
    "release pack since": RELEASED,
    "release verify path": (*RELEASED, "hidden", "file"),
    "release verify hidden": ("hidden",),
    "run status run": (*BUILT, *EVALUATED, *AUDITED, *MADE),
    "run spend run": (*BUILT, *EVALUATED, *AUDITED, *MADE),
    "run show run": (*BUILT, *EVALUATED, *AUDITED, *MADE),
    "run retry run": (*BUILT, *EVALUATED, *AUDITED, *MADE),
    "run merge shards": (*BUILT, *EVALUATED),
    "outputs check folders": ("outputs",),
    "outputs check release": (*_ANY_DATA, *OF_ENTITIES),
    "outputs keyframes videos": ("outputs",),
    "outputs keyframes release": OF_SHOTS,
    "import stories source": ("package katha",),
    "import vistory source": OF_SHOTS,
    "import entitybench source": OF_ENTITIES,
    "import references folder": ("outputs",),
    "import references out": ("run shots", "run import-shots", "package shots"),
    "import archive folders": SCORED,
    "evaluate stories release": ("release katha",),
    "evaluate stories outputs": ("outputs",),
    "evaluate events release": ("release events",),
    "evaluate events suite": ("file", "release events", "run events"),
    "evaluate events outputs": ("outputs",),
    "evaluate images release": OF_SHOTS,
    "evaluate images outputs": ("outputs",),
    "export vistory folder": OF_SHOTS,
    "export shots folder": OF_SHOTS,
    "export lite folder": OF_SHOTS,
    "export entitybench folder": OF_ENTITIES,
    "export entities folder": OF_ENTITIES,
    "export stories folder": ("release katha",),
    "export plans folder": ("release katha", "hidden"),
    "export storyboards folder": ("release katha",),
    "export storyboards outputs": ("outputs",),
    "export archive folder": SCORED,
    "export inspect folder": SCORED,
    "baseline copy-paste release": OF_SHOTS,
    "baseline compass questions release": ("release katha",),
    "baseline compass tune release": ("release katha",),
    "baseline compass tune outputs": ("outputs",),
    "baseline compass apply release": ("release katha",),
    "baseline compass apply outputs": ("outputs",),
    "leaderboard init like": SCORED,
    "leaderboard submit run": SCORED,
    "experiment run study": ("file",),
    "experiment status folder": ("study",),
    "experiment tables folder": ("study",),
    "experiment plant outputs": ("outputs",),
    "experiment plant release": ("release katha",),
    "memory build source": ("run entities", "run import-entities", "release entities", "package entities"),
    "memory packets run": ("run memory",),
    "memory generate run": ("run memory-packets", "run memory"),
    "memory export run": ("run memory-packets", "run memory"),
    "score release": _ANY_DATA,
    "report release": _ANY_DATA,
}
"""Command and parameter -> what it takes. A parameter that is not here is never looked at."""


def misfits(command: str, given: Mapping[str, object]) -> Iterator[Misfit]:
    """Yield what is to be said of each path that is nothing that a command takes: what it is, and what fits.

    Args:
        command: such as ``release pack``.
        given: its parameters by name.
    """
    for name, value in given.items():
        takes = TAKES.get(f"{command} {name}")
        for path in _paths(value) if takes else ():
            kind = recognise(path)
            if takes and kind not in takes and not (kind == "missing" and _is_named(path)):
                yield Misfit(_sentence(command, path, kind, takes), bool(KINDS[kind].fits), kind)


def _is_named(path: Path) -> bool:
    """Return whether a path that is not there names a version on a Hub, or a benchmark."""
    from ..kinds.benchmarks.benchmark import is_benchmark

    return "@" in str(path) or str(path).startswith("hf:") or is_benchmark(str(path))


CHECKED_FIRST = frozenset(
    ("import references", "export vistory", "export shots", "export lite", "export entitybench",
     "export entities", "baseline copy-paste")
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


def _paths(value: object) -> Iterable[Path]:
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
