"""Getting a benchmark: its data, official prompts and weights, each checked and kept in the user's cache.

Data lies in ``benchmarks/data/HOME``, with ``HOME.json`` beside it: what came from where, every file with its
SHA-256. What ``fabula evaluate`` takes is made of it once, in ``benchmarks/sets/NAME``.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import ConfigError, FabulaError, InputError, MissingRequirement
from ...prompts.fetching import fetch_prompts, official, open_files, read_pinned
from ...prompts.loader import MANIFEST, cache_folder
from ...schemas.canonical import Plain, pretty_bytes, sha256_file, write_atomic
from ...schemas.plain_files import open_plain, read_json
from ...schemas.text import byte_text, tallied
from ..evaluations import models_of_metrics
from .benchmark import RECORDED, Benchmark, Home, benchmark_named, is_benchmark

if TYPE_CHECKING:
    from ...models.vision.fetching import Fetching

State = Literal["here", "missing", "failed"]
_COPIED = 1 << 20


def root() -> Path:
    """Return the folder of benchmarks in the user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("fabula") / "benchmarks"


def data_folder(home: Home) -> Path:
    """Return where data lies, or will."""
    name = "--".join(home.name.removeprefix("https://").split("/"))
    at = f"@{home.revision[:12]}" if home.revision else ""
    return root() / "data" / (re.sub(r"[^\w.-]+", "-", name) + at)


def note_of(home: Home) -> dict[str, Any] | None:
    """Return what is known of data that is here: origin, revision, files; None where it is not."""
    path = data_folder(home).with_name(f"{data_folder(home).name}.json")
    try:
        note = read_json(path)
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and Path(str(note.get("folder"))).is_dir() else None


