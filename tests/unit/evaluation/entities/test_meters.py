"""The measures of a shot's picture quality, by hand and on films whose motion is known."""

import weakref
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fabula.evaluation.entities import quality
from fabula.evaluation.entities.archived import QUALITY
from fabula.evaluation.entities.quality import (
    Likeness,
    Picture,
    QualitySettings,
    Reconstruction,
    Steadiness,
    fastest,
    make_meters,
    read_off,
)
from fabula.models.vision.store import Card, Rows, VectorStore, vector_key
from fabula.testing.table_detector import ColourPredictor

if TYPE_CHECKING:
    from PIL.Image import Image

pytest.importorskip("torch", reason="the extra metrics is not installed")

pytestmark = pytest.mark.slow


def picture(values: Any) -> "Image":
    from PIL import Image

    return Image.fromarray(np.asarray(values, dtype=np.uint8))


def grey(value: int, size: tuple[int, int] = (16, 16)) -> "Image":
    from PIL import Image

    return Image.new("RGB", size, (value, value, value))


def keyed(images: "Sequence[Image]") -> "Iterator[tuple[Image, bytes]]":
    for image in images:
        yield image, vector_key("", image)


class Moved:
    """A flow that knows by how many pixels the frames of its film move, and how often it was asked."""

    def __init__(self, frames: "Sequence[Image]", step: tuple[int, int]) -> None:
        self.card = Card("moved", "nowhere", "1" * 12, "as it is", 0, 0.0, "none")
        self.identity = f"moved/{step}"
        self._places = {image.tobytes(): number for number, image in enumerate(frames)}
        self._step, self.asked = step, 0

    def flows(self, pictures: "Sequence[tuple[Image, Image]]") -> Rows:
        self.asked += len(pictures)
        made = []
        for first, second in pictures:
            count = self._places[second.tobytes()] - self._places[first.tobytes()]
            made.append([np.full((first.height, first.width), count * step) for step in self._step])
        return np.array(made, dtype=np.float32)


class Still(Moved):
    """A flow that sees no motion anywhere: what it makes of two frames is their mean."""

    def flows(self, pictures: "Sequence[tuple[Image, Image]]") -> Rows:
        return np.zeros((len(pictures), 2, pictures[0][0].height, pictures[0][0].width), dtype=np.float32)


