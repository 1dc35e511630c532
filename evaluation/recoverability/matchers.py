"""Which matchers there are: an explicit list, an entry-point group for users' own, and archived verdicts."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ...errors import ConfigError
from ...schemas.plugins import plugins

if TYPE_CHECKING:
    from .matching import Compare, Matcher

MATCHERS = {
    "accepted": ".matching:ACCEPTED",
    "exact": ".matching:EXACT",
    "keyword": ".matching:KEYWORD",
    "token-f1": ".token_f1:MATCHER",
}
"""Name -> where it is. Each passes ``tests/contract/test_matchers.py``."""
GROUP = "fabula.matchers"
"""Entry points of this group add matchers: the object is a :class:`.matching.Matcher`."""


@cache
def rules() -> "Mapping[str, Matcher]":
    """Return all matchers that are rules, by name: our own, then those of plug-ins."""
    from .matching import Matcher

    matchers: dict[str, Matcher] = {}
    for name, address in MATCHERS.items():
        module, _, attribute = address.partition(":")
        matchers[name] = getattr(import_module(module, __package__), attribute)
    for entry in plugins(GROUP):
        rule = entry.load()
        if not isinstance(rule, Matcher) or entry.name in matchers:
            raise ConfigError(
                f"entry point {entry.name} of {GROUP}", what="it is no Matcher, or there is one of that name",
                fix="name it otherwise; CONTRIBUTING.md shows how",
            )  # fmt: skip
        matchers[entry.name] = rule
    return matchers


def is_rule(name: str) -> bool:
    """Return whether a matcher needs no archived verdicts; it may be written with its setting."""
    return name.partition("=")[0] in rules()


def matcher_of(name: str, verdicts: "Mapping[str, Mapping[tuple[str, str], bool]]") -> "Compare":
    """Return a matcher by name.

    ``verdicts``: name -> archived verdicts.
    """
    from .matching import archived

    base, equals, text = name.partition("=")
    rule = rules().get(base)
    if rule is None and name in verdicts:
        return archived(name, verdicts[name])
    if rule is None:
        there = ", ".join((*rules(), *sorted(verdicts)))
        raise ConfigError("matcher", expected=f"one of {there}", found=name, fix="choose one of them")
    default, least, most = rule.setting or (0.0, 0.0, 0.0)
    try:
        value = float(text) if equals else default
    except ValueError:
        value = float("nan")
    if equals and (rule.setting is None or not least <= value <= most):
        wanted = "no setting" if rule.setting is None else f"a number from {least:g} to {most:g}"
        raise ConfigError(f"matcher {base}", expected=wanted, found=text, fix=f"for example {base}")
    return rule.rule(value)
