"""Plain tables of numbers, and how two of them correlate over the rows that they share."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import ConfigError, InputError, UserError, mismatch
from ...schemas.canonical import Plain, without_guard
from ...schemas.plain_files import BadCsv, CsvTable, read_plain, reason_of
from ...schemas.text import tallied
from ...validators.resampling import pair_shares, paired
from .uncertainty import levelled, mean_ranks, scale_of

# -- Correlation of two columns of numbers, with a confidence interval and a two-sided p-value
#
# Intervals are made on Fisher's z scale, with the standard error that belongs to each coefficient: Pearson
# 1 / sqrt(n - 3); Spearman sqrt((1 + r^2 / 2) / (n - 3)) (Bonett and Wright 2000); Kendall's tau-b
# sqrt(0.437 / (n - 4)) (Fieller, Hartley and Pearson 1957). A perfect correlation has no interval on that
# scale: both of its ends are the value itself.

Name = Literal["pearson", "spearman", "kendall"]
NAMES: tuple[Name, ...] = ("pearson", "spearman", "kendall")


@dataclass(frozen=True)
class Correlation(Plain):
    """A correlation."""

    name: Name  # which coefficient
    value: float | None  # the coefficient, in [-1, 1]; None where it is undefined
    low: float | None  # lower end of the interval; None where there are too few pairs for one
    high: float | None  # upper end
    p: float | None  # two-sided p-value of no correlation
    pairs: int  # how many pairs of numbers it stands on
    left_out: int  # pairs in which a number is missing
    reason: str | None = None  # why there is no value


def spearman(x: ArrayLike, y: ArrayLike, level: float = 0.95, of: str = "pairs") -> Correlation:
    """Return Spearman's rank correlation, ties with their mean rank; see :func:`correlate`."""
    return correlate("spearman", x, y, level, of)


def kendall(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Correlation:
    """Return Kendall's tau-b; see :func:`correlate`."""
    return correlate("kendall", x, y, level)


def correlate(
    name: Name,
    x: ArrayLike,
    y: ArrayLike,
    level: float = 0.95,
    of: str = "pairs",
    scales: tuple[float, float] = (1.0, 1.0),
) -> Correlation:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"two columns of the same length are needed, not {first.shape} and {second.shape}")
    there = np.isfinite(first) & np.isfinite(second)
    first, second = first[there], second[there]
    pairs, left_out = len(first), int((~there).sum())
    even = levelled(first, scales[0]), levelled(second, scales[1])
    reason = _undefined(*even, of)
    if reason is not None:
        return Correlation(name, None, None, None, None, pairs, left_out, reason)
    value, p = _coefficient(name)(*((first, second) if name == "pearson" else even))
    value = min(1.0, max(-1.0, value))
    low, high = _interval(name, value, pairs, level)
    return Correlation(name, value, low, high, p if math.isfinite(p) else None, pairs, left_out)


