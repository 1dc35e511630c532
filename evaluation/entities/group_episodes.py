"""Stage: the shots of an episode with all that was found and judged in them, as one item again."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from ...engine.stage import Failed, Item, Made, Outcome, StageSpec, Tools
from ...schemas.values import Own

Pillar = Literal[1, 2, 3]

PARTS = ("shot", "frames", "quality", "grounded", "vectors", "grid", "fidelity", "actions")
"""What is kept of each shot."""


class GroupSettings(Own):
    """What is evaluated."""

    pillars: tuple[Pillar, ...] = Field(
        default=(1, 2, 3), description="1 quality, 2 prompt following, 3 consistency across shots."
    )


SPEC = StageSpec(
    name="group_episodes",
    version=1,
    shape="group",
    reads=("story", *PARTS),
    writes=("whole", "shots"),
    settings=GroupSettings,
)


def run(members: Iterable[Item], tools: Tools) -> Outcome:
    """Return the episode and its shots in order.

    Shots that could not be looked at through a fault of ours are not there: an episode that lacks one fails,
    as it would be scored as if the method had left the shot out.
    """
    del tools
    whole, shots = None, []
    for member in sorted(members, key=lambda item: int(item["shot"]["index"])):
        whole = member["story"]
        shots.append({name: member[name] for name in PARTS})
    assert whole is not None
    lost = len(whole["episode"]["shots"]) - len(shots)
    if lost:
        return Failed(
            "shots_failed", f"{lost} of its shots failed; give the same command again with --retry-failed"
        )
    return Made({"whole": whole, "shots": shots})
