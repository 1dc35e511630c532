"""Where the variants of each story stand in a file, so that a stream of records can be joined with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ..schemas.plain_files import open_plain
from .codes import issue, label, show
from .lines import BOM, RawLine, Report, ignore, parse_object, raw_lines
from .view import Part


@dataclass(slots=True)
class VariantIndex:
    """Byte offsets and line numbers of variants, by the story that they belong to.

    Only two numbers per variant are kept in memory; the text is read again when its story comes by.
    Use it as a context manager while reading.
    """

    _places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _path: Path | None = None
    _mixed: bool = False
    _handle: BinaryIO | None = None

    @property
    def absent(self) -> bool:
        """Whether the data set has no place for variants: no file of theirs, or no line in a mixed file."""
        return self._path is None or (self._mixed and not self._places)

    def read(self, path: Path, report: Report, *, only: bool) -> None:
        """Note every variant of a file.

        Args:
            path: the file.
            report: takes an issue for every line that is not a variant.
            only: whether other lines are passed over in silence, as in a mixed file.
        """
        self._path, self._mixed = path, only
        for raw in raw_lines(path, path.name, ignore if only else report):
            if only and (b'"variant_id"' not in raw.text or b'"source_text"' in raw.text):
                continue
            where = f"{path.name}:{raw.number}"
            data = parse_object(raw, where, ignore if only else report)
            if data is not None and ("variant_id" in data or "base_story_id" in data):
                self._places.setdefault(str(data.get("base_story_id")), []).append((raw.offset, raw.number))
            elif data is not None and not only:
                message = f"expected a variant, found an object with the keys {show(sorted(data))}"
                report(issue("kind", where, "$", message))

    def __enter__(self) -> Self:
        if self._path is not None and self._handle is None:
            self._handle = open_plain(self._path, follow=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def of(self, story_id: str) -> tuple[Part, ...]:
        """Return the variants of a story, in file order."""
        return tuple(self._load(self._places.get(story_id, ())))

    def strays(self, story_ids: set[str]) -> Iterator[Part]:
        """Yield the variants of stories that are not among the given ones."""
        for story_id in sorted(set(self._places) - story_ids):
            yield from self._load(self._places[story_id])

    def _load(self, places: Sequence[tuple[int, int]]) -> Iterator[Part]:
        if self._handle is None or self._path is None:
            return
        for offset, number in places:
            self._handle.seek(offset)
            raw = RawLine(number, offset, self._handle.readline().removeprefix(BOM).strip(), True)
            data = parse_object(raw, "", ignore)
            if data is not None:
                yield Part(f"{self._path.name}:{number} {label(data.get('variant_id'))}", data)
