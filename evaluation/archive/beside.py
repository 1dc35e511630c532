"""What evaluations found in pictures or videos, as one: lines beside the replies, one per unit of a method.

A unit, a story or an episode, may stand in several folders: what one found is added to what another found,
such as the style of pictures to their boxes. What two of them found must be the same, and of the same
pictures.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, digest, jsonl_lines, write_atomic
from ...schemas.judgement import EvaluationManifest
from .archive import ArchiveForm, Beside

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
