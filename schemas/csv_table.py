"""Reading CSV that others made: a header that names each column once, and rows with their lines."""

import csv
import io
from collections.abc import Iterator

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_LONGEST = 2**31 - 1


class BadCsv(ValueError):
    """A text is not the CSV that it should be.

    Attributes:
        line: where, from 1.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class CsvTable:
    """A table with named columns.

    Args:
        text: the table.
        separators: what may stand between cells; the one that the first line has most often does.
        quoted: whether quotes hold cells together, as they do in CSV and not in TSV.

    Attributes:
        columns: the names of the columns, in order.

    Raises:
        BadCsv: the first line cannot be read, is separated otherwise, or names a column twice.
    """

    def __init__(self, text: str, separators: str = ",", *, quoted: bool = True) -> None:
        head = text.lstrip("\r\n").partition("\n")[0]
        separator = max(separators, key=head.count)
        csv.field_size_limit(max(csv.field_size_limit(), min(len(text) + 1, _LONGEST)))
        self._reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=separator, strict=True,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        )  # fmt: skip
        header = next((cells for _, cells in self._cells() if cells), [])
        self.columns = tuple(name.strip() for name in header)
        others = [other for other in _SEPARATORS if other not in separators and other in head]
        if len(self.columns) == 1 and others:
            raise BadCsv(
                1, f"{_SEPARATORS[others[0]]} separate its columns; save it with {_SEPARATORS[separators[0]]}"
            )
        twice = sorted({name for name in self.columns if name and self.columns.count(name) > 1})
        if twice:
            raise BadCsv(1, f"columns are there twice: {', '.join(map(repr, twice))}; keep one of each")

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line and cells of each row that is not empty."""
        nameless = [at for at, name in enumerate(self.columns) if not name]
        for line, cells in self._cells():
            if any(cells[at].strip() for at in nameless if at < len(cells)):
                raise BadCsv(line, "a cell stands under a column without a name; name it, or remove it")
            if cells:
                yield line, cells

    def named(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield line and cells by column of each row."""
        for line, cells in self.rows():
            if len(cells) != len(self.columns):
                raise BadCsv(line, f"there are {len(cells)} cells, and {len(self.columns)} columns")
            yield line, self.by_name(cells)

    def by_name(self, cells: list[str]) -> dict[str, str]:
        """Return the cells of a row, of which there is one for each column, by column."""
        return {name: cell for name, cell in zip(self.columns, cells, strict=True) if name}

    def _cells(self) -> Iterator[tuple[int, list[str]]]:
        line = self._reader.line_num + 1
        try:
            for cells in self._reader:
                yield line, cells
                line = self._reader.line_num + 1
        except csv.Error as error:
            raise BadCsv(line, f"this is no CSV: {error}; correct the quotes") from error
