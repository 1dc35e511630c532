"""The archive of an evaluation: every reply and what it is about, in two files that anybody can score.

An **evaluation folder** is a run folder, or any folder with these two files: ``judgements.jsonl``, one
canonical JSON line per reply, sorted by :func:`sort_key`; and ``evaluation.json``, the manifest.

What archives under one judge protocol have besides judgements and manifest, and how several become one.
"""

import hashlib
import re
import tempfile
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from ...engine.manifest import read_manifest as read_run
from ...engine.spilled import Spilled
from ...errors import ConfigError, InputError, RunError, TargetError, UserError
from ...schemas.canonical import (
    canonical_bytes,
    canonical_text,
    digest,
    new_folder,
    pretty_bytes,
    sha256_file,
    write_atomic,
)
from ...schemas.judgement import JUDGEMENT_VERSION, EvaluationManifest, Judgement
from ...schemas.paths import ANNOTATIONS, VARIANTS, format_path
from ...schemas.plain_files import open_plain, read_plain, reason_of, type_reason
from ...schemas.text import tallied


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies beside the judgements of several archives, as one."""

    write: Callable[[Path], None]  # writes it into a folder that exists
    # the manifests -> the subject of the whole; None: methods are put together from judgements
    subject: Callable[[Sequence[EvaluationManifest]], dict[str, Any]] | None = None
    # the joined protocol -> its parts that have an order or a sum of their own
    protocol: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _: {}
    stories: int | None = None  # how many stories of methods it holds, where it holds some


@dataclass(frozen=True, slots=True)
class ArchiveForm:
    """What the archives under a protocol have besides judgements and manifest."""

    # the parts of the manifest's protocol that are put together; all others must be the same
    joined: tuple[str, ...] = ("judges", "metrics", "models", "prompts")
    files: tuple[str, ...] = ()  # the files that lie beside
    # reads from a folder what a copy of the archive needs besides; returns what writes it
    read: Callable[[Path], Callable[[Path], None]] | None = None
    # reads from a folder key -> digest of what is in the files beside
    contents: Callable[[Path], Mapping[Hashable, str]] | None = None
    # the files beside of several folders as one; the first wins where two differ, if so asked
    join: Callable[[Sequence[Path], bool], Beside] | None = None
    alone: bool = True  # whether it can be scored by itself; else what was judged is needed


JUDGEMENTS = "judgements.jsonl"
EVALUATION = "evaluation.json"
LISTED = 1000
"""Most problems of a file that are gathered; a file of another kind is wrong in every line."""

SortKey = tuple[tuple[bool, Any], ...]


@dataclass(frozen=True)
class Archive:
    """An evaluation in memory."""

    manifest: EvaluationManifest  # what was judged, by whom and how
    # the replies, sorted by :func:`sort_key`, no two with the same key
    judgements: tuple[Judgement, ...] = field(repr=False)


def sort_key(judgement: Judgement) -> SortKey:
    """Return what an archive is sorted by: the parts of the judgement's key, null before everything else."""
    return tuple((part is not None, part) for part in judgement.key())


def read_archive(folder: str | Path) -> Archive:
    """Return the archive in an evaluation folder.

    A line that is there twice counts once. Lines may come in any order.
    """
    place = Path(folder)
    problems: list[UserError] = []
    manifest = _manifest(place / EVALUATION, problems)
    kept = _distinct(_numbered(place / JUDGEMENTS, problems), problems)
    if manifest is not None:
        problems.extend(_strangers(place / JUDGEMENTS, manifest, kept))
    if problems or manifest is None:
        raise InputError(problems)
    return Archive(manifest, tuple(sorted(kept, key=sort_key)))


def read_manifest(folder: str | Path) -> EvaluationManifest:
    problems: list[UserError] = []
    manifest = _manifest(Path(folder) / EVALUATION, problems)
    if manifest is None:
        raise InputError(problems)
    return manifest


def lines_of(path: Path) -> Iterator[Judgement]:
    """Yield the judgements of a file, one line at a time."""
    with open_plain(path, follow=True) as handle:
        for line in handle:
            yield Judgement.model_validate_json(line)


