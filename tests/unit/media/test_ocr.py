"""Text inside pictures is read through one small protocol."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fabula.errors import MissingRequirement
from fabula.media.ocr import RapidReader, open_reader
from fabula.testing.drawn import draw_panel


class TinyEngine:
    """Answers like the library and keeps what it was given."""

    def __init__(self, texts: tuple[str, ...] | None, scores: tuple[float, ...] | None) -> None:
        self._answer = SimpleNamespace(txts=texts, scores=scores)
        self.given: list[np.ndarray] = []

    def __call__(self, pixels: np.ndarray) -> SimpleNamespace:
        self.given.append(pixels)
        return self._answer


def test_read_when_engine_is_unsure_leaves_the_line_out() -> None:
    engine = TinyEngine(("THE END", "xj", " "), (0.98, 0.3, 0.9))
    assert RapidReader(engine).read(draw_panel(1)) == ("THE END",)


def test_read_when_nothing_is_seen_gives_nothing() -> None:
    assert RapidReader(TinyEngine(None, None)).read(draw_panel(1)) == ()


def test_read_when_engine_is_asked_hands_it_blue_green_red() -> None:
    engine = TinyEngine((), ())
    RapidReader(engine).read(draw_panel(1))
    assert engine.given[0].shape == (48, 64, 3)
    assert tuple(engine.given[0][0, 0]) == (230, 240, 245)


def test_open_reader_when_library_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingRequirement, match=r"fabula\[ocr\]"):
        open_reader()
