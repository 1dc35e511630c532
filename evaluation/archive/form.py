"""What archives under one judge protocol have besides judgements and manifest, and how several become one."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...schemas.judgement import EvaluationManifest


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
