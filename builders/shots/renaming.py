"""One name for another in a text, and nothing else."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from ...schemas.text import unspaced_count


@dataclass(frozen=True)
class Renaming:
    """Puts a new name where a text uses the old one.

    Words are not cut (Leo is not in Leonard), a longer name of somebody else stays (the ferryman is not in
    Old Ferryman Tom), and a possessive keeps its form: Tomas' hat becomes Ana's hat. A name that begins with
    a small letter is found, and put, with a capital at the start of a sentence, too.

    Attributes:
        old: the name until now.
        new: the name from now on.
        others: names of others in the same language, which are left alone.
    """

    old: str
    new: str
    others: Collection[str] = ()

    def __call__(self, text: str) -> str:
        """Return the text with the new name."""
        return self._pattern.sub(self._put, text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longer = (name for name in self.others if self.old in name and name != self.old)
        names = [*sorted(longer, key=len, reverse=True), self.old]
        listed = "|".join(re.escape(name) for name in names)
        capital = _capital(self.old)
        if capital != self.old:
            listed += f"|{re.escape(capital)}"
        if unspaced_count(self.old):
            return re.compile(f"(?P<name>{listed})(?P<own>)")
        return re.compile(rf"(?<!\w)(?P<name>{listed})(?!\w)(?:(?<=s)(?P<own>['’])(?=\s))?")

    def _put(self, match: re.Match[str]) -> str:
        found = match["name"]
        if found not in (self.old, _capital(self.old)):
            return match[0]
        name = self.new if found == self.old else _capital(self.new)
        apostrophe = match["own"] or ""
        before = match.string[: match.start()]
        quoted = bool(apostrophe) and before.endswith(("'", "‘"))
        return name + apostrophe + ("s" if apostrophe and not quoted and not name.endswith("s") else "")


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