def rank_correlations(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's correlation of every row with the first; ``nan`` where a row is constant.

    ``table``: shape (rows, columns), at least two columns, nothing missing.

    Returned: shape (rows - 1,).
    """
    ranks = np.apply_along_axis(mean_ranks, 1, table) - (table.shape[1] + 1) / 2
    squares = (ranks**2).sum(axis=1)
    product = ranks[1:] @ ranks[0]
    result = np.full(len(product), np.nan)
    np.divide(product, np.sqrt(squares[0] * squares[1:]), out=result, where=squares[0] * squares[1:] > 0)
    return result


def _undefined(x: NDArray[np.float64], y: NDArray[np.float64], of: str) -> str | None:
    if len(x) < 3:
        return f"{tallied(len(x), of)}; at least 3 are needed"
    if (x == x[0]).all() or (y == y[0]).all():
        return "all numbers of a column are the same"
    return None


def _coefficient(name: Name) -> Callable[..., tuple[float, float]]:
    if name == "spearman":
        return _spearman
    from scipy import stats

    function = {"pearson": stats.pearsonr, "kendall": stats.kendalltau}[name]

    def coefficient(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
        result = function(x, y)
        return float(result.statistic), float(result.pvalue)

    return coefficient


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return coefficient and p-value as ``scipy.stats.spearmanr``, which takes a second to import."""
    from scipy.special import stdtr

    ranks = np.stack([mean_ranks(x, 0.0), mean_ranks(y, 0.0)], axis=1)  # levelled before
    value, free = np.asarray(np.corrcoef(ranks, rowvar=False))[1, 0], len(x) - 2
    with np.errstate(divide="ignore"):
        statistic = value * np.sqrt((free / ((value + 1.0) * (1.0 - value))).clip(0))
    return float(value), float(2 * stdtr(free, -np.abs(statistic)))


def _interval(name: Name, value: float, pairs: int, level: float) -> tuple[float | None, float | None]:
    from scipy.special import ndtri

    if pairs < 5:
        return None, None
    if abs(value) >= 1 - 1e-12:
        return value, value
    spread = {
        "pearson": 1 / math.sqrt(pairs - 3),
        "spearman": math.sqrt((1 + value**2 / 2) / (pairs - 3)),
        "kendall": math.sqrt(0.437 / (pairs - 4)),
    }[name]
    reach = float(ndtri((1 + level) / 2)) * spread
    return math.tanh(math.atanh(value) - reach), math.tanh(math.atanh(value) + reach)


# -- Agreement between raters beyond chance
#
# Functions of agreement take ``counts`` of shape (units, categories), whole numbers >= 0: how many raters put
# the unit into the category. A rater who did not rate a unit is not counted; units with fewer than two
# ratings are left out. Where a value is undefined (no such unit, or one category only) the result is ``nan``.

Counts = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]
NO_RATING = -1


def counts_of(codes: NDArray[np.int64], categories: int) -> Counts:
    """Return the counts of a table of ratings.

    ``codes``: shape (raters, units); categories from 0, :data:`MISSING` where there is no rating.

    Returned: shape (units, categories).
    """
    return np.stack([(codes == code).sum(axis=0) for code in range(categories)], axis=1).astype(np.float64)


def observed_agreement(counts: Counts) -> float:
    """Return the mean over units of the share of rater pairs that agree (the mean P of Fleiss 1971)."""
    kept = paired(counts)
    return float(pair_shares(kept).mean()) if len(kept) else float("nan")


def krippendorff_alpha(
    counts: Counts, level: Level = "nominal", values: NDArray[np.float64] | None = None
) -> float:
    """Return Krippendorff's alpha, 1 - Do / De, at most 1, from the coincidences of values within units.

    ``counts``: shape (units, categories); for ``ordinal`` and ``interval`` the categories are in order.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011).
    """
    kept = paired(counts)
    if not len(kept):
        return float("nan")
    weights = 1.0 / (kept.sum(axis=1) - 1)
    coincidences = kept.T @ (kept * weights[:, None]) - np.diag((kept * weights[:, None]).sum(axis=0))
    totals = coincidences.sum(axis=1)
    differences = _differences(totals, level, values)
    expected = float((np.outer(totals, totals) * differences).sum()) / (totals.sum() - 1)
    if expected == 0:
        return float("nan")
    return float(1.0 - (coincidences * differences).sum() / expected)


def cohen_kappa(table: Counts, weights: Literal["none", "linear", "quadratic"] = "none") -> float:
    """Return Cohen's kappa of two raters, in [-1, 1].

    ``table``: shape (categories, categories): how often the first rater said the row, the second the column.
    """
    total = table.sum()
    if total == 0:
        return float("nan")
    steps = np.abs(np.subtract.outer(np.arange(len(table)), np.arange(len(table)))).astype(np.float64)
    cost = {"none": (steps > 0).astype(np.float64), "linear": steps, "quadratic": steps**2}[weights]
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    expected = float((cost * chance).sum())
    return 1.0 - float((cost * table).sum()) / expected if expected else float("nan")


def _differences(totals: Counts, level: Level, values: NDArray[np.float64] | None) -> Counts:
    size = len(totals)
    if level == "nominal":
        return 1.0 - np.eye(size)
    if level == "interval":
        points = np.arange(size, dtype=np.float64) if values is None else values
    else:  # the number of values up to and including a category, less half its own
        points = np.cumsum(totals) - totals / 2
    return np.asarray(np.subtract.outer(points, points) ** 2, dtype=np.float64)


