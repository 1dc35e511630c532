"""Licences that a release can carry: the Hub's identifiers, their SPDX ids, and the text of ``LICENSE``."""

import difflib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..errors import ConfigError
from .options import PackOptions

COMMON = ("CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC0-1.0", "Apache-2.0", "MIT")
"""SPDX ids of the licences that data sets are usually published under."""


@dataclass(frozen=True, slots=True)
class Licence:
    """One licence.

    Attributes:
        hub_id: what the front matter of a dataset card calls it, such as ``cc-by-4.0``.
        spdx_id: its SPDX identifier; None for families and others that name no single text.
        url: the canonical address of its text; None where there is none.
        name: its full name.
    """

    hub_id: str
    spdx_id: str | None
    url: str | None
    name: str


@cache
def hub_licences() -> dict[str, Licence]:
    """Return the licences that the Hub knows, by Hub id."""
    text = (files(__package__) / "licenses" / "hub.txt").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {
        hub_id: Licence(hub_id, None if spdx == "-" else spdx, None if url == "-" else url, name)
        for hub_id, spdx, url, name in rows
    }


def licence(identifier: str, where: str = "--license") -> Licence:
    """Return a licence by its SPDX or Hub id, in any case.

    Args:
        identifier: the id.
        where: who stated it, for the error.

    Raises:
        ConfigError: the Hub does not know it, or it names no single licence text.
    """
    known = {name.casefold(): entry for entry in hub_licences().values() for name in _names(entry)}
    entry = known.get(identifier.casefold())
    if entry is not None and entry.spdx_id is not None:
        return entry
    spdx = {str(one.spdx_id).casefold(): str(one.spdx_id) for one in known.values() if one.spdx_id}
    close = [spdx[name] for name in difflib.get_close_matches(identifier.casefold(), sorted(spdx), n=3)]
    raise ConfigError(
        where,
        what=f"{identifier!r} is not the SPDX id of a licence that the Hub knows",
        fix=f"did you mean {' or '.join(close)}?"
        if close
        else "give its id from the SPDX licence list, such as CC-BY-4.0",
    )


def one_licence(stated: Counter[str | None], options: PackOptions, where: str) -> Licence:
    """Return the one licence that a release carries.

    Args:
        stated: licence that records state, None for none -> how many of them do.
        options: what a person said; the licence given there is for records that state none.
        where: what is packed, for errors.

    Raises:
        ConfigError: nobody states a licence, one is unknown, or records state several or another than the one
            that was given.
    """
    given = [name for name in (options.license, options.usual_license if stated[None] else None) if name]
    entries = [licence(given[0])] if given else []
    entries += [licence(name, f"{where}: dataset_license") for name in stated if name is not None]
    if not entries:
        raise ConfigError(
            "--license",
            what="no licence is given, and the records name none",
            fix=f"choose one and give its SPDX id, as in --license {COMMON[0]}; common ones are "
            f"{', '.join(COMMON)}",
        )
    if len({entry.hub_id for entry in entries}) > 1:
        counted = [f"{count} under {name}" for name, count in sorted(stated.items(), key=str) if name]
        counted += [f"{stated[None]} that state none"] if stated[None] else []
        raise ConfigError(
            where,
            what=(
                f"the records have other licences than {entries[0].spdx_id}: "
                if given
                else "the records have different licences: "
            )
            + ", ".join(counted),
            fix="build again with the licence that the release is to have, or pack with the licence that "
            "the records name",
        )
    return entries[0]


def _names(entry: Licence) -> tuple[str, ...]:
    return (entry.hub_id, entry.spdx_id) if entry.spdx_id else (entry.hub_id,)
