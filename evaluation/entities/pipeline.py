"""The stages of evaluating episodes, the files of a finished run, and what it says of itself."""

from collections.abc import Iterable, Iterator, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from ...engine.execute import STORE
from ...engine.manifest import Manifest, read_manifest
from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...models.vision.registry import loader_of
from ...schemas.canonical import Json, digest
from ...schemas.plain_files import MISSHAPEN, explaining, json_lines
from ..archive.merging import LineForm, Lines
from ..archive.replies import ReplyTally
from ..judging.settings import public_judge
from .archived import EPISODES, PROTOCOL
from .grids import COLUMNS
from .judging import PUBLISHED, EpisodeJudgeSettings
from .looking import GRID_FRAMES, GROUND_FRAMES, SIDE
from .metrics.catalogue import METRICS

KIND = "evaluate-episodes"
BEFORE = ("episodes:load_episodes", "episodes:list_shots")
LOOKING = (
    "measure_quality:measure_quality", "looking:take_frames", "looking:ground_entities",
    "looking:encode_appearances", "grids:draw_grids",
)  # fmt: skip
"""The stages that open videos or look at pictures."""
JUDGING = ("judging:JUDGE_FIDELITY", "judging:JUDGE_ACTIONS")
ACROSS = (
    "episodes:group_episodes",
    "judging:gate_appearances",
    "judging:JUDGE_PAIRS",
    "judging:JUDGE_LOCATIONS",
)
ANSWERS = ("fidelity", "actions")
"""The fields of a shot that hold rows of replies."""
DECODING = ("temperature", "max_tokens", "max_input_tokens", "sample")
SHOWN = ("shot", "frames", "quality", "grounded", "vectors", "grid")
"""What a line says of a shot."""


def _places(*names: str) -> tuple[str, ...]:
    return tuple(f"{__package__}.{name}" for name in names)


PIPELINE = Pipeline(
    name=KIND,
    stages=_places(*BEFORE, *LOOKING, *JUDGING, *ACROSS),
    finish=f"{__name__}:finish",
    final_fields=("whole", "shots", "gate", "pairs", "locations"),
)
ASSUMED = Pipeline(
    name=KIND,
    stages=_places(*BEFORE, "episodes:assume_shots", *JUDGING, *ACROSS),
    finish=f"{__name__}:finish",
    final_fields=PIPELINE.final_fields,
)
"""The same with everything taken to be seen that is scheduled: what judges are asked at most."""


class About(ReplyTally):
    """Collects what the manifest of an evaluation says, episode by episode."""

    kind = PROTOCOL
    first = "load_episodes"

    def __init__(self, run: Manifest) -> None:
        super().__init__(run)
        self._videos: dict[str, list[Json]] = {}
        self._models: dict[str, Json] = {}

    def add(self, item: Item) -> None:
        """Take in one episode of a method."""
        outputs, shots = item["whole"]["outputs"], item["shots"]
        method, _, episode_id = item.id.partition("/")
        self._outputs[method] = outputs
        self._videos.setdefault(method, []).append([episode_id, outputs["sha256"], invalid_shots(shots)])
        for shot in shots:
            self._models |= models_of(shot)

    def method(self, name: str) -> dict[str, Any]:
        """Return the accounting of a method, and what identifies its videos."""
        outputs, videos = self._outputs[name], self._videos[name]
        return {
            **accounting({episode: invalid for episode, _, invalid in videos}),
            "findings": outputs["codes"],
            "outputs_sha256": digest([[episode, sha256] for episode, sha256, _ in sorted(videos)]),
        }

    def protocol(self) -> dict[str, Any]:
        """Return how videos were looked at and judged."""
        settings = self._run.settings
        asking = EpisodeJudgeSettings.model_validate(settings["judge_fidelity"])
        outputs: Json = next(iter(self._outputs.values()), {"release": None, "episodes": None})
        judges = sorted(public_judge(spec).spec for spec in asking.judges)
        pillars = list(settings["group_episodes"]["pillars"])
        return {
            "release": outputs["release"],
            "episodes": outputs["episodes"],
            "pillars": pillars,
            "definitions": _definitions(settings, pillars),
            "models": dict(sorted(self._models.items())),
            "metrics": {metric.name: metric.version for metric in METRICS if metric.pillar in pillars},
            "judges": judges,
            "votes": dict.fromkeys(judges, 1),
            "judging": _judging(settings["judge_fidelity"], judges),
            "judge_models": self.identities(asking.judges),
            **PUBLISHED.protocol(asking, self._run),
        }