def write_archive(folder: Path, manifest: EvaluationManifest, judgements: Iterable[Judgement]) -> None:
    """Write the two files of an archive into a folder that exists; the same archive gives the same bytes."""
    write_judgements(folder, judgements)
    write_manifest(folder, manifest)


def write_manifest(folder: Path, manifest: EvaluationManifest) -> None:
    """Write the manifest of an archive into a folder that exists."""
    write_atomic(folder / EVALUATION, [pretty_bytes(manifest.as_json())])


def write_judgements(
    folder: Path, judgements: Iterable[Judgement], kept: Callable[[Judgement], None] | None = None
) -> None:
    """Write the judgements of an archive into a folder that exists, sorted, each once.

    They are taken one at a time and wait for their turn on disk; their keys do so, too, if there are many.
    """
    places: Spilled[tuple[int, int, str]] = Spilled()
    with tempfile.TemporaryFile(dir=folder) as spool:
        end = 0
        for judgement in judgements:
            key, said = _sorting_text(sort_key(judgement)), said_digest(judgement).hex()
            known = places.get(key)
            if known is not None and known[2] == said:
                continue
            line = canonical_bytes(judgement.as_json()) + b"\n"
            if known is not None:
                spool.seek(known[0])
                first = Judgement.model_validate_json(spool.read(known[1]))
                raise InputError([_contradicted("the archive", judgement, "the archive", first)])
            spool.write(line)
            places[key] = (end, len(line), said)
            end += len(line)
            if kept is not None:
                kept(judgement)
        write_atomic(folder / JUDGEMENTS, _in_order(spool, (places[key] for key in places.in_order())))


_LOWEST = {number: f"\x02{chr(number + 1)}" for number in range(3)}  # what would sort below the end of a text
_MIDDLE = 1 << 62


def _sorting_text(key: SortKey) -> str:
    """Return a text for a key; texts sort as keys do."""
    return "".join(
        "0"
        if not is_there
        else f"1{part + _MIDDLE:020d}"
        if isinstance(part, int)
        else f"1{part.translate(_LOWEST)}\x01"
        for is_there, part in key
    )


def _in_order(spool: IO[bytes], places: Iterable[tuple[int, int, str]]) -> Iterator[bytes]:
    for start, length, _ in places:
        spool.seek(start)
        yield spool.read(length)


def said_digest(judgement: Judgement) -> bytes:
    """Return what is the same for two judgements that say the same, whatever they cost and whenever."""
    return hashlib.sha256(canonical_bytes(_said(judgement))).digest()


def export_archive(source: str | Path, target: Path, form: ArchiveForm) -> Archive:
    """Copy the archive of an evaluation folder, checked and in canonical form, into a new folder.

    The copy does not say where on this machine release and outputs were.
    """
    read = read_archive(source)
    archive = Archive(_without_paths(read.manifest), read.judgements)
    write_beside = None if form.read is None else form.read(Path(source))
    with new_folder(target):
        write_archive(target, archive.manifest, archive.judgements)
        if write_beside is not None:
            write_beside(target)
    return archive


def sources_of(folder: str | Path, manifest: EvaluationManifest) -> list[tuple[str, Path]]:
    """Return role and place of what an evaluation was made from, as far as anybody at hand knows it.

    The run beside the archive says it; the archive itself does not, but for those of earlier versions.
    """
    place = Path(folder)
    with suppress(RunError):
        return [(source.role, source.path) for source in read_run(place).source_list(place)]
    listed = manifest.environment.get("sources")
    told = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    paths = [(str(one.get("role")), one.get("path")) for one in told]
    return [(role, Path(path)) for role, path in paths if isinstance(path, str) and path]


def _without_paths(manifest: EvaluationManifest) -> EvaluationManifest:
    told = dict(manifest.environment)
    if isinstance(told.get("sources"), list):
        told["sources"] = [
            {name: value for name, value in one.items() if name != "path"} if isinstance(one, dict) else one
            for one in told["sources"]
        ]
    return manifest.model_copy(update={"environment": told})


def merged(parts: Iterable[tuple[str, Iterable[Judgement]]]) -> tuple[Judgement, ...]:
    """Return the judgements of several archives as those of one, sorted."""
    problems: list[UserError] = []
    kept = _distinct(((name, one) for name, judgements in parts for one in judgements), problems)
    if problems:
        raise InputError(problems)
    return tuple(sorted(kept, key=sort_key))


