"""Several archives made alike, such as of several judges or machines, as one.

Verdicts of a matcher on answers of several judges, given numbers of their own when archives are merged.

What several evaluations are about, as one: methods, their outputs, and what could not be judged.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ... import version
from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json, digest, jsonl_lines, new_folder, write_atomic
from ...schemas.judgement import EvaluationManifest, Judgement
from ...schemas.text import counted
from .archive import (
    EVALUATION,
    JUDGEMENTS,
    ArchiveForm,
    Beside,
    SortKey,
    check_alike,
    lines_of,
    merged,
    read_archive,
    read_manifest,
    said_digest,
    sort_key,
    write_judgements,
    write_manifest,
)
from .replies import INCOMPLETE, ReplyCounts, still_lacking

CONDITIONS = ("text", "image", "text_image", "contrast")
"""What a manifest names as conditions, in its order."""


@dataclass(frozen=True)
class Merged:
    """What came of several archives."""

    manifest: EvaluationManifest = field(repr=False)  # of the new archive
    judgements: int  # how many replies it holds
    # folder -> how many replies it holds, and how many of them no folder before it held
    parts: Mapping[str, tuple[int, int]]
    passed_over: int  # replies that were left out, as an earlier folder answers the same differently
    stories: int | None = None  # of shot images, how many stories of methods it holds

    def as_json(self) -> dict[str, Any]:
        parts = [{"folder": name, "judgements": one[0], "new": one[1]} for name, one in self.parts.items()]
        return {
            "kind": self.manifest.kind,
            "judgements": self.judgements,
            "parts": parts,
            "passed_over": self.passed_over,
            **({} if self.stories is None else {"stories": self.stories}),
        }

    def lines(self) -> Iterator[str]:
        for name, (count, new) in self.parts.items():
            yield f"{name}: {counted(count, 'judgement')}, {new} of them new"
        if self.passed_over:
            passed = counted(self.passed_over, "judgement")
            yield f"left out, because an earlier folder has another answer to the same question: {passed}"
        looked_at = (
            "" if self.stories is None else f", stories of methods that were looked at: {self.stories}"
        )
        yield f"{counted(self.judgements, 'judgement')}, {self.manifest.kind}{looked_at}"


def merge_archives(
    folders: Sequence[str | Path],
    target: str | Path,
    form: ArchiveForm,
    *,
    allowed: Collection[str] = (),
    first_wins: bool = False,
) -> Merged:
    """Write several archives as one into a new folder; nothing is asked, and no order of lines matters."""
    places = _distinct(folders)
    manifests = [read_manifest(place) for place in places]
    with _as_written(places):
        protocol = joined_protocol(manifests, form, allowed)
    joined = _Joined(places, first_wins=first_wins)
    beside = None if form.join is None else form.join(places, first_wins)
    out = Path(target)
    with new_folder(out):
        try:
            _write(out, places, joined)
            with _as_written(places):
                manifest = _manifest(protocol, manifests, joined, beside)
            if beside is not None:
                beside.write(out)
            write_manifest(out, manifest)
        except BaseException:
            for name in (JUDGEMENTS, *form.files):
                (out / name).unlink(missing_ok=True)
            raise
    stories = None if beside is None else beside.stories
    return Merged(manifest, sum(joined.new.values()), joined.parts(), joined.passed_over, stories)


def joined_protocol(
    manifests: Sequence[EvaluationManifest], form: ArchiveForm, allowed: Collection[str] = ()
) -> dict[str, Any]:
    """Return what several evaluations say of how they judged, as one."""
    first = manifests[0]
    for other in manifests[1:]:
        check_alike(first, other, {*form.joined, *allowed})
    protocol = dict(first.protocol)
    problems: list[UserError] = []
    for name in form.joined:
        values = [one.protocol[name] for one in manifests if name in one.protocol]
        if values:
            protocol[name] = _united(name, values, None if name in allowed else problems)
    if problems:
        raise InputError(problems)
    return protocol


class _Joined:
    """The judgements of several folders, one after the other, and counts of them."""

    def __init__(self, places: Sequence[Path], *, first_wins: bool) -> None:
        self._places, self._first_wins = places, first_wins
        self._votes = MatchVotes()
        self._said: dict[SortKey, bytes] = {}
        self._now = ""
        self.read, self.new = Counter[str](), Counter[str]()
        self.passed_over = 0
        self.units: list[set[tuple[str | None, str]]] = []
        self.replies = ReplyCounts()

    def every(self) -> Iterator[Judgement]:
        for place in self._places:
            self._now, shown = str(place), set[tuple[str | None, str]]()
            self.units.append(shown)
            for judgement in map(self._votes.placed, lines_of(place / JUDGEMENTS)):
                self.read[self._now] += 1
                shown.add((judgement.method, judgement.unit))
                if self._first_wins and self._is_other(judgement):
                    self.passed_over += 1
                    continue
                yield judgement

    def keep(self, judgement: Judgement) -> None:
        """Count a judgement that is written."""
        self.new[self._now] += 1
        self.replies.count(judgement)

    def parts(self) -> dict[str, tuple[int, int]]:
        """Return how many each folder holds, and how many of them were new."""
        return {str(place): (self.read[str(place)], self.new[str(place)]) for place in self._places}

    def _is_other(self, judgement: Judgement) -> bool:
        said = said_digest(judgement)
        return self._said.setdefault(sort_key(judgement), said) != said


@contextmanager
def _as_written(places: Sequence[Path]) -> Iterator[None]:
    """Say it where manifests are not as Fabula writes them; they may come from anybody, and hold anything."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise InputError.one(
            " and ".join(str(place / EVALUATION) for place in places),
            what="protocol, subject or environment are not as fabula evaluate writes them: "
            f"{type(error).__name__}: {error}"[:300],
            fix="merge evaluations that Fabula wrote",
        ) from error


