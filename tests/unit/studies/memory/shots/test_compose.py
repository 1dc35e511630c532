"""The compositor: boxes and edges by hand, and small pictures that must stay as they are, pixel by pixel.

After a change that is meant: UPDATE_GOLDEN=1 make test PYTEST_ARGS="-k test_compose"
"""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from fabula.errors import ConfigError, TargetError
from fabula.schemas.plain_files import json_lines
from fabula.studies.memory.shots.exports import PlacedPacket, export_packets, overviews_of, read_packets
from fabula.studies.memory.shots.layout import (
    ANCHOR,
    Angle,
    Beside,
    Cutout,
    Keyframe,
    Pan,
    ShotCast,
    ShotLayout,
    compose,
    places_of,
    plain_layout,
    soft,
    standing_at,
)
from fabula.studies.memory.shots.pipeline import (
    MOST_KEYFRAMES,
    PacketOptions,
    layout_faults,
    make_packets,
    pan_faults,
)
from fabula.testing.memory_banks import write_bank
from fabula.testing.written_episodes import write_episodes, written_episode

SIZE = (140, 80)
"""Seven cells of 20 pixels."""


def figure(width: int, height: int, colour: tuple[int, int, int], height_of: float = 1.0) -> Cutout:
    """A rectangle of one colour with 10 pixels of nothing around it."""
    image = Image.new("RGBA", (width + 20, height + 20), (0, 0, 0, 0))
    ImageDraw.Draw(image).rectangle((10, 10, 9 + width, 9 + height), fill=(*colour, 255))
    return Cutout(image, height=height_of)


CAST = {
    "character:Ana": figure(30, 90, (200, 40, 40)), "character:Ben": figure(40, 90, (40, 60, 200)),
    "object:the cup": figure(20, 20, (235, 180, 40)), "object:the lamp": figure(10, 40, (250, 250, 250)),
}  # fmt: skip


def keyframe(places: dict[str, int], *things: Beside) -> Keyframe:
    return Keyframe(characters=standing_at(places), objects=things, location="Hall")


