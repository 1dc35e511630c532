"""The flat tables of a release for those who work with its data: as Arrow, and as ``datasets`` loads them."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..errors import InputError, UserError
from ..schemas.layout import DATA, README
from ..schemas.plain_files import open_plain, read_text
from .parquet import batches, open_table

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import DatasetDict

_BLOCK = re.compile(r"---\n(.*?)^---$", re.DOTALL | re.MULTILINE)


def parse_front_matter(card: str) -> dict[str, Any]:
    """Return the front matter of a card."""
    block = _BLOCK.match(card)
    if block is None:
        raise ValueError("the card does not begin with front matter between two lines of ---")
    try:
        values = deepcopy(_loaded(block[1]))
    except yaml.YAMLError as error:
        raise ValueError(f"the front matter is not YAML: {error}") from error
    if not isinstance(values, dict):
        raise ValueError("the front matter is not a mapping")
    return values


@lru_cache(maxsize=8)  # a release has one card, which several checks read
def _loaded(text: str) -> Any:  # noqa: ANN401 - what a YAML document holds
    return yaml.safe_load(text)


def table_names(folder: Path) -> list[str]:
    """Return the names of a release's flat tables, the default one first."""
    with _readable(folder / README):
        return [
            str(config["config_name"]) for config in parse_front_matter(read_text(folder / README))["configs"]
        ]


def arrow_table(folder: Path, name: str | None = None) -> "pa.Table":
    """Return a flat table of a release, its splits one after the other."""
    import pyarrow as pa

    parts = []
    for path in _files(folder, name):
        with _readable(path), open_table(path) as table:
            part = pa.Table.from_batches(batches(table, path.stat().st_size))
            plain = [(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
                     for field in part.schema]  # fmt: skip
            part = part.cast(pa.schema(plain))
            parts.append(part if "split" in part.column_names else part.add_column(
                0, "split", pa.array([path.stem.partition("-")[0]] * len(part), pa.string())))  # fmt: skip
    return pa.concat_tables(parts)


def dataset_dict(folder: Path, name: str | None = None) -> "DatasetDict":
    """Return a flat table of a release as ``datasets`` loads it from its folder; as :func:`arrow_table`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # no bar is shown
        import datasets

    quiet = datasets.utils.are_progress_bars_disabled()
    datasets.utils.disable_progress_bars()  # it is a folder of this machine, and takes a moment
    try:
        with _readable(folder):
            for path in _files(folder, name):
                open_plain(path).close()  # what is in place of a file is told by its name
            return datasets.load_dataset(str(folder), _chosen(folder, name))
    finally:
        if not quiet:
            datasets.utils.enable_progress_bars()


def _chosen(folder: Path, name: str | None) -> str:
    names = table_names(folder)
    if name is not None and name not in names:
        what, fix = f"the release has no table {name}", f"use one of: {', '.join(names)}"
        raise InputError([UserError(str(folder), what=what, fix=fix)])
    return names[0] if name is None else name


def _files(folder: Path, name: str | None) -> list[Path]:
    return sorted((folder / DATA / _chosen(folder, name)).glob("*.parquet"))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        fix = "fetch or pack the release again, or run `fabula release verify` on it"
        raise InputError([UserError(str(path), what=f"it cannot be read: {error}", fix=fix)]) from error
