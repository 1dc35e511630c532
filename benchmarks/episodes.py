"""Looking at videos of episodes: the pattern of EntityBench's public evaluator beside ours, frames alike.

    python benchmarks/episodes.py [--frames 24] [--flow]

The pattern is read off the public code (January 2026): a shot is decoded into memory, its five frames go
through the whole detector once for each scheduled entity, every box through both towers of CLIP by itself,
every canonical crop through DINOv2 by itself; for a continuation both shots are decoded again; and each
measure of quality decodes the shot once more. Both sides run the same classes of networks (small, random
weights: passes count, not what they find) on one thread, each in a process of its own; seconds begin when
libraries are read. Judges are not asked.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from measure import Measured, measure

from fabula.evaluation.entities.looking import (
    area_percent,
    best_of,
    crop_of,
    crop_sharpness,
    frames_of,
    padded,
    query_of,
    rating_of,
)
from fabula.media import video
from fabula.models.vision import clip, detectors, flow, networks
from fabula.models.vision.registry import open_vision
from fabula.models.vision.weights import Place
from fabula.testing.drawn_entities import write_outputs
from fabula.testing.stage_pipelines import look
from fabula.testing.tiny_vision import tiny_settings
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode

NAMES = ("grounding-dino-swin-t", "clip-vit-b-32", "dinov2-base", "laion-b-32", "raft-large")
STAGES = {
    "measure_quality": ("dinov2-base", "laion-b-32", "raft-large"),
    "ground_entities": ("grounding-dino-swin-t", "clip-vit-b-32"),
    "encode_appearances": ("dinov2-base",),
}
PASSES = (
    "decodes", "backbone", "fusion", "clip-vit-b-32", "texts", "dinov2-base", "laion-b-32", "raft-large",
)  # fmt: skip
"""What is counted: whole decodings, pictures through the backbone of the detector, pairs of a picture and a
description through the rest of it, pictures through CLIP, texts, pictures through the others, pairs."""


def counting() -> Counter[str]:
    """Count passes through networks, and decodes, from now on."""
    counts: Counter[str] = Counter(dict.fromkeys(PASSES, 0))

    def watch(owner: Any, attribute: str, name: str | None, size: Callable[..., int]) -> None:  # noqa: ANN401
        real = getattr(owner, attribute)

        def called(*given: Any) -> Any:  # noqa: ANN401 - whatever the real one takes
            counts[name or given[0].card.name] += size(*given)
            return real(*given)

        setattr(owner, attribute, called)

    watch(video, "decoded_whole", "decodes", lambda *_: 1)
    watch(detectors.GroundingDino, "_features", "backbone", lambda _, images, *__: len(images))
    watch(detectors.GroundingDino, "ground", "fusion", lambda _, __, texts, *___: sum(map(len, texts)))
    watch(clip.ClipEncoder, "encode_texts", "texts", lambda _, texts: len(texts))
    watch(networks.NetworkEncoder, "encode", None, lambda _, images: len(images))
    watch(networks.NetworkPredictor, "predict", None, lambda _, images: len(images))
    watch(flow.RaftFlow, "flows", None, lambda _, pairs: len(pairs))
    return counts


def measures_of(*, with_flow: bool) -> list[str]:
    """Return the measures of quality that are taken; those by flow are slow without a GPU."""
    measures = ["subject_consistency", "temporal_flickering", "aesthetic_quality"]
    return [*measures, "dynamic_degree"] if with_flow else measures


def as_ours(folder: Path, *, with_flow: bool, out: str, more: Sequence[str] = ()) -> None:
    """Look at everything by the stages of an evaluation."""
    sets = [
        "take_frames.grounding=code", "ground_entities.definition=code", "encode_appearances.definition=code",
        "measure_quality.keeps=code", "measure_quality.wanted=true", "draw_grids.wanted=true",
        f"measure_quality.measures={json.dumps(measures_of(with_flow=with_flow))}",
        "ground_entities.detector=grounding-dino-swin-t", "ground_entities.text=clip-vit-b-32",
        "encode_appearances.encoder=dinov2-base", *more,
    ]  # fmt: skip
    look(folder / out, folder / "set", [folder / "method"], sets, config=folder / "fabula.toml")


def as_public(folder: Path, *, with_flow: bool) -> None:
    """Look at everything as the public evaluator does."""
    models = models_of(folder)
    for script in sorted((folder / "set" / "scripts").glob("*.json")):
        before: Path | None = None
        for path, entities, continues in shots_of(json.loads(script.read_text()), folder):
            by_entity(models, decoded(path), entities)
            if continues and before is not None:
                for image in (decoded(before)[-1], decoded(path)[0]):
                    models["dinov2-base"].encode([image])
            for name in measures_of(with_flow=with_flow):
                quality(models, decoded(path), name)
            before = path


def models_of(folder: Path) -> dict[str, Any]:
    """Return all networks with their small weights."""
    given = json.loads((folder / "options.json").read_text())
    return {name: open_vision(name, Place(), given[name]) for name in NAMES}


def shots_of(script: Mapping[str, Any], folder: Path) -> Iterator[tuple[Path, list[str], bool]]:
    """Yield video, descriptions of the scheduled entities, and whether it continues the shot before."""
    described = {each["name"]: each["description"] for each in script["entity_descriptions"].values()}
    for scene in script["scenes"]:
        for number, cut in enumerate(scene["cut"], 1):
            key = f"{scene['scene_num']}:{number}"
            listed = [name for names in script["entity_schedule"][key].values() for name in names]
            file = f"{scene['scene_num']:03d}_{number:03d}.mkv"
            path = folder / "method" / script["story_name"] / file
            yield path, [described[name] for name in listed], not cut


def decoded(path: Path) -> list[Any]:
    """Return all frames of a video, in memory."""
    return [frame.image for frame in video.walk_frames(path, range(video.outline(path).frames))]


def by_entity(models: Mapping[str, Any], frames: Sequence[Any], descriptions: Sequence[str]) -> None:
    """Look for each entity in each frame, and encode what is found box by box."""
    detector, text, encoder = (models[name] for name in NAMES[:3])
    for description in descriptions:
        crops, ratings = [], []
        for index in frames_of("code", len(frames)).ground:
            image = frames[index]
            for box in detector.ground([image], [[query_of(description, "code")]])[0][0]:
                pixels = padded(box, image.size, 0.1)
                crop = crop_of(image, pixels, "code")
                if crop is not None:
                    similarity = float(text.encode([crop])[0] @ text.encode_texts([description]).rows[0])
                    percent = area_percent(box, pixels, image.size, "code")
                    crops.append(crop)
                    ratings.append(rating_of(similarity, crop_sharpness(crop, "code"), percent))
        if crops:
            encoder.encode([crops[best_of(ratings)]])


def quality(models: Mapping[str, Any], frames: Sequence[Any], name: str) -> None:
    """Take one measure of the decoded frames, frame by frame."""
    if name == "subject_consistency":
        for image in frames:
            models["dinov2-base"].encode([image])
    elif name == "aesthetic_quality":
        models["laion-b-32"].predict(frames)
    elif name == "dynamic_degree":
        for pair in pairwise(frames):
            models["raft-large"].flows([pair])


def prepare(folder: Path, frames: int) -> None:
    """Draw episodes and videos, and write small weights with the settings that name them."""
    scripts = [written_episode(), written_episode("ep_b", SECOND)]  # of seven shots, no two alike
    write_episodes(folder / "set", scripts)
    write_outputs(folder / "method", scripts, frames=frames)
    options = {name: tiny_settings(name, folder / "weights" / name) for name in NAMES}
    text = json.dumps(options, default=str)
    (folder / "options.json").write_text(text)
    lines = []
    for stage, names in STAGES.items():
        lines.append(f"[{stage}.options]")
        for name in names:
            pairs = [f"{key} = {json.dumps(value)}" for key, value in json.loads(text)[name].items()]
            lines.append(f'"{name}" = {{ {", ".join(pairs)} }}')
    (folder / "fabula.toml").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Run both sides, or one of them as a process of its own."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--frames", type=int, default=24, help="frames of a shot, at most 25")
    options.add_argument("--flow", action="store_true", help="measure dynamic degree, too")
    options.add_argument("--side", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.side:
        import torch

        torch.set_num_threads(1)
        models_of(given.folder)  # libraries are read before the clock starts
        counts, started = counting(), time.perf_counter()
        SIDES[given.side](given.folder, with_flow=given.flow)
        print(json.dumps({**counts, "s": time.perf_counter() - started}))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder, given.frames)
        print("|".join(["", "what", *PASSES, "s", "peak MiB", ""]))
        for side in SIDES:
            more = ["--flow"] if given.flow else []
            done = run_side(side, folder, more)
            told = json.loads(done.output.splitlines()[-1])
            cells = [side, *(str(told[name]) for name in PASSES)]
            print("|".join(["", *cells, f"{told['s']:.1f}", f"{done.mebibytes:.0f}", ""]), flush=True)


def run_side(side: str, folder: Path, more: Sequence[str]) -> Measured:
    """Run one side in a process with a cache of its own, which later runs of ours share."""
    home = ["env", f"XDG_CACHE_HOME={folder / 'cache'}", f"HOME={folder}"]
    return measure(*home, sys.executable, __file__, "--side", side, "--folder", folder, *more)


SIDES: Mapping[str, Callable[..., None]] = {
    "public pattern": as_public,
    "ours": partial(as_ours, out="run"),
    "ours, another threshold": partial(as_ours, out="run", more=["ground_entities.present_from=0.1"]),
    "ours, the same videos again": partial(as_ours, out="again"),
}
if __name__ == "__main__":
    main()
