"""The sample benchmark and an evaluation of it, made in a minute without a network: what notebooks look at.

    python -m fabula.testing.sample_evaluation sample

Into the folder go ``dist/demo-0.1.0``, the release of ``make demo``; ``boards/``, storyboards that a toy drew
for two methods; and ``runs/eval``, where a toy judge (:mod:`.judge_model`) answered the questions about them,
so much better for one method than for the other as :data:`SEEN` says. It measures no generator and no model.
"""

import sys
from collections.abc import Sequence
from contextlib import chdir
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any

from ..api.evaluations import evaluate
from ..api.records import build
from ..api.releases import load, pack
from ..schemas.canonical import Json
from ..schemas.katha import StoryRecord
from .drawn_storyboards import draw_outputs
from .judge_model import JudgeModel
from .model_server import Asked, ModelServer

CREATED = "2026-01-01T00:00:00Z"
SIDES = {"model-a": 96, "model-b": 128}
"""Method -> the side of its pictures in pixels, by which the judge knows it."""
SEEN = {"model-a": 0.8, "model-b": 0.4}
"""Method -> the share of the questions that the judge answers rightly from its pictures."""
ABOUT: dict[str, Any] = {
    "version": "0.1.0", "license": "CC-BY-4.0", "name": "fabula-sample-fables",
    "title": "Fabula sample fables", "creators": ("The Fabula developers",), "allow_drafts": True,
}  # fmt: skip


def make(folder: Path, release: Path | None = None) -> None:
    """Make release, storyboards and evaluation in a folder; what is there is used."""
    folder.mkdir(parents=True, exist_ok=True)
    given = None if release is None else release.absolute()
    with chdir(folder):
        demo = Path("dist/demo-0.1.0")
        if not demo.exists() and given is not None:
            demo.parent.mkdir(exist_ok=True)
            demo.symlink_to(given)
        if not demo.exists():
            samples = Path(str(resources.files("fabula.builders.katha") / "samples"))
            stories, gold = samples / "stories.jsonl", samples / "gold.jsonl"
            build("stories", stories, "runs/demo", records=gold, planner="rules", created_at=CREATED)
            pack("runs/demo", demo, **ABOUT)
        records = load(demo).records
        for method, side in SIDES.items():
            draw_outputs(Path("boards") / method, records, side=side)
        with ModelServer(judge(records)) as server:
            spec = f"{server.url}/v1#toy-judge"
            free = {spec: {"prices": {"input": 0, "output": 0}}}
            boards = [Path("boards") / method for method in SIDES]
            evaluate(demo, boards, "runs/eval", judges=[spec], models=free, created_at=CREATED, workers=0)


def judge(records: Sequence[StoryRecord]) -> "Judge":
    """Return the toy judge of the sample evaluation."""
    return Judge(
        {
            SIDES[name]: JudgeModel(records, {"text": 0.9, "image": seen, "text_image": max(seen, 0.85)})
            for name, seen in SEEN.items()
        }
    )


class Judge:
    """Answers for each method by its own table; it tells methods by the size of their pictures.

    Args:
        models: side of the pictures in pixels -> who answers.
    """

    def __init__(self, models: dict[int, JudgeModel]) -> None:
        self._models = models

    def __call__(self, asked: Asked) -> Json:
        from PIL import Image

        sides = [Image.open(BytesIO(picture.data)).width for picture in asked.images[:1]]
        return self._models[sides[0] if sides else min(self._models)](asked)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
