"""RAFT: by how much each pixel moves from one picture to another.

VBench's RAFT with its weights ``raft-things.pth`` is this network with C_T_V1, at 20 updates.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import needing
from .networks import loaded_card, pixels_of, settled
from .store import Card, Rows, identity_of
from .weights import Place, Source, library, load_state, load_strictly, missing

if TYPE_CHECKING:
    from PIL.Image import Image

RAFT = Source(
    "torchvision's raft_large", "C_T_V1-22a6c225", "raft_large_C_T_V1-22a6c225.pth",
    address="https://download.pytorch.org/models/raft_large_C_T_V1-22a6c225.pth", size=21_100_000,
)  # fmt: skip
"""The first digits of the file's SHA-256 are in its name."""
MULTIPLE, LEAST = 8, 128
"""Sides that the network takes: multiples of the one, at least the other."""
CARD = Card(
    "raft-large", RAFT.repo, RAFT.revision,
    "RGB in [-1, 1], edges repeated on both sides up to multiples of 8 and at least 128 pixels",
    0, 1e-2, "code BSD-3-Clause; the weights state none",
)  # fmt: skip


class RaftFlow:
    """The network; it runs in float32, whatever the settings say: positions have no room in fewer bits.

    ``module``: the network of torchvision. ``updates``: how often it improves its estimate.
    """

    def __init__(self, card: Card, run_on: Place, module: Any, updates: int) -> None:  # noqa: ANN401
        self.card, self._place, self._module, self._updates = card, run_on, module, updates

    @property
    def identity(self) -> str:
        return identity_of(self.card, "float32", self._place.device) + f"/{self._updates}-updates"

    def flows(self, pictures: "Sequence[tuple[Image, Image]]") -> Rows:
        """Return shape (pairs, 2, height, width): pixels to the right, and down; see :class:`.store.Flow`."""
        torch = library()
        sizes = {image.size for pair in pictures for image in pair}
        if len(sizes) != 1:
            raise ValueError(f"pictures of one size, not of {sorted(sizes)}")
        (width, height) = sizes.pop()
        around = margins(width, height, LEAST)
        with torch.inference_mode():
            first, second = (self._prepared([pair[side] for pair in pictures], around) for side in (0, 1))
            flows = self._module(first, second, num_flow_updates=self._updates)[-1]
            left, top = around[0], around[2]
            cut = flows[..., top : top + height, left : left + width]
            return np.asarray(cut.float().cpu().numpy(), dtype=np.float32)

    def _prepared(self, images: "Sequence[Image]", around: tuple[int, int, int, int]) -> Any:  # noqa: ANN401
        torch = library()
        pixels = torch.from_numpy(np.stack([pixels_of(image) for image in images]))
        padded = torch.nn.functional.pad(pixels.to(self._place.device), around, mode="replicate")
        return 2 * (padded / 255) - 1


def margins(width: int, height: int, least: int = MULTIPLE) -> tuple[int, int, int, int]:
    """Return how many pixels are repeated left, right, above and below, to sides that are multiples of 8."""
    added: list[int] = []
    for side in (width, height):
        lacking = max(least, -(-side // MULTIPLE) * MULTIPLE) - side
        added += [lacking // 2, lacking - lacking // 2]
    return added[0], added[1], added[2], added[3]


def load_raft(run_on: Place, local: Path | None = None, updates: int = 20) -> RaftFlow:
    """Return the network.

    ``run_on``: where it runs; the numbers are always float32. ``local``: file with other weights; None for
    torchvision's own.
    """
    models = _models()
    run_on = Place(run_on.checked().device, "float32")
    module = models.raft_large(weights=None)
    load_strictly(module, load_state(RAFT, local), RAFT)
    return RaftFlow(loaded_card(CARD, RAFT, local), run_on, settled(module, run_on), updates)


def _models() -> Any:  # noqa: ANN401 - a module
    with needing(missing("torchvision")):
        from torchvision.models import optical_flow
    return optical_flow
