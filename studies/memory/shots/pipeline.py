"""The run that makes packets: its stages, what may be chosen, and the folder that it leaves."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from ....builders.drafting import tell_plan
from ....engine.execute import RunRequest, Source
from ....engine.manifest import read_manifest
from ....engine.pipeline import Pipeline
from ....engine.run_options import RunOptions, Sets, setting_texts
from ....engine.running import RunKind
from ....engine.stage import (
    REHEARSED,
    UNUSABLE,
    Ask,
    BadReply,
    Failed,
    Item,
    Made,
    NoAnswer,
    OneStage,
    Outcome,
    StageSpec,
    Tools,
    stage,
)
from ....engine.status import RunReport
from ....errors import ConfigError, InputError
from ....media.images import encode_image
from ....media.kept_files import keep_file
from ....models.spec import ModelSettings
from ....prompts.loader import load_prompt
from ....schemas.canonical import Json, jsonl_lines, sha256_bytes, write_atomic
from ....schemas.entities import EntityEpisode, EpisodeShot
from ....schemas.plain_files import explaining, read_plain
from ....schemas.values import Own
from ....validators.entities.view import view_of
from ..bank import View
from ..pictures import opened_rgba
from .exports import PACKETS_FILE, place_packets
from .layout import (
    ANGLES,
    CELLS,
    Angle,
    Beside,
    Keyframe,
    Pan,
    ShotCast,
    ShotLayout,
    Standing,
    cast_of,
    goes_on,
    places_of,
    plain_layout,
)
from .packets import (
    BANK,
    EPISODES,
    PACKET_PROMPT,
    Condition,
    KnownEntities,
    KnownPicture,
    Memory,
    Packet,
    packet_of,
    scripted_shots,
)

if TYPE_CHECKING:
    from PIL.Image import Image

    from ....engine.hooks import Reporter
    from .layout import Cutout

LAYOUTS_FILE = "layouts.jsonl"
"""One line for each shot: its layout."""
PIPELINE = Pipeline(
    name="memory-packets",
    stages=(
        f"{__package__}.packets:load_shots",
        *(f"{__name__}:{name}" for name in ("plan_layouts", "compose_keyframes", "MAKE_PACKETS")),
    ),
    finish=f"{__name__}:finish",
    final_fields=("episode_id", "known", "layouts", "keyframes"),
    identity=f"{__package__}.packets:identity",
)


@dataclass(frozen=True, slots=True)
class PacketOptions(RunOptions):
    """How packets are made. What every run may choose comes as keywords.

    Attributes:
        model: chat model that plans the layouts [rules].
        memory: what a generator is shown: ``entities``, ``last-frame`` (the whole last frame of the shot
            before, in the place of the bank) or ``text`` [entities].
        no_keyframes: leave keyframes out; portraits of characters stay.
        heights: TOML file with the relative height of characters and objects: "Ana" = 0.9.
        width: of a keyframe, in pixels [832].
        height: the same [480].
        episodes: only this episode.
        tier: only episodes of this tier.
        limit: only the first so many episodes.
    """

    model: Annotated[str | None, Sets("plan_layouts.model")] = None
    memory: Annotated[Memory | None, Sets("make_packets.memory")] = None
    no_keyframes: bool = False
    heights: Path | None = None
    width: Annotated[int | None, Sets("compose_keyframes.width")] = None
    height: Annotated[int | None, Sets("compose_keyframes.height")] = None
    episodes: Annotated[Sequence[str], Sets("load_shots.episodes")] = ()
    tier: Annotated[Sequence[str], Sets("load_shots.tier")] = ()
    limit: Annotated[int | None, Sets("load_shots.limit")] = None


def packets_request(
    memory_run: Path, out: Path, options: PacketOptions, episodes: Path | None = None
) -> RunRequest:
    """Return what the engine is to execute.

    ``episodes``: the set of episodes; None for the one that the bank was built from.
    """
    script_source = episodes or episodes_of(memory_run)
    given: dict[str, object] = {"make_packets.keyframes": not options.no_keyframes}
    if options.no_keyframes or options.memory not in (None, "entities"):
        given["compose_keyframes.wanted"] = False
    sources = [Source(EPISODES, script_source), Source(BANK, memory_run / BANK)]
    texts = setting_texts(given)
    if options.heights is not None:
        heights = read_heights(options.heights).items()
        table = ", ".join(f"{json.dumps(name, ensure_ascii=False)} = {height}" for name, height in heights)
        texts.append(f"compose_keyframes.heights={{{table}}}")
    return options.request(PIPELINE, out, sources, texts)


def episodes_of(memory_run: Path) -> Path:
    """Return the set of episodes from which a bank was built."""
    for source in read_manifest(memory_run).source_list(memory_run.absolute()):
        if source.role == EPISODES:
            return source.path
    raise ConfigError(
        str(memory_run), what="this run was not made from episodes",
        fix="give the run folder of `fabula memory build`, or the set with --episodes",
    )  # fmt: skip


def read_heights(path: Path) -> dict[str, float]:
    """Return the relative heights in a TOML file: ``"Ana" = 0.9``, and tables of them by episode."""
    import tomllib

    fix = 'write lines such as "Ana" = 0.9, for one episode below [its id]'
    with explaining(f"--heights {path}", fix, kind=ConfigError):
        document = tomllib.loads(read_plain(path, follow=True).decode("utf-8"))
    heights: dict[str, Json] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            heights |= {f"{name}/{inner}": height for inner, height in value.items()}
        else:
            heights[name] = value
    for name, value in heights.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.05 <= value <= 3:
            what = f"the height of {name} is {value!r}, and no number from 0.05 to 3"
            raise ConfigError(f"--heights {path}", what=what, fix=fix)
    return {name: float(value) for name, value in heights.items()}


RUN = RunKind(PIPELINE, partial(tell_plan, sample=None), place_packets)
"""How packets are made."""


def make_packets(
    memory_run: Path, out: Path, options: PacketOptions | None = None, episodes: Path | None = None,
    reporter: "Reporter | None" = None,
) -> RunReport:  # fmt: skip
    """Make the packets of every shot; a run is continued, and no layout that was planned is asked for again.

    ``episodes``: the set of episodes; None for the one that the bank was built from.
    """
    return RUN.make(packets_request(memory_run, out, options or PacketOptions(), episodes), reporter)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write ``layouts.jsonl`` and ``packets.jsonl``, a line for each shot."""
    layouts: list[Json] = []
    packets: list[Json] = []
    for item in items:
        episode = item["episode_id"]
        layouts += [{"episode_id": episode, **layout} for layout in item["layouts"]]
        portraits = {
            entity["pictures"]["labelled"]["sha256"]: entity["pictures"]["labelled"]["path"]
            for entity in item["known"]["entities"]
            if "labelled" in entity["pictures"]
        }
        packets += [
            {
                "packet": packet,
                "bank": {image["file"]: portraits[image["sha256"]] for image in packet["images"]
                         if image["role"] == "portrait"},
            }
            for packet in item["packets"]
        ]  # fmt: skip
    write_atomic(folder / LAYOUTS_FILE, jsonl_lines(layouts))
    write_atomic(folder / PACKETS_FILE, jsonl_lines(packets))


