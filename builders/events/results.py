"""Completion rates of judged videos as a source of the suite builder: ``results.json`` in the run folder."""

from collections.abc import Mapping
from pathlib import Path

from ...errors import ConfigError, InputError, TargetError, UserError
from ...schemas.canonical import Json, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json, reason_of
from .grading import Rates

RESULTS = "results.json"
"""File of a run folder; a build takes it in where it is there."""
MOST_BYTES = 200_000_000


def write_results(folder: Path, rates: Rates, people: Rates | None = None) -> Path:
    """Put completion rates into the folder of a suite's run, in place of those that are there.

    Args:
        folder: the run folder, which may be new.
        rates: method -> file name -> rate by the judge; null where there is no answer.
        people: the same by people, if there are any.

    Raises:
        ConfigError: there are no rates. TargetError: the file cannot be written.
    """
    if not rates:
        raise ConfigError(
            "--results",
            what="the evaluation has no completion rate of any method",
            fix="judge the videos of at least one method",
        )
    path = folder / RESULTS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [pretty_bytes({"rates": _plain(rates), "people": _plain(people or {})})])
    except OSError as error:
        raise TargetError(
            str(path), what=f"the file cannot be written: {error}", fix="choose another --out"
        ) from error
    return path


def read_results(path: Path) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return ``rates`` and ``people``, each as method -> file name -> rate.

    Raises:
        InputError: the file cannot be read or is not what :func:`write_results` writes.
    """
    try:
        document = read_json(path, MOST_BYTES, follow=True)
        found = {name: _checked(document[name]) for name in ("rates", "people")}
        if not found["rates"] or set(document) != set(found):
            raise ValueError("not rates and people")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            [
                UserError(
                    str(path),
                    what="this is not a file of rates (method -> file name -> rate): "
                    f"{type(error).__name__}: {reason_of(error)[:200]}",
                    fix="remove the file, or write it again with --results",
                )
            ]
        ) from error
    return found


def _checked(methods: Json) -> dict[str, dict[str, float | None]]:
    for units in methods.values():
        for rate in units.values():
            if rate is not None and not (isinstance(rate, int | float) and 0 <= rate <= 1):
                raise ValueError(f"the rate {rate!r}")
    return {str(method): dict(units) for method, units in methods.items()}


def _plain(rates: Rates) -> dict[str, Mapping[str, float | None]]:
    return {method: dict(sorted(units.items())) for method, units in sorted(rates.items())}
