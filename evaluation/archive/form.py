"""What archives under one judge protocol have besides judgements and manifest, and how several become one."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...schemas.judgement import EvaluationManifest


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies beside the judgements of several archives, as one.

    Attributes:
        write: writes it into a folder that exists.
        subject: the manifests -> the subject of the whole; None: methods are put together from judgements.
        protocol: the joined protocol -> its parts that have an order or a sum of their own.
        stories: how many stories of methods it holds, where it holds some.
    """

    write: Callable[[Path], None]
    subject: Callable[[Sequence[EvaluationManifest]], dict[str, Any]] | None = None
    protocol: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _: {}
    stories: int | None = None


@dataclass(frozen=True, slots=True)
class ArchiveForm:
    """What the archives under a protocol have besides judgements and manifest.

    Attributes:
        joined: the parts of the manifest's protocol that are put together; all others must be the same.
        files: the files that lie beside.
        read: reads from a folder what a copy of the archive needs besides; returns what writes it.
        contents: reads from a folder key -> digest of what is in the files beside.
        join: the files beside of several folders as one; the first wins where two differ, if so asked.
        alone: whether it can be scored by itself; else what was judged is needed.
    """

    joined: tuple[str, ...] = ("judges", "metrics", "models", "prompts")
    files: tuple[str, ...] = ()
    read: Callable[[Path], Callable[[Path], None]] | None = None
    contents: Callable[[Path], Mapping[Hashable, str]] | None = None
    join: Callable[[Sequence[Path], bool], Beside] | None = None
    alone: bool = True
