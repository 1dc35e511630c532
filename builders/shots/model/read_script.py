"""Reading the replies that divide a story into shots and write their settings, cameras and descriptions."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, unspaced_count
from ....validators.shots.camera import Camera, is_jump, is_repeated
from ....validators.shots.cast_rules import words_of
from ...katha.model.reading import Problems, by_number, check_count, needed
from ...katha.rules.analysis import Analysis
from ..cast import by_key, named_in
from ..planner import Sketch


def read_plan(reply: Json, sketch: Sketch, count: int) -> list[str]:
    """Return the texts of the shots: spans of the story that hold all of it but white space.

    Raises:
        BadReply: not as many shots as asked for, or first segments that do not rise from 1 within the story.
    """
    entries, segments = reply["shots"], Analysis.from_json(sketch.analysis).segments
    check_count(entries, count, "shots")
    firsts = [entry["first_segment"] for entry in entries]
    problems = Problems()
    if firsts[0] != 1:
        problems.add(f"shot 1 must have first_segment 1, not {firsts[0]}")
    for number, (before, first) in enumerate(pairwise(firsts), start=2):
        if not before < first <= len(segments):
            problems.add(
                f"shot {number}: first_segment must be greater than {before}, that of the shot before, and at"
                f" most {len(segments)}; found {first}"
            )
    problems.settle()
    text = sketch.story["normalized_text"]
    stops = [*firsts[1:], len(segments) + 1]
    return [
        text[segments[first - 1].start : segments[stop - 2].end]
        for first, stop in zip(firsts, stops, strict=True)
    ]


def in_order(reply: Json, sketch: Sketch) -> list[Json]:
    """Return the entries of a reply with one for each shot, in order.

    Raises:
        BadReply: a shot is missing, repeated or none of the script's.
    """
    return by_number(reply["shots"], "shot", list(range(1, len(sketch.plot) + 1)), "shots")


def read_settings(reply: Json, sketch: Sketch) -> list[str]:
    """Return the settings.

    Raises:
        BadReply: one is missing or says nothing, names a character, or is in the wrong script.
    """

    def check(number: int, text: str, problems: Problems) -> None:
        named = named_in(sketch.cast, text)
        if named:
            problems.add(f"shot {number}: the setting names {', '.join(named)}; nobody is in a setting")

    return _texts(reply, sketch, "setting", check)


def read_statics(reply: Json, sketch: Sketch) -> list[str]:
    """Return the static descriptions.

    Raises:
        BadReply: one is missing or says nothing, does not name somebody on stage, or is in the wrong script.
    """
    cast = by_key(sketch.cast)

    def check(number: int, text: str, problems: Problems) -> None:
        missing = [cast[key]["name"] for key in sketch.onstage[number - 1] if not _told(cast[key], text)]
        if missing:
            problems.add(f"shot {number}: the description must name {', '.join(missing)}, who is on stage")

    return _texts(reply, sketch, "description", check)


def _told(one: Json, text: str) -> bool:
    """Return whether a text has a word of a character's name, as the rules of ``fabula validate`` ask."""
    if unspaced_count(one["name"]):
        return one["name"] in text
    return bool(words_of(one["name"], one["key"]) & set(normalize_answer(text).split()))


def _texts(reply: Json, sketch: Sketch, name: str, check: Callable[[int, str, Problems], None]) -> list[str]:
    problems, texts = Problems(), []
    for number, entry in enumerate(in_order(reply, sketch), start=1):
        text = needed(entry, name, f"shot {number}", problems)
        check(number, text, problems)
        texts.append(text)
    problems.check_script(sketch.story, texts)
    problems.settle()
    return texts


def read_cameras(reply: Json, sketch: Sketch) -> list[Json]:
    """Return the perspectives; an angle of nobody is dropped.

    Raises:
        BadReply: a shot is missing, or neighbours are alike or jump.
    """
    entries = in_order(reply, sketch)
    cameras = [
        {"distance": entry["distance"], "angle": entry["angle"] if keys else None, "type": entry["type"]}
        for entry, keys in zip(entries, sketch.onstage, strict=True)
    ]
    problems = Problems()
    words = [Camera(camera["distance"], camera["angle"], camera["type"]) for camera in cameras]
    _check_neighbours(words, problems)
    problems.settle()
    return cameras


def _check_neighbours(cameras: Sequence[Camera], problems: Problems) -> None:
    for number, (before, after) in enumerate(pairwise(cameras), start=2):
        if is_repeated(before, after):
            problems.add(f"shots {number - 1} and {number} have the same distance, angle and type")
        if is_jump(before, after):
            problems.add(f"shot {number} jumps from {before.distance} to {after.distance}; go by steps")