def check_hash(archive: Archive, part: str, found: str, where: str) -> None:
    """Check that a release or suite is the one that an archive was judged with."""
    named = archive.manifest.protocol.get(part)
    expected = named.get("sha256") if isinstance(named, dict) else None
    if expected == found:
        return
    raise InputError.one(
        where,
        what=f"this is not the {part} that was judged: its SHA-256 is {found}, and that of "
        f"the judged one {expected}",
        fix=f"give the same version of the {part}, or judge again with this one",
    )


def _manifest(path: Path, problems: list[UserError]) -> EvaluationManifest | None:
    try:
        data = read_plain(path, follow=True)
    except OSError as error:
        problems.append(_missing(path, error))
        return None
    try:
        return EvaluationManifest.model_validate_json(data)
    except ValidationError as error:
        problems.extend(_invalid(str(path), error))
        return None


def _numbered(path: Path, problems: list[UserError]) -> Iterator[tuple[str, Judgement]]:
    """Yield place and judgement of every line that can be read; add a problem for each of the others."""
    for where, line in _lines(path, problems):
        if len(problems) >= LISTED:
            problems.append(_problem(where, f"at most {LISTED} problems", "more; the rest is not read"))
            return
        try:
            judgement = Judgement.model_validate_json(line)
        except ValidationError as error:
            problems.extend(_invalid(where, error))
            continue
        if problem := _contradiction(where, judgement):
            problems.append(problem)
        yield where, judgement


def _lines(path: Path, problems: list[UserError]) -> Iterator[tuple[str, bytes]]:
    try:
        with open_plain(path, follow=True) as handle:
            for number, line in enumerate(handle, 1):
                yield f"{path}:{number}", line
    except OSError as error:
        problems.append(_missing(path, error))


def _contradiction(where: str, judgement: Judgement) -> UserError | None:
    """Return what in a judgement cannot be at the same time."""
    if judgement.schema_version != JUDGEMENT_VERSION:
        return _problem(
            where, f"schema_version {JUDGEMENT_VERSION}", judgement.schema_version,
            "use the version of Fabula that wrote it, or a newer one",
        )  # fmt: skip
    if judgement.outcome == "answered" and judgement.parsed is None:
        return _problem(where, "what was read from the reply, as its outcome is answered", "parsed is null")
    if judgement.outcome != "answered" and judgement.parsed is not None:
        return _problem(where, f"no parsed reply, as its outcome is {judgement.outcome}", "one")
    return None


def _distinct(judgements: Iterable[tuple[str, Judgement]], problems: list[UserError]) -> Sequence[Judgement]:
    """Return each judgement once; add a problem for each that contradicts one before it."""
    first: dict[tuple[Any, ...], tuple[str, Judgement]] = {}
    for where, judgement in judgements:
        earlier = first.setdefault(judgement.key(), (where, judgement))
        if earlier[1] is judgement or _said(earlier[1]) == _said(judgement):
            continue
        problems.append(_contradicted(where, judgement, *earlier))
    return [judgement for _, judgement in first.values()]


def _contradicted(where: str, judgement: Judgement, earlier: str, first: Judgement) -> UserError:
    one, other = _quoted(first), _quoted(judgement)
    if one == other:
        one, other = (
            f"{text} {_beyond(it, than)}"
            for text, it, than in ((one, first, judgement), (other, judgement, first))
        )
    return _problem(
        where, f"one answer to {_named(judgement)}, which is {one} in {earlier}",
        other, "keep the line that is right, or give one of them another vote number",
    )  # fmt: skip


def _said(judgement: Judgement) -> tuple[Any, ...]:
    """Return what makes two judgements with the same key the same, whatever they cost and whenever."""
    return (judgement.protocol, judgement.prompt, judgement.outcome, judgement.raw, judgement.parsed)


def _named(judgement: Judgement) -> str:
    parts = [f"{judgement.kind} {judgement.item}", judgement.condition, f"vote {judgement.vote}"]
    shown = [str(part) for part in (judgement.method, judgement.seed) if part is not None]
    return ", ".join([*parts, judgement.judge.spec, *shown])