def test_edge_when_softened_loses_a_pixel_and_falls_off_in_two() -> None:
    alpha = np.zeros((7, 7), np.uint8)
    alpha[1:6, 1:6] = 255
    # One pixel less leaves 3 x 3; the mean of nine at its corner has 4 of 9, on its side 6 of 9, inside all.
    row = [(255 * count + 4) // 9 for count in (1, 2, 3, 2, 1)]
    middle = [(255 * count + 4) // 9 for count in (3, 6, 9, 6, 3)]
    assert soft(alpha)[1].tolist() == [0, *row, 0]
    assert soft(alpha)[3].tolist() == [0, *middle, 0]


def test_boxes_when_figures_stand_in_cells_are_those_worked_by_hand() -> None:
    made = compose(keyframe({"Ana": 1, "Ben": 5}), CAST, None, SIZE)
    # Height 0.72 * 80 = 57.6, so 58; width 57.6 * 30 / 90 = 19.2, so 19, and 57.6 * 40 / 90 = 25.6, so 26.
    # Middles of cells 1 and 5: 30 and 110. Feet at 0.95 * 80 = 76, tops at 76 - 58 = 18.
    assert made.boxes == {"character:Ana": (21, 18, 40, 76), "character:Ben": (97, 18, 123, 76)}
    assert made.image.getpixel((30, 50)) == (200, 40, 40) and made.image.getpixel((2, 2)) == (128, 128, 128)


def test_height_when_a_file_gives_it_scales_the_figure_and_no_other() -> None:
    small = {**CAST, "character:Ana": figure(30, 90, (200, 40, 40), 0.5)}
    made = compose(keyframe({"Ana": 1, "Ben": 5}), small, None, SIZE)
    # 0.36 * 80 = 28.8, so 29, and 28.8 / 3 = 9.6, so 10.
    assert made.boxes["character:Ana"] == (25, 47, 35, 76)
    assert made.boxes["character:Ben"] == (97, 18, 123, 76)
    tall = {"character:Ana": figure(30, 90, (200, 40, 40), 3.0)}
    left, top, right, bottom = compose(keyframe({"Ana": 3}), tall, None, SIZE).boxes["character:Ana"]
    assert (bottom - top, right - left) == (74, 25)  # at most 0.93 * 80 = 74.4


def test_place_when_of_another_shape_fills_the_frame_from_its_middle_and_keeps_its_ground() -> None:
    # Twice as wide as the frame: the middle half is seen. Twice as tall: what is cut lies mostly above.
    stripes = np.zeros((SIZE[1], 2 * SIZE[0], 3), np.uint8)
    stripes[:, : SIZE[0] // 2, 0] = stripes[:, 3 * SIZE[0] // 2 :, 1] = 255
    wide = np.asarray(compose(keyframe({}), {}, Image.fromarray(stripes), SIZE).image)
    assert wide.shape == (SIZE[1], SIZE[0], 3) and not wide.any()
    layers = np.repeat(np.arange(2 * SIZE[1], dtype=np.uint8)[:, None], SIZE[0], 1)
    tall = np.asarray(compose(keyframe({}), {}, Image.fromarray(layers), SIZE).image)
    top = SIZE[1] * ANCHOR[0] // ANCHOR[1]
    assert tall[:, 0, 0].tolist() == list(range(top, top + SIZE[1]))


def test_figures_when_they_would_hide_each_other_are_smaller_in_one_measure() -> None:
    made = compose(keyframe({"Ana": 2, "Ben": 3}), CAST, None, SIZE)
    # The widest, Ben, has 26 pixels; the room between neighbours is 20, and 1.3 * 20 = 26: as before.
    assert made.boxes["character:Ben"][3] - made.boxes["character:Ben"][1] == 58
    wide = {name: figure(60, 60, (9, 9, 9)) for name in ("character:Ana", "character:Ben")}
    boxes = compose(keyframe({"Ana": 2, "Ben": 3}), wide, None, SIZE).boxes
    # 58 wide: 26 / 58 = 0.448, but never below 0.6: 0.6 * 57.6 = 34.56.
    assert [box[3] - box[1] for box in boxes.values()] == [35, 35]


def test_object_when_somebody_uses_it_stands_beside_them_where_the_next_cell_is_free() -> None:
    cup = Beside(name="the cup", user="Ana")
    ana, cup_box = (
        compose(keyframe({"Ana": 3}, cup), CAST, None, SIZE).boxes[key]
        for key in ("character:Ana", "object:the cup")
    )
    # 0.3 * 80 = 24 high and wide. Its middle: 70 + 9 + 12 - 6 = 85.
    assert cup_box == (73, 52, 97, 76) and ana == (61, 18, 80, 76)
    left = compose(keyframe({"Ana": 3, "Ben": 4}, cup), CAST, None, SIZE).boxes["object:the cup"]
    assert left[0] < ana[0], "the cell on the right is taken"
    free = compose(keyframe({}, Beside(name="the cup"), Beside(name="the lamp")), CAST, None, SIZE).boxes
    # Two that nobody uses are at a third and two thirds: 46 and 93.
    assert free["object:the cup"][0] == 46 - 12 and free["object:the lamp"][0] == 93 - 3


# The plain layout: schedules worked by hand, and any schedule at all.

NAMES = tuple(f"Person{letter}" for letter in "ABCDEFGHIJ")


def cells(cast: ShotCast) -> list[dict[str, int]]:
    return [places_of(keyframe) for keyframe in plain_layout(cast).keyframes]


def test_shot_when_it_begins_anew_spreads_its_characters_as_they_are_scheduled() -> None:
    # Three are spread over cells 1, 3 and 5, whatever the action says.
    cast = ShotCast("1:1", "Ben talks to Ana from the left.", ("Ana", "Ben", "Cleo"), ("Hall",), ("the cup",))
    assert cells(cast) == [{"Ana": 1, "Ben": 3, "Cleo": 5}]
    (keyframe,) = plain_layout(cast).keyframes
    assert (keyframe.pan, keyframe.angle, keyframe.location) == ("none", "front", "Hall")
    assert [(thing.name, thing.user) for thing in keyframe.objects] == [("the cup", None)]


def test_shot_when_it_goes_on_keeps_who_stays_and_gives_others_the_free_cells() -> None:
    before = Keyframe(characters=standing_at({"Ana": 3, "Ben": 4}), location="Hall", angle="left")
    cast = ShotCast("1:2", "", ("Cleo", "Ana", "Dan"), ("Yard", "Hall"), (), before)
    layout = plain_layout(cast)
    # The best cells after the centre are 2 and 4; Ben, who was in 4, has gone.
    assert cells(cast)[0] == {"Ana": 3, "Cleo": 2, "Dan": 4}
    assert [(frame.location, frame.angle) for frame in layout.keyframes] == [
        ("Hall", "left"),
        ("Yard", "front"),
    ]
    assert (layout.retained, layout.entering, layout.leaving) == (("Ana",), ("Cleo", "Dan"), ("Ben",))


def test_bodies_when_they_are_more_than_cells_get_a_further_keyframe() -> None:
    assert [sorted(frame.values()) for frame in cells(ShotCast("1:1", "A crowd.", NAMES[:9]))] == [
        [0, 1, 2, 3, 4, 5, 6],
        [2, 4],
    ]


shots = st.tuples(
    st.lists(st.sampled_from(NAMES), max_size=10, unique=True),
    st.lists(st.sampled_from(("Hall", "Yard", "Attic")), max_size=3, unique=True),
    st.lists(st.sampled_from(("the cup", "the lamp", "the car")), max_size=3, unique=True),
    st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(shots, min_size=1, max_size=5))
def test_layouts_when_anything_is_scheduled_keep_every_rule(episode):
    state: Keyframe | None = None
    for number, (people, locations, things, cut) in enumerate(episode, 1):
        before = None if cut else state
        cast = ShotCast(f"1:{number}", "", tuple(people), tuple(locations), tuple(things), before)
        layout = plain_layout(cast)
        assert layout_faults(layout, cast) == []
        state = layout.state


# The storyboard of layouts: what it shows, and that texts of episodes stay texts.


# -- Each rule of layouts, broken once

ACTION = "Ana holds the cup. Ben enters from the left."
HALL = {"location": "Hall"}


def cast(before: Keyframe | None = None) -> ShotCast:
    return ShotCast("1:1", ACTION, ("Ana", "Ben"), ("Hall",), ("the cup",), before)


def good(**changed: object) -> Keyframe:
    fields = {
        "characters": standing_at({"Ben": 1, "Ana": 3}), "objects": (Beside(name="the cup", user="Ana"),),
        **HALL,
    }  # fmt: skip
    return Keyframe(**{**fields, **changed})


def faults(*keyframes: Keyframe, before: Keyframe | None = None) -> list[str]:
    layout = ShotLayout(shot="1:1", continues=before is not None, keyframes=keyframes)
    return layout_faults(layout, cast(before))


def test_layout_when_it_keeps_the_rules_has_no_fault() -> None:
    assert faults(good()) == []
    before = Keyframe(characters=standing_at({"Ana": 3, "Cleo": 5}), **HALL)
    assert faults(good(), before=before) == []
    assert faults(good(objects=(Beside(name="the cup"),))) == []


@pytest.mark.parametrize(
    ("keyframe_set", "words"),
    [
        (good(characters=(*standing_at({"Ana": 1}), *standing_at({"Ben": 1}))), "Ana and Ben are both left"),
        (good(characters=standing_at({"Ana": 3, "Ben": 1, "Cleo": 5})), "Cleo is no character of this shot"),
        (
            good(characters=(*standing_at({"Ana": 1}), *standing_at({"Ana": 2, "Ben": 0}))),
            "Ana is there 2 times",
        ),
        (good(characters=standing_at({"Ana": 3})), "Ben is in no keyframe"),
        (good(objects=()), "the cup is in no keyframe"),
        (good(objects=(Beside(name="the cup", user="Cleo"),)), "stands beside Cleo, who is not there"),
        (good(objects=(Beside(name="a hat"), Beside(name="the cup"))), "a hat is no object of this shot"),
        (good(location="Yard"), "Yard is no place of this shot; there is: Hall"),
        (good(location=None), "none is no place of this shot"),
    ],
)
def test_layout_when_it_breaks_a_rule_is_told_which(keyframe_set: Keyframe, words: str) -> None:
    assert any(words in fault for fault in faults(keyframe_set)), faults(keyframe_set)


def test_layout_when_it_has_too_many_keyframes_is_told_so() -> None:
    assert faults(*[good()] * MOST_KEYFRAMES) == []
    assert faults(*[good()] * (MOST_KEYFRAMES + 1)) == ["there are 9 keyframes; at most 8"]


def test_shot_when_it_goes_on_has_who_stays_where_they_were() -> None:
    before = Keyframe(characters=standing_at({"Ana": 4}), **HALL)
    assert any("Ana was centre-right and is centre" in fault for fault in faults(good(), before=before))
    late = Keyframe(characters=standing_at({"Ben": 1}), **HALL)
    assert any("Ana was there" in fault for fault in faults(late, good(), before=before))


def panned(ana: int, ben: int, angle: Angle = "front", pan: Pan = "none", at: str = "Hall") -> list[str]:
    """What is wrong where Ana and Ben, in cells 2 and 4 before, stand in these, seen so."""
    before, after = (standing_at({"Ana": one, "Ben": other}) for one, other in ((2, 4), (ana, ben)))
    return pan_faults(
        Keyframe(characters=before, **HALL),
        Keyframe(characters=after, location=at, angle=angle, pan=pan), ["Ana", "Ben"],
    )  # fmt: skip


def test_faults_when_a_pan_is_physical_are_none() -> None:
    assert panned(2, 4) == panned(0, 2, "right", "right") == panned(2, 4, "right", "right") == []
    assert panned(4, 6, "left", "left") == []
    assert panned(2, 4, "left", "none", "Yard") == [], "another place has views of its own"


@pytest.mark.parametrize(
    ("places", "view", "words"),
    [
        ((3, 4), (), "Ana was centre-left and is centre, though the camera does not turn"),
        ((3, 4), ("right", "right"), "who stays moves left"),
        ((1, 4), ("left", "left"), "who stays moves right"),
        ((1, 0), ("right", "right"), "stood in this order from left to right"),
        ((2, 4), ("right",), "the view was front and is right, though the camera does not"),
        ((2, 4), ("left", "right"), "the view was front and is left, though the camera turns"),
    ],
)
def test_faults_when_a_pan_is_not_physical_name_it(places, view, words):
    faults = panned(*places, *view)
    assert any(words in fault for fault in faults), faults


# -- Packets as generators read them: the bundled forms, one that a user writes, and what is refused

FORM = """
about = "Mine."
image = "pictures/{{ episode.id }}-{{ shot.name }}-{{ image.place }}.jpg"
result = "{{ episode.id }}_{{ shot.name }}.mp4"
[values]
mood = "calm"
[shot]
said = "{{ shot.action }} ({{ values.mood }})"
[[file]]
path = "{{ episode.id }}/{{ shot.name }}.json"
per = "shot"
content = '''{"text": {{ shot.said | tojson }}, "out": {{ shot.result | tojson }}}'''
"""


@pytest.fixture(scope="module")
def packets(run_of_packets: Path) -> tuple[PlacedPacket, ...]:
    return read_packets(run_of_packets)


@pytest.fixture(scope="module")
def run_of_packets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packets")
    write_episodes(folder / "set")
    write_bank(folder / "set", folder / "memory")
    options = PacketOptions(workers=0, created_at="2026-01-01T00:00:00Z")
    make_packets(folder / "memory", folder / "run", options, folder / "set")
    return folder / "run"


def test_image_video_when_exported_has_a_line_for_each_shot_with_files_that_are_there(packets, tmp_path):
    done = export_packets(packets, "image-video", tmp_path / "out", {"seconds": 8})
    assert done.as_json() == {
        "out": str(tmp_path / "out"), "files": ["requests.jsonl"], "images": 16, "shots": 7, "frames": 4,
    }  # fmt: skip
    lines = list(json_lines(tmp_path / "out/requests.jsonl"))
    assert lines[1]["images"] == [
        "ep_a/001_002/01_portrait.png", "ep_a/001_002/02_portrait.png", "ep_a/001_002/03_keyframe.png",
    ]  # fmt: skip
    assert [line["first_frame_from"] for line in lines][:4] == [
        None,
        "ep_a/001_001.mp4",
        None,
        "ep_a/002_001.mp4",
    ]
    assert lines[0]["memory_frame_from"] is None and lines[0]["seconds"] == 8
    assert lines[0]["prompt"] == packets[0].packet.prompt and lines[0]["out"] == "ep_a/001_001.mp4"
    for line in lines:
        for name in line["images"]:
            assert (tmp_path / "out" / name).is_file()
    portrait = packets[0].picture("01_portrait.png")
    assert (tmp_path / "out/ep_a/001_001/01_portrait.png").read_bytes() == portrait


def test_storymem_when_exported_has_a_story_of_one_shot_its_memory_and_a_script_that_parses(
    packets: tuple[PlacedPacket, ...], run_of_packets: Path, tmp_path: Path
) -> None:
    export_packets(packets, "storymem", tmp_path / "out", {}, overviews_of(run_of_packets))
    folder = tmp_path / "out/ep_a/001_002"
    assert sorted(path.name for path in folder.iterdir()) == [
        *(f"00_00_keyframe0{number}.jpg" for number in range(3)), "story.json",
    ]  # fmt: skip
    story = json.loads((folder / "story.json").read_text("utf-8"))
    assert story["story_overview"] == written_episode()["story_overview"]
    assert story["scenes"] == [
        {"scene_num": 1, "video_prompts": [packets[1].packet.prompt], "cut": [False]}
    ]  # fmt: skip
    with Image.open(folder / "00_00_keyframe00.jpg") as image:
        assert image.format == "JPEG" and image.size == (256, 256)
    script = tmp_path / "out/run.sh"
    assert script.read_text("utf-8").startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", str(script)], check=True)
    # A stand-in for the pipeline that notes what it is given and leaves a video and a last frame.
    (tmp_path / "pipeline.sh").write_text(
        'while [ "$1" != --output_dir ]; do shift; done\n'
        'echo v > "$2/01_01.mp4"\necho f > "$2/last_frame.jpg"\n'
    )
    text = script.read_text("utf-8").replace("python pipeline.py", f"sh {tmp_path / 'pipeline.sh'}")
    script.write_text(text, "utf-8")
    subprocess.run(["sh", "run.sh"], check=True, cwd=tmp_path / "out")
    assert (tmp_path / "out/ep_a/002_003.mp4").is_file() and (
        tmp_path / "out/ep_a/002_003/last_frame.jpg"
    ).is_file()


def test_form_of_a_users_own_when_given_writes_what_it_says(packets, tmp_path):
    (tmp_path / "mine.toml").write_text(FORM)
    done = export_packets(packets, str(tmp_path / "mine.toml"), tmp_path / "out", {"mood": "wild"})
    assert len(done.files) == 7
    assert json.loads((tmp_path / "out/ep_b/001_001.json").read_text()) == {
        "text": "Ben sits alone in The Garden. (wild)", "out": "ep_b_001_001.mp4",
    }  # fmt: skip
    assert (tmp_path / "out/pictures/ep_a-001_001-0.jpg").is_file()
    with pytest.raises(TargetError, match="not empty"):
        export_packets(packets, str(tmp_path / "mine.toml"), tmp_path / "out", {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("about", "abuot"), "abuot"),
        (("| tojson }}, ", "}}, "), "gives no JSON"),
        (("{{ shot.said | tojson }}", '"{{ shot.sayed }}"'), "sayed"),
        (('"pictures/', '"../pictures/'), "is no path below the new folder"),
        (("{{ episode.id }}/{{ shot.name }}.json", "same.json"), "is written twice"),
        (("[values]", "[values"), "cannot be read"),
    ],
)
def test_form_when_it_is_wrong_is_refused_and_nothing_is_written(packets, tmp_path, change, words):
    (tmp_path / "mine.toml").write_text(FORM.replace(*change))
    with pytest.raises(ConfigError, match=words):
        export_packets(packets, str(tmp_path / "mine.toml"), tmp_path / "out", {})
    assert not (tmp_path / "out").exists()