# -- Stage: the layouts of an episode, shot after shot: by a model whose answers keep the rules, or plain
#
# An answer that breaks a rule is sent back once with what is wrong. Where there is still none of use, the
# plain layout stands in, and says why.

# -- Whether a layout is valid: the rules that every layout keeps, whoever planned it

MOST_KEYFRAMES = 8
"""Most keyframes of a shot."""
AGAINST: Mapping[Pan, Pan] = {"none": "none", "left": "right", "right": "left"}
"""Pan -> where it moves what stays in the frame."""


def layout_faults(layout: ShotLayout, cast: ShotCast) -> list[str]:
    """Return what is wrong with a layout, each as a sentence that a model can act on; none where it is valid.

    1. There are one to eight keyframes, and nobody and nothing in them that is not scheduled.
    2. Every character, place and object that stands alone is in at least one of them, once in each.
    3. No two characters share a cell; an object stands beside a character of its keyframe, or beside nobody.
    4. Where a shot goes on from another, its first keyframe has all who stay. If the camera does not turn,
       they are where they were, and so is the view; if it turns, nobody moves with it, their order stays, and
       the view moves with it.
    """
    faults = []
    if len(layout.keyframes) > MOST_KEYFRAMES:
        faults.append(f"there are {len(layout.keyframes)} keyframes; at most {MOST_KEYFRAMES}")
    for number, keyframe in enumerate(layout.keyframes, 1):
        faults += [f"keyframe {number}: {fault}" for fault in _keyframe_faults(keyframe, cast)]
    faults += _missing(layout.keyframes, cast)
    if faults:
        return faults  # the rest is about characters who are there
    return list(_continuation_faults(layout.keyframes[0], cast))