# --

_problem = partial(mismatch, fix="correct the table")

Key = tuple[str, ...]
MISSING = ("", "-", "--", "---", "–", "—", "nan", "na", "n/a", "null")

MIXED = "is not in percent as other cells are, or alone is"
LISTED = 10
"""Most rows without a partner that are named for people."""


@dataclass(frozen=True)
class Table:
    """A table with named columns."""

    path: Path  # its file
    columns: tuple[str, ...]  # the names of the columns, in order
    rows: tuple[Mapping[str, str], ...] = field(repr=False)  # the cells of each row by column, as text


@dataclass(frozen=True)
class Pairing:
    """Two columns over the rows that both tables have."""

    first: str  # column of the first table
    second: str  # column of the second
    correlations: tuple[Correlation, ...]  # Pearson, Spearman and Kendall


@dataclass(frozen=True)
class Unread:
    """A column of both tables that is left out, and the first cell that is no number."""

    column: str  # its name
    table: str  # the file with the cell
    row: Key  # what names the cell's row
    cell: str  # what stands there
    why: str  # what is wrong with it

    def __str__(self) -> str:
        cell = repr(self.cell[:80])
        return f"{self.column} left out: {cell} in {self.table}, row {' / '.join(self.row)}, {self.why}"


@dataclass(frozen=True)
class TableCorrelations:
    """How two tables correlate."""

    on: Key  # the columns that name a row
    shared: int  # how many rows both have
    only_first: tuple[Key, ...]  # rows that the second has not
    only_second: tuple[Key, ...]  # rows that the first has not
    pairings: tuple[Pairing, ...]  # one entry per pair of columns
    excluded: tuple[Key, ...] = ()  # rows of both that were left out as asked for
    # columns of both that are not compared, as they hold something else than numbers
    unread: tuple[Unread, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "on": list(self.on),
            "shared": self.shared,
            "only_first": [list(key) for key in self.only_first],
            "only_second": [list(key) for key in self.only_second],
            "excluded": [list(key) for key in self.excluded],
            "left_out": [asdict(column) for column in self.unread],
            "columns": [
                {
                    "first": pairing.first,
                    "second": pairing.second,
                    "correlations": {result.name: result.as_json() for result in pairing.correlations},
                }
                for pairing in self.pairings
            ],
        }

    def lines(self) -> Iterable[str]:
        yield f"{self.shared} rows shared by {', '.join(self.on)}"
        for what, keys in (
            ("only in the first", self.only_first), ("only in the second", self.only_second),
            ("excluded", self.excluded),
        ):  # fmt: skip
            if keys:
                listed = "; ".join(" / ".join(key) for key in keys[:LISTED])
                yield f"{len(keys)} {what}: {listed}" + ("; ..." if len(keys) > LISTED else "")
        yield from map(str, self.unread)
        for pairing in self.pairings:
            yield f"{pairing.first} : {pairing.second}"
            for result in pairing.correlations:
                yield f"  {result.name:<9}{_number(result)}  {result.pairs} pairs{_gaps(result)}"


