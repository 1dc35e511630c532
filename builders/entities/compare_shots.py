"""Stage: what shows only beside other shots: copies of a shot, and what footage its video is as a whole.

Two shots are copies where they are as long, and each of the frames that were looked at looks the same: that
finds what was uploaded twice or encoded again, and leaves alone shots that come back to a place. Of copies
one stays, and one that stayed before goes on to stay.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from ...engine.stage import UNAVAILABLE, Item, Made, NoAnswer, OneStage, Outcome, StageSpec, Tools
from ...models.spec import ModelSettings
from ...schemas.canonical import Json
from ...schemas.values import Own
from .pictures import Shown, ask


class Settings(Own):
    """When two shots are copies."""

    bits: int = Field(
        default=40, ge=0, le=255, description="Bits, of 255, in which frames that look the same may differ."
    )
    length: float = Field(default=0.02, ge=0, le=1, description="Share by which their lengths may differ.")
    plain: float = Field(
        default=8.0, ge=0, description="Contrast of a plain shot at most: all of these look the same."
    )


SPEC = StageSpec(
    name="compare_shots",
    version=1,
    shape="gather",
    reads=("shot", "quality", "subtitles", "style"),
    writes=("copy_of", "content"),
    libraries=("numpy",),
    settings=Settings,
    stateful=True,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each shot the id of the shot that it is a copy of, or null; and what its video is.

    ``content`` holds the share of read frames with text (``subtitles``) and the share of judged shots that
    are documentary-style (``documentary``), null where nobody looked, with the numbers behind them.
    """
    settings = tools.own(Settings)
    given = list(items)
    stayed = {key for key, fields in tools.previous.items() if fields["copy_of"] is None}
    order = sorted(given, key=lambda item: (item.id not in stayed, item.id))
    copies = copies_of([_Look.of(item) for item in order], settings)
    videos: dict[str, list[Item]] = {}
    for item in given:
        videos.setdefault(item["shot"]["video"]["video_id"], []).append(item)
    content = {name: content_of(shots) for name, shots in videos.items()}
    return {
        item.id: {"copy_of": copies.get(item.id), "content": content[item["shot"]["video"]["video_id"]]}
        for item in given
    }


@dataclass(frozen=True, slots=True)
class _Look:
    shot_id: str
    seconds: float
    hashes: tuple[str, ...]
    contrast: float

    @classmethod
    def of(cls, item: Item) -> "_Look":
        shot, quality = item["shot"], item["quality"]
        seconds = float(shot["end"]) - float(shot["start"])
        return cls(item.id, seconds, tuple(quality["hashes"]), float(quality["contrast"]))


def copies_of(looks: Sequence[_Look], settings: Settings) -> dict[str, str]:
    """Return shots that are copies, each with the first of the others that it is a copy of and that stays."""
    import numpy as np

    distinct = [look for look in looks if look.contrast > settings.plain and look.hashes]
    if len(distinct) < 2:
        return {}
    lengths = np.array([look.seconds for look in distinct])
    by_length = np.argsort(lengths, kind="stable")
    ordered = lengths[by_length]
    middle = np.array([list(bytes.fromhex(look.hashes[len(look.hashes) // 2])) for look in distinct])
    ones = np.array([value.bit_count() for value in range(256)])
    stays = np.ones(len(distinct), dtype=bool)
    copies = {}
    for number, look in enumerate(distinct):
        least, most = look.seconds * (1 - settings.length), look.seconds * (1 + settings.length)
        near = by_length[np.searchsorted(ordered, least) : np.searchsorted(ordered, most, side="right")]
        near = np.sort(near[(near < number) & stays[near]])
        alike = near[ones[middle[near] ^ middle[number]].sum(axis=1) <= settings.bits]
        other = next(
            (distinct[index] for index in alike if _same(distinct[index], look, settings.bits)), None
        )
        if other is not None:
            stays[number] = False
            copies[look.shot_id] = other.shot_id
    return copies


def _same(first: _Look, other: _Look, bits: int) -> bool:
    pairs = zip(first.hashes, other.hashes, strict=False)
    return len(first.hashes) == len(other.hashes) and all(
        (int(a, 16) ^ int(b, 16)).bit_count() <= bits for a, b in pairs
    )


def content_of(shots: Sequence[Item]) -> Json:
    """Return what the shots of a video show of its content as a whole."""
    read = [item["subtitles"] for item in shots if item["subtitles"] is not None]
    kinds = [item["style"]["kind"] for item in shots if item["style"] is not None]
    kinds = [kind for kind in kinds if kind is not None]
    frames, text = sum(entry["frames"] for entry in read), sum(entry["with_text"] for entry in read)
    documentary = sum(kind in DOCUMENTARY for kind in kinds)
    return {
        "frames_read": frames,
        "subtitles": round(text / frames, 4) if frames else None,
        "shots_judged": len(kinds),
        "documentary": round(documentary / len(kinds), 4) if kinds else None,
    }


# -- What kind of footage a shot is, asked of a chat model about a few shots of each video. Optional

PROMPT = "entities/judge_style"
DOCUMENTARY = ("documentary", "interview", "news", "presentation")
"""Kinds of documentary-style footage, in the words of the prompt."""


async def judge_style(item: Item, tools: Tools) -> Outcome:
    """Return the ``kind`` of footage, why, and who said so; null for shots that nobody is asked about.

    Where there is no answer the kind is null, with the reason why.
    """
    view = item["quality"]["view"]
    if tools.asker is None or view is None:
        return Made({"style": None})
    try:
        answer = await ask(tools, PROMPT, read_kind, [Shown("The frame:", (view,))])
    except NoAnswer as failure:
        if failure.code == UNAVAILABLE:
            raise
        return Made({"style": {"kind": None, "reason": failure.code, "by": None}})
    return Made({"style": {**answer.value, "by": answer.maker}})


def read_kind(reply: Json) -> dict[str, Json]:
    """Return the kind of footage and the reason for it."""
    return {"kind": reply["kind"], "reason": str(reply["reason"])}


JUDGE_STYLE = OneStage(
    name="judge_style",
    version=1,
    shape="map",
    reads=("shot", "quality"),
    writes=("style",),
    settings=ModelSettings,
    asks=(PROMPT,),
    run=judge_style,
)