def _keyframe_faults(keyframe: Keyframe, cast: ShotCast) -> Iterator[str]:
    names = [standing.name for standing in keyframe.characters]
    things = [beside.name for beside in keyframe.objects]
    yield from _strangers("character", names, cast.characters)
    yield from _strangers("object", things, cast.objects)
    if keyframe.location is not None or cast.locations:
        yield from _strangers("place", [keyframe.location or "none"], cast.locations)
    for cell, count in Counter(standing.cell for standing in keyframe.characters).items():
        if count > 1:
            sharing = [standing.name for standing in keyframe.characters if standing.cell == cell]
            yield f"{' and '.join(sharing)} are both {cell}"
    for beside in keyframe.objects:
        if beside.user is not None and beside.user not in names:
            yield f"{beside.name} stands beside {beside.user}, who is not there"


def _strangers(noun: str, names: Sequence[str], scheduled: Iterable[str]) -> Iterator[str]:
    known = tuple(scheduled)
    for name, count in Counter(names).items():
        if name not in known:
            listed = "; ".join(known) or "none"
            yield f"{name} is no {noun} of this shot; there is: {listed}"
        elif count > 1:
            yield f"{name} is there {count} times"


def _missing(keyframes: Sequence[Keyframe], cast: ShotCast) -> Iterator[str]:
    shown = {standing.name for keyframe in keyframes for standing in keyframe.characters}
    things = {beside.name for keyframe in keyframes for beside in keyframe.objects}
    places = {keyframe.location for keyframe in keyframes}
    for name in (
        *(name for name in cast.characters if name not in shown),
        *(name for name in cast.locations if name not in places),
        *(name for name in cast.objects if name not in things),
    ):
        yield f"{name} is in no keyframe"


def _continuation_faults(first: Keyframe, cast: ShotCast) -> Iterator[str]:
    if cast.before is None:
        return
    there = places_of(first)
    for name in cast.retained:
        if name not in there:
            yield f"keyframe 1: {name} was there when the shot before ended, and is missing"
    yield from (f"keyframe 1: {fault}" for fault in pan_faults(cast.before, first, cast.retained))


def pan_faults(before: Keyframe, after: Keyframe, retained: Iterable[str]) -> list[str]:
    """Return what a keyframe gets wrong about the camera, against the arrangement that it goes on from."""
    old, new = places_of(before), places_of(after)
    moves = {name: new[name] - old[name] for name in retained if name in new}
    faults = []
    way = {"none": 0, "left": 1, "right": -1}[after.pan]
    for name, move in moves.items():
        where = f"{name} was {CELLS[old[name]]} and is {CELLS[new[name]]}"
        if way == 0 and move:
            faults.append(f"{where}, though the camera does not turn")
        elif move * way < 0:
            faults.append(f"{where}: when the camera turns {after.pan}, who stays moves {AGAINST[after.pan]}")
    names = sorted(moves, key=old.__getitem__)
    if [old[name] for name in names] and sorted(names, key=new.__getitem__) != names:
        faults.append(f"{', '.join(names)} stood in this order from left to right; a pan does not change it")
    if before.location is not None and before.location == after.location:
        faults += _angle_faults(before.angle, after)
    return faults


def _angle_faults(angle: Angle, after: Keyframe) -> list[str]:
    step = ANGLES.index(after.angle) - ANGLES.index(angle)
    way = {"none": 0, "left": -1, "right": 1}[after.pan]
    if (way == 0 and step) or step * way < 0:
        said = "does not turn" if way == 0 else f"turns {after.pan}"
        return [f"the view was {angle} and is {after.angle}, though the camera {said}"]
    return []


# -- The layouts of an episode, shot after shot

LAYOUT_PROMPT = "memory/layout_shot"
STANDS_IN = UNUSABLE | {"bad_request", "too_long"}
"""Codes of missing answers for which the plain layout stands in."""


class LayoutSettings(ModelSettings):
    """Who plans the layouts; without a model they are the plain ones."""


