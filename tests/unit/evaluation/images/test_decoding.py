"""How often each picture is decoded: once to check it, and once by each stage that looks at it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.evaluation.outputs import checked
from fabula.evaluation.shots import found
from fabula.media.images import Picture, open_picture

Evaluate = Callable[..., Any]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Where a picture is decoded -> how often, for shots of the drawn method."""
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
def test_pictures_when_looked_at_are_decoded_once_by_each_stage_that_looks(
    evaluate: Evaluate, model_x: Path, decoded: Counter[str], metrics: str, shots: int, references: int
) -> None:
    evaluate(model_x, metrics=metrics)
    # 14 pictures of shots; 3 stories of 3 characters with 2 references each
    assert decoded["stages"] == 14 * shots + 18 * references
    assert decoded["check"] == 14
    evaluate(model_x, metrics=metrics)
    assert decoded["stages"] == 14 * shots + 18 * references, "a finished run looks at nothing again"
