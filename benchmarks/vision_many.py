"""Many pictures through an evaluation with small networks: how often each is decoded, and in how much memory.

    python benchmarks/vision_many.py FOLDER      # what is measured: the drawn outputs of a folder

Every stage decodes a picture once, however many models and pairs want it.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from measure import measure
from vision_story import write_shots, write_story_set

from fabula.evaluation.shots.requests import EVALUATING, ImageOptions
from fabula.models.vision.store import FILE
from fabula.testing.tiny_vision import tiny_settings

SHOTS = 30
MODELS = {"style": "csd-vit-l", "crops": "clip-vit-l-14", "classes": "inception-v3"}
"""What counts pictures here (:mod:`counted`) -> the model behind it."""


def many(most: int, folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield how evaluations of a tenth of the pictures and of all went, each in a process of its own."""
    for pictures in (most // 10, most):
        place = folder / f"many-{pictures}"
        stories = max(1, pictures // SHOTS)
        write_story_set(place / "data", stories, SHOTS)
        write_shots(place / "method-a", stories, SHOTS, seed=1)
        done = measure(sys.executable, __file__, place)
        told = json.loads(done.output.splitlines()[-1])
        yield (
            str(stories * SHOTS), f"{done.seconds:.1f}", f"{done.mebibytes:.0f}",
            f"{told['decoded'] / (stories * SHOTS):.2f}", str(told["rows"]),
        )  # fmt: skip


def settings_text(weights: Mapping[str, Path], dtype: str = "float32", batch: int = 16) -> str:
    """Return a settings file that names the counting loaders.

    Args:
        weights: model -> where its weights lie.
        dtype: numbers of the models.
        batch: pictures that they get at once.
    """
    stages = {
        "detect_characters": ('model = "counted:detector"', ()),
        "encode_crops": ('pictures = ["counted:crops"]\nfaces = ["counted:crops"]', ("crops",)),
        "encode_pictures": (
            'style = "counted:style"\ninception = "counted:classes"', ("style", "classes")
        ),
    }  # fmt: skip
    lines: list[str] = []
    for stage, (named, roles) in stages.items():
        lines += [f"[{stage}]", named, f'dtype = "{dtype}"', f"batch = {batch}"]
        for role in roles:
            if MODELS[role] in weights:
                place = json.dumps(str(weights[MODELS[role]]))
                lines += [f'[{stage}.options."counted:{role}"]', f"local = {place}"]
    return "\n".join(lines) + "\n"


def rows_kept() -> int:
    """Return how many rows the store of this process's cache folder holds."""
    path = Path(os.environ["XDG_CACHE_HOME"]) / "fabula" / "vectors" / FILE
    if not path.exists():
        return 0
    store = sqlite3.connect(path)
    (count,) = store.execute("SELECT COUNT(*) FROM vectors").fetchone()
    store.close()
    return int(count)


def count_decodings(counts: list[int]) -> None:
    """Count in ``counts[0]`` every picture that Pillow opens in this process from now on."""
    from PIL import Image

    plain = Image.open

    def opened(*args, **more):  # noqa: ANN002, ANN003, ANN202 - as Pillow has it
        counts[0] += 1
        return plain(*args, **more)

    Image.open = opened


def main() -> None:
    """Evaluate the drawn outputs in a folder; print decodings and rows."""
    import torch

    place, counts = Path(sys.argv[1]), [0]
    torch.set_num_threads(1)
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    weights = {
        name: Path(tiny_settings(name, place / name)["local"]) for name in ("csd-vit-l", "clip-vit-l-14")
    }
    config = place / "fabula.toml"
    config.write_text(settings_text(weights), "utf-8")
    count_decodings(counts)
    options = ImageOptions(metrics=("cids,copy-paste,occm,csd",), config=config, device="cpu", workers=0)
    report = EVALUATING.evaluate(place / "data", [place / "method-a"], place / "run", options)
    assert not report.totals["failed"], report.lines()
    print(json.dumps({"decoded": counts[0], "rows": rows_kept()}))


if __name__ == "__main__":
    main()