@stage(
    version=2,
    reads=("script", "known"),
    writes=("layouts",),
    settings=LayoutSettings,
    asks=(LAYOUT_PROMPT,),
    patience=20.0,
)
async def plan_layouts(item: Item, tools: Tools) -> Outcome:
    """Return the layout of each shot, in story order."""
    script = EntityEpisode.model_validate(item["script"])
    known = KnownEntities.model_validate(item["known"])
    layouts: list[ShotLayout] = []
    shots: list[EpisodeShot] = []
    open_question: NoAnswer | None = None
    for shot in script.shots():
        before = layouts[-1].state if layouts and goes_on(shot, shots[-1]) else None
        cast = cast_of(shot, known.alone, before)
        layout = plain_layout(cast)
        if tools.asker is not None and tools.own(LayoutSettings).model is not None:
            try:
                layout = await _asked(cast, script.story_overview or "", tools)
            except NoAnswer as none:
                if none.code == REHEARSED:
                    open_question = none
                elif none.code in STANDS_IN:
                    layout = layout.model_copy(update={"reason": f"{none.code}: {none.reason}"[:500]})
                else:
                    raise
        layouts.append(layout)
        shots.append(shot)
    if open_question is not None:
        raise open_question
    return Made({"layouts": [layout.as_json() for layout in layouts]})


async def _asked(cast: ShotCast, overview: str, tools: Tools) -> ShotLayout:
    assert tools.asker is not None
    prompt, settings = load_prompt(LAYOUT_PROMPT), tools.own(LayoutSettings)
    request = prompt.request(
        settings, tools.seed, action=cast.action, before=_shown(cast.before), overview=overview,
        characters=list(cast.characters), locations=list(cast.locations), objects=list(cast.objects),
        retained=list(cast.retained), entering=list(cast.entering), leaving=list(cast.leaving),
    )  # fmt: skip
    question = Ask(request, partial(read_layout, cast), prompt.label, sample=settings.sample)
    return (await tools.asker.ask(question)).value


def read_layout(cast: ShotCast, reply: Json) -> ShotLayout:
    keyframes = tuple(_keyframe(entry) for entry in reply["keyframes"])
    if not keyframes:
        raise BadReply("there is no keyframe")
    layout = ShotLayout(
        shot=cast.shot, continues=cast.before is not None, retained=cast.retained, entering=cast.entering,
        leaving=cast.leaving, keyframes=keyframes, by="model", reasoning=str(reply["reasoning"])[:1000],
    )  # fmt: skip
    faults = layout_faults(layout, cast)
    if faults:
        raise BadReply("; ".join(faults))
    return layout


def _keyframe(entry: Json) -> Keyframe:
    try:
        return Keyframe(
            characters=tuple(Standing.model_validate(standing) for standing in entry["characters"]),
            objects=tuple(
                Beside(name=beside["name"], user=beside["beside"]) for beside in entry["objects"]
            ),
            location=entry["place"], angle=entry["camera"], pan=entry["pan"], shows=str(entry["shows"])[:300],
        )  # fmt: skip
    except ValueError as error:
        raise BadReply(f"a keyframe cannot be read: {str(error)[:300]}") from error


def _shown(before: Keyframe | None) -> Json:
    """Return the arrangement before, as the prompt shows it."""
    if before is None:
        return None
    return {
        "characters": [standing.as_json() for standing in before.characters],
        "camera": before.angle, "place": before.location, "shows": before.shows,
    }  # fmt: skip


# -- Stage: the keyframes of an episode as pictures, made of the bank's cut-outs and panoramas

VIEWS: Mapping[Angle, View] = {"left": "left", "front": "centre", "right": "right"}
"""Camera angle -> the third of the panorama behind (E.4)."""


class ComposeSettings(Own):
    """How keyframes are made."""

    wanted: bool = Field(default=True, description="Whether any are made.")
    width: int = Field(default=832, ge=64, le=4096, description="Of a keyframe, in pixels.")
    height: int = Field(default=480, ge=64, le=4096, description="The same.")
    heights: dict[str, float] = Field(
        default_factory=dict,
        description="Height of an entity relative to others of its type, by name, or by EPISODE/NAME [1].",
    )


@stage(
    version=2,
    reads=("episode_id", "known", "bank", "layouts"),
    writes=("keyframes",),
    libraries=("numpy", "pillow"),
    settings=ComposeSettings,
    patience=5.0,
)
def compose_keyframes(item: Item, tools: Tools) -> Made:
    """Return for each shot its keyframes: file in the store, boxes; null where there is nothing to show."""
    settings = tools.own(ComposeSettings)
    layouts = [ShotLayout.model_validate(layout) for layout in item["layouts"]]
    if not settings.wanted or item["bank"] is None:
        return Made({"keyframes": [[None] * len(layout.keyframes) for layout in layouts]})
    known = KnownEntities.model_validate(item["known"])
    maker = _Maker(str(item["episode_id"]), known, Path(item["bank"]), settings, tools)
    return Made(
        {"keyframes": [[maker.made(keyframe) for keyframe in layout.keyframes] for layout in layouts]}
    )


