"""ViStoryBench's public evaluation, driven from its own entry point, against the definitions ``code``.

Networks and the judge are stubs that know each picture by the colour of its first pixel; files, crops,
matching, means, records and the summary are the public code's own. Drawn stories have missing pictures,
boxes, faces, encoders and references, and replies that cannot be read.
"""

import builtins
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.stage import Item, Tools
from fabula.evaluation.metrics.inception import inception_score
from fabula.evaluation.metrics.story import FoundStory
from fabula.evaluation.shots import looking
from fabula.evaluation.shots.judging import CropSettings, PictureSettings
from fabula.evaluation.shots.ratings import Definitions, Panel, Rated, story_ratings
from fabula.evaluation.shots.requests import line_of
from fabula.evaluation.shots.scores import StoryScore, pooled, score_story
from fabula.models.vision.store import VectorStore

pytestmark = [pytest.mark.slow, pytest.mark.parity]

STORIES, SETS = 160, 16
CELLS, CELL = 5, 4
FACES = ("arcface", "adaface", "facenet")
CODE = Definitions(
    chosen={name: "code" for name in ("cids", "copy-paste", "occm", "csd", "alignment")}, resamples=0
)
NAMES = {
    "cids_cross": ("cids", "cids_cross_mean"), "cids_self": ("cids", "cids_self_mean"),
    "copy_paste_rate": ("cids", "copy_paste_score"), "occm": ("cids", "occm"),
    "action": ("cids", "single_character_action"), "csd_self": ("csd", "self_csd"),
    "csd_cross": ("csd", "cross_csd"), "scene": ("prompt_align", "scene"),
    "shot": ("prompt_align", "camera"), "interaction": ("prompt_align", "character_action"),
}  # fmt: skip
"""Score of ours -> metric and key of the public records."""
ZEROS = ("copy_paste_rate", "occm", "csd_self", "csd_cross")
"""Where the public code writes 0, and there is no value here: nothing matched, nobody on stage, one picture,
no reference."""
DIMENSIONS = ("scene", "shot", "interaction")
Key = tuple[int, int, int, bool]
"""What a picture is known by: story, file, place and side of its first pixel; whether it is a whole one."""


@dataclass
class Drawn:
    """One story: its script, which pictures there are, and all that networks and the judge say of them."""

    number: int
    script: dict[str, Any]
    references: dict[str, int] = field(default_factory=dict)
    pictures: set[int] = field(default_factory=set)
    boxes: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    ratings: dict[tuple[int, str], int | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.number:03}"

    @property
    def files(self) -> dict[str, list[int]]:
        """Character -> numbers of its reference files."""
        starts = {key: 50 + 10 * place for place, key in enumerate(self.script["Characters"])}
        return {key: [starts[key] + index for index in range(n)] for key, n in self.references.items()}


def drawn(number: int) -> Drawn:
    random = Random(number)
    draw = random.random
    keys = [f"Ana{index}" for index in range(random.randint(1, 3))]
    tags = {key: random.choice(["realistic_human", "realistic_human", "non_human"]) for key in keys}
    size = random.randint(2, 5)
    shots = []
    for index in range(1, size + 1):
        cast = [key for key in keys if draw() < 0.6]
        said = {
            "Plot Correspondence": "plot", "Setting Description": "scene",
            "Shot Perspective Design": "shot", "Static Shot Description": "interaction",
        }  # fmt: skip
        texts = {name: {"en": f"{number} {index} {part}", "ch": "x"} for name, part in said.items()}
        shots.append({"index": index, **texts, "Characters Appearing": {"en": cast, "ch": cast}})
    sheets = {key: {"tag": tags[key], "name_en": key, "prompt_en": key} for key in keys}
    story = Drawn(number, {"Story_type": {"en": "tale"}, "Characters": sheets, "Shots": shots})
    story.references = {key: 0 if draw() < 0.03 else random.randint(1, 2) for key in keys}
    absent = draw() < 0.08
    for index in range(1, size + 1):
        if not absent and draw() < 0.85:
            story.pictures.add(index)
        for part in DIMENSIONS:
            story.ratings[index, part] = None if draw() < 0.1 else random.randint(0, 4)
        for key in keys:
            story.ratings[index, key] = random.randint(0, 4)
    for file in (*range(1, size + 1), *(file for files in story.files.values() for file in files)):
        cells = random.sample(range(CELLS), random.choice([0, 1, 2, 2, 3, 4]))
        story.boxes[file] = [(cell, 0.3 + 0.1 * rank) for rank, cell in enumerate(reversed(cells))][::-1]
    return story


