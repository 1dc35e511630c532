"""Scripts of episodes in the forms that HoloCine, CineTrans and StoryMem read (EntityBench, section 5.1).

Each form is taken from the public documentation of the generator and its samples there. Beside the inputs,
``results.jsonl`` says which file each shot's video is, for ``fabula outputs check`` and ``evaluate``; where
one video shows a whole episode, its cut list is written as well.

``holocine`` (yihao-meng/HoloCine, README): a global caption that ends with the number of shots, a caption for
each shot, characters as ``[character1]``; and both as the one string that its script builds of them. A video
has 48 frames for a shot and one more, as its five shots in 241 frames.
``cinetrans`` (CineTrans-DiT, ``configs/t2v.yaml``): the captions of the shots, then the general one, and how
many latent frames each shot has; a shot has 40 frames, as its two in 81. Its script holds ``mask_info``
itself: put the one of the file there. What else its configuration holds stays as it is.
``storymem`` (Kevin-thu/StoryMem, README): ``story_overview`` and scenes with ``scene_num``, ``video_prompts``
and ``cut``, which its ``pipeline.py`` reads as truth values.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import ConfigError
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ..target import require_free, staged
from .requests import RequestOptions, entity_requests
from .tree import EntitySet

RESULTS = "results.jsonl"
"""One line for each shot: episode, key of the shot, and the file of its video below the folder of outputs."""
Files = Mapping[str, str]
"""Path below the new folder -> text."""


@dataclass(frozen=True, slots=True)
class Generator:
    """What a generator reads."""

    about: str  # the generator, for people
    files: Callable[[Json], Files]  # an episode's request -> the files
    ids: tuple[str, ...] = ()  # types whose names become ids, unless others are asked for
    header: str = "official"  # header of prompts, unless another is asked for
    frames: int | None = None  # of each shot in a video of the whole episode; None for a video per shot


def _general(episode: Json) -> str:
    """Return the overview, whom and what the shots show, each once, and the number of shots."""
    shown = {entity["as"]: entity for shot in episode["shots"] for entity in shot["entities"]}
    looks = [f"{name}: {_closed(one['description'])}" for name, one in shown.items() if one["description"]]
    count = len(episode["shots"])
    number = f"This scene contains {count} shot{'' if count == 1 else 's'}."
    return " ".join([_closed(episode["overview"]), *looks, number])


def _closed(text: str) -> str:
    line = " ".join(text.split())
    return line if not line or line.endswith((".", "!", "?")) else f"{line}."


def _holocine(episode: Json) -> Files:
    captions = [" ".join(shot["prompt"].split()) for shot in episode["shots"]]
    general = _general(episode)
    document = {
        "global_caption": general, "shot_captions": captions,
        "prompt": f"[global caption] {general} [per shot caption] {' [shot cut] '.join(captions)}",
        "num_frames": 48 * len(captions) + 1,
        "shot_cut_frames": [48 * number + 1 for number in range(1, len(captions))],
        "output_path": f"{episode['episode_id']}.mp4",
    }  # fmt: skip
    return {f"{episode['episode_id']}.json": _pretty(document)}


def _cinetrans(episode: Json) -> Files:
    captions = [" ".join(shot["prompt"].split()) for shot in episode["shots"]]
    document = {
        "prompt": [*captions, _general(episode)], "general_prompt": True, "frame_num": 40 * len(captions) + 1,
        "mask_info": [11, *[10] * (len(captions) - 1)], "base_seed": episode["shots"][0]["seed"],
        "save_file": f"{episode['episode_id']}.mp4",
    }  # fmt: skip
    # JSON is YAML, so that no library is needed.
    return {f"{episode['episode_id']}.yaml": _pretty(document)}


def _storymem(episode: Json) -> Files:
    scenes: dict[int, dict[str, Json]] = {}
    for shot in episode["shots"]:
        number = int(shot["key"].partition(":")[0])
        scene = scenes.setdefault(number, {"scene_num": number, "video_prompts": [], "cut": []})
        scene["video_prompts"].append(shot["prompt"])
        scene["cut"].append(shot["cut"])
    return {
        f"{episode['episode_id']}/story.json": _pretty(
            {"story_overview": episode["overview"], "scenes": list(scenes.values())}
        )
    }


def _pretty(document: Json) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


GENERATORS: Mapping[str, Generator] = {
    "holocine": Generator("HoloCine", _holocine, ("character",), "none", 48),
    "cinetrans": Generator("CineTrans-DiT", _cinetrans, (), "none", 40),
    "storymem": Generator("StoryMem", _storymem),
}


def write_inputs(
    entity_set: EntitySet, out: Path, name: str, options: RequestOptions | None = None
) -> dict[str, int]:
    """Write what a generator reads into a new folder, and ``results.jsonl``.

    Returns:
        How many ``requests`` (episodes), ``files`` and ``shots`` there are, and prompts that were ``cut``.
    """
    if name not in GENERATORS:
        what = f"{name} is none of {', '.join(GENERATORS)}"
        raise ConfigError("--for", what=what, fix="use one of them, or leave --for out")
    require_free(out)
    generator, chosen, plain = GENERATORS[name], options or RequestOptions(), RequestOptions()
    chosen = replace(
        chosen, per="episode", ids=chosen.ids or generator.ids,
        header=generator.header if chosen.header == plain.header else chosen.header,
    )  # fmt: skip
    files: dict[str, str] = {}
    results: list[Json] = []
    cut = shots = requests = 0
    for episode in entity_requests(entity_set, chosen):
        requests += 1
        files |= generator.files(episode)
        results += _results(episode, generator)
        shots, cut = shots + len(episode["shots"]), cut + sum(one["cut_off"] > 0 for one in episode["shots"])
        if generator.frames is not None:
            files[f"{episode['episode_id']}.cuts.json"] = _pretty(_cuts(episode["shots"], generator.frames))
    with staged(out.absolute()) as (draft,):
        for path, text in files.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(draft / path, [text.encode("utf-8")])
        write_atomic(draft / RESULTS, jsonl_lines(results))
    return {"requests": requests, "files": len(files), "shots": shots, "cut": cut}


def _results(episode: Json, generator: Generator) -> Iterator[Json]:
    for shot in episode["shots"]:
        whole = f"{episode['episode_id']}.mp4"
        file = shot["file"] if generator.frames is None else whole
        line = {"episode_id": episode["episode_id"], "shot": shot["key"], "file": file}
        if generator.frames is None:  # as StoryMem names it
            scene, number = map(int, shot["key"].split(":"))
            line["from"] = f"{episode['episode_id']}/{scene:02d}_{number:02d}.mp4"
        yield line


def _cuts(shots: Sequence[Json], frames: int) -> Mapping[str, list[int]]:
    """Return the first frame of each shot and the one behind its last; the video has one frame more."""
    ends = [1 + frames * number for number in range(1, len(shots) + 1)]
    starts = [0, *ends[:-1]]
    return {shot["key"]: [start, end] for shot, start, end in zip(shots, starts, ends, strict=True)}
