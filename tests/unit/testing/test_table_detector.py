"""The models of tests see what is drawn."""

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabula.baselines.copy_paste import stitch
from fabula.media.images import Picture
from fabula.models.vision.types import Box
from fabula.models.vision.weights import Place
from fabula.testing.drawn_shots import CAST, boxes_in, draw_reference, draw_shot, onstage
from fabula.testing.table_detector import (
    ColourEncoder,
    TableDetector,
    content_key,
    load_brightness,
    load_colour_classes,
    load_head_encoder,
)

if TYPE_CHECKING:
    from PIL.Image import Image


def opened(data: bytes) -> "Image":
    from PIL import Image

    return Image.open(io.BytesIO(data)).convert("RGB")


@pytest.mark.parametrize("number", range(4))
def test_detector_when_a_shot_is_drawn_sees_the_figures_where_they_stand(number: int) -> None:
    keys = onstage(number)
    (found,) = TableDetector().detect([opened(draw_shot(keys, number))])
    assert [(box.label, (box.left, box.top, box.right, box.bottom)) for box in found] == list(
        zip(keys, boxes_in(keys), strict=True)
    )


def test_detector_when_references_are_stitched_sees_each_of_them() -> None:
    parts = [Picture(opened(draw_reference(key)), "PNG") for key, *_ in CAST]
    (found,) = TableDetector().detect([opened(stitch(parts))])
    assert [box.label for box in found] == [key for key, *_ in CAST]


def test_detector_when_the_table_has_the_picture_says_what_stands_there() -> None:
    picture = opened(draw_shot(()))
    wanted = (Box(1, 2, 3, 4, 0.5, "ghost"),)
    assert TableDetector({content_key(picture): wanted}).detect([picture]) == [wanted]


def test_encoders_when_characters_differ_tell_them_apart() -> None:
    references = [opened(draw_reference(key, number)) for key, *_ in CAST for number in (0, 1)]
    for encoder in (ColourEncoder(), load_head_encoder(Place())):
        alike = encoder.encode(references) @ encoder.encode(references).T
        assert alike[0, 1] == pytest.approx(1.0)
        assert alike[0, 2] < 0.99
        assert np.allclose(np.diag(alike), 1.0)


def test_head_encoder_when_there_is_no_head_gives_nothing() -> None:
    rows = load_head_encoder(Place()).encode([opened(draw_shot(())), opened(draw_reference("Mira"))])
    assert np.isnan(rows[0]).all() and np.isfinite(rows[1]).all()


def test_predictors_when_asked_give_a_value_and_shares() -> None:
    pictures = [opened(draw_shot(())), opened(draw_reference("Mira"))]
    values = load_brightness(Place()).predict(pictures)
    assert values.shape == (2, 1) and ((values >= 1) & (values <= 10)).all()
    assert np.allclose(load_colour_classes(Place()).predict(pictures).sum(axis=1), 1.0)
