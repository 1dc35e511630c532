"""Who judges episodes, and what is kept of a reply: each value by itself (EntityBench, B.3.3, B.3.4, B.4).

A value that is null, a word, a list or out of range is null and noted under ``unread``; the others of the
same reply count. A reply without any value that can be used is none.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from ....engine.stage import BadReply, Tools
from ....models.chat import Image
from ....schemas.canonical import Json
from ....schemas.values import Own
from ...judging.answers import ask_judges, pictures_of
from ...judging.packets import GivenPacket, Packet
from ...judging.settings import JudgeSettings
from ..gate import FIDELITY_GATE

LEAST, MOST = 1, 10
"""The scale of every score."""
UNREAD = "unread"
"""Where a reply says which of its values could not be used, and what stood there."""
_SHOWN = 80


class EpisodeJudgeSettings(JudgeSettings):
    """Who judges: one judge, asked once, as its fidelity decides what is compared across shots."""

    @model_validator(mode="after")
    def _one_verdict(self) -> Self:
        if len(self.judges) > 1 or self.votes != 1:
            raise ValueError("one judge, asked once; evaluate with another judge into another folder")
        return self


class GateSettings(Own):
    """Which appearances are compared across shots."""

    least: float = Field(
        default=FIDELITY_GATE, ge=0, le=1, description="Least overall fidelity of what is compared (Eq. 22)."
    )


class LocationSettings(EpisodeJudgeSettings):
    """How locations are compared across shots."""

    definition: Literal["paper", "code"] = Field(
        default="paper",
        description="Pairs of the anchor and each other shot (paper), or one set for each location (code).",
    )
    frames: int = Field(default=2, ge=1, le=8, description="Most frames of a shot, the sharpest first.")
    shots: int = Field(default=8, ge=2, le=50, description="Most shots of a set, taken evenly.")


async def asked_of(packets: Iterable[Packet | GivenPacket], tools: Tools) -> list[Json]:
    """Return a row for each question and attempt; without a judge nothing is asked, and no picture read."""
    if tools.asker is None or not tools.own(EpisodeJudgeSettings).judges:
        return []
    return await ask_judges(list(packets), tools)


def pictures_named(names: Sequence[str], tools: Tools) -> tuple[Image, ...]:
    """Return pictures of the run's store by their file names."""
    return pictures_of([{"file": name} for name in names], tools.store)


class Reading:
    """Reads the values of one reply, and notes those that cannot be used.

    Args:
        reply: the JSON of a reply, whatever it is.

    Raises:
        BadReply: it is no object.
    """

    def __init__(self, reply: Json) -> None:
        if not isinstance(reply, Mapping):
            raise BadReply(f"$: expected one JSON object, found {_text(reply)}")
        self._reply = reply
        self._unread: dict[str, str] = {}
        self._read = 0

    def score(self, name: str) -> float | None:
        """Return a score of 1 to 10; None where there is no such number."""
        value = self._reply.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and LEAST <= value <= MOST:
            self._read += 1
            return value
        self._note(name)
        return None

    def scores(self, names: Iterable[str]) -> dict[str, float | None]:
        """Return several scores by name."""
        return {name: self.score(name) for name in names}

    def verdict(self, name: str) -> bool | None:
        """Return a verdict; None where it is neither true nor false."""
        value = self._reply.get(name)
        if isinstance(value, bool):
            self._read += 1
            return value
        self._note(name)
        return None

    def numbers(self, name: str, most: int) -> list[int]:
        """Return those entries of a list that are whole numbers from 1 to ``most``, each once, sorted."""
        value = self._reply.get(name)
        listed = value if isinstance(value, list) else []
        good = {entry for entry in listed if type(entry) is int and 1 <= entry <= most}
        if not isinstance(value, list) or len(good) < len(value):
            self._note(name)
        return sorted(good)

    def texts(self, name: str) -> list[str]:
        """Return those entries of a list that are texts."""
        value = self._reply.get(name)
        if not isinstance(value, list):
            self._note(name)
            return []
        return [entry for entry in value if isinstance(entry, str)]

    def parsed(self, values: dict[str, Json]) -> dict[str, Json]:
        """Return what is kept of the reply."""
        if not self._read:
            missing = "; ".join(f"$.{name}: found {text}" for name, text in self._unread.items())
            raise BadReply(f"no score and no verdict can be used: {missing}")
        reason = self._reply.get("reason")
        kept = {**values, "reason": reason if isinstance(reason, str) else None}
        return kept | ({UNREAD: self._unread} if self._unread else {})

    def _note(self, name: str) -> None:
        self._unread[name] = _text(self._reply[name]) if name in self._reply else "nothing"


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:_SHOWN]