def _manifest(
    protocol: dict[str, Any],
    manifests: Sequence[EvaluationManifest],
    joined: _Joined,
    beside: Beside | None,
) -> EvaluationManifest:
    if beside is not None and beside.subject is not None:
        subject = beside.subject(manifests)
        protocol |= beside.protocol(protocol)
    else:
        subject, stories = merged_subject(manifests, joined.units)
        told = [one.protocol.get("stories") for one in manifests]
        if "stories" in protocol and any(one != told[0] for one in told):
            protocol["stories"] = {"count": len(stories), "sha256": digest(sorted(stories))}
    return EvaluationManifest(
        kind=manifests[0].kind, protocol=protocol, subject=subject,
        environment=_environment(manifests, joined),
    )  # fmt: skip


def _united(name: str, values: Sequence[Any], problems: list[UserError] | None) -> Any:  # noqa: ANN401 - JSON
    """Return one value for a part of the protocol that may differ; what cannot be united is a problem."""
    first = values[0]
    if isinstance(first, Mapping) and name != "stories":
        found: dict[str, Any] = {}
        for value in values:
            for key, one in value.items():
                if found.setdefault(key, one) != one and problems is not None:
                    problems.append(
                        UserError(
                            f"protocol {name}.{key}", what=f"the evaluations differ: {found[key]} and {one}",
                            fix="merge evaluations made under the same protocol, or accept the "
                                f"difference with --allow {name}",
                        )
                    )  # fmt: skip
        return dict(sorted(found.items()))
    if all(isinstance(value, list) for value in values):
        every = {one for value in values for one in value}
        return [one for one in CONDITIONS if one in every] if name == "conditions" else sorted(every)
    if all(isinstance(value, bool) for value in values):
        return any(values)
    # All prompts of a suite are written as null.
    return None if name == "units" else first


def _environment(manifests: Sequence[EvaluationManifest], joined: _Joined) -> dict[str, Any]:
    missing = still_lacking(manifests)
    first = manifests[0].environment
    return {
        "fabula": version.__version__,
        **{name: first[name] for name in ("created_at", "release", "sources") if name in first},
        "judges": joined.replies.as_json(),
        "merged": [
            {name: value for name, value in one.environment.items() if name != "sources"} for one in manifests
        ],
        "passed_over": joined.passed_over,
        **({} if missing is None else {INCOMPLETE: missing}),
        **({"simulation": True} if any(one.environment.get("simulation") for one in manifests) else {}),
    }


def _distinct(folders: Sequence[str | Path]) -> list[Path]:
    places = [Path(folder) for folder in folders]
    resolved = [place.resolve() for place in places]
    if len(places) < 2 or len(set(resolved)) < len(places):
        raise ConfigError(
            "archives",
            what="two or more different evaluation folders are needed; given: "
            f"{', '.join(map(str, places)) or 'none'}",
            fix="name the folders to merge",
        )
    return places


def _write(out: Path, places: Sequence[Path], joined: _Joined) -> None:
    """Write the judgements of all folders; where they cannot be one archive, say everything that is wrong."""
    try:
        write_judgements(out, joined.every(), joined.keep)
    except (InputError, ValidationError):
        for place in places:
            read_archive(place)
        placed = MatchVotes().placed
        merged((str(place / JUDGEMENTS), map(placed, lines_of(place / JUDGEMENTS))) for place in places)
        raise


Asked = tuple[object, ...]


