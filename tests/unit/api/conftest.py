"""A folder as a user has it: stories, storyboards, evaluations, a study; a judge and a Hub on loopback."""

from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest

import fabula
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.hub import HubServer
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import ModelServer

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"
STUDY = """
[study]
name = "mine"
release = "dist/mine-0.1.0"
split = ["train"]
plans = ["direct"]
judges = ["JUDGE"]

[renderers.drawn]
model = "image:drawn:storyboard"
width = 64
height = 64
"""


@dataclass(frozen=True)
class Desk:
    """A user's folder, a judge that answers, and a Hub."""

    folder: Path
    judge: str
    hub: HubServer

    def code(self, text: str) -> str:
        """Example code that asks the judge at hand instead of one that costs money."""
        return text.replace("openai:gpt-4.1-mini", self.judge)


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("user")
    rows = (SAMPLES / "stories.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "stories.jsonl").write_bytes(b"".join(rows[:4]))
    (folder / "new.jsonl").write_bytes(b"".join(rows[4:6]))
    with chdir(folder), HubServer() as hub:
        fabula.build("stories", "stories.jsonl", "runs/mine", workers=0, progress=False)
        fabula.pack("runs/mine", "dist/mine-0.1.0", version="0.1.0", license="CC-BY-4.0", allow_drafts=True)
        gold = (SAMPLES / "gold.jsonl").read_bytes().splitlines(keepends=True)
        Path("gold.jsonl").write_bytes(b"".join(gold[:1]))
        fabula.build(
            "katha", "stories.jsonl", "runs/gold", records="gold.jsonl", limit=1, workers=0, progress=False
        )
        records = fabula.load("dist/mine-0.1.0").records
        draw_outputs(Path("boards/model-x"), records)
        draw_outputs(Path("boards/model-y"), records, side=128)
        with ModelServer(JudgeModel(records, {"text": 0.9, "image": 0.5, "text_image": 0.9})) as server:
            judge = f"{server.url}/v1#toy"
            free = f'[models."{judge}"]\nprices = {{ input = 0, output = 0 }}\n'
            Path("fabula.toml").write_text(f"[run]\nworkers = 0\n\n{free}")
            Path("study.toml").write_text(STUDY.replace("JUDGE", judge))
            for name in ("x", "y"):
                out = "runs/eval" if name == "x" else "runs/eval-y"
                fabula.evaluate("dist/mine-0.1.0", f"boards/model-{name}", out, judges=judge, progress=False)
            yield Desk(folder, judge, hub)


@pytest.fixture
def at_desk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The folder as the working folder, with a Hub that the client may ask."""
    from fabula.testing.hub import TOKEN

    monkeypatch.chdir(desk.folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_ENDPOINT", desk.hub.url)
    return desk
