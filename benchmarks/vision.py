"""Networks that look at pictures, on random weights of the real architectures: speed, encodings, memory.

    python benchmarks/vision.py                                 # all of it
    python benchmarks/vision.py --device cuda --run 400         # both patterns run whole
    python benchmarks/vision.py --depth 2 --seconds 1 --run 2 --batch 2 --shots 6 --many 300 --short-side 240

The last is a first look of a minute or two. Weights are drawn, written in the libraries' own files and loaded
as published ones are; speed does not depend on their values. Four tables: pictures per second; a story of 30
shots, beside the pattern in which the public code of ViStoryBench encodes; what further evaluations encode;
decodings and memory with many pictures.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import counted
import numpy as np
from vision_many import MODELS, many, rows_kept, settings_text
from vision_story import (
    Story,
    crop_pattern,
    read_story,
    replay,
    style_pattern,
    write_shots,
    write_story_set,
)
from vision_weights import MAKERS, write_weights

from fabula.errors import ConfigError
from fabula.evaluation.shots.requests import EVALUATING, ImageOptions
from fabula.models.vision.registry import open_vision
from fabula.models.vision.store import VectorStore
from fabula.models.vision.weights import Place
from fabula.testing.tiny_vision import draw_faces

if TYPE_CHECKING:
    from PIL.Image import Image

Row: TypeAlias = tuple[str, ...]
PUBLISHED = {
    "aesthetic-v2.5": "0.026 an image",
    "csd-vit-l": "0.046 a pair",
    "inception-v3": "8.057 a data set",
}
"""Seconds of Table S9, on an H800; it gives CIDS, with detector and encoders together, 0.450 a pair."""
SIZE = (1024, 576)
"""Width and height of the pictures whose speed is measured."""
DETECTORS, DETECTED = ("grounding-dino-swin-t", "people-yolo11n"), 2
"""Models that take much memory, and most pictures that they get at once."""
WANTED = "cids,copy-paste,csd"


@dataclass(frozen=True)
class Opened:
    """A model with random weights.

    Attributes:
        name: its name.
        parameters: how many it has.
        place: where it runs.
        model: the model.
        see: its method that takes pictures.
    """

    name: str
    parameters: int
    place: Place
    model: Any
    see: "Callable[[Sequence[Image]], object]"


def main() -> None:
    """Measure and print."""
    args = _arguments()
    _prepare(args)
    with tempfile.TemporaryDirectory(prefix="fabula-vision-") as scratch:
        folder = Path(scratch)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")  # a store of our own
        args.weights = args.weights or folder / "weights"
        data = write_story_set(folder / "data", 1, args.shots)
        first = write_shots(folder / "method-a", 1, args.shots, seed=1)
        speeds, story = _speeds(args, read_story(data, first, args.shots))
        print("## Pictures per second\n")
        _table(
            ("model", "million parameters", "where", "one by one, s a picture", "together, s a picture",
             "at once", "pictures/s", "Table S9 (H800), s"),
            speeds,
        )  # fmt: skip
        print(f"\n## A story of {args.shots} shots, two characters with one reference each\n")
        _table(("what", "public code: encodings", "once each", "public code, s", "once each, s"), story)
        print("\n## Further evaluations, each in a folder of its own\n")
        head = ("evaluation", "style", "crops", "classes", "detector", "encoded twice", "s")
        _table(head, _further(args, data, first))
        print("\n## Many pictures, small networks\n")
        _table(("pictures", "s", "peak MiB", "decodings a picture", "rows kept"), many(args.many, folder))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "mps"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    parser.add_argument("--batch", type=int, default=16, help="pictures at once")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement of speed, about")
    parser.add_argument("--run", type=int, default=40, help="most encodings of a pattern that are run")
    parser.add_argument("--shots", type=int, default=30, help="of the story")
    parser.add_argument("--many", type=int, default=5000, help="pictures of the last table")
    parser.add_argument("--depth", type=int, help="most layers of a transformer")
    parser.add_argument("--short-side", type=int, default=800, help="pixels, for Grounding DINO; 200 or more")
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--weights", type=Path, help="folder that keeps the weights for another run")
    return parser.parse_args()


def _prepare(args: argparse.Namespace) -> None:
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    card = f" ({torch.cuda.get_device_name()})" if args.device == "cuda" else ""
    cut = "whole networks" if args.depth is None else f"transformers cut to {args.depth} layers"
    side = "" if args.short_side == 800 else f", Grounding DINO at {args.short_side} pixels"
    print(f"{args.device}{card}, {args.dtype}, {torch.get_num_threads()} threads, {cut}{side}\n")


def _speeds(args: argparse.Namespace, story: Story) -> tuple[list[Row], list[Row]]:
    """Return the rows of speeds, and those of the story for the encoders that it needs."""
    patterns = {
        "csd-vit-l": ("style", style_pattern(args.shots), story.pictures),
        "clip-vit-l-14": ("crops", crop_pattern(args.shots), story.crops),
    }
    speeds, rows = [], []
    for name in MAKERS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        opened = _opened(name, args)
        batch = min(args.batch, DETECTED) if name in DETECTORS else args.batch
        pictures = [_picture(name, number) for number in range(batch)]
        opened.see(pictures[:1])
        alone = _seconds(opened.see, [[one] for one in pictures], args.seconds)
        together = _seconds(opened.see, [pictures], args.seconds)
        where = f"{opened.place.device}, {opened.place.dtype}"
        speeds.append(
            (name, f"{opened.parameters / 1e6:.1f}", where, f"{alone:.4f}", f"{together:.4f}", str(batch),
             f"{1 / together:.2f}", PUBLISHED.get(name, ""))
        )  # fmt: skip
        if name in patterns:
            rows.append(_replayed(*patterns[name], opened, args))
    return speeds, rows


def _opened(name: str, args: argparse.Namespace) -> Opened:
    settings, parameters = write_weights(name, args.weights, args.depth)
    if name == "grounding-dino-swin-t":
        settings["sides"] = (args.short_side, args.short_side * 5 // 3)
    place = Place(args.device, args.dtype)
    try:
        model: Any = open_vision(name, place, settings)
    except ConfigError:  # not every model runs everywhere, and the table says where it did
        place = Place("cpu" if name == "arcface-r100" else args.device, "float32")
        model = open_vision(name, place, settings)
    see = next(getattr(model, verb) for verb in ("encode", "predict", "detect") if hasattr(model, verb))
    return Opened(name, parameters, place, model, see)


def _picture(name: str, number: int) -> "Image":
    """Return a picture of noise; for an encoder of faces, one in which its detector finds a face."""
    from PIL import Image

    if name == "arcface-r100":
        return draw_faces([(number % 20, number // 20 % 20, 255)], (256, 256))
    noise = np.random.default_rng(number).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    return Image.fromarray(noise)


def _seconds(
    see: "Callable[[Sequence[Image]], object]", groups: "Sequence[Sequence[Image]]", limit: float
) -> float:
    """Return the seconds a picture takes; groups go round until the limit is reached, one group at least."""
    seen, began = 0, time.perf_counter()
    while True:
        for group in groups:
            see(group)
            seen += len(group)
            spent = time.perf_counter() - began
            if spent >= limit:
                return spent / seen


def _replayed(
    what: str, theirs: list[str], pictures: "dict[str, Image]", opened: Opened, args: argparse.Namespace
) -> Row:
    """Return a row of the story: both ways counted, and run as far as ``--run`` goes."""
    once, some = list(dict.fromkeys(theirs)), theirs[: args.run]
    began = time.perf_counter()
    replay(some, pictures, opened.see)
    spent = time.perf_counter() - began
    with VectorStore() as store:
        few = once[: args.run]
        began = time.perf_counter()
        store.rows(opened.model, [pictures[name] for name in few], args.batch)
        ours = time.perf_counter() - began
        assert store.counts.made == len(few), (store.counts, len(few))
    return (
        f"{what} ({opened.name})", str(len(theirs)), str(len(once)), _timed(spent, len(some), len(theirs)),
        _timed(ours, len(few), len(once)),
    )  # fmt: skip


def _timed(spent: float, run: int, whole: int) -> str:
    return f"{spent:.2f} measured" if run == whole else f"{spent / run * whole:.2f} computed from {run}"


def _further(args: argparse.Namespace, data: Path, first: Path) -> Iterator[Row]:
    """Yield what evaluations encode that come one after the other: the store is all that they share."""
    second = write_shots(first.with_name("method-b"), 1, args.shots, seed=2)
    weights = {
        name: Path(write_weights(name, args.weights, args.depth)[0]["local"]) for name in MODELS.values()
    }
    config = first.with_name("fabula.toml")
    config.write_text(settings_text(weights, args.dtype, args.batch), "utf-8")
    steps = (
        (f"one method: {WANTED}", [first], WANTED),
        ("the same again", [first], WANTED),
        ("one metric more: inception", [first], f"{WANTED},inception"),
        ("one method more", [first, second], f"{WANTED},inception"),
    )
    for number, (title, outputs, metrics) in enumerate(steps):
        print(f"{title} ...", file=sys.stderr, flush=True)
        counted.ASKED.clear()
        kept, began = rows_kept(), time.perf_counter()
        options = ImageOptions(metrics=(metrics,), config=config, device=args.device, workers=0)
        report = EVALUATING.evaluate(data, outputs, first.with_name(f"run-{number}"), options)
        assert not report.totals["failed"], report.lines()
        spent = time.perf_counter() - began
        asked = [counted.ASKED[role] for role in ("style", "crops", "classes", "detector")]
        twice = sum(asked) - (rows_kept() - kept)
        yield (title, *map(str, asked), str(twice), f"{spent:.2f}")


def _table(head: Row, rows: Iterable[Row]) -> None:
    print(f"| {' | '.join(head)} |")
    print(f"|---|{'---:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
