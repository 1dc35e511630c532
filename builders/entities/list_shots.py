"""Stage: one item per shot of a video."""

from collections.abc import Iterator

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from .drafts import Shot, Video

SPEC = StageSpec(
    name="list_shots",
    version=1,
    shape="expand",
    reads=("probed", "boundaries"),
    writes=("shot", "among"),
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per shot, with how many shots its video has (``among``)."""
    del tools
    video, spans = Video.model_validate(item["probed"]), item["boundaries"]["spans"]
    for number, span in enumerate(spans, 1):
        shot = Shot(shot_id=f"{video.video_id}__shot{number:04d}", video=video, number=number, **span)
        yield Child(shot.shot_id, Made({"shot": shot.as_json(), "among": len(spans)}))