def _beyond(judgement: Judgement, other: Judgement) -> str:
    """Return what tells a judgement from another whose answer looks the same."""
    if judgement.prompt != other.prompt:
        return f"to the prompt {judgement.prompt or 'that is not known'}"
    if judgement.raw != other.raw:
        return f"in the words {str(judgement.raw)[:200]!r}"
    return "at greater length"


def _quoted(judgement: Judgement) -> str:
    text = judgement.outcome if judgement.parsed is None else canonical_text(judgement.parsed)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _strangers(
    path: Path, manifest: EvaluationManifest, judgements: Sequence[Judgement]
) -> Iterator[UserError]:
    """Yield a problem for each kind of judgement that is not of the manifest's protocol."""
    for protocol in sorted({judgement.protocol for judgement in judgements} - {manifest.kind}):
        yield _problem(str(path), f"only judgements of kind {manifest.kind}, as {EVALUATION} says", protocol)


def _invalid(where: str, error: ValidationError) -> Iterator[UserError]:
    for detail in error.errors(include_url=False, include_input=False):
        place = f"{where} {format_path(detail['loc'])}"
        yield UserError(place, what=type_reason(detail), fix="correct the line; see docs/evaluation.md")


def _missing(path: Path, error: OSError) -> UserError:
    begun = (path.parent / "run.json").is_file()
    fix = (
        "the run is not finished: give the command that began it again, it continues; what it has so far is"
        " written by fabula export archive RUN --so-far --out FOLDER; shards become one by fabula run merge"
        if begun
        else "give the folder of an evaluation, such as fabula evaluate writes"
    )
    return _problem(str(path), f"the file {path.name} of an evaluation folder", reason_of(error), fix)


def _problem(
    where: str, expected: str, found: str, fix: str = "correct the line; see docs/evaluation.md"
) -> UserError:
    return UserError(where, expected=expected, found=found, fix=fix)


# -- Whether two evaluations were made alike, so that their scores can be compared
#
# What identifies the data that an evaluation was made with.

UNSAID = {"attempts": 1}
"""What a protocol means that does not say it: archives of before had one attempt at each question. A metric
that it does not name has version 1."""


@dataclass(frozen=True)
class Difference:
    """One part of two protocols that is not the same."""

    path: str  # where in the protocol, parts joined by dots
    first: Any  # the value in the first; None where it is not there
    second: Any  # the value in the second


def protocol_differences(first: EvaluationManifest, second: EvaluationManifest) -> tuple[Difference, ...]:
    """Return every part of the protocols that differs, in order."""
    differences = [{"kind": side.kind, **UNSAID, **side.protocol} for side in (first, second)]
    versions = [protocol.get("metrics") or {} for protocol in differences]
    for difference, own in zip(differences, versions, strict=True):
        difference["metrics"] = {**dict.fromkeys([name for some in versions for name in some], 1), **own}
    return tuple(_differences("", *differences))


def nothing_to_compare(folder: Path) -> UserError:
    """Return the error that a folder that is compared with itself has no two methods that can be paired."""
    return UserError(
        str(folder), what="no two methods in it were judged on the same data",
        fix="name a second evaluation to compare with",
    )  # fmt: skip


def check_alike(
    first: EvaluationManifest, second: EvaluationManifest, allowed: Collection[str] = ()
) -> tuple[Difference, ...]:
    """Return the differences between two protocols that are allowed."""
    if first.kind != second.kind:
        raise InputError.one(
            "protocol kind",
            what=f"the evaluations are of different kinds: {first.kind} and {second.kind}",
            fix="compare evaluations of one kind",
        )
    differences = protocol_differences(first, second)
    follow = {f"{part}.{judge}" for judge in _judged_by_one(first, second) for part in ("models", "votes")}
    refused = [
        difference
        for difference in differences
        if difference.path.partition(".")[0] not in allowed and difference.path not in follow
    ]
    if refused:
        raise InputError(
            [
                UserError(
                    f"protocol {difference.path}",
                    what="the evaluations differ:"
                    f" {_shown(difference.first)} and {_shown(difference.second)}",
                    fix="compare evaluations made under the same protocol, or accept the difference with "
                    "--allow " + difference.path.partition(".")[0],
                )
                for difference in refused
            ]
        )
    return differences