class MatchVotes:
    """Numbers the verdicts of each matcher.

    ``vote`` of a verdict is the place of the answer that it is about among those that one run collected. So
    another run, with other judges, has another answer under the same number. What a verdict is about is its
    answer: the same answer keeps the number that it had, and another one gets the next that is free.
    """

    def __init__(self) -> None:
        self._places: dict[Asked, dict[object, int]] = {}
        self._taken: dict[Asked, set[int]] = {}

    def placed(self, judgement: Judgement) -> Judgement:
        """Return a judgement under its number in the whole; all but verdicts stay as they are."""
        if judgement.kind != "match":
            return judgement
        *asked_of, _ = judgement.asked()
        asked = (*asked_of, judgement.attempt)
        places, taken = self._places.setdefault(asked, {}), self._taken.setdefault(asked, set())
        about = said_digest(judgement) if judgement.parsed is None else str(judgement.parsed.get("answer"))
        if about not in places:
            free = judgement.vote not in taken
            places[about] = judgement.vote if free else max(taken) + 1
            taken.add(places[about])
        if places[about] == judgement.vote:
            return judgement
        return judgement.model_copy(update={"vote": places[about]})


ADDED = (
    "frames", "generations_requested", "generations_valid", "generations_invalid", "packets_scanned",
    "panels", "pictures_with_notes", "requested", "stories_requested", "stories_valid", "valid",
)  # fmt: skip
"""Counts that add where parts are about different stories or prompts."""
LISTED = ("invalid", "leaks", "strays")
Units = set[tuple[str | None, str]]


def merged_subject(
    manifests: Sequence[EvaluationManifest], units: Sequence[Units]
) -> tuple[dict[str, Any], set[str]]:
    """Return the subject of a merged archive, and the stories or prompts that it is about."""
    methods: dict[str, dict[str, Any]] = {}
    seen: dict[str, set[str]] = {}
    every: set[str] = set()
    problems: list[UserError] = []
    for manifest, shown in zip(manifests, units, strict=True):
        every.update(unit for _, unit in shown)
        listed = manifest.subject.get("methods")
        for name, about in sorted(listed.items()) if isinstance(listed, Mapping) else ():
            own = {unit for method, unit in shown if method == name} | _invalid_units(about)
            every.update(own)
            known = methods.get(name)
            if known is None:
                methods[name], seen[name] = dict(about), own
            elif known.get("outputs_sha256") == about.get("outputs_sha256"):
                methods[name] = _same(known, about)
                seen[name] |= own
            elif own & seen[name]:
                problems.append(_other_outputs(name, known, about, len(own & seen[name])))
            else:
                methods[name] = _added(known, about)
                seen[name] |= own
    if problems:
        raise InputError(problems)
    return {"methods": dict(sorted(methods.items()))}, every


def _invalid_units(about: Mapping[str, Any]) -> set[str]:
    listed = about.get("invalid")
    rows = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    return {str(one.get("story_id", one.get("unit"))) for one in rows}


