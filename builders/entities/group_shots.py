"""Stage: the shots of a video that were kept, with who is seen in them, as one item again."""

from collections.abc import Iterable

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools

SPEC = StageSpec(
    name="group_shots",
    version=1,
    shape="group",
    reads=("shot", "quality", "embedded"),
    writes=("video", "shots"),
)


def run(members: Iterable[Item], tools: Tools) -> Outcome:
    """Return the video, and its shots in order: each with ``shot``, ``quality`` and ``tracklets``.

    A shot does not repeat the video.
    """
    del tools
    video, shots = None, []
    for member in sorted(members, key=lambda shot: int(shot["shot"]["number"])):
        video = member["shot"]["video"]
        shot = {name: value for name, value in member["shot"].items() if name != "video"}
        shots.append({"shot": shot, "quality": member["quality"], "tracklets": member["embedded"]})
    return Made({"video": video, "shots": shots})
