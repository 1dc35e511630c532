"""Videos of event prompts as people see them: one video with the events of its prompt, in order.

Source: StoryEval, 2.3: a few models drawn for each prompt, anonymous and shuffled; people judge each event.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....errors import InputError, UserError
from ....evaluation.archive.archive import JUDGEMENTS, read_manifest, sources_of
from ....evaluation.events.load_videos import OUTPUTS, VideoSelection, chosen_prompts, outputs_sha256
from ....evaluation.outputs.videos import MethodVideos, check_methods, videos_of
from ....releases.events.form import SUITE, load_suite
from ....schemas.canonical import Json, digest, sha256_file
from ....schemas.events import Suite
from ....schemas.plain_files import composed
from ..items import Drawn, Part
from .source import Drawing, Material, Source, draw_methods, known_only

EVENTS = "events_in_order"
"""List of parts: the events of a prompt. Its name keeps them in order."""


@dataclass(frozen=True)
class Evaluated:
    """What verifiers saw."""

    units: frozenset[str] | None  # file names in the suite that were judged; None: all
    # method -> what the manifest says of its videos
    methods: Mapping[str, Mapping[str, Any]] = field(repr=False)
    folders: tuple[Path, ...]  # where the videos were

    def is_invalid(self, method: str, unit: str, seed: int | None) -> bool:
        """Whether a video could not be judged."""
        listed = self.methods[method].get("invalid", ())
        return any((each["unit"], each["seed"]) == (unit, seed) for each in listed)


def draw_videos(material: Material) -> Drawing:
    """Draw videos: for each prompt of some methods, or of all, with every seed.

    Of an evaluation, only videos that were judged are drawn.
    """
    options = material.options
    judged = _evaluated(material)
    suite = load_suite(material.path if judged is None else material.path / SUITE)
    known = suite if judged is None or judged.units is None else _part_of(suite, judged.units)
    chosen = chosen_prompts(
        known, VideoSelection(units=options.stories, label=options.labels, limit=options.limit)
    )
    methods = _methods(material, suite, judged)
    items = {
        (unit, method): list(_items(unit, method, videos, chosen, judged))
        for method, videos in methods.items()
        for unit in chosen.prompts
    }
    there = {
        unit: [method for method in methods if items[unit, method]] for unit in chosen.prompts
    }  # fmt: skip
    per_prompt = len(methods) if options.per_prompt is None else options.per_prompt
    drawn = draw_methods(there, per_prompt, random.Random(options.seed))
    listed = [item for pair in drawn for item in items[pair]]
    _check_there(listed)
    source: dict[str, Json] = {
        "kind": material.what, "path": material.path.resolve().name, "suite_sha256": suite.sha256(),
        "outputs_sha256": {name: _drawn_sha256(listed, name) for name in sorted(methods)},
    }  # fmt: skip
    if judged is not None:
        source["judgements_sha256"] = sha256_file(material.path / JUDGEMENTS)
    few = sum(len(methods_of_unit) < per_prompt for methods_of_unit in there.values())
    seen = "videos" if judged is None else "judged videos"
    short = (f"{few} of {len(there)} prompts have {seen} of fewer methods",) if few else ()
    return Drawing(tuple(listed), source, short)


def _evaluated(material: Material) -> Evaluated | None:
    """Return what an evaluation judged; None where the material is a suite."""
    if material.what != "evaluation":
        return None
    manifest = read_manifest(material.path)
    units = manifest.protocol.get("units")
    sources = sources_of(material.path, manifest)
    return Evaluated(
        None if units is None else frozenset(units), manifest.subject.get("methods", {}),
        tuple(path for role, path in sources if role == OUTPUTS),
    )  # fmt: skip


def _part_of(suite: Suite, units: Iterable[str]) -> Suite:
    kept = set(units)
    return Suite({name: prompt for name, prompt in suite.prompts.items() if name in kept})


def _methods(material: Material, suite: Suite, judged: Evaluated | None) -> dict[str, MethodVideos]:
    """Return method -> where its videos lie; those of an evaluation are as they were when it was made."""
    options = material.options
    folders = options.outputs or (() if judged is None else judged.folders)
    if not folders:
        fix = "give the videos of each method: --outputs FOLDER"
        raise InputError.one(str(material.path), what="whose videos are seen is not said", fix=fix)
    check_methods(folders)
    there = {composed(folder.resolve().name): videos_of(folder, suite.prompts) for folder in folders}
    known_only("methods", options.methods, there, "method")
    kept = {name: own for name, own in there.items() if not options.methods or name in options.methods}
    if judged is not None:
        known_only("outputs", kept, judged.methods, "method in the evaluation called")
        _check_judged(kept, suite, judged)
    return kept


def _check_judged(methods: Mapping[str, MethodVideos], suite: Suite, judged: Evaluated) -> None:
    """Refuse videos that verifiers did not see."""
    problems = []
    for name, videos in methods.items():
        seen = judged.methods[name].get("outputs_sha256")
        listed = [
            {"unit": unit, "seed": seed, "sha256": sha256_file(file) if file.is_file() else None}
            for unit in suite.prompts
            if judged.units is None or unit in judged.units
            for seed in videos.seeds
            for file in (videos.path(unit, seed),)
        ]
        if seen not in (None, outputs_sha256(listed)):
            what, fix = "these are not the videos that were judged", "give the folder as it was judged"
            problems.append(UserError(str(videos.folder), what=what, fix=fix))
    if problems:
        raise InputError(problems)


def _items(
    unit: str, method: str, videos: MethodVideos, chosen: Suite, judged: Evaluated | None
) -> Iterator[Drawn]:
    prompt = chosen.prompts[unit]
    events = tuple(Part(id=str(number), text=event) for number, event in enumerate(prompt.event_list, 1))
    for seed in videos.seeds:
        if judged is None or not judged.is_invalid(method, unit, seed):
            yield Drawn(
                unit, unit, {"prompt": prompt.prompt}, ((videos.path(unit, seed),),), {EVENTS: events},
                methods=(method,), seed=seed,
            )  # fmt: skip


def _check_there(items: list[Drawn]) -> None:
    what, fix = "the video of a drawn prompt is missing", "generate it, or draw from other models"
    lost = [file for item in items for side in item.sides for file in side if not file.is_file()]
    if lost:
        raise InputError([UserError(str(file), what=what, fix=fix) for file in lost])


def _drawn_sha256(items: list[Drawn], method: str) -> str:
    """Return what identifies the videos of a method that were drawn."""
    own = [item for item in items if item.methods == (method,)]
    return digest([[item.about, item.seed, sha256_file(item.sides[0][0])] for item in own])


SOURCE = Source(
    "videos of prompts", {"evaluation": ("events",), "release": ("events",), "run": ("events",), "file": ()},
    "an evaluation of videos (fabula evaluate events), or a suite and --outputs",
    ("methods", "stories", "labels", "limit", "per_prompt", "outputs"), draw_videos,
)  # fmt: skip
