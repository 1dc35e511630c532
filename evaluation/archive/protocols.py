"""Whether two evaluations were made alike, so that their scores can be compared.

What identifies the data that an evaluation was made with.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import canonical_text, digest, sha256_file
from ...schemas.judgement import EvaluationManifest
from ...schemas.layout import ANNOTATIONS, VARIANTS

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
