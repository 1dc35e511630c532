"""Reading text rendered inside pictures. Needs the extra ``ocr`` (RapidOCR, which carries its models)."""

from typing import TYPE_CHECKING, Any, Protocol

from ..errors import MissingRequirement

if TYPE_CHECKING:
    from PIL.Image import Image

LEAST_SURE = 0.5


class TextReader(Protocol):
    """Whatever reads text in pictures."""

    def read(self, image: "Image") -> tuple[str, ...]:
        """Return the lines of text seen in an RGB image, from top to bottom; none where there are none."""
        ...


class RapidReader:
    """RapidOCR behind the protocol: Latin and Chinese scripts, on the CPU.

    Args:
        engine: a ``rapidocr.RapidOCR``.
    """

    def __init__(self, engine: Any) -> None:  # noqa: ANN401 - the library's
        self._engine = engine

    def read(self, image: "Image") -> tuple[str, ...]:
        """Return the lines that the engine is at least half sure of."""
        import numpy as np

        # The engine expects the channel order of OpenCV.
        seen = self._engine(np.ascontiguousarray(np.asarray(image)[:, :, ::-1]))
        texts, scores = getattr(seen, "txts", None), getattr(seen, "scores", None)
        if not texts or not scores:
            return ()
        return tuple(
            text
            for text, score in zip(texts, scores, strict=True)
            if text.strip() and float(score) >= LEAST_SURE
        )


def open_reader() -> TextReader:
    """Return a reader."""
    try:
        import onnxruntime  # noqa: F401 - what the engine runs on
        from rapidocr import RapidOCR
    except ImportError as error:
        raise MissingRequirement(
            "text in pictures",
            what=f"reading text in pictures needs the libraries RapidOCR and ONNX Runtime: {error}",
            fix="pip install 'fabula[ocr]'",
        ) from error
    return RapidReader(RapidOCR(params={"Global.log_level": "critical"}))
