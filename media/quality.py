"""How good a shot looks, by plain arithmetic on a few of its frames.

A frame comes as luma (Rec. 601), values 0 to 255, made small so that its shorter side has 360 pixels at most:
so the same picture has about the same values at every resolution. All functions are pure.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import MissingRequirement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Luma = NDArray[np.float64]

SIDE = 360
"""Shorter side of a measured frame at most, in pixels."""
BLACK = 24.0
"""Luma of a black bar at most: video black is 16, and encoders blur the border."""
HASH = 16
"""So many frequencies in each direction make a picture's hash."""


class Bars(NamedTuple):
    """Black bars around a picture, as shares of its height (top, bottom) or width (left, right)."""

    top: float
    bottom: float
    left: float
    right: float

    @property
    def area(self) -> float:
        """Share of the frame that they cover, from 0 to 1."""
        return 1 - (1 - self.top - self.bottom) * (1 - self.left - self.right)


def luma(image: "Image") -> "Luma":
    """Return the luma of an RGB picture, small, shape (height, width)."""
    import numpy as np
    from PIL.Image import Resampling

    shorter = min(image.size)
    if shorter > SIDE:
        size = [max(1, (side * SIDE + shorter // 2) // shorter) for side in image.size]
        image = image.resize((size[0], size[1]), Resampling.BOX)
    return np.asarray(image.convert("L"), dtype=np.float64)


def sharpness(values: "Luma") -> float:
    """Return the variance of the Laplacian: small where nothing has a crisp edge.

    The Laplacian of a pixel is the sum of its four neighbours minus four times itself; pixels at the border
    have none. 0 for a picture of less than 3 x 3 pixels.
    """
    if min(values.shape) < 3:
        return 0.0
    inner = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:]
    return float((inner - 4 * values[1:-1, 1:-1]).var())


def black_bars(frames: "Sequence[Luma]") -> Bars:
    """Return the bars that all frames have; none where all frames are black as a whole."""
    import numpy as np

    brightest = np.maximum.reduce(list(frames))
    rows, columns = brightest.max(axis=1) > BLACK, brightest.max(axis=0) > BLACK
    if not rows.any():
        return Bars(0.0, 0.0, 0.0, 0.0)
    height, width = brightest.shape
    top, bottom = int(rows.argmax()), int(rows[::-1].argmax())
    left, right = int(columns.argmax()), int(columns[::-1].argmax())
    return Bars(top / height, bottom / height, left / width, right / width)


def inside(values: "Luma", bars: Bars) -> "Luma":
    """Return what lies between the bars."""
    height, width = values.shape
    top, left = round(bars.top * height), round(bars.left * width)
    return values[top : height - round(bars.bottom * height), left : width - round(bars.right * width)]


def difference(first: "Luma", other: "Luma") -> float:
    """Return the mean absolute difference of two frames, 0 to 255."""
    import numpy as np

    return float(np.abs(first - other).mean())


def picture_hash(values: "Luma") -> int:
    """Return 255 bits of a picture: which of its low frequencies are above their median.

    The picture is made 64 x 64; of its cosine transform the 16 x 16 lowest frequencies count, without the
    mean. Changes of size, quality or brightness change few bits.
    """
    import numpy as np
    from PIL import Image
    from PIL.Image import Resampling
    from scipy.fft import dctn

    small = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8)).resize((64, 64), Resampling.BOX)
    low = dctn(np.asarray(small, dtype=np.float64), norm="ortho")[:HASH, :HASH].reshape(-1)[1:]
    return int.from_bytes(np.packbits(np.append(False, low > np.median(low))).tobytes(), "big")


# -- Reading text rendered inside pictures. Needs the extra ``ocr`` (RapidOCR, which carries its models)

LEAST_SURE = 0.5


class TextReader(Protocol):
    """Whatever reads text in pictures."""

    def read(self, image: "Image") -> tuple[str, ...]:
        """Return the lines of text seen in an RGB image, from top to bottom; none where there are none."""
        ...


class RapidReader:
    """RapidOCR behind the protocol: Latin and Chinese scripts, on the CPU.

    ``engine``: a ``rapidocr.RapidOCR``.
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
