"""How often a picture is opened, by the check and by each stage that looks at it; it is decoded once."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.outputs import checked
from fabula.evaluation.shots import found
from fabula.media import images
from fabula.media.images import DECODED, DecodedPictures, Picture, open_picture

Evaluate = Callable[..., Any]


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Where a picture is opened -> how often, for shots of the drawn method."""
    counts: Counter[str] = Counter()

    def counted(what: str) -> Callable[..., Picture]:
        def opened(source: Any, *args: Any, **more: Any) -> Picture:
            counts[what] += 1
            return open_picture(source, *args, **more)

        return opened

    monkeypatch.setattr(checked, "open_picture", counted("check"))
    monkeypatch.setattr(found, "open_picture", counted("stages"))
    return counts


@pytest.mark.parametrize(
    ("metrics", "shots", "references"),
    [
        ("occm", 1, 1),  # the detector
        ("csd", 1, 1),  # style
        ("csd,aesthetic,inception,clip-score", 1, 1),  # all that look at whole pictures, in one stage
        ("aesthetic,inception,clip-score", 1, 0),  # references are of no use to them
        ("cids,copy-paste,occm", 2, 2),  # the detector, then crops
        ("cids,csd,aesthetic,inception,clip-score", 3, 3),
    ],
)
def test_pictures_when_looked_at_are_opened_once_by_each_stage_that_looks(
    evaluate: Evaluate, model_x: Path, asked_for: Counter[str], metrics: str, shots: int, references: int
) -> None:
    evaluate(model_x, metrics=metrics)
    # 14 pictures of shots; 3 stories of 3 characters with 2 references each
    assert asked_for["stages"] == 14 * shots + 18 * references
    assert asked_for["check"] == 14
    evaluate(model_x, metrics=metrics)
    assert asked_for["stages"] == 14 * shots + 18 * references, "a finished run looks at nothing again"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """First bytes of what is decoded -> how often; nothing is decoded yet."""
    counts: Counter[bytes] = Counter()
    load = images._load

    def counted(opened: Any, where: str) -> None:
        counts[opened.fp.getvalue()] += 1
        load(opened, where)

    monkeypatch.setattr(images, "_load", counted)
    DECODED.clear()
    return counts


def test_pictures_when_many_stages_look_are_decoded_once_in_an_evaluation(
    evaluate: Evaluate, model_x: Path, shot_set: Path, loads: Counter[bytes]
) -> None:
    evaluate(model_x, metrics="cids,csd,aesthetic,inception,clip-score")
    shots = {path.read_bytes() for path in model_x.rglob("*.png")}
    assert shots <= set(loads)
    assert set(loads.values()) == {1}


def test_results_when_nothing_is_kept_decoded_are_the_same(
    evaluate: Evaluate, model_x: Path, tmp_path: Path, loads: Counter[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(model_x, metrics="cids,csd", out="kept")
    assert max(loads.values()) == 1
    monkeypatch.setattr(images, "DECODED", DecodedPictures(0))
    evaluate(model_x, metrics="cids,csd", out="anew")
    assert max(loads.values()) > 3
    kept, anew = ((tmp_path / name / "images.jsonl").read_bytes() for name in ("kept", "anew"))
    assert kept == anew