def set_of(benchmark: Benchmark) -> Path | None:
    """Return what outputs are judged by, where it has been made; None where it has not."""
    path = root() / "sets" / f"{benchmark.name}.json"
    try:
        made = Path(str(read_json(path)["set"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return made if made.exists() else None


def require_set(benchmark: Benchmark) -> Path:
    """Return what outputs are judged by."""
    made = set_of(benchmark)
    if made is None:
        raise MissingRequirement(
            f"benchmark {benchmark.name}", what="its data is not here",
            fix=f"fabula benchmark get {benchmark.name}; offline with --from CLONE",
        )  # fmt: skip
    return made


def named_set(text: str) -> Path | None:
    """Return what outputs are judged by, where a text is the name of a benchmark; None where it is not."""
    return require_set(benchmark_named(text)) if is_benchmark(text) else None


@dataclass(frozen=True, slots=True)
class Part(Plain):
    """One part of what a benchmark needs."""

    what: str  # data, set, prompts, or the source of weights
    state: State  # whether it is here
    source: str  # where it comes from, or where it lies
    size: int | None = None  # bytes, where they are known
    terms: str = ""  # licence
    asks: bool = False  # whether somebody has to accept the terms
    why: str = ""  # why it could not be had

    @property
    def line(self) -> str:
        size = ", size not known" if self.size is None else f", {byte_text(self.size)}" if self.size else ""
        terms = f"; {self.terms}{' (to be accepted)' if self.asks and self.state != 'here' else ''}"
        return f"{self.state:8} {self.what}: {self.source}{size}{terms if self.terms else ''}"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a benchmark needs, and what of it is here."""

    benchmark: Benchmark
    parts: tuple[Part, ...]
    weights: "Fetching | None" = field(default=None, repr=False)  # of the models of its metrics

    @property
    def missing(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.state != "here")

    @property
    def asking(self) -> tuple[Part, ...]:
        """What is not here and has terms that somebody has to accept."""
        return tuple(part for part in self.missing if part.asks)

    @property
    def terms(self) -> str:
        """The terms that somebody has to accept, in one text."""
        return "; ".join(f"{part.what}: {part.terms}" for part in self.asking)

    def as_json(self) -> dict[str, Any]:
        parts = [part.as_json() for part in self.parts]
        return {"benchmark": self.benchmark.name, "parts": parts, "complete": not self.missing}

    def lines(self) -> Iterator[str]:
        for part in self.parts:
            yield part.line
            if part.why:
                yield f"         {part.why}"
        if not self.missing:
            yield f"next: fabula benchmark orders {self.benchmark.name} --out orders"


def needs_of(benchmark: Benchmark) -> Needs:
    """Return what a benchmark needs; nothing is fetched, and no optional library is loaded."""
    from ...models.vision.fetching import survey

    home, note, made = benchmark.home, note_of(benchmark.home), set_of(benchmark)
    size = sum(size for size, _ in home.files.values()) or None
    if note is not None:
        size = sum(entry[0] for entry in note["files"].values())
    terms = f"{benchmark.licence.name or 'no licence'}: {benchmark.licence.text}"
    revision = home.revision or (note or {}).get("revision") or f"newest; {RECORDED}"
    source = f"{home.address} at {revision}" if note is None else str(note["folder"])
    parts = [Part("data", _state(note), source, size, terms, benchmark.licence.asks)]
    drafted = "made of the data" + (", drafted by a model (--model)" if benchmark.drafts else "")
    parts.append(Part("set", _state(made), drafted if made is None else str(made), 0))
    if benchmark.prompts is not None:
        asked = official(benchmark.prompts)
        folder = cache_folder() / f"{benchmark.prompts}@{asked.commit}"
        there = (folder / MANIFEST).is_file()
        parts.append(
            Part(
                "prompts", "here" if there else "missing",
                str(folder) if there else f"{asked.repository} at {asked.commit}", None,
                asked.licence or "no licence: the authors did not allow any use", asked.licence is None,
            )
        )  # fmt: skip
    surveyed = survey(models_of_metrics(benchmark.metrics)) if benchmark.metrics else None
    return Needs(benchmark, (*parts, *_weights(surveyed)), surveyed)


def _weights(surveyed: "Fetching | None") -> Iterator[Part]:
    for row in () if surveyed is None else surveyed.rows:
        state: State = "here" if row not in surveyed.lacking else "missing"  # type: ignore[union-attr]
        weights = row.weights
        what = f"weights {', '.join(row.models)}"
        yield Part(
            what, "failed" if row.state == "failed" else state, weights.source.repo, weights.source.size,
            weights.licence, weights.restricts, row.why,
        )  # fmt: skip


def _state(there: object) -> State:
    return "missing" if there is None else "here"


@dataclass(frozen=True, slots=True)
class From:
    """Where a benchmark is got from."""

    location: str | None = None  # a clone, an archive or a folder, with data and prompts; None for the net
    weights: Path | None = None  # folder with weights that were fetched elsewhere; None for the net
    without_weights: bool = False  # leave them where they are
    model: str | None = None  # drafts what was not published


def get(
    benchmark: Benchmark,
    source: From,
    accepts: Callable[[str], bool],
    tell: Callable[[str], None] = lambda _: None,
) -> Needs:
    """Bring everything that a benchmark needs and that is not here; what is here is left alone.

    ``accepts``: asks whether terms are accepted, all of them at once.

    Returned: what is here then; what could not be had says why, and the rest is there all the same.
    """
    needs = needs_of(benchmark)
    if source.without_weights:
        kept = tuple(part for part in needs.parts if not part.what.startswith("weights"))
        needs = replace(needs, parts=kept, weights=None)
    if needs.asking and not accepts(needs.terms):
        raise ConfigError(
            "licence", what=f"nobody accepted these terms: {needs.terms}",
            fix="read them; repeat with --accept-licences, or --without-weights to leave weights out",
        )  # fmt: skip
    failed: dict[str, str] = {}
    steps: dict[str, Callable[[], object]] = {
        "data": lambda: _bring_data(benchmark.home, source.location, tell),
        "set": lambda: _make_set(benchmark, source.model),
        "prompts": lambda: fetch_prompts(
            benchmark.prompts or "", source.location, may_be_unlicensed=lambda _: True
        ),
    }
    for part in needs.missing:
        step = steps.get(part.what)
        if step is None or (part.what == "set" and "data" in failed):
            continue
        tell(f"{part.what}: {part.source}")
        try:
            step()
        except FabulaError as error:
            failed[part.what] = str(error)
    weights = needs.weights
    if weights is not None and weights.lacking:
        from ...models.vision.fetching import fetch

        weights = fetch(weights, source.weights, tell)
    now = needs_of(benchmark)
    parts = [part for part in now.parts if not part.what.startswith("weights")]
    parts = [
        replace(part, state="failed", why=failed[part.what]) if part.what in failed else part
        for part in parts
    ]
    return replace(now, parts=(*parts, *_weights(weights)), weights=weights)


def _make_set(benchmark: Benchmark, model: str | None) -> Path:
    """Make what outputs are judged by of the data, anew."""
    note = note_of(benchmark.home)
    assert note is not None, "the data was brought before"
    made = root() / "sets" / benchmark.name
    if not benchmark.drafts:  # drafts were paid for: their run is continued
        shutil.rmtree(made, ignore_errors=True)
    made.parent.mkdir(parents=True, exist_ok=True)
    path = benchmark.prepare(Path(note["folder"]), made, model)
    write_atomic(made.with_name(f"{benchmark.name}.json"), [pretty_bytes({"set": str(path)})])
    return path


def _bring_data(home: Home, location: str | None, tell: Callable[[str], None]) -> None:
    """Bring data into the cache, with a note of every file."""
    folder = data_folder(home)
    if location is None and home.at == "hub":
        _from_hub(home, folder, tell)
    elif home.files:
        with open_files(location or home.archive, home.revision) as repository:
            wanted = {path: sha256 for path, (_, sha256) in home.files.items()}
            for path, content in read_pinned(repository, wanted, home.revision, home.name).items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                write_atomic(folder / path, [content])
        _note(home, folder, repository.where, home.revision, home.files)
    elif location is not None and Path(location).is_dir():
        _copy(home, Path(location), folder)
    else:
        raise InputError.one(
            str(location), what=f"the files of {home.address} are not known before they are seen once",
            fix="give the folder into which they were downloaded, or leave --from out",
        )  # fmt: skip


def _from_hub(home: Home, folder: Path, tell: Callable[[str], None]) -> None:
    """Fetch the newest commit, or the pinned one; every file is checked against what the Hub lists."""
    from ...releases.hub.client import Retries, open_hub
    from ...releases.hub.fetch import FetchOptions, fetch_repository

    retries, revision = Retries(tell=tell), home.revision
    if not revision:
        with open_hub(home.name, None, retries=retries, progress=False) as hub:
            revision = hub.refs().head or ""
    fetched = fetch_repository(f"{home.name}@{revision}", FetchOptions(retries=retries), tell)
    _note(home, fetched.folder, home.address, revision, _listed(fetched.folder), at=folder)


def _copy(home: Home, location: Path, folder: Path) -> None:
    """Copy a folder whose files nobody could check, from where the data begins."""
    holding = [path for depth in ("", "*/", "*/*/") for path in location.glob(f"{depth}{home.holds}")]
    first = min(holding, key=lambda path: (len(path.parts), path), default=None)
    if first is None:
        raise InputError.one(
            str(location), what=f"it has no {home.holds}, as the data of {home.address} has",
            fix="give the folder into which the data was downloaded",
        )  # fmt: skip
    begins = first.parents[len(Path(home.holds).parts) - 1]
    draft = folder.with_name(f"{folder.name}.part")
    for path in sorted(begins.rglob("*")):
        name = path.relative_to(begins)
        if not path.is_file() or any(part.startswith(".") for part in name.parts):
            continue
        if (draft / name).is_file() and (draft / name).stat().st_size == path.stat().st_size:
            continue  # an earlier attempt brought it
        copy = draft / f"{name}.part"
        copy.parent.mkdir(parents=True, exist_ok=True)
        with open_plain(path, follow=True) as read, copy.open("wb") as out:
            shutil.copyfileobj(read, out, _COPIED)
        copy.replace(draft / name)
    shutil.rmtree(folder, ignore_errors=True)
    draft.replace(folder)
    _note(home, folder, str(location), "", _listed(folder))


def _listed(folder: Path) -> dict[str, tuple[int, str]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): (path.stat().st_size, sha256_file(path)) for path in files}


def _note(
    home: Home, folder: Path, where: str, revision: str, files: Mapping[str, tuple[int, str]], *,
    at: Path | None = None,
) -> None:  # fmt: skip
    data = at or folder
    data.parent.mkdir(parents=True, exist_ok=True)
    note = {
        "home": home.address, "from": where, "revision": revision, "folder": str(folder.absolute()),
        "files": {path: list(entry) for path, entry in files.items()},
    }  # fmt: skip
    write_atomic(data.with_name(f"{data.name}.json"), [pretty_bytes(note)])


def unchecked(benchmark: Benchmark) -> str | None:
    """Return in one sentence that data could not be compared with what was published; None where it was."""
    note = note_of(benchmark.home)
    if note is None or note.get("revision"):
        return None
    files = tallied(len(note["files"]), "files")
    return (
        f"the data came from {note['from']} ({files}); no hash of the published data is known, so nothing "
        "says that it is not a stand-in"
    )
