"""Why a result that was made before does not count any more."""

from collections.abc import Mapping
from typing import Any

from .journal import Journal, Origin
from .keys import Basis
from .pipeline import MODEL, PROMPT

NEW = "new"


class Explainer:
    """Compares what results were made from with what they would be made from now."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._facts: dict[str, Mapping[str, Any]] = {}

    def reasons(self, basis: Basis, inputs: Mapping[str, str], origin: Origin | None) -> tuple[str, ...]:
        """Return the differences, such as ``stage version 1 -> 2`` or ``setting max_words changed``.

        Args:
            basis: what the stage's results depend on now.
            inputs: digests of the inputs now.
            origin: what the last result was made from; None when there was none.
        """
        if origin is None:
            return (NEW,)
        found = []
        if origin.version != basis.version:
            found.append(f"stage version {origin.version} -> {basis.version}")
        if origin.settings != basis.settings_digest:
            found.extend(_settings(self._fact(f"settings:{origin.settings}"), basis.settings))
        if origin.libraries != basis.libraries_digest:
            found.extend(_libraries(self._fact(f"libraries:{origin.libraries}"), basis.libraries))
        for name in sorted({*inputs, *origin.inputs}):
            if inputs.get(name) != origin.inputs.get(name):
                found.append("items changed" if name == "items" else f"input {name} changed")
        return tuple(found) or ("failed before",)

    def _fact(self, name: str) -> Mapping[str, Any]:
        if name not in self._facts:
            self._facts[name] = self._journal.fact(name) or {}
        return self._facts[name]


def _settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    old, new = before.get("settings", {}), now["settings"]
    settings = [f"setting {key} changed" for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    if before.get("seed") != now["seed"]:
        settings.append(f"seed {before.get('seed')} -> {now['seed']}")
    return settings


def _libraries(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} changed"
        if name.startswith((PROMPT, MODEL))
        else f"library {name} {before.get(name, 'not used')} -> {now.get(name, 'not used')}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
