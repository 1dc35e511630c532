"""Licences that a release can carry: the Hub's identifiers, their SPDX ids, and the text of ``LICENSE``."""

import difflib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..errors import ConfigError


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


def licence(identifier: str) -> Licence:
    """Return a licence by its SPDX or Hub id, in any case.

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
        "--license",
        expected="the SPDX id of a licence that the Hub knows, such as CC-BY-4.0",
        found=repr(identifier),
        fix=f"did you mean {' or '.join(close)}?" if close else "give its id from the SPDX licence list",
    )


def _names(entry: Licence) -> tuple[str, ...]:
    return (entry.hub_id, entry.spdx_id) if entry.spdx_id else (entry.hub_id,)