def read_table(path: str | Path) -> Table:
    """Return the table in a TSV file, or in a CSV file where its name ends in ``.csv``."""
    file = Path(path)
    try:
        text = read_plain(file, follow=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        fix = "check the path" if isinstance(error, OSError) else "save the table in UTF-8"
        raise InputError([mismatch(str(file), "a table in UTF-8", reason_of(error), fix)]) from error
    comma = file.suffix.lower() == ".csv"
    try:
        table = CsvTable(text, "," if comma else "\t", quoted=comma)
        lines = list(table.rows())
    except BadCsv as error:
        raise InputError([_problem(f"{file} row {error.line}", "a table", str(error))]) from error
    header = table.columns
    problems: list[UserError] = []
    if not header:
        problems.append(_problem(str(file), "a header and rows", "an empty file"))
    for number, cells in lines:
        if len(cells) != len(header):
            problems.append(_problem(f"{file} row {number}", f"{len(header)} cells", str(len(cells))))
    if problems:
        raise InputError(problems)
    read = without_guard if comma else str
    rows = tuple(table.by_name([read(cell.strip()) for cell in cells]) for _, cells in lines)
    return Table(file, header, rows)


def read_aliases(texts: Iterable[str]) -> dict[str, str]:
    """Return name -> the name to take for it, of texts ``NAME=OTHER`` or files with a line of those each."""
    named: dict[str, str] = {}
    for text in texts:
        lines = [text] if "=" in text else _alias_lines(text)
        for line in lines:
            name, sign, other = (part.strip() for part in line.partition("="))
            if not sign or not name or not other or named.get(name, other) != other:
                raise ConfigError(
                    "--alias", what=f"{line!r} is not written NAME=OTHER, or {name} has two other names",
                    fix="give both names, each name once, or a file with such lines",
                )  # fmt: skip
            named[name] = other
    return named


def _alias_lines(file: str) -> list[str]:
    try:
        text = read_plain(Path(file)).decode("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(
            "--alias", what=f"{file!r} is not written NAME=OTHER, and no file: {error}",
            fix="give both names, or a file with such lines",
        ) from error  # fmt: skip
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def correlate_tables(
    first: Table,
    second: Table,
    on: Sequence[str],
    pairs: Sequence[tuple[str, str]] = (),
    aliases: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
) -> TableCorrelations:
    """Return how columns of two tables correlate over the rows that both have.

    ``aliases``: name in a table -> the name to take for it, where the tables spell one thing in two ways.
    """
    problems: list[UserError] = []
    named = aliases or {}
    ours, two = _keyed(first, on, named, problems), _keyed(second, on, named, problems)
    if problems:
        raise InputError(problems)
    both = [key for key in ours if key in two]
    left_out = _excluded(both, exclude)
    shared = [key for key in both if key not in left_out]
    if not shared:
        raise ConfigError(
            "--on", what=f"no row of one table is in the other, by {', '.join(on)}",
            fix="name the columns that tell the rows of both tables",
        )  # fmt: skip
    chosen, unread = list(pairs), list[Unread]()
    if not chosen:
        names = [name for name in first.columns if name in second.columns and name not in on]
        looked_at = [_unread(name, (first, ours), (second, two), shared) for name in names]
        unread = [column for column in looked_at if column is not None]
        chosen = [(name, name) for name, column in zip(names, looked_at, strict=True) if column is None]
    if not chosen:
        why = "; ".join(map(str, unread)) or "they share none but those of --on"
        raise ConfigError(
            "--columns", what=f"the tables have no column of numbers of the same name ({why})",
            fix="name two columns as FIRST:SECOND",
        )  # fmt: skip
    pairings = []
    for left, right in chosen:
        x = _numbers(first, left, ours, shared, problems)
        y = _numbers(second, right, two, shared, problems)
        scales = scale_of(np.array(x)), scale_of(np.array(y))
        pairings.append(Pairing(left, right, tuple(correlate(name, x, y, scales=scales) for name in NAMES)))
    if problems:
        raise InputError(problems)
    return TableCorrelations(
        tuple(on),
        len(shared),
        tuple(key for key in ours if key not in two),
        tuple(key for key in two if key not in ours),
        tuple(pairings),
        tuple(key for key in both if key in left_out),
        tuple(unread),
    )


Keyed = tuple[Table, Mapping[Key, Mapping[str, str]]]
"""A table, and its rows by what names them."""


def _unread(name: str, first: Keyed, second: Keyed, keys: Sequence[Key]) -> Unread | None:
    """Return the first cell for which a column of both tables is no column of numbers; None if it is one."""
    for table, keyed in (first, second):
        if (key := _stranger(name, keyed, keys)) is not None:
            cell = keyed[key][name]
            why = "is no number" if number_of(cell) is None else MIXED
            return Unread(name, table.path.name, key, cell, why)
    return None


def _excluded(keys: Sequence[Key], patterns: Sequence[str]) -> set[Key]:
    """Return the rows that have one of the names."""
    excluded: set[Key] = set()
    for pattern in patterns:
        some = {key for key in keys if any(fnmatchcase(name, pattern) for name in key)}
        if not some:
            raise ConfigError(
                "--exclude", what=f"no row of both tables is called {pattern}",
                fix="check the spelling, or leave it out",
            )  # fmt: skip
        excluded |= some
    return excluded


def _keyed(
    table: Table, on: Sequence[str], aliases: Mapping[str, str], problems: list[UserError]
) -> dict[Key, Mapping[str, str]]:
    for name in on:
        _check_column(table, name, "--on")
    rows: dict[Key, Mapping[str, str]] = {}
    for row in table.rows:
        key = tuple(aliases.get(row[name], row[name]) for name in on)
        if key in rows:
            problems.append(_problem(str(table.path), f"{' / '.join(key)} once", "it twice"))
        rows[key] = row
    return rows


def _numbers(
    table: Table,
    column: str,
    keyed: Mapping[Key, Mapping[str, str]],
    keys: Sequence[Key],
    problems: list[UserError],
) -> list[float]:
    _check_column(table, column, "--columns")
    numbers = []
    for key in keys:
        cell = keyed[key][column]
        number = number_of(cell)
        if number is None:
            problems.append(_problem(f"{table.path} {' / '.join(key)} {column}", "a number or -", repr(cell)))
        numbers.append(math.nan if number is None else number)
    mixed = _stranger(column, keyed, keys)
    if mixed is not None and number_of(keyed[mixed][column]) is not None:
        where, expected = f"{table.path} {' / '.join(mixed)} {column}", "all numbers in percent, or none"
        problems.append(_problem(where, expected, repr(keyed[mixed][column])))
    return numbers


def _stranger(column: str, keyed: Mapping[Key, Mapping[str, str]], keys: Sequence[Key]) -> Key | None:
    """Return the first row whose cell is no number, or one in percent where others are not."""
    units = set[bool]()
    for key in keys:
        number = number_of(keyed[key][column])
        if number is not None and not math.isnan(number):
            units.add(plain_text(keyed[key][column]).endswith("%"))
        if number is None or len(units) > 1:
            return key
    return None


_SET = re.compile(
    r"\\(?:textbf|mathbf|bm|boldsymbol|textit|emph|underline|mathrm|text)\s*\{(.*)\}"
    r"|\{\\(?:bf|it|em)\s+(.*)\}|\$(.*)\$|\*\*(.*)\*\*|__(.*)__|\*(.*)\*|<(b|strong|i|em|u)>(.*)</\7>",
    re.IGNORECASE,
)
"""What typesets a cell in LaTeX, Markdown or HTML."""
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*%?", re.ASCII | re.IGNORECASE)


def _is_wide(sign: str) -> bool:
    return unicodedata.decomposition(sign).startswith("<wide>")  # a raised 2, of a footnote, is no 2


def plain_text(cell: str) -> str:
    """Return a cell without what typesets it, full-width characters and the minus sign as the usual ones."""
    usual = "".join(unicodedata.normalize("NFKC", sign) if _is_wide(sign) else sign for sign in cell)
    text = usual.replace("\N{MINUS SIGN}", "-").replace("\\%", "%").strip()
    while match := _SET.fullmatch(text):
        text = match[match.lastindex or 0].strip()
    return text


def number_of(cell: str) -> float | None:
    """Return the number in a cell, ``nan`` where it says that there is none; None for anything else.

    Typeset numbers (bold, with U+2212 as the minus) are read. Nothing is guessed: a comma may separate
    thousands or decimals, so that a number with one is none.

    >>> number_of("**\N{MINUS SIGN}0.5**"), number_of("1,234"), number_of("12 ms")
    (-0.5, None, None)
    """
    text = plain_text(cell)
    if text.casefold() in MISSING:
        return math.nan
    number = float(text.removesuffix("%")) if _PLAIN.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def _check_column(table: Table, name: str, option: str) -> None:
    if name not in table.columns:
        raise ConfigError(
            option, what=f"{table.path} has no column {name}",
            fix=f"use one of {', '.join(table.columns)}",
        )  # fmt: skip


def _number(result: Correlation) -> str:
    if result.value is None:
        return f"undefined: {result.reason}"
    interval = "" if result.low is None or result.high is None else f"  [{result.low:.3f}, {result.high:.3f}]"
    return f"{result.value:7.3f}{interval}"


def _gaps(result: Correlation) -> str:
    return f", {result.left_out} with a number missing" if result.left_out else ""