class Unit:
    """An encoder: the mean colour of a picture as a unit vector, ``nan`` for black."""

    def __init__(self) -> None:
        self.card = Card("unit", "nowhere", "1" * 12, "as it is", 3, 0.0, "none")
        self.identity, self.seen = "unit", 0

    def encode(self, images: "Sequence[Image]") -> Rows:
        self.seen += len(images)
        rows = np.array([np.asarray(image, dtype=np.float64).mean(axis=(0, 1)) for image in images])
        with np.errstate(invalid="ignore"):
            return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def shifted(step: int, count: int, size: tuple[int, int] = (64, 48)) -> "list[Image]":
    """A film in which a wide texture moves to the left, so many pixels a frame."""
    chance = np.random.default_rng(5)
    width, height = size
    coarse = chance.uniform(0, 255, (height // 4, (width + step * count) // 4 + 2, 3))
    wide = np.repeat(np.repeat(coarse, 4, axis=0), 4, axis=1)
    wide = (wide + np.roll(wide, 1, axis=1) + np.roll(wide, 1, axis=0)) / 3
    return [picture(wide[:height, step * number : step * number + width]) for number in range(count)]


def test_windows_when_frames_go_by_make_the_groups_that_each_measure_compares() -> None:
    frames = [Picture(grey(number), bytes([number])) for number in range(7)]

    def groups(window: Any) -> list[str]:
        made = [window(number, frame) for number, frame in enumerate(frames)]
        return ["".join(str(picture.key[0]) for picture in group) for group in made if group is not None]

    assert groups(quality.each) == ["0", "1", "2", "3", "4", "5", "6"]
    assert groups(quality.pairs()) == ["01", "12", "23", "34", "45", "56"]
    assert groups(quality.pairs(3)) == ["03", "36"]
    assert groups(quality.with_first()) == ["001", "012", "023", "034", "045", "056"]
    assert groups(quality.around()) == ["012", "234", "456"], "the odd frames are those that are foretold"


def test_steadiness_when_worked_by_hand_equals_equation_3() -> None:
    first, second = np.zeros((2, 2, 3)), np.zeros((2, 2, 3))
    second[0, 0] = (255, 51, 0)  # differences 1 and 0.2 of 12 values: their mean is 0.1
    values = Steadiness().values([(picture(first), picture(second)), (picture(first), picture(first))])
    assert values[:, 0].tolist() == pytest.approx([0.9, 1.0])


def test_likeness_when_worked_by_hand_equals_equation_2_and_the_rule_of_vbench() -> None:
    red, green, mixed = (picture(np.full((4, 4, 3), rgb)) for rgb in ((200, 0, 0), (0, 90, 0), (60, 80, 0)))
    # The vectors are (1, 0), (0, 1) and (0.6, 0.8).
    values = Likeness(Unit()).values([(red, green), (red, mixed), (green, mixed)])
    assert values[:, 0].tolist() == pytest.approx([0.0, 0.6, 0.8], abs=1e-6)
    both = Likeness(Unit()).values([(red, red, mixed), (red, green, mixed)])
    assert both[:, 0].tolist() == pytest.approx([0.6, 0.7], abs=1e-6), "the mean of first and previous"


def test_fastest_when_worked_by_hand_is_the_mean_of_the_longest_twentieth() -> None:
    flow = np.zeros((2, 4, 10), dtype=np.float32)
    flow[:, 0, 0], flow[:, 1, 1], flow[:, 2, 2] = (3, 4), (0, 2), (1, 0)  # lengths 5, 2, 1 of 40 pixels
    assert fastest(flow) == pytest.approx((5 + 2) / 2)
    assert fastest(flow[:, :1, :3]) == 5, "of few pixels at least one counts"


@pytest.mark.parametrize("step", [2, 6])
def test_reconstruction_when_the_flow_is_true_foretells_a_shift_exactly(step: int) -> None:
    frames = shifted(step, 5)
    groups = [tuple(frames[start : start + 3]) for start in (0, 2)]
    true = Moved(frames, (-step, 0))
    assert Reconstruction(true).values(groups)[:, 0].tolist() == pytest.approx([1, 1], abs=1e-5)
    blended = Reconstruction(Still(frames, (0, 0))).values(groups)[:, 0]
    arrays = [np.asarray(frame, dtype=np.float64) for frame in frames]
    wanted = [1 - np.abs((arrays[i] + arrays[i + 2]) / 2 - arrays[i + 1]).mean() / 255 for i in (0, 2)]
    assert blended.tolist() == pytest.approx(wanted, abs=1e-6), "without motion it is the mean of both frames"


def settings_with(monkeypatch: pytest.MonkeyPatch, models: dict[str, Any], **chosen: Any) -> QualitySettings:
    monkeypatch.setattr(quality, "opened", lambda name, _, kind: models[kind])
    return QualitySettings(wanted=True, **chosen)


def measured(
    settings: QualitySettings, frames: "Sequence[Image]", fps: int, store: Any = None
) -> tuple[Any, Any]:
    made = make_meters(settings, Fraction(fps), frames[0].size, len(frames))
    return read_off(made, keyed(frames), store or VectorStore())


@pytest.mark.parametrize("definition", ["paper", "vbench"])
def test_measures_when_the_film_stands_still_are_perfect_and_not_dynamic(monkeypatch, definition):
    frames = shifted(0, 1) * 30
    models = {"encoder": Unit(), "flow": Still([], (0, 0)), "predictor": ColourPredictor()}
    values, why = measured(settings_with(monkeypatch, models, definition=definition), frames, 24)
    assert (values["subject_consistency"], values["temporal_flickering"]) == pytest.approx((1, 1))
    assert values["dynamic_degree"] == 0 and why == {}
    brightness = 1 + 9 * np.asarray(frames[0]).mean() / 255
    assert values["imaging_quality"] == pytest.approx(brightness, abs=1e-5)
    assert values["aesthetic_quality"] == pytest.approx(brightness / 10, abs=1e-5)
    assert values.get("motion_smoothness") == (1 if definition == "paper" else None)


def test_dynamic_degree_when_of_the_paper_is_the_share_of_pairs_above_the_threshold(monkeypatch):
    frames = shifted(1, 9, (512, 256))
    flow = Moved(frames, (-3, 0))

    def share(fps: int, moving: float) -> float:
        chosen = {"definition": "paper", "measures": ["dynamic_degree"], "moving": moving}
        return float(
            measured(settings_with(monkeypatch, {"flow": flow}, **chosen), frames, fps)[0]["dynamic_degree"]
        )

    # Shorter side 256; 3 pixels in a frame are 9 in an eighth of a second at 24, 3 at 8 frames a second.
    assert [share(24, 8.9), share(24, 9.1), share(8, 2.9), share(8, 3.1)] == [1, 0, 1, 0]
    still = frames[:5] + [frames[4]] * 4
    monkeypatch.setattr(flow, "_places", {image.tobytes(): place for place, image in enumerate(frames)})
    chosen = settings_with(monkeypatch, {"flow": flow}, definition="paper", measures=["dynamic_degree"])
    assert measured(chosen, still, 24)[0] == {"dynamic_degree": 0.5}, "four of eight pairs move"


@pytest.mark.parametrize(("moving", "wanted"), [(3, 0.0), (4, 1.0)])
def test_dynamic_degree_when_of_vbench_asks_a_quarter_of_the_pairs_at_8_a_second(
    monkeypatch: pytest.MonkeyPatch, moving: int, wanted: float
) -> None:
    # 49 frames at 24 a second: every third, 17 of them; round(4 * 17 / 16) = 4 pairs have to move.
    frames = [grey(min(number // 3, moving), (256, 256)) for number in range(49)]

    class Steps(Still):
        def flows(self, pictures: "Sequence[tuple[Image, Image]]") -> Rows:
            moved = [first.getpixel((0, 0)) != second.getpixel((0, 0)) for first, second in pictures]
            return np.array(
                [np.full((2, 256, 256), 5.0 if move else 0.1) for move in moved], dtype=np.float32
            )

    chosen = {"definition": "vbench", "measures": ["dynamic_degree"]}
    values, _ = measured(settings_with(monkeypatch, {"flow": Steps([], (0, 0))}, **chosen), frames, 24)
    assert values == {"dynamic_degree": wanted}, "5 * sqrt(2) is above 6 * 256 / 256"


@pytest.mark.parametrize("count", [1, 2])
def test_measures_when_frames_are_too_few_have_a_reason_and_no_value(monkeypatch, count):
    models = {"encoder": Unit(), "flow": Still([], (0, 0)), "predictor": ColourPredictor()}
    values, why = measured(settings_with(monkeypatch, models, definition="paper"), [grey(9)] * count, 24)
    lacking = {name for name in QUALITY if values[name] is None}
    assert lacking == why.keys() == {1: set(QUALITY[:4]), 2: {"motion_smoothness"}}[count]
    assert why["motion_smoothness"] == f"it takes at least 3 frames, and the shot has {count}"
    chosen = settings_with(monkeypatch, models, definition="vbench", measures=["dynamic_degree"])
    assert measured(chosen, [grey(9)] * 3, 24) == (
        {"dynamic_degree": None},
        {"dynamic_degree": "it takes at least 4 frames, and the shot has 3"},
    )


def test_read_off_when_a_shot_is_long_holds_a_batch_of_frames_and_no_more(monkeypatch):
    seen: list[weakref.ref[Any]] = []
    most = 0

    def frames() -> "Iterator[tuple[Image, bytes]]":
        nonlocal most
        for number in range(200):
            image = grey(number % 250)
            seen.append(weakref.ref(image))
            most = max(most, sum(reference() is not None for reference in seen))
            yield image, vector_key("", image)

    models = {"encoder": Unit(), "flow": Still([], (0, 0)), "predictor": ColourPredictor()}
    chosen = settings_with(monkeypatch, models, definition="paper", batch=8)
    made = make_meters(chosen, Fraction(24), (16, 16), 200)
    read_off(made, frames(), VectorStore())
    assert most <= 8 + 3
