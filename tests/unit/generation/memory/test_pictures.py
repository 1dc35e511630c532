"""Pictures of the bank: checkers, grids and panoramas, by pixels that are known."""

import numpy as np
from PIL import Image

from fabula.generation.memory.pictures import (
    CELL,
    DARK,
    LIGHT,
    checkered,
    grid_of,
    on_checkers,
    opened_rgba,
    panorama_of,
    png_bytes,
    thirds_of,
)


def test_checkers_when_drawn_change_every_sixteen_pixels() -> None:
    ground = checkered((40, 33))
    assert [ground.getpixel(at) for at in ((0, 0), (15, 15), (16, 0), (0, 16), (16, 16), (39, 32))] == [
        LIGHT, LIGHT, DARK, DARK, LIGHT, LIGHT,
    ]  # fmt: skip


def test_cut_out_when_on_checkers_shows_them_through_its_holes() -> None:
    cut = Image.new("RGBA", (32, 32), (10, 20, 30, 255))
    cut.putpixel((20, 5), (10, 20, 30, 0))
    shown = on_checkers(cut)
    assert shown.getpixel((1, 1)) == (10, 20, 30) and shown.getpixel((20, 5)) == DARK


def test_grid_when_made_has_a_numbered_cell_for_each_candidate() -> None:
    cuts = [(2, Image.new("RGBA", (60, 80), (200, 0, 0, 255))), (5, Image.new("RGBA", (80, 60)))]
    grid = grid_of(cuts)
    # Two cells of 320 x 400 with 8 pixels around each; a band of 36 below, and a gap at the end.
    assert grid.size == (2 * 320 + 3 * 8, 400 + 36 + 2 * 8) and CELL == (320, 400)
    assert grid.getpixel((8 + 160, 8 + 200)) == (200, 0, 0)
    assert grid.getpixel((8 + 320 + 8 + 160, 8 + 200)) in (LIGHT, DARK)
    band = np.asarray(grid)[408:444]
    assert all((band[:, left : left + 320] == 255).any() for left in (8, 336)), "both numbers are written"


def test_panorama_when_of_another_shape_is_its_middle_and_thirds_are_equal() -> None:
    image = Image.new("RGB", (900, 600), (0, 0, 255))
    image.paste((255, 0, 0), (0, 150, 900, 450))  # the middle 300 of 600 rows, a third of the width
    panorama = panorama_of(image)
    assert panorama.size == (1536, 512) and np.asarray(panorama)[..., 0].min() > 250
    wide = Image.new("RGB", (4000, 500))
    wide.paste((0, 255, 0), (1250, 0, 2750, 500))
    assert np.asarray(panorama_of(wide))[..., 1].min() > 250
    marked = Image.new("RGB", (1536, 512))
    for place, colour in enumerate(((255, 0, 0), (0, 255, 0), (0, 0, 255))):
        marked.paste(colour, (place * 512, 0, (place + 1) * 512, 512))
    thirds = thirds_of(panorama_of(marked))
    assert {view: third.getcolors() for view, third in thirds.items()} == {
        "left": [(512 * 512, (255, 0, 0))], "centre": [(512 * 512, (0, 255, 0))],
        "right": [(512 * 512, (0, 0, 255))],
    }  # fmt: skip


def test_png_when_made_twice_is_the_same_bytes_without_metadata() -> None:
    image = Image.new("RGBA", (5, 4), (1, 2, 3, 128))
    image.info["comment"] = "secret"
    data = png_bytes(image)
    assert data == png_bytes(image.copy()) and b"secret" not in data
    assert opened_rgba(data, "x").tobytes() == image.tobytes()