def _differences(path: str, first: Any, second: Any) -> Iterator[Difference]:  # noqa: ANN401 - any JSON
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in sorted({*first, *second}):
            yield from _differences(f"{path}.{name}" if path else name, first.get(name), second.get(name))
    elif first != second:
        yield Difference(path, first, second)


def _judged_by_one(first: EvaluationManifest, second: EvaluationManifest) -> frozenset[str]:
    """Return the judges that only one of two evaluations has: their settings differ as their names do."""
    named = [manifest.protocol.get("judges") or () for manifest in (first, second)]
    return frozenset(named[0]) ^ frozenset(named[1])


def _shown(value: Any) -> str:  # noqa: ANN401 - any JSON
    text = "nothing" if value is None else canonical_text(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def release_sha256(folder: str | Path) -> str:
    """Return the SHA-256 of what a release asks, file by file: of stories, records and contrastive variants.

    Of a kind that has no such records, all its JSON Lines files. Licence, card and version are left out: what
    was judged is the same whatever they say.
    """
    path, files = Path(folder), [ANNOTATIONS, VARIANTS]
    if not (path / ANNOTATIONS).exists():
        files = sorted(file.name for file in path.glob("*.jsonl")) or files
    try:
        return digest({name: sha256_file(path / name) for name in files})
    except OSError as error:
        raise InputError.one(
            str(path),
            what=f"this is not a release with {ANNOTATIONS} and {VARIANTS}: {error}",
            fix="give the folder of a packed release",
        ) from error


# -- Scores as the Hub's evaluation results: a file for ``.eval_results/`` of the repository of a model
#
# The form is the Hub's own (https://huggingface.co/docs/hub/eval-results), written by its client. A measure
# is a task of the data set that the release was published as; what is undefined is left out, never 0.


@dataclass(frozen=True, slots=True)
class HubResults:
    """Which scores are written, and of what.

    Attributes:
        dataset: Data set on the Hub that the release was published as, such as user/mine.
        method: Method whose scores they are [the only one of the evaluation].
        measures: Only these measures [all of the main table].
        commit: Commit of the data set on the Hub, 40 hexadecimal digits.
        source: Address where the evaluation can be looked at.
    """

    dataset: str
    method: str | None = None
    measures: Sequence[str] = ()
    commit: str | None = None
    source: str | None = None


def write_results(
    target: Path,
    results: HubResults,
    scores: Mapping[str, Mapping[str, float]],
    archive: Archive,
    remark: str = "",
) -> int:
    """Write the scores of a method; return how many there are.

    ``scores``: method -> measure -> value. ``remark``: what a reader of the Hub must know of them.
    """
    import yaml
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    if target.exists():
        raise TargetError(str(target), what="the file is there already", fix="choose another --out")
    if results.commit is not None and not re.fullmatch("[0-9a-f]{40}", results.commit):
        fix = "git ls-remote https://huggingface.co/datasets/USER/NAME shows them"
        raise ConfigError("--commit", expected="40 hexadecimal digits", found=results.commit, fix=fix)
    method = results.method or (next(iter(scores)) if len(scores) == 1 else None)
    if method is None or method not in scores:
        raise ConfigError(
            f"--method {results.method or ''}".strip(),
            what=f"the evaluation has {'no scores of it' if results.method else 'several methods'}",
            fix=f"use one of: {', '.join(scores) or 'none: score it first with its release at hand'}",
        )
    known = scores[method]
    unknown = [name for name in results.measures if name not in known]
    if unknown or not known:
        raise ConfigError(
            f"--measure {', '.join(unknown)}".strip(), what=f"{method} has no such score, or it is undefined",
            fix=f"use some of: {', '.join(known)}",
        )  # fmt: skip
    own = [judgement for judgement in archive.judgements if judgement.method == method]
    judges = ", ".join(dict.fromkeys(judgement.judge.spec for judgement in own))
    entries = [
        EvalResultEntry(
            dataset_id=results.dataset,
            task_id=name,
            value=known[name],
            dataset_revision=results.commit,
            date=max((judgement.time for judgement in own if judgement.time), default=None),
            source_url=results.source,
            notes=f"{method}, {tallied(len(own), 'judgements')}"
            + (f" by {judges}" if judges else "")
            + remark,
        )
        for name in results.measures or known
    ]
    text = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, [text.encode("utf-8")])
    return len(entries)
