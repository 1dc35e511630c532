"""Where a box will be: a Kalman filter with constant velocity, as SORT and ByteTrack use it.

The state is the centre of a box, its width divided by its height, and its height, each with a velocity per
look. Process and measurement noise grow with the height: a twentieth of it for places, a 160th for
velocities (DeepSORT). All matrices of that filter are diagonal but for the pair of a place and its velocity,
so each of the four is a filter of its own with two values, and all four are computed at once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_PLACE, _SPEED = 1 / 20, 1 / 160
_HEIGHT = 3


@dataclass(slots=True)
class Motion:
    """The state of one box: arrays of shape (4,) for centre x, centre y, aspect and height.

    Attributes:
        place: most likely values.
        speed: their change per look.
        doubt: variance of ``place``.
        shared: covariance of ``place`` and ``speed``.
        unrest: variance of ``speed``.
    """

    place: Floats
    speed: Floats
    doubt: Floats
    shared: Floats
    unrest: Floats

    @classmethod
    def start(cls, box: Floats) -> "Motion":
        """Return the state of a box seen for the first time: it stands still, as far as anybody knows."""
        place = measured(box)
        doubt, unrest = _noise(place[_HEIGHT], 2 * _PLACE, 1e-2), _noise(place[_HEIGHT], 10 * _SPEED, 1e-5)
        return cls(place, np.zeros(4), doubt, np.zeros(4), unrest)

    def predict(self, *, seen: bool) -> None:
        """Go one look ahead; a box that was not seen keeps its height."""
        if not seen:
            self.speed[_HEIGHT] = 0.0
        height = self.place[_HEIGHT]
        self.place = self.place + self.speed
        self.doubt = self.doubt + 2 * self.shared + self.unrest + _noise(height, _PLACE, 1e-2)
        self.shared = self.shared + self.unrest
        self.unrest = self.unrest + _noise(height, _SPEED, 1e-5)

    def correct(self, box: Floats) -> None:
        """Take in where the box was seen."""
        total = self.doubt + _noise(self.place[_HEIGHT], _PLACE, 1e-1)
        surprise = measured(box) - self.place
        gain, drift = self.doubt / total, self.shared / total
        self.place = self.place + gain * surprise
        self.speed = self.speed + drift * surprise
        self.unrest = self.unrest - drift * self.shared
        self.shared = self.shared - drift * self.doubt
        self.doubt = self.doubt - gain * self.doubt

    def box(self) -> Floats:
        """Return left, top, right and bottom."""
        across, down, aspect, height = self.place
        width = aspect * height
        return np.array([across - width / 2, down - height / 2, across + width / 2, down + height / 2])


def measured(box: Floats) -> Floats:
    """Return centre x, centre y, aspect and height of a box; its height must not be 0."""
    left, top, right, bottom = (float(edge) for edge in box)
    height = bottom - top
    return np.array([(left + right) / 2, (top + bottom) / 2, (right - left) / height, height])


def _noise(height: float, share: float, aspect: float) -> Floats:
    """Return variances: of lengths a share of the height, of the aspect a fixed one; squared."""
    length = share * height
    return np.array([length, length, aspect, length]) ** 2
