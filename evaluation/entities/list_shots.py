"""Stage: one item per shot of a method's episode: its script, its entities and its video."""

from collections.abc import Iterator

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ..outputs.entities import shot_video_name

SPEC = StageSpec(
    name="list_shots",
    version=1,
    shape="expand",
    reads=("episode", "outputs"),
    writes=("shot", "story"),
)


def run(item: Item, _tools: Tools) -> Iterator[Child]:
    """Yield one child per scheduled shot, in story order, whether it has a video or not."""
    episode, outputs = item["episode"], item["outputs"]
    about = {name: value for name, value in outputs.items() if name != "videos"}
    story = {"episode": episode, "outputs": about}  # for when the shots are one item again
    for shot in episode["shots"]:
        video = outputs["videos"][shot["key"]]
        entities = [{"key": key, **episode["registry"][key]} for key in shot["entities"]]
        fields = {
            **shot,
            "method": outputs["method"],
            "episode_id": episode["episode_id"],
            "video": {name: video[name] for name in ("file", "sha256", "start", "stop")},
            "code": video["code"],
            "entities": entities,
        }
        yield Child(
            f"{item.id}/{shot_video_name(shot['scene'], shot['number'])}",
            Made({"shot": fields, "story": story}),
        )