@cache
def vector(encoder: str, key: Key) -> Any:
    """What an encoder makes of a picture: a unit vector, as exact as float32; None where there is no face."""
    random = Random(f"{encoder} {key}")
    if encoder in FACES and random.random() < 0.45:
        return None
    row = np.array([random.gauss(0.6, 1) for _ in range(6)])
    return (row / np.linalg.norm(row)).astype(np.float32).astype(np.float64)


def rating_text(story: Drawn, index: int, part: str, attempt: int) -> str:
    """What the judge replies; the first attempt of some cannot be read, and no attempt of others."""
    rating = story.ratings[index, part]
    random = Random(f"{story.number} {index} {part}")
    odd = ["", "I would say four.", "**Score:** 3", "Score = 2", "4", "score 1"]
    if rating is None or (attempt == 0 and random.random() < 0.3):
        return odd[(attempt + random.randrange(6)) % 6]
    return random.choice(
        ["Score: {}", "score: {}, for the light", "Fine.\nScore:{}\nScore: 9", "Score: about {}"]
    ).format(rating)


def write_picture(path: Path, story: int, file: int) -> None:
    pixels = np.zeros((CELL, CELL * CELLS, 3), dtype=np.uint8)
    pixels[..., 0], pixels[..., 1] = story, file
    pixels[..., 2] = np.repeat(np.arange(2 * CELLS), CELL // 2)[None, :]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, format="PNG")


def key_of(pixels: Any) -> Key:
    """What RGB pixels are known by."""
    first = pixels[0, 0]
    return int(first[0]), int(first[1]), int(first[2]), pixels.shape[1] > CELL


# The public side


class Networks:
    """In place of networks and judge, for modules of the public code."""

    def __init__(self, stories: Mapping[int, Drawn]) -> None:
        self.stories, self.image, self.attempts = stories, None, {}

    # The detector: GroundingDINO
    def predict(self, image: str, **_: object) -> tuple[Any, Any, list[str]]:
        import torch

        with Image.open(image) as opened:
            story, file, *_rest = key_of(np.array(opened))
        boxes = self.stories[story].boxes[file]
        width = CELL * CELLS
        rows = [((CELL * c + CELL / 2 + 0.2) / width, 0.55, (CELL + 0.2) / width, 1.05) for c, _ in boxes]
        return torch.tensor(rows).reshape(-1, 4), torch.tensor([score for _, score in boxes]), []

    # Faces: insightface, facexlib's helper, AdaFace, FaceNet
    def prepare(self, **_: object) -> None: ...

    def get(self, bgr: Any) -> list[Any]:
        found = vector("arcface", key_of(bgr[..., ::-1]))
        return [] if found is None else [SimpleNamespace(embedding=found)]

    def clean_all(self) -> None: ...

    def read_image(self, bgr: Any) -> None:
        self.cropped_faces = [bgr]

    def get_face_landmarks_5(self, **_: object) -> None: ...

    def align_warp_face(self) -> None: ...

    def adaface(self, rgb: Any) -> Any:
        import torch

        return torch.from_numpy(vector("adaface", key_of(rgb.numpy())))[None], None

    def facenet(self, batch: Any) -> Any:
        import torch

        bgr = (batch[0].permute(1, 2, 0) * 255).round().int().numpy()
        return torch.from_numpy(vector("facenet", key_of(bgr[..., ::-1])))[None]

    # CLIP, CSD, Inception
    def processor(self, images: list[Any], **_: object) -> Any:
        import torch

        return {"pictures": torch.tensor([key_of(np.array(image)) for image in images])}

    def get_image_features(self, pictures: Any) -> Any:
        import torch

        keys = [(*map(int, row[:3]), bool(row[3])) for row in pictures]
        return torch.from_numpy(np.array([vector("clip", key) for key in keys]))  # type: ignore[arg-type]

    def style(self, batch: Any) -> Any:
        import torch

        story, file = (round(255 * batch[0, channel, 0, 0].item()) for channel in (0, 1))
        return {"style": torch.from_numpy(vector("style", (story, file, 0, True)))[None]}

    def classes(self, batch: Any) -> Any:
        import torch

        keys = [(*map(int, row[:3]), True) for row in batch]
        return torch.from_numpy(np.array([3 * vector("classes", key) for key in keys]))  # type: ignore[arg-type]

    # The judge
    def query(self, transcript: Any, **_: object) -> str:
        texts = [part["text"] for message in transcript for part in message["content"] if "text" in part]
        asked = next(text for text in texts if text.split(" ")[0].isdigit() and len(text.split(" ")) == 3)
        number, index, part = asked.split(" ")
        named = next((text.rpartition(" ")[2] for text in texts if text.startswith("Evaluated")), part)
        question = (int(number), int(index), named)
        self.attempts[question] = self.attempts.get(question, -1) + 1
        return rating_text(self.stories[int(number)], int(index), named, self.attempts[question])


STUBBED = (
    "groundingdino", "groundingdino.util", "groundingdino.util.inference", "facexlib", "facexlib.utils",
    "facexlib.utils.face_restoration_helper", "insightface", "natsort", "pandas", "transformers",
    "torchvision", "torchvision.ops", "torchvision.transforms", "torchvision.transforms.v2",
    "vistorybench.bench.content.AdaFace", "vistorybench.bench.content.AdaFace.inference",
)  # fmt: skip
"""Networks, what prepares pictures for them, and libraries that load slowly and are used for nothing here."""


def _stand_in(name: str) -> ModuleType:
    """A module in which every name is something that can be called, and three do their work."""
    import torch

    module = ModuleType(name)
    module.__path__ = []
    module.__getattr__ = _missing  # type: ignore[method-assign]
    module.natsorted = sorted  # type: ignore[attr-defined]
    module.Compose = lambda _: lambda picture: picture  # type: ignore[attr-defined]

    def corners(boxes: Any, **_: str) -> Any:
        centre, size = boxes[:, :2], boxes[:, 2:]
        return torch.cat([centre - 0.5 * size, centre + 0.5 * size], dim=1)

    module.box_convert = corners  # type: ignore[attr-defined]
    return module


def _missing(part: str) -> Any:
    if part.startswith("__"):
        raise AttributeError(part)
    return SimpleNamespace(BICUBIC=3) if part == "InterpolationMode" else lambda *_, **__: None


@pytest.fixture(scope="module")
def stories() -> dict[int, Drawn]:
    return {number: drawn(number) for number in range(1, STORIES + 1)}


@pytest.fixture(scope="module")
def tree(stories: dict[int, Drawn], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn set, and its outputs in as many time stamps as there are sets."""
    root = tmp_path_factory.mktemp("vistory")
    for story in stories.values():
        folder = root / "data" / "ViStory" / story.name
        folder.mkdir(parents=True)
        (folder / "story.json").write_text(json.dumps(story.script), "utf-8")
        for key, files in story.files.items():
            for index, file in enumerate(files):
                write_picture(folder / "image" / key / f"{index:02}.jpg", story.number, file)
        outputs = root / "outputs" / "drawn" / "en" / "base" / f"set{story.number % SETS:02}" / story.name
        outputs.mkdir(parents=True)
        for index in story.pictures:
            write_picture(outputs / f"shot_{index:02}.png", story.number, index)
    return root


@pytest.fixture(scope="module")
def driven(
    request: pytest.FixtureRequest, stories: dict[int, Drawn], tree: Path
) -> Iterator[tuple[dict[str, dict[str, Any]], list[Any], ModuleType]]:
    """Records and summaries of the public ``bench_run``, and its module of the Inception score."""
    root = os.environ.get("FABULA_REFERENCE")
    if not root:
        pytest.skip("FABULA_REFERENCE is not set")
    import torch

    official = Path(root) / "official" / "vistorybench"
    networks = Networks(stories)
    before, dtype = set(sys.modules), torch.get_default_dtype()
    patch = pytest.MonkeyPatch()
    try:
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        patch.syspath_prepend(str(official))
        patch.chdir(official)
        for name in STUBBED:
            patch.setitem(sys.modules, name, _stand_in(name))
            parent, _, part = name.rpartition(".")
            if parent in STUBBED:
                setattr(sys.modules[parent], part, sys.modules[name])
        bench = importlib.import_module("bench_run")
        parts = "content.cids", "style.csd", "prompt_align.prompt_align", "diversity.diversity"
        cids, csd, align, _ = (sys.modules[f"vistorybench.bench.{part}_evaluator"] for part in parts)
        inception = sys.modules["vistorybench.bench.diversity.inception_score"]
        _stub(networks, SimpleNamespace(cids=cids, csd=csd, align=align, inception=inception), patch)
        stamps = iter(range(100))
        patch.setattr(bench.ResultManager, "create_timestamp", staticmethod(lambda: f"{next(stamps):03}"))
        config = tree / "config.yaml"
        config.write_text("core: {runtime: {device: cpu}}\n", "utf-8")
        given = {"config": config, "dataset_path": tree / "data", "outputs_path": tree / "outputs",
                 "result_path": tree / "results", "pretrain_path": tree / "none", "method": "drawn",
                 "api_key": "none", "base_url": "http://nowhere", "model_id": "stub"}  # fmt: skip
        metrics = ["--metrics", "cids", "csd", "prompt_align", "diversity"]
        patch.setattr(sys, "argv", ["bench_run", *(f"--{k}={v}" for k, v in given.items()), *metrics])
        bench.main()
        yield _results(tree / "results" / "drawn" / "base" / "en"), _summaries(tree), inception
    finally:
        patch.undo()
        torch.set_default_dtype(dtype)
        for name in set(sys.modules) - before:
            if name.split(".")[0] in ("vistorybench", "bench_run"):
                del sys.modules[name]


def _stub(networks: Networks, modules: Any, patch: pytest.MonkeyPatch) -> None:
    """Put stubs in place of networks, the judge, and the bytes that it is shown."""
    import torch

    def models(self: Any, *_: object) -> None:
        self.dino = object()
        self.clip, self.clip_processor = networks, networks.processor
        self.arcface, self.arcface_provider, self.face_helper = networks, "cpu", networks
        self.adaface, self.facenet = networks.adaface, networks.facenet

    cids, csd, align, inception = modules.cids, modules.csd, modules.align, modules.inception
    patch.setattr(cids.CIDSEvaluator, "_load_models", models)
    for module in (cids, csd, align):
        patch.setattr(module, "load_outputs", _cached(module.load_outputs))
    patch.setattr(cids, "load_image", lambda path: (path, path))
    patch.setattr(cids, "predict", networks.predict)
    patch.setattr(cids, "to_input", lambda rgb: torch.tensor(rgb.copy()))
    patch.setattr(cids, "round", _unrounded, raising=False)
    encoder = SimpleNamespace(to=lambda _: networks.style)
    patch.setattr(csd, "load_csd", lambda _: encoder)
    seen = sys.modules["vistorybench.bench.prompt_align.gptv_utils"]
    for module in (align, seen):
        patch.setattr(module, "gptv_query", networks.query)
        patch.setattr(module, "load_img_content", lambda *_, **__: {})
    patch.setattr(inception, "models", SimpleNamespace(inception_v3=lambda **_: _Called(networks.classes)))
    transform = {"Compose": lambda _: lambda image: torch.tensor(key_of(np.array(image))[:3])}
    transform |= dict.fromkeys(("Resize", "CenterCrop", "ToTensor", "Normalize"), lambda *_, **__: None)
    patch.setattr(inception, "transforms", SimpleNamespace(**transform))
    batches = lambda data, **_: [torch.stack([data[index] for index in range(len(data))])]  # noqa: E731
    patch.setattr(inception, "DataLoader", batches)


class _Called:
    """A network that is a function."""

    def __init__(self, called: Any) -> None:
        self.called = called

    def to(self, _: object) -> "_Called":
        return self

    def eval(self) -> None: ...

    def __call__(self, batch: Any) -> Any:
        return self.called(batch)


def _cached(function: Any) -> Any:
    kept: dict[str, Any] = {}

    def read(**given: Any) -> Any:
        if str(given) not in kept:
            kept[str(given)] = function(**given)
        return kept[str(given)]

    return read


def _unrounded(value: float, digits: int | None = None) -> float:
    """Values with digits stay as they are: 1e-6 shows more than four digits would."""
    return builtins.round(value) if digits is None else value


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    """Metric -> story -> its record."""
    made: dict[str, dict[str, Any]] = {}
    for file in folder.rglob("story_results.json"):
        made.setdefault(file.parent.name, {}).update(json.loads(file.read_text("utf-8")))
    return made


def _summaries(tree: Path) -> list[Any]:
    return [json.loads(file.read_text("utf-8")) for file in sorted((tree / "results").rglob("summary.json"))]


# Our side


class Known:
    """An encoder, predictor or detector of ours that knows pictures as the stubs of the public code do."""

    card = None

    def __init__(self, name: str) -> None:
        self.identity = name

    def encode(self, images: Any) -> Any:
        rows = [vector(self.identity, self._key(image)) for image in images]
        nothing = np.full(6, np.nan)
        return np.array([nothing if row is None else row for row in rows], dtype=np.float32)

    def _key(self, image: Any) -> Key:
        story, file, place, whole = key_of(np.array(image))
        return (story, file, 0, True) if self.identity == "style" else (story, file, place, whole)


class Classes(Known):
    """Class probabilities."""

    def predict(self, images: Any) -> Any:
        logits = np.array([3 * vector("classes", self._key(image)) for image in images])
        powers = np.exp(logits)
        return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)

    encode = None  # type: ignore[assignment]


def boxes_of(story: Drawn, file: int) -> list[list[float]]:
    return [[CELL * cell, 0, CELL * (cell + 1), CELL, score] for cell, score in story.boxes[file]]


@pytest.fixture(scope="module")
def ours(stories: dict[int, Drawn], tree: Path) -> dict[str, tuple[FoundStory, StoryScore, dict[str, Any]]]:
    """Story -> what is found, its scores, and its sub-scores of alignment."""
    items = [_item(story, tree) for story in stories.values()]
    with pytest.MonkeyPatch.context() as patch, VectorStore() as store:
        models = {name: Known(name) for name in (*FACES, "clip", "style")} | {"classes": Classes("classes")}
        patch.setattr(looking, "opened", lambda name, *_: models[name])
        patch.setattr(VectorStore, "of_user", lambda: store)
        patch.setattr(store, "close", lambda: None)
        crops = CropSettings(pictures=("clip",), faces=FACES)
        pictures = PictureSettings(style="style", inception="classes")
        made = zip(
            looking.encode_crops(items, Tools(crops, "2026-01-01T00:00:00Z")),
            looking.encode_pictures(items, Tools(pictures, "2026-01-01T00:00:00Z")), strict=True,
        )  # fmt: skip
        outcomes = [(one.fields | other.fields) for one, other in made]  # type: ignore[union-attr]
    found = {}
    for story, item, fields in zip(stories.values(), items, outcomes, strict=True):
        line = FoundStory.model_validate(line_of(Item(item.id, {**item.fields, **fields})))
        score = score_story(line, CODE)
        found[story.name] = (line, score, _alignment(story, line, score))
    return found


def _item(story: Drawn, tree: Path) -> Item:
    data = tree / "data" / "ViStory" / story.name
    outputs = tree / "outputs" / "drawn" / "en" / "base" / f"set{story.number % SETS:02}" / story.name
    shots = []
    for shot in story.script["Shots"]:
        index, cast = shot["index"], shot["Characters Appearing"]["en"]
        there = index in story.pictures
        file = str(outputs / f"shot_{index:02}.png") if there else None
        shots.append({"number": index, "onstage": len(cast), "expected": cast, "file": file,
                      "sha256": "0" * 64 if there else None})  # fmt: skip
    references = {
        key: [
            {"file": str(data / "image" / key / f"{index:02}.jpg"), "sha256": "0" * 64}
            for index, _ in enumerate(files)
        ]
        for key, files in story.files.items()
    }  # fmt: skip
    boxes = {
        "model": "drawn", "shots": {str(index): boxes_of(story, index) for index in story.pictures},
        "references": {
            key: [boxes_of(story, file)[:1] for file in files] for key, files in story.files.items()
        },
    }  # fmt: skip
    about = {"story_id": story.name, "script": story.script, "references": references}
    views = {"shots": {}, "crops": []}
    return Item(
        f"drawn/{story.name}",
        {"story": about, "facts": {}, "shots": shots, "boxes": boxes, "views": views},
    )


def _alignment(story: Drawn, line: FoundStory, score: StoryScore) -> dict[str, Any]:
    rated: Rated = {
        (index, part, None): story.ratings[index, part] for index in story.pictures for part in DIMENSIONS
    }
    for match in score.matches:
        if match.crop is not None:
            rated[match.shot, "action", match.character] = story.ratings[match.shot, match.character]
    return story_ratings(line, Panel(runs={0: {story.name: rated}}), 0, CODE)


def _official(records: Mapping[str, Mapping[str, Any]], name: str, story: str) -> float | None:
    metric, key = NAMES[name]
    record = records[metric].get(story)
    return None if record is None else record["metrics"].get(key)


def test_stories_when_scored_as_the_code_does_have_its_values(driven, ours, stories):
    records, compared, zeros, lost = driven[0], dict.fromkeys(NAMES, 0), 0, 0
    for story in stories.values():
        _, score, alignment = ours[story.name]
        recorded = story.name in records["cids"]
        for name in NAMES:
            theirs = _official(records, name, story.name)
            score_of = {**score.scores, **alignment}[name]
            if name in ("occm", "action") and not recorded and story.pictures:
                lost += 1  # a character has no reference vector: the code loses these, too
                continue
            value = score_of.value
            if name in DIMENSIONS and value is not None:
                value *= score_of.counts["answered"] / score_of.counts["asked"]  # a lost reply is 0 there
            if value is None:
                unread = name in DIMENSIONS and theirs == 0
                zeros += name in ZEROS and theirs == 0
                assert theirs is None or unread or (name in ZEROS and theirs == 0), (story.name, name)
            else:
                assert theirs == pytest.approx(value, abs=1e-6), (story.name, name)
                compared[name] += 1
    assert min(compared.values()) > 90, compared
    assert zeros > 5
    assert lost > 5


def test_shots_when_matched_as_the_code_does_have_its_similarities(driven: Any, ours: Any) -> None:
    compared = 0
    for story, record in driven[0]["cids"].items():
        for match in ours[story][1].matches:
            theirs = record.get(f"shot-{match.shot}", {}).get(match.character)
            if theirs is None:
                assert match.missed == "no image"
                continue
            assert theirs["cross_sim"] == pytest.approx(match.cross or 0.0, abs=1e-6)
            compared += 1
    assert compared > 300


def test_sets_when_averaged_as_the_code_does_have_its_summary(driven: Any, ours: Any) -> None:
    """The summary's means are ours once its zeros, and the stories that it loses, are accounted for."""
    records, summaries, _ = driven
    assert len(summaries) == SETS
    for index, summary in enumerate(summaries):
        rows = []
        for story in (name for name in ours if int(name) % SETS == index):
            _, score, alignment = ours[story]
            rows.append(StoryScore(story, {**score.scores, **alignment}))
        for name in ("cids_cross", "cids_self", "csd_cross", "csd_self", "copy_paste_rate"):
            metric, key = NAMES[name]
            mean = pooled(rows)[name]
            there = [story for story in records[metric] if int(story) % SETS == index]
            share = mean.counts["stories_counted"] / len(there)
            assert summary["metrics"][metric]["metrics"][key] == pytest.approx(mean.value * share, abs=1e-6)


def test_inception_when_split_leaves_the_remainder_out_as_the_code_does(driven, tree, stories):
    module = driven[2]
    for story in list(stories.values())[:60]:
        files = [
            str(
                tree
                / "outputs/drawn/en/base"
                / f"set{story.number % SETS:02}"
                / story.name
                / f"shot_{at:02}.png"
            )
            for at in sorted(story.pictures)
        ]
        rows = Classes("classes").predict([Image.open(file) for file in files]) if files else np.empty((0, 1))
        theirs = module.calculate_inception_score(files, splits=1, device="cpu")
        score = inception_score(rows.astype(np.float64))
        if score.value is None:
            assert theirs == (0.0, 0.0)
            continue
        assert theirs == pytest.approx((score.value, 0.0), abs=1e-6)