def _judging(given: Json, judges: list[str]) -> dict[str, Any]:
    """Return who judges and how; evaluations that differ in it are never united."""
    return {"judge": judges[0], **{name: given[name] for name in DECODING}} if judges else {}


OWN = {
    "device", "dtype", "options", "batch", "pairs", "weights", "judges", "votes", "wanted", "results",
    "keeps", "texts", "preset",
}  # fmt: skip
"""Settings of stages that say where or how fast models run, or what lies where; judges stand elsewhere."""
DEFINED: dict[int, tuple[str, ...]] = {
    1: ("measure_quality",),
    2: ("take_frames", "ground_entities", "draw_grids"),
    3: ("take_frames", "ground_entities", "encode_appearances", "gate_appearances", "judge_locations"),
}
"""Pillar -> the stages whose settings define its numbers."""
FIXED: dict[str, Json] = {
    "take_frames.frames": GROUND_FRAMES, "draw_grids.cells": [GRID_FRAMES // COLUMNS, COLUMNS],
    "ground_entities.crop_side": SIDE, "ground_entities.text_threshold": None,
}  # fmt: skip
"""Constants of Table 11 that are no settings; the threshold of texts changes no box and is not there."""


def _definitions(settings: Json, pillars: Iterable[int]) -> dict[str, Any]:
    """Return ``stage.key`` -> value of every setting that decides what is looked at, where it was used."""
    named = sorted({name for pillar in pillars for name in DEFINED[pillar]})
    left_out = {*OWN, *DECODING}
    made = {
        f"{name}.{key}": value
        for name in named
        for key, value in settings[name].items()
        if key not in left_out and key != "model"
    }
    if "ground_entities" in named:
        made["ground_entities.box_threshold"] = _box_threshold(settings["ground_entities"])
    return made | {key: value for key, value in FIXED.items() if key.partition(".")[0] in named}


def _box_threshold(settings: Json) -> float | None:
    """Return the least score of a box as the detector has it; None for one that has no such option."""
    name = settings["detector"]
    given: Json = settings["options"].get(name, {}).get("threshold")
    if name is None or given is not None:
        return None if name is None else float(given)
    option = signature(loader_of(name)).parameters.get("threshold")
    return None if option is None else float(option.default)


def models_of(shot: Json) -> dict[str, Json]:
    """Return what looked at a shot: its part in the evaluation -> identity of the model."""
    models: dict[str, Json] = {}
    if shot["quality"] is not None:
        models |= shot["quality"]["models"]
    if shot["grounded"] is not None:
        models |= shot["grounded"]["models"]
    if shot["vectors"] is not None:
        models["appearances"] = shot["vectors"]["model"]
    return models


def invalid_shots(shots: Iterable[Json]) -> list[list[str]]:
    """Return key and code of every shot of an episode; the code is empty where the video is usable."""
    return [[shot["shot"]["key"], code_of(shot)] for shot in shots]


def code_of(shot: Json) -> str:
    """Return why a shot cannot be looked at; empty where it can."""
    return shot["shot"]["code"] or shot["frames"]["invalid"] or ""


def accounting(episodes: dict[str, list[list[str]]]) -> dict[str, Any]:
    """Return how much of a method was asked for and can be looked at.

    ``episodes``: episode -> key and code of each shot.
    """
    shots = [(episode, key, code) for episode, keys in sorted(episodes.items()) for key, code in keys]
    invalid = [{"episode": episode, "shot": key, "code": code} for episode, key, code in shots if code]
    lacking = {entry["episode"] for entry in invalid}
    return {
        "episodes_requested": len(episodes),
        "episodes_complete": len(episodes) - len(lacking),
        "shots_requested": len(shots),
        "shots_valid": len(shots) - len(invalid),
        "missing_rate": len(invalid) / len(shots) if shots else None,
        "invalid": invalid,
    }


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write archive, manifest, and what was seen of every episode into the run folder."""
    About(read_manifest(folder)).finish(folder, items, EPISODES, line_of, rows_of)


def rows_of(item: Item) -> Iterator[Json]:
    """Yield every row of an episode: of its shots in order, then across them."""
    for shot in item["shots"]:
        for name in ANSWERS:
            yield from shot[name]
    yield from item["pairs"]
    yield from item["locations"]


def line_of(item: Item) -> Json:
    """Return what the archive keeps of a method's episode, besides replies; no path of this machine."""
    method, _, episode_id = item.id.partition("/")
    return {
        "method": method,
        "episode_id": episode_id,
        "episode": item["whole"]["episode"],
        "shots": [_shot(shot) for shot in item["shots"]],
        "gate": item["gate"],
    }


def _shot(shot: Json) -> Json:
    kept = {name: shot[name] for name in SHOWN}
    video = {name: value for name, value in shot["shot"]["video"].items() if name != "file"}
    kept["shot"] = {**shot["shot"], "video": video}
    pictures = {index: f"{STORE}/{name}" for index, name in shot["frames"]["pictures"].items()}
    kept["frames"] = {**shot["frames"], "pictures": pictures}
    if shot["grounded"] is not None:
        seen = {key: _seen(entity) for key, entity in shot["grounded"]["entities"].items()}
        kept["grounded"] = {**shot["grounded"], "entities": seen}
    if shot["grid"] is not None:
        kept["grid"] = {**shot["grid"], "file": f"{STORE}/{shot['grid']['file']}"}
    return kept


def _seen(entity: Json) -> Json:
    crop = entity["canonical"]
    return entity if crop is None else {**entity, "canonical": {**crop, "file": f"{STORE}/{crop['file']}"}}


# -- Archives of episodes: what was seen lies beside the replies

SEEN = ("quality", "grounded", "vectors", "grid")
"""What one evaluation may have looked for and another not, of each shot."""


def read_lines(folder: Path) -> Lines:
    """Return method and episode -> line of an evaluation folder."""
    path = folder / EPISODES
    with explaining(
        path, "give the folder of such an evaluation",
        what="not what fabula evaluate episodes wrote", of=MISSHAPEN,
    ):  # fmt: skip
        return {(line["method"], line["episode_id"]): _checked(line) for line in json_lines(path)}


def _checked(line: Json) -> Json:
    for shot in line["shots"]:
        code_of(shot)
        [shot[name] for name in SEEN]
    return line if line["gate"] is None else {**line, "gate": dict(line["gate"])}


def _videos(line: Json) -> Json:
    return [line["episode"], [[shot["shot"], shot["frames"]["invalid"]] for shot in line["shots"]]]


def _grounds(known: Json, line: Json) -> list[str]:
    return ["videos or schedule"] if _videos(known) != _videos(line) else []


def _joined(first: Json, other: Json) -> tuple[Json, list[str]]:
    """Return a line with what either saw, and what they saw differently."""
    differ: set[str] = set()

    def either(name: str, mine: Json, theirs: Json) -> Json:
        if mine is not None and theirs is not None and mine != theirs:
            differ.add(name)
        return theirs if mine is None else mine

    shots = [
        {**mine, **{name: either(name, mine[name], theirs[name]) for name in SEEN}}
        for mine, theirs in zip(first["shots"], other["shots"], strict=True)
    ]
    line = {**first, "shots": shots, "gate": either("gate", first["gate"], other["gate"])}
    return line, sorted(differ)


def _found(line: Json) -> dict[str, Json]:
    parts = {name: [shot[name] for shot in line["shots"]] for name in ("shot", *SEEN)}
    seen = {name: each for name, each in parts.items() if any(part is not None for part in each)}
    return seen if line["gate"] is None else {**seen, "gate": line["gate"]}


def _account(lines: Sequence[Json]) -> dict[str, Any]:
    return accounting({
        line["episode_id"]: [[shot["shot"]["key"], code_of(shot)] for shot in line["shots"]] for line in lines
    })  # fmt: skip


ARCHIVE = LineForm(
    EPISODES, "episodes",
    (
        "definitions", "episodes", "judge_models", "judges", "judging", "metrics", "models", "pillars",
        "prompts", "votes",
    ),
    read_lines, _grounds, _joined, _found, _account,
).archive()  # fmt: skip
"""``judging`` keeps those of two judges apart."""