def read_known(root: Path, picture: KnownPicture) -> bytes:
    """Return the bytes of a picture of the bank."""
    path = root / picture.path
    try:
        data = read_plain(path, follow=True)
    except OSError as error:
        raise _changed(path, f"it cannot be read: {error.strerror}") from error
    if sha256_bytes(data) != picture.sha256:
        raise _changed(path, "it was changed while the run went on")
    return data


def _changed(path: Path, what: str) -> InputError:
    return InputError.one(str(path), what=what, fix="give the same command again")


class _Maker:
    """Makes the keyframes of one episode; a picture of the bank is opened once."""

    def __init__(
        self, episode_id: str, known: KnownEntities, root: Path, settings: ComposeSettings, tools: Tools
    ) -> None:
        self._episode, self._known, self._root = episode_id, known, root
        self._settings, self._tools = settings, tools
        self._cutouts: dict[str, Cutout | None] = {}
        self._views: dict[tuple[str, Angle], Image | None] = {}

    def made(self, keyframe: Keyframe) -> Json:
        """Return the file of a keyframe, and what is where in it; None where it shows nothing of the bank."""
        from .layout import compose, listed

        names = [f"character:{standing.name}" for standing in keyframe.characters]
        names += [f"object:{beside.name}" for beside in keyframe.objects]
        cutouts = {key: cutout for key in names if (cutout := self._cutout(key)) is not None}
        view = None if keyframe.location is None else self._view(keyframe.location, keyframe.angle)
        if not cutouts and view is None:
            return None
        composed = compose(keyframe, cutouts, view, (self._settings.width, self._settings.height))
        data = encode_image(composed.image, format="png")
        name = f"{sha256_bytes(data)}.png"
        if self._tools.store is not None:
            keep_file(data, name, self._tools.store)
        return {"file": name, "boxes": listed(composed.boxes), "shows_place": view is not None}

    def _cutout(self, key: str) -> "Cutout | None":
        from .layout import Cutout

        if key not in self._cutouts:
            entity = self._known.by_key.get(key)
            picture = None if entity is None else entity.pictures.get("cutout")
            cutout = None
            if entity is not None and picture is not None:
                image = opened_rgba(read_known(self._root, picture), key)
                bounds = entity.bounds if entity.bounds and _fits(entity.bounds, image.size) else None
                cutout = replace(Cutout(image, bounds), height=self._height(entity.name))
            self._cutouts[key] = cutout
        return self._cutouts[key]

    def _height(self, name: str) -> float:
        heights = self._settings.heights
        return heights.get(f"{self._episode}/{name}", heights.get(name, 1.0))

    def _view(self, location: str, angle: Angle) -> "Image | None":
        from ....media.images import open_picture

        if (location, angle) not in self._views:
            entity = self._known.by_key.get(f"location:{location}")
            picture = None if entity is None else entity.pictures.get(VIEWS[angle])
            data = None if picture is None else read_known(self._root, picture)
            self._views[location, angle] = None if data is None else open_picture(data, name=location).image
        return self._views[location, angle]


def _fits(bounds: tuple[int, int, int, int], size: tuple[int, int]) -> bool:
    left, top, right, bottom = bounds
    return 0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]


# -- Stage: the packet of every shot of an episode; one that has lost a scheduled entity is not written


def packets_of_shots(item: Item, tools: Tools) -> Outcome:
    """Return the packets, in story order."""
    episode_id, condition = str(item["episode_id"]), tools.own(Condition)
    view = view_of(episode_id, EntityEpisode.model_validate(item["script"]))
    known = KnownEntities.model_validate(item["known"])
    packets: list[Packet] = []
    for scripted, layout, composed in zip(
        scripted_shots(view), item["layouts"], item["keyframes"], strict=True
    ):
        packets.append(packet_of(scripted, known, ShotLayout.model_validate(layout), composed, condition))
    lost = [f"{packet.shot} {name}" for packet in packets for name in packet.lost]
    if lost:
        return Failed(
            "lost_entities", f"{len(lost)} scheduled entities are in no packet: {'; '.join(lost[:5])}"
        )
    documents: list[Json] = [packet.as_json() for packet in packets]
    return Made({"packets": documents})


MAKE_PACKETS = OneStage(
    StageSpec(
        "make_packets", version=1, reads=("episode_id", "script", "known", "layouts", "keyframes"),
        writes=("packets",), settings=Condition, prompts=(PACKET_PROMPT,),
    ),
    packets_of_shots,
)  # fmt: skip