def _same(known: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accounting of the same outputs judged twice: what was scanned or stopped in either."""
    merged = dict(known)
    for name in LISTED:
        if isinstance(known.get(name), list) and isinstance(about.get(name), list):
            merged[name] = _union(known[name], about[name])
    if "packets_scanned" in known:
        merged["packets_scanned"] = max(known["packets_scanned"], about.get("packets_scanned", 0))
    return merged


def _added(known: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accounting of outputs of one method for different stories or prompts."""
    merged = dict(known)
    for name in ADDED:
        if name in known and name in about:
            merged[name] = known[name] + about[name]
    for name in LISTED:
        if isinstance(known.get(name), list) and isinstance(about.get(name), list):
            merged[name] = _union(known[name], about[name])
    merged["seeds"] = sorted({*known.get("seeds", ()), *about.get("seeds", ())})
    merged["outputs_sha256"] = digest(sorted([known["outputs_sha256"], about["outputs_sha256"]]))
    wanted = merged.get("generations_requested", merged.get("requested", 0))
    valid = merged.get("generations_valid", merged.get("valid", 0))
    merged["invalid_rate"] = (wanted - valid) / wanted if wanted else None
    return merged


def _union(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [*first, *(one for one in second if one not in first)]


def _other_outputs(name: str, known: Mapping[str, Any], about: Mapping[str, Any], shared: int) -> UserError:
    return UserError(
        f"method {name}",
        what=f"two evaluations judged different outputs of this method for {shared} of its "
        "stories or prompts: SHA-256 "
        f"{known.get('outputs_sha256')} and {about.get('outputs_sha256')}",
        fix="judge the same outputs, or give the method another name in one of them",
    )


# -- What evaluations found in pictures or videos, as one: lines beside the replies, one per unit of a method
#
# A unit, a story or an episode, may stand in several folders: what one found is added to what another found,
# such as the style of pictures to their boxes. What two of them found must be the same, and of the same
# pictures.

Key = tuple[str, str]
"""Method and unit."""
Lines = dict[Key, Json]


@dataclass(frozen=True, slots=True)
class LineForm:
    """The lines that lie beside the replies under one protocol."""

    file: str  # its name in an evaluation folder
    units: str  # what the protocol calls the units that were chosen, such as ``stories``
    joined: tuple[str, ...]  # as in :class:`.archive.ArchiveForm`
    read: Callable[[Path], Lines]  # folder -> its lines, checked
    # two lines of a unit -> what they differ in of what must be the same wherever a unit stands
    ground: Callable[[Json, Json], list[str]]
    # two lines of a unit -> one with what either found, and what they found differently
    join: Callable[[Json, Json], tuple[Json, list[str]]]
    findings: Callable[[Json], Mapping[str, Json]]  # line -> what was looked for -> what was found
    account: Callable[[Sequence[Json]], dict[str, Any]]  # lines of a method -> what was asked and is there
    # the joined protocol -> its parts that have an order of their own
    protocol: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _: {}

    def archive(self) -> ArchiveForm:
        """Return what archives with such lines have besides judgements."""
        return ArchiveForm(
            self.joined, (self.file,),
            lambda folder: partial(self._write, lines=self.read(folder)), self._contents, self._join,
        )  # fmt: skip

    def _write(self, folder: Path, lines: Lines) -> None:
        write_atomic(folder / self.file, jsonl_lines(lines.values()))

    def _contents(self, folder: Path) -> dict[Hashable, str]:
        """Return method, unit and what was looked for -> digest of what was found."""
        return {
            (*key, name): digest(part)
            for key, line in self.read(folder).items()
            for name, part in self.findings(line).items()
        }

    def _join(self, places: Sequence[Path], first_wins: bool) -> Beside:
        lines, keys = self._merged(places, first_wins=first_wins)
        return Beside(
            partial(self._write, lines=lines), partial(self._subject, lines=lines, keys=keys),
            partial(self._chosen, lines=lines), len(lines),
        )  # fmt: skip

    def _merged(self, places: Sequence[Path], *, first_wins: bool) -> tuple[Lines, list[set[Key]]]:
        """Return the lines of all folders, each unit of a method once, and which of them each folder has."""
        kept: Lines = {}
        owners: dict[Key, Path] = {}
        keys: list[set[Key]] = []
        problems: list[UserError] = []
        for folder in places:
            lines = self.read(folder)
            keys.append(set(lines))
            for key, line in lines.items():
                first = owners.setdefault(key, folder)
                known = kept.setdefault(key, line)
                if known is line:
                    continue
                if other := self.ground(known, line):
                    problems.append(_other_pictures(first, folder, key, other))
                    continue
                kept[key], differ = self.join(known, line)
                if differ and not first_wins:
                    problems.append(_otherwise(first, folder, key, differ))
        if problems:
            raise InputError(problems)
        return dict(sorted(kept.items())), keys

    def _subject(
        self, manifests: Sequence[EvaluationManifest], lines: Lines, keys: Sequence[set[Key]]
    ) -> dict[str, Any]:
        """Return the subject of the whole: what was asked for and is there, counted anew.

        Findings of parts about other units add; of parts that share units, the larger number counts.
        """
        methods = {}
        for method in sorted({method for method, _ in lines}):
            codes, seen, hashes = Counter[str](), set[Key](), set[str]()
            for manifest, there in zip(manifests, keys, strict=True):
                own = {key for key in there if key[0] == method}
                account = (manifest.subject.get("methods") or {}).get(method) if own else None
                if account:
                    findings = Counter[str](account.get("findings") or {})
                    codes = codes | findings if own & seen else codes + findings
                    hashes.add(account["outputs_sha256"])
                    seen |= own
            methods[method] = {
                "findings": dict(sorted(codes.items())),
                "outputs_sha256": hashes.pop() if len(hashes) == 1 else digest(sorted(hashes)),
                **self.account([line for key, line in lines.items() if key[0] == method]),
            }
        return {"methods": methods}

    def _chosen(self, protocol: Mapping[str, Any], lines: Lines) -> dict[str, Any]:
        """Return the parts of the joined protocol that are counted anew: which units were chosen."""
        names = sorted({unit for _, unit in lines})
        whole = (protocol.get("release") or {}).get(self.units)
        return {self.units: None if len(names) == whole else names, **self.protocol(protocol)}


def _other_pictures(first: Path, second: Path, key: Key, names: Sequence[str]) -> UserError:
    return UserError(
        "/".join(key), what=f"{first} and {second} differ in {', '.join(names)}",
        fix="evaluate the same outputs with the same set, or rename the method in one of them",
    )  # fmt: skip


def _otherwise(first: Path, second: Path, key: Key, names: Sequence[str]) -> UserError:
    return UserError(
        "/".join(key),
        what=f"{first} and {second} have other {', '.join(names)}, by models of the same names",
        fix="evaluate on one machine, by one judge, or keep what the first folder has with --first-wins",
    )  # fmt: skip
