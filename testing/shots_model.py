"""A stand-in for the model of the shot-script builder: it answers every prompt from the request alone.

It names whom rules find, and fills the rest with plain sentences; its translations are names
with numbered sentences around them, which are in the other language and mean nothing. Deterministic, and no
model's work. Use it as the handler of a model server::

    with ModelServer(answer) as server:
        ...

    python -m fabula.testing.model_server --handler fabula.testing.shots_model:answer
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle

from ..builders.shots.cast import SPEAKER, character, find_people, named_first, named_in
from ..builders.text.boundaries import analyze
from ..builders.text.segments import pick
from ..schemas.canonical import Json
from ..schemas.text import is_unspaced
from ..schemas.values import vocabulary
from .asked_prompts import answering, divided, fence_after, lines_after, user_text
from .model_server import Asked

_STILLS = {
    "en": (" and ", " stand still.", "The ground lies empty."),
    "zh": ("、", "站着不动。", "地上空无一人。"),
}
"""Language -> what joins names, what is said of them, and of nobody."""
_SOUNDS = "阿博策德伊法加哈伊杰卡拉米纳奥佩奇雷萨塔乌维瓦夏雅扎"


def answer(asked: Asked) -> Json:
    """Return the reply to a prompt of the shot-script builder, as JSON."""
    return answering(asked, _ANSWERS)(user_text(asked))


def _shots(text: str) -> list[str]:
    return lines_after(text, "The story, one numbered shot a line:")


def _plan(text: str) -> Json:
    segments = lines_after(text, "numbered segments:")
    firsts, _ = divided(segments, int(re.findall(r"into exactly (\d+) shots", text)[-1]))
    return {"shots": [{"first_segment": first, "moment": segments[first - 1][:40]} for first in firsts]}


def _script(text: str) -> Json:
    """Return a whole script: the answers to the prompts of its parts, in one."""
    count = int(re.findall(r"in exactly (\d+) shots", text)[-1])
    firsts, shots = divided(lines_after(text, "numbered segments:"), count, " ")
    people = _sheets(text, shots)
    cast = [character(person["key"], person["name"]) for person in people]
    placed = [named_first(cast, shot)[:3] for shot in shots]
    names = {person["key"]: person["name"] for person in people}
    stills = _stills(shots, [[names[key] for key in keys] for keys in placed])
    parts = zip(firsts, shots, _places(shots), _cameras(placed), placed, stills, strict=True)
    return {
        "characters": people,
        "shots": [
            {"shot": place["shot"], "first_segment": first, "plot": _told(shot), "setting": place["setting"],
             **camera, "characters": keys, "description": still}
            for first, shot, place, camera, keys, still in parts
        ],
    }  # fmt: skip


def _told(shot: str) -> str:
    return f"旁白：{shot}" if is_unspaced(shot) else f"Narrator: {shot}"


def _narrated(text: str) -> Json:
    return {"shots": [{"shot": number, "plot": _told(shot)} for number, shot in enumerate(_shots(text), 1)]}


def _characters(text: str) -> Json:
    return {"characters": _sheets(text, _shots(text))}


def _sheets(text: str, shots: Sequence[str]) -> list[Json]:
    human = re.findall(r"Tag of people: (\w+)", text)[-1]
    if "The characters are given:" in text:
        cast = json.loads(fence_after(text, "The characters are given:"))
    else:
        cast = _found(shots, human)
    chinese = is_unspaced("".join(shots))
    return [
        {
            "key": member["key"],
            "name": member["name"],
            "tag": member["tag"] or human,
            "gender": member["gender"] or "other",
            "appearance": f"穿着第{number}件蓝色长袍。" if chinese else f"Wears blue coat number {number}.",
        }
        for number, member in enumerate(cast, start=1)
    ]


def _found(shots: Sequence[str], human: str) -> list[Json]:
    if is_unspaced("".join(shots)):
        pairs = Counter(shot[at : at + 2] for shot in shots for at in range(len(shot) - 1))
        names = [pair for pair, _ in pairs.most_common() if pair.isalpha() and pair not in SPEAKER][:1]
        return [character(f"Figure {n}", name, tag=human) for n, name in enumerate(names, start=1)]
    story = {"id": "tale", "title": "A tale", "language": "en", "normalized_text": " ".join(shots)}
    return find_people(analyze(story), human, 5)


def _named(lines: Sequence[str]) -> list[Json]:
    """Return characters listed as ``Key`` or ``Key (name)``."""
    cast = []
    for line in lines:
        key, _, name = line.removesuffix(")").partition(" (")
        cast.append(character(key, name or key))
    return cast


def _place(text: str) -> Json:
    cast = _named(lines_after(text, "The characters, by key"))
    placed = [named_first(cast, shot)[:3] for shot in _shots(text)]
    return {"shots": [{"shot": n, "characters": keys} for n, keys in enumerate(placed, start=1)]}


def _settings(text: str) -> Json:
    return {"shots": _places(_shots(text))}


def _places(shots: Sequence[str]) -> list[Json]:
    said = (
        "白天，空旷的土地，柔和的光" if is_unspaced("".join(shots)) else "Daylight, open ground, soft light"
    )
    return [{"shot": number, "setting": said} for number in range(1, len(shots) + 1)]


def _casts(text: str) -> list[list[str]]:
    return [[] if line == "-" else line.split(", ") for line in lines_after(text, "On stage in each shot:")]


def _cameras(casts: Sequence[Sequence[str]]) -> list[Json]:
    """Return perspectives that go to and fro by one step."""
    steps = zip(casts, cycle(("medium_long_shot", "medium_shot")), strict=False)
    return [
        {"distance": distance, "angle": "front_view" if names else None, "type": "eye_level_shot"}
        for names, distance in steps
    ]


def _perspectives(text: str) -> Json:
    casts = _casts(text)
    cameras = _cameras(casts)
    return {"shots": [{"shot": number, **camera} for number, camera in enumerate(cameras, start=1)]}


def _descriptions(text: str) -> Json:
    stills = _stills(_shots(text), _casts(text))
    return {"shots": [{"shot": number, "description": said} for number, said in enumerate(stills, start=1)]}


def _stills(shots: Sequence[str], casts: Sequence[Sequence[str]]) -> list[str]:
    chinese = is_unspaced("".join(shots))
    joint, rest, nobody = _STILLS["zh" if chinese else "en"]
    return [joint.join(names) + rest if names else nobody for names in casts]


def _translated_names(text: str) -> Json:
    chinese = re.findall(r"Into: (\w+)", text)[-1] == "Chinese"
    entries = []
    for load in json.loads(fence_after(text, "The characters, numbered from 1")):
        number = load["number"]
        name = _sounded(load["name"]) if chinese else f"Figure {number}"
        look = f"第{number}个人物的外貌。" if chinese else f"The looks of figure {number}."
        entries.append({"number": number, "name": name, "appearance": look if load["appearance"] else None})
    return {"characters": entries}


def _sounded(name: str) -> str:
    return "".join(
        _SOUNDS[(ord(char) - ord("a")) % len(_SOUNDS)] for char in name.casefold() if char.isalpha()
    )


def _translated_shots(text: str) -> Json:
    chinese = re.findall(r"Into: (\w+)", text)[-1] == "Chinese"
    pairs = [
        line.partition(" = ")[::2] for line in lines_after(text, "Names, each as it is") if " = " in line
    ]
    cast = [character(own, own, other_name=other) for own, other in pairs]
    others = {member["key"]: member["other_name"] for member in cast}

    def said(original: str, number: int) -> str:
        names = [others[key] for key in named_in(cast, original)]
        if chinese:
            return "、".join(names) + f"，第{number}段译文。"
        return f"{' and '.join(names)}: translated part {number}.".lstrip(": ")

    entries = []
    for shot in json.loads(fence_after(text, "The shots:")):
        number = shot["shot"]
        setting = f"第{number}处景色，白天" if chinese else f"Place number {number}, daylight"
        entries.append({
            "shot": number, "plot": said(shot["plot"], number),
            "setting": setting if shot["setting"] else None,
            "static": said(shot["static"], number) if shot["static"] else None,
        })  # fmt: skip
    return {"shots": entries}


def _classify(text: str) -> Json:
    story = fence_after(text, "The story:")
    return {
        "kind": "A tale.",
        "story_type": pick(vocabulary("story_type").values, story),
        "culture": pick(vocabulary("culture").values, story),
        "style": pick(vocabulary("style_category").values, story),
    }


_ANSWERS: dict[str, Callable[[str], Json]] = {
    "shots/plan_script": _script,
    "shots/narrate_plots": _narrated,
    "shots/plan_shots": _plan,
    "shots/write_characters": _characters,
    "shots/place_characters": _place,
    "shots/describe_settings": _settings,
    "shots/design_perspectives": _perspectives,
    "shots/describe_shots": _descriptions,
    "shots/translate_names": _translated_names,
    "shots/translate_shots": _translated_shots,
    "shots/classify_story": _classify,
}
