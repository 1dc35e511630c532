"""Pictures of the bank: checkers, grids and panoramas, by pixels that are known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, features

from fabula.errors import InputError, MissingRequirement
from fabula.media.images import MediaProblem
from fabula.models.vision.detectors import LAYOUTS, load_sam2
from fabula.models.vision.registry import open_vision
from fabula.models.vision.store import Points, Segmenter
from fabula.models.vision.weights import Place
from fabula.studies.memory import pictures
from fabula.studies.memory import pictures as memory
from fabula.studies.memory.bank import BankEntry, read_bank
from fabula.studies.memory.pipeline import (
    MemoryOptions,
    build_memory,
    kept_entities,
    look_at,
    memory_budget,
    memory_request,
)
from fabula.testing.drawn import picture_bytes
from fabula.testing.drawn_portraits import COAT, draw_portrait
from fabula.testing.memory_model import MemoryModel
from fabula.testing.model_server import ModelServer
from fabula.testing.tiny_vision import tiny_settings
from fabula.testing.written_episodes import SHOTS, write_episodes, written_episode


def test_cut_out_when_on_checkers_shows_them_through_its_holes() -> None:
    cut = Image.new("RGBA", (32, 32), (10, 20, 30, 255))
    cut.putpixel((20, 5), (10, 20, 30, 0))
    shown = memory.on_checkers(cut)
    assert shown.getpixel((1, 1)) == (10, 20, 30) and shown.getpixel((20, 5)) == memory.DARK


def test_grid_when_made_has_a_numbered_cell_for_each_candidate() -> None:
    cut = Image.new("RGBA", (80, 60), (0, 0, 200, 255))
    cut.paste((0, 0, 0, 0), (20, 15, 60, 45))
    cuts = [(2, Image.new("RGBA", (60, 80), (200, 0, 0, 255))), (5, cut)]
    grid = memory.grid_of(cuts)
    # Two cells of 320 x 400 with 8 pixels around each; a band of 36 below, and a gap at the end.
    assert grid.size == (2 * 320 + 3 * 8, 400 + 36 + 2 * 8) and memory.CELL == (320, 400)
    assert grid.getpixel((8 + 160, 8 + 200)) == (200, 0, 0)
    assert grid.getpixel((8 + 320 + 8 + 160, 8 + 200)) in (memory.LIGHT, memory.DARK)
    # Each as large as it fits, in the middle: 300 x 400 has 10 columns beside it, 320 x 240 80 rows above.
    for inside, outside in (
        ((18, 8), (17, 8)), ((317, 407), (318, 407)), ((336, 88), (336, 87)), ((655, 327), (655, 328)),
    ):  # fmt: skip
        assert grid.getpixel(inside) in ((200, 0, 0), (0, 0, 200))
        assert grid.getpixel(outside) in (memory.LIGHT, memory.DARK)
    band = np.asarray(grid)[408:444]
    assert all((band[:, left : left + 320] == 255).any() for left in (8, 336)), "both numbers are written"


def test_panorama_when_of_another_shape_is_its_middle_and_thirds_are_equal() -> None:
    image = Image.new("RGB", (900, 600), (0, 0, 255))
    image.paste((255, 0, 0), (0, 150, 900, 450))  # the middle 300 of 600 rows, a third of the width
    panorama = memory.panorama_of(image)
    assert panorama.size == (1536, 512) and np.asarray(panorama)[..., 0].min() > 250
    wide = Image.new("RGB", (4000, 500))
    wide.paste((0, 255, 0), (1250, 0, 2750, 500))
    assert np.asarray(memory.panorama_of(wide))[..., 1].min() > 250
    marked = Image.new("RGB", (1536, 512))
    for place, colour in enumerate(((255, 0, 0), (0, 255, 0), (0, 0, 255))):
        marked.paste(colour, (place * 512, 0, (place + 1) * 512, 512))
    thirds = memory.thirds_of(memory.panorama_of(marked))
    assert {view: third.getcolors() for view, third in thirds.items()} == {
        "left": [(512 * 512, (255, 0, 0))], "centre": [(512 * 512, (0, 255, 0))],
        "right": [(512 * 512, (0, 0, 255))],
    }  # fmt: skip


# Grounds: the order in which they are tried.


@pytest.mark.parametrize(
    ("description", "retries", "grounds"),
    [
        ("Woman in a red coat.", 2, ("green", "magenta", "blue")),
        ("Woman in a red coat.", 3, ("green", "magenta", "blue", "orange")),
        ("Woman in a red coat.", 0, ("green",)),
        ("Man in a green coat.", 2, ("orange", "magenta", "blue")),
        ("Man in a navy suit.", 2, ("green", "magenta", "orange")),
        # With orange among the four there is nothing to take in green's place: it comes last.
        ("Man in a green coat.", 3, ("magenta", "blue", "orange", "green")),
        # Orange takes green's place, and nothing is left for blue, which comes last.
        ("Blue and green tartan.", 2, ("orange", "magenta", "blue")),
        ("Green, pink, navy and orange motley.", 2, ("green", "magenta", "blue")),
        ("Plain.", 5, ("green", "magenta", "blue", "orange", "green", "magenta")),
    ],
)
def test_grounds_when_colours_are_worn_avoid_them(description, retries, grounds):
    assert memory.grounds_for(description, retries) == grounds


# Cutting by colour: masks of drawn pictures whose areas are known.

GREEN = memory.rgb_of(memory.KEYS["green"])


@pytest.mark.parametrize("key", memory.KEYS)
def test_cut_when_the_ground_is_flat_is_exactly_the_figure_on_every_ground(key: str) -> None:
    ground = memory.rgb_of(memory.KEYS[key])  # type: ignore[index]
    image = draw_portrait(ground)
    cut = memory.cut_by_colour(image, ground)
    figure = (np.asarray(image) != np.array(ground)).any(axis=-1)
    # Pillow draws no half pixels, so that every pixel is either ground or figure.
    assert np.array_equal(cut.mask, figure)
    assert cut.ground == 1.0 and not cut.enclosed.any() and not cut.tinted.any()
    rgba = np.asarray(cut.image)
    assert (rgba[..., 3][figure] == 255).all() and not rgba[~figure].any()
    assert tuple(rgba[60, 60][:3]) == COAT


def test_cut_when_the_ground_is_shaded_takes_the_shadow_for_ground() -> None:
    image = draw_portrait(GREEN)
    ImageDraw.Draw(image).rectangle((10, 146, 110, 155), fill=tuple(part * 3 // 4 for part in GREEN))
    assert np.array_equal(
        memory.cut_by_colour(image, GREEN).mask, memory.cut_by_colour(draw_portrait(GREEN), GREEN).mask
    )


def test_cut_when_the_ground_is_another_green_than_asked_for_finds_it() -> None:
    near = (20, 190, 80)
    cut = memory.cut_by_colour(draw_portrait(near), GREEN)
    pixels = np.asarray(draw_portrait(near), dtype=np.float32)
    ground, share = memory.ground_of(pixels, GREEN)
    assert tuple(ground) == near and share == 1.0 and not cut.mask[:10].any()


def test_cut_when_the_ground_is_not_of_the_colour_says_so() -> None:
    cut = memory.cut_by_colour(draw_portrait((200, 200, 200)), GREEN)
    assert cut.ground == 0.0 and cut.mask.all()


def test_cut_when_the_subject_encloses_ground_counts_it() -> None:
    cut = memory.cut_by_colour(draw_portrait(GREEN, "hole"), GREEN)
    assert int(cut.enclosed.sum()) == 16 * 16


def test_cut_when_an_edge_is_mixed_frees_it_of_the_ground() -> None:
    image = Image.new("RGB", (40, 40), GREEN)
    ImageDraw.Draw(image).rectangle((10, 10, 29, 29), fill=(255, 255, 255))
    half = tuple((255 + part) // 2 for part in GREEN)
    ImageDraw.Draw(image).rectangle((10, 10, 29, 10), fill=half)  # half white, half ground: (127, 216, 159)
    cut = memory.cut_by_colour(image, GREEN)
    red, _, blue, alpha = np.asarray(cut.image)[10, 20]
    assert 0 < alpha < 255
    # Its distance from the ground is half of white's: of white 83.4, so 41.7; (41.7 - 24) / 32 = 0.55, which
    # is 141 of 255. What is left of the colour is nearer to white than the mixture was.
    assert abs(int(alpha) - 141) <= 3 and red > half[0] and blue > half[2]


def test_cut_when_clothes_come_near_the_ground_tells_them_as_tinted() -> None:
    image = draw_portrait(GREEN)
    ImageDraw.Draw(image).rectangle((40, 42, 79, 101), fill=(72, 138, 84))  # 52 from the ground
    cut = memory.cut_by_colour(image, GREEN)
    assert cut.mask[70, 60] and cut.tinted[70, 60] and not cut.tinted[25, 60]


def test_components_when_parts_touch_at_corners_are_one() -> None:
    mask = np.zeros((6, 6), dtype=bool)
    mask[0:2, 0:2] = mask[2, 2] = mask[5, 5] = True
    assert memory.components(mask) == [5, 1]
    assert memory.components(np.zeros((3, 3), dtype=bool)) == []


# Labels: names below portraits, by a font that has their letters, or refused.

FACE = Image.new("RGBA", (200, 240), (200, 30, 30, 255))
NAMES = {"LATIN": "Ana Novák", "CJK": "李小龙", "ARABIC": "الأميرة شهرزاد", "DEVANAGARI": "शिक्षक"}


def ink(sheet: Image.Image) -> np.ndarray:  # type: ignore[type-arg]
    """Where the band below the picture is written on."""
    return np.asarray(sheet.convert("L"))[240:] < 128


def needs(name: str) -> str:
    if memory.is_shaped(name) and not memory.can_shape():
        pytest.skip("Raqm with FriBiDi is not installed here: apt-get install libfribidi0")
    try:
        file = memory.font_for(name)
    except MissingRequirement:
        pytest.skip(f"no font here has the letters of {name}: apt-get install fonts-noto-core fonts-noto-cjk")
    assert file is not None
    return file


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_label_when_a_font_has_the_letters_is_drawn_below_and_fits(name: str) -> None:
    needs(name)
    sheet = memory.labelled(FACE, name)
    assert sheet.size == (200, 272)  # an eighth of 240 is 30, and at least 32 pixels are written on
    assert np.array_equal(np.asarray(sheet)[:240], np.asarray(FACE)[..., :3])
    written = ink(sheet)
    columns = np.flatnonzero(written.any(axis=0))
    assert len(columns) and columns[0] >= 4 and columns[-1] < 196
    assert np.array_equal(np.asarray(memory.labelled(FACE, name)), np.asarray(sheet))


def test_label_when_arabic_is_joined_differs_from_its_letters_apart() -> None:
    needs(NAMES["ARABIC"])
    joined, apart = ink(memory.labelled(FACE, "بيت")), ink(memory.labelled(FACE, "ب‌ي‌ت"))
    # Zero-width non-joiners keep letters apart: without joining both would look the same.
    assert not np.array_equal(joined, apart)


@pytest.mark.parametrize("name", [NAMES["ARABIC"], NAMES["DEVANAGARI"], "משה"])
def test_label_when_letters_cannot_be_joined_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "check", lambda _: False)
    with pytest.raises(MissingRequirement, match="libfribidi0"):
        memory.labelled(FACE, name)


def test_label_when_no_font_has_the_letters_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "font_files", tuple)
    monkeypatch.setattr(pictures, "can_shape", lambda: True)
    for name, package in (("李小龙", "fonts-noto-cjk"), ("शिक्षक", "fonts-noto-core")):
        with pytest.raises(MissingRequirement, match=package):
            memory.font_for(name)
    with pytest.raises(MissingRequirement, match="so it is with 1 more"):
        memory.check_labels(["Ana", "李小龙", "शिक्षक", "李小龙"])
    assert memory.font_for("Ana") == "", "the font that Pillow carries has plain Latin"


# SAM 2 in the place of the key's colour: real classes with small random weights, plumbing only.

NAME = "sam2.1-hiera-tiny"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for library in ("torchvision", "transformers"):
        pytest.importorskip(library, reason="the extra metrics is missing")
    pytest.importorskip("torch", reason="the extra metrics is missing").set_num_threads(1)
    local = tiny_settings(NAME, tmp_path_factory.mktemp("sam2"))["local"]
    assert isinstance(local, Path)
    return local


@pytest.mark.slow
def test_segmenter_when_points_differ_gives_masks_of_the_pictures_size(weights: Path) -> None:
    model = open_vision(NAME, Place(), {"local": str(weights)}, "segmenter")
    assert isinstance(model, Segmenter)
    rng = np.random.default_rng(3)
    pictures = [Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
                for height, width in ((90, 60), (64, 128))]  # fmt: skip
    masks = model.segment(pictures, [LAYOUTS["character"], LAYOUTS["object"]])
    assert [(mask.shape, mask.dtype) for mask in masks] == [((90, 60), bool), ((64, 128), bool)]
    again = load_sam2(Place(), weights).segment(pictures[:1], [LAYOUTS["character"]])
    assert np.array_equal(again[0], masks[0]), "loaded again it is the same"
    other = model.segment(pictures[:1], [Points(((0.1, 0.1),))])
    assert other[0].shape == (90, 60)
    assert model.segment([], []) == []


@pytest.mark.slow
def test_bank_when_a_segmenter_is_named_is_cut_by_it_and_says_so(weights: Path, tmp_path: Path) -> None:
    write_episodes(tmp_path / "set", [written_episode("ep_a", SHOTS[:1])])
    sets: dict[str, object] = {
        "draw_references.portrait": [128, 160], "draw_references.square": [128, 128],
    }  # fmt: skip
    config = tmp_path / "fabula.toml"
    config.write_text(f'[draw_references]\noptions."{NAME}".local = "{weights}"\n', "utf-8")
    given: dict[str, Any] = {
        "image": "image:drawn:faithful", "segmenter": NAME, "candidates": 1, "retries": 0, "device": "cpu",
        "workers": 0, "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    build_memory(tmp_path / "set", tmp_path / "run", MemoryOptions(settings=sets, config=config, **given))
    ana = read_bank(tmp_path / "run").entry("ep_a", "character", "Ana")
    assert ana is not None and str(ana.record.segmenter).startswith(f"{NAME}@")
    # Random weights cut out anything: what counts is that it was checked, and kept as it is.
    assert ana.record.status in ("verified", "unverified") and ana.record.checks
    with Image.open(ana.folder / "cutout.png") as cut:
        assert cut.mode == "RGBA" and cut.size == (128, 160)


# -- A bank that a person corrects: what they put there stays, and only what follows from it is made again

SETTINGS = ("draw_references.portrait=[256,320]", "draw_references.square=[256,256]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_episodes(tmp_path / "set", [written_episode()])
    build(tmp_path)
    return tmp_path


def build(folder: Path, **given: Any) -> None:
    usual: dict[str, Any] = {
        "image": "image:drawn:faithful", "workers": 0, "candidates": 1, "settings": SETTINGS,
        "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    build_memory(folder / "set", folder / "run", MemoryOptions(**{**usual, **given}))


def entry(folder: Path, kind: str, name: str) -> BankEntry:
    made = read_bank(folder / "run").entry("ep_a", kind, name)  # type: ignore[arg-type]
    assert made is not None
    return made


def times(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in (folder / "run" / "bank").rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_portrait_when_a_person_replaces_it_stays_and_what_follows_is_made_anew(folder):
    ben = entry(folder, "character", "Ben")
    assert ben.record.key_colour == memory.KEYS["green"]
    theirs = picture_bytes(draw_portrait(memory.rgb_of(memory.KEYS["green"])))
    (ben.folder / "portrait.png").write_bytes(theirs)
    before = times(folder)
    build(folder)
    after = entry(folder, "character", "Ben")
    assert (after.folder / "portrait.png").read_bytes() == theirs
    record = after.record
    assert record.by_person == ("portrait.png",) and record.verified_by == "person"
    assert record.status == "verified" and record.seed is record.model is record.prompt is None
    # The figure of 120 x 160 begins at 16 and ends at 145; the coat goes from 40 to 79.
    assert record.bounds == (40, 16, 80, 146)
    assert {check.code for check in record.checks} >= {"holes", "pieces", "border"}
    with Image.open(after.folder / "labelled.png") as sheet:
        assert sheet.size == (120, 160 + 32)
    changed = {path for path, time in times(folder).items() if before.get(path) != time}
    own = {f"run/bank/ep_a/character-Ben/{name}" for name in ("cutout.png", "labelled.png", "entity.json")}
    assert changed == own, "nothing else of the bank was written"
    build(folder)
    assert entry(folder, "character", "Ben") == after, "and so it stays"


@pytest.mark.slow
def test_cut_out_when_a_person_replaces_it_stays_beside_the_old_portrait(folder: Path) -> None:
    ana = entry(folder, "character", "Ana")
    portrait = (ana.folder / "portrait.png").read_bytes()
    cut = Image.new("RGBA", (50, 60))
    cut.paste((1, 2, 3, 255), (10, 5, 20, 55))
    (ana.folder / "cutout.png").write_bytes(picture_bytes(cut))
    build(folder)
    after = entry(folder, "character", "Ana")
    assert (after.folder / "cutout.png").read_bytes() == picture_bytes(cut)
    assert (after.folder / "portrait.png").read_bytes() == portrait
    assert after.record.by_person == ("cutout.png",) and after.record.bounds == (10, 5, 20, 55)


@pytest.mark.slow
def test_portrait_when_a_person_gives_it_with_opacity_is_cut_by_that(folder: Path) -> None:
    ana = entry(folder, "character", "Ana")
    own = Image.new("RGBA", (80, 90))
    own.paste((200, 10, 10, 255), (20, 10, 60, 80))
    (ana.folder / "portrait.png").write_bytes(picture_bytes(own))
    build(folder)
    after = entry(folder, "character", "Ana")
    with Image.open(after.folder / "cutout.png") as cut:
        assert np.array_equal(np.asarray(cut), np.asarray(own))
    assert after.record.segmenter == "person" and after.record.bounds == (20, 10, 60, 80)


@pytest.mark.slow
def test_entity_when_locked_stays_as_it_is_and_nobody_is_asked_though_all_else_changes(folder: Path) -> None:
    ben = entry(folder, "character", "Ben")
    record = json.loads((ben.folder / "entity.json").read_text("utf-8"))
    record["locked"] = True
    (ben.folder / "entity.json").write_text(json.dumps(record), "utf-8")
    portrait = (ben.folder / "portrait.png").read_bytes()
    assert kept_entities(folder / "run") == ("ep_a/character:Ben",)
    model = MemoryModel()
    with ModelServer(model) as server:
        given = {"image": f"image:{server.openai_url}#painter", "style": "an oil painting"}
        options = MemoryOptions(workers=0, candidates=1, settings=SETTINGS, **given)  # type: ignore[arg-type]
        budget = memory_budget(memory_request(folder / "set", folder / "run", options))
        assert (budget.kept, budget.pictures) == (1, 5)
        build(folder, **given)
    after = entry(folder, "character", "Ben")
    assert (after.folder / "portrait.png").read_bytes() == portrait and after.record.locked
    assert after.record.model == "image:drawn:faithful" and model.asked["picture"] == 5
    assert entry(folder, "character", "Ana").record.style == "an oil painting"
    record = json.loads((ben.folder / "entity.json").read_text("utf-8"))
    (ben.folder / "entity.json").write_text(json.dumps({**record, "locked": False}), "utf-8")
    build(folder)
    assert entry(folder, "character", "Ben").record.model == "image:drawn:faithful"


@pytest.mark.slow
def test_object_when_a_person_gives_a_picture_to_a_part_has_one_of_its_own(tmp_path: Path) -> None:
    write_episodes(tmp_path / "set", [written_episode()])
    model = MemoryModel({"the old ladder": "The Garden"})
    with ModelServer(model) as server:
        given = {"image": f"image:{server.openai_url}#painter", "agent": f"{server.openai_url}#agent"}
        build(tmp_path, **given)
        ladder = entry(tmp_path, "object", "the old ladder")
        assert ladder.record.status == "part_of"
        cut = Image.new("RGBA", (40, 40), (9, 9, 9, 255))
        (ladder.folder / "cutout.png").write_bytes(picture_bytes(cut))
        build(tmp_path, **given)
    after = entry(tmp_path, "object", "the old ladder")
    assert after.record.status == "verified" and after.file("labelled.png") is not None
    assert after.record.owner is None and read_bank(tmp_path / "run").owner(after) is None


@pytest.mark.slow
def test_file_when_a_person_puts_no_picture_there_is_told_with_its_place(folder: Path) -> None:
    ben = entry(folder, "character", "Ben")
    (ben.folder / "portrait.png").write_bytes(b"no picture")
    with pytest.raises(MediaProblem, match=r"character-Ben.portrait\.png"):
        build(folder)
    (ben.folder / "entity.json").write_text("{}", "utf-8")
    with pytest.raises(InputError, match="cannot be used"):
        look_at(ben.folder)
    with pytest.raises(InputError, match="cannot be used"):
        read_bank(folder / "run")


@pytest.mark.slow
def test_names_when_they_cannot_be_drawn_stop_the_build_before_anything_is_paid(tmp_path, monkeypatch):
    document = json.loads(json.dumps(written_episode()).replace("Ben", "李小龙"))
    write_episodes(tmp_path / "set", [document])
    monkeypatch.setattr(pictures, "font_files", tuple)
    with pytest.raises(MissingRequirement, match="fonts-noto-cjk"):
        build(tmp_path)
    assert not (tmp_path / "run").exists()
    build(tmp_path, without_labels=True)
    assert entry(tmp_path, "character", "李小龙").file("labelled.png") is None
