"""Shards of a run: the items that one of several machines works on, chosen by a hash of their ids."""

import hashlib
import re
from typing import Self

from pydantic import Field, model_validator

from ...errors import ConfigError
from ...schemas.values import Own

WAITS = "waits for fabula run merge: the stage needs the items of all shards"
"""Why an item of a shard stops at a gather stage."""
NOT_CHOSEN = "not chosen to run"
"""Why an item stops that the options left out."""
STATE = "shard"
"""The fact in a shard's journal that says whether all that a shard can do is done."""
_FORM = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class Shard(Own):
    """Which part of a run's items: ``number`` of ``of``, from 1."""

    number: int = Field(ge=1)
    of: int = Field(ge=1)

    @model_validator(mode="after")
    def _within(self) -> Self:
        if self.number > self.of:
            raise ValueError("number must not be above of")
        return self

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the shard that ``i/n`` names."""
        match = _FORM.fullmatch(text)
        number, of = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= number <= of:
            raise ConfigError(
                f"--shard {text}", expected="i/n with 1 <= i <= n", found=text,
                fix="the first of eight shards is --shard 1/8, the last one --shard 8/8",
            )  # fmt: skip
        return cls(number=number, of=of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def holds(self, name: str) -> bool:
        """Whether the items of a name belong to it: SHA-256 of the name, modulo the number of shards."""
        sha256 = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(sha256[:8], "big") % self.of == self.number - 1


def check_same_shard(where: str, known: Shard | None, wanted: Shard | None) -> None:
    """Refuse a shard that is not the one that a run folder holds."""
    if known == wanted:
        return
    held = "a whole run" if known is None else f"shard {known}"
    asked = "the whole run" if wanted is None else f"shard {wanted}"
    raise ConfigError(
        f"--out {where}", what=f"the folder holds {held}, and {asked} is asked for",
        fix="choose another folder with --out; shards become one run by `fabula run merge SHARD... --out RUN`"
        if known is None else f"add --shard {known}, or choose another folder with --out",
    )  # fmt: skip
