"""Weights for tests: every registered model in small, with random weights, in its library's own files.

Networks of torch (``tiny_networks.yaml``) are saved by their libraries and loaded like the published ones.
Graphs of ONNX are built here: the detector of faces finds red squares, each a face whose points stand as
ArcFace wants them.
"""

import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache, partial
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from ..evaluation.metrics.metric import needs
from ..models.vision.face_encoders import ARCFACE, SIZE

if TYPE_CHECKING:
    from PIL.Image import Image

STRIDE = 32
"""Pixels of a cell in the coarsest grid of the detector of faces; a red square that fills one is a face."""
DIMENSIONS = 16
"""Numbers of a vector of a face."""
FACE_SIDE = 64
"""Pixels a side of a found face, around the upper left corner of its cell, in a picture of 640 x 640."""


def tiny_settings(name: str, folder: Path) -> dict[str, Any]:
    """Write small weights for a registered model into a folder, and return the settings that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    return _MAKERS[name](folder)


def write_settings(folder: Path, stages: Mapping[str, tuple[str, Iterable[str]]], **changed: float) -> Path:
    """Write small weights and the settings file that names them; return the file.

    ``stages``: stage -> lines of its section, and the models that it opens. ``changed``: options that get
    other values, where a model has them.
    """
    lines = []
    for stage, (own, names) in stages.items():
        lines += [f"[{stage}]", own, *([f"[{stage}.options]"] if names else [])]
        for name in dict.fromkeys(names):
            given = tiny_settings(name, folder / "weights" / name)
            given |= {key: value for key, value in changed.items() if key in given}
            pairs = [f"{key} = {json.dumps(value, default=str)}" for key, value in given.items()]
            lines.append(f'"{name}" = {{ {", ".join(pairs)} }}')
    file = folder / "fabula.toml"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def write_shot_settings(folder: Path) -> Path:
    """Write settings with every model that looks at pictures for a registered metric."""
    stages: dict[str, tuple[str, list[str]]] = {}
    for need in needs():
        named = (need.model,) if isinstance(need.model, str) else need.model
        stages.setdefault(need.stage, ("", []))[1].extend(named)
    return write_settings(folder, stages)


def draw_faces(cells: Sequence[tuple[int, int, int]], size: tuple[int, int] = (SIZE, SIZE)) -> "Image":
    """Return a picture with what the detector of faces here takes for faces.

    ``cells``: column and row of a cell, 0 to 19, and how red it is, 0 to 255: 256 times its score.
    """
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIZE, SIZE), (0, 90, 60))
    draw = ImageDraw.Draw(image)
    for column, row, red in cells:
        left, top = column * STRIDE, row * STRIDE
        draw.rectangle((left, top, left + STRIDE - 1, top + STRIDE - 1), fill=(red, 0, 0))
        draw.rectangle((left - 14, top - 10, left - 9, top - 5), fill=(0, 10 * column, 250 - 10 * row))
    return image if size == image.size else image.resize(size, Image.Resampling.BICUBIC)


def write_face_detector(file: Path) -> Path:
    """Write a detector of faces in the form of SCRFD: three strides, two anchors a cell.

    It takes 640 x 640 pixels only; the published one takes any size.
    """
    from onnx import TensorProto, helper, numpy_helper

    weights = np.zeros((2, 3, STRIDE, STRIDE), dtype=np.float32)
    weights[0, 0] = 0.5 / STRIDE**2  # of (red - 127.5) / 128; the second anchor of a cell sees nothing
    lifted = np.array([127.5 / 256, 0], dtype=np.float32)
    half = FACE_SIDE / 2 / STRIDE
    marks = (np.array(ARCFACE.points) - ARCFACE.side / 2) * (FACE_SIDE / ARCFACE.side) / STRIDE
    known = {"kernel": weights, "lifted": lifted, "column": np.array([-1, 1])}
    nodes = [
        helper.make_node("Conv", ["pixels", "kernel", "lifted"], ["grid"], strides=[STRIDE, STRIDE]),
        helper.make_node("Transpose", ["grid"], ["turned"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["turned", "column"], ["scores_32"]),
    ]
    outputs = []
    for kind, width in (("scores", 1), ("boxes", 4), ("points", 10)):
        for stride in (8, 16, STRIDE):
            count, name = (SIZE // stride) ** 2 * 2, f"{kind}_{stride}"
            outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [count, width]))
            if name == "scores_32":
                continue
            row = {"scores": np.zeros(1), "boxes": np.full(4, half), "points": marks.reshape(-1)}[kind]
            known[f"{name}_rows"] = np.tile(row.astype(np.float32), (count, 1))
            nodes.append(helper.make_node("Identity", [f"{name}_rows"], [name]))
    held = [numpy_helper.from_array(value, name) for name, value in known.items()]
    return _saved(nodes, ((1, 3, SIZE, SIZE), outputs), held, file)


def write_encoder(file: Path, side: int = 112) -> Path:
    """Write an encoder: the means of sixteen parts of a picture, times random weights."""
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node(
            "AveragePool", ["pixels"], ["means"], kernel_shape=[side // 4] * 2, strides=[side // 4] * 2
        ),
        helper.make_node("Flatten", ["means"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["rows"]),
    ]
    outputs = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", DIMENSIONS])]
    return _saved(
        nodes, (("n", 3, side, side), outputs), [numpy_helper.from_array(encoder_weights(), "weights")], file
    )


def encoder_weights() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the weights of :func:`write_encoder`, shape (48, 16)."""
    return np.random.default_rng(0).standard_normal((48, DIMENSIONS)).astype(np.float32)


def _saved(nodes: list[Any], ends: tuple[tuple[Any, ...], list[Any]], held: list[Any], file: Path) -> Path:
    import onnx
    from onnx import TensorProto, helper

    given = [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ends[0])]
    graph = helper.make_graph(nodes, "made", given, ends[1], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(file))
    return file


def _seeded() -> Any:  # noqa: ANN401 - a module
    import torch

    torch.manual_seed(7)
    return torch


@cache
def _networks() -> dict[str, dict[str, Any]]:
    """Return the networks in small, by name."""
    text = (files(__package__) / "tiny_networks.yaml").read_text("utf-8")
    return dict(yaml.load(text, yaml.CSafeLoader))


def _network(name: str, **options: object) -> Any:  # noqa: ANN401 - a model of transformers
    """Return a network in small with random weights."""
    import transformers

    _seeded()
    known = _networks()[name]
    kind = getattr(transformers, known["model"])
    return kind(kind.config_class(**deepcopy(known["config"])), **options)


def _clip(folder: Path) -> dict[str, Any]:
    from transformers import CLIPTokenizer

    _network("clip").save_pretrained(folder)
    CLIPTokenizer(vocab=clip_vocabulary(), merges=[]).save_pretrained(folder)
    return {"local": folder}


def clip_vocabulary() -> dict[str, int]:
    """Return a vocabulary for CLIP's tokenizer without merges: a token for every byte, ends of words apart.

    As in the published one, the mark of a text's end has the highest number.
    """
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    marks = list(bytes_to_unicode().values())
    tokens = (*marks, *(f"{mark}</w>" for mark in marks), "<|startoftext|>", "<|endoftext|>")
    return {token: number for number, token in enumerate(tokens)}


def _dino(folder: Path) -> dict[str, Any]:
    model = _network("dino", add_pooling_layer=False)
    model.embeddings.position_embeddings.data.normal_(std=0.5)  # as far apart as trained ones are
    model.save_pretrained(folder)
    return {"local": folder}


def _laion(folder: Path) -> dict[str, Any]:
    import torch

    _network("laion").save_pretrained(folder / "clip")
    torch.save(torch.nn.Linear(16, 1).state_dict(), folder / "head.pth")
    return {"local": folder / "clip", "head": folder / "head.pth"}


def _csd(folder: Path) -> dict[str, Any]:
    torch, shapes = _seeded(), _networks()["csd"]["shapes"]
    state = {f"module.backbone.{name}": torch.randn(shape) * 0.2 for name, shape in shapes.items()}
    heads = {f"module.last_layer_{head}": torch.randn(64, 24) for head in ("style", "content")}
    torch.save({"model_state_dict": state | heads}, folder / "csd.pth")
    return {"local": folder / "csd.pth"}


def _aesthetic(folder: Path) -> dict[str, Any]:
    import torch

    _network("siglip").save_pretrained(folder / "siglip")
    state: dict[str, Any] = {}
    for number, sizes in enumerate(pairwise((24, 1024, 128, 64, 16, 1))):
        layer = torch.nn.Linear(*sizes).state_dict()
        state |= {f"layers.{number}.{name}": tensor for name, tensor in layer.items()}
    torch.save(state, folder / "head.pth")
    return {"local": folder / "siglip", "head": folder / "head.pth"}


def _grounding_dino(folder: Path) -> dict[str, Any]:
    from transformers import BertTokenizer

    _network("grounding_dino").save_pretrained(folder)
    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "character", "person")
    BertTokenizer(vocab={word: number for number, word in enumerate(words)}).save_pretrained(folder)
    return {"local": folder, "sides": (96, 256), "threshold": 0.3}


def _people(folder: Path) -> dict[str, Any]:
    from ..models.vision.detectors import ultralytics_library

    _seeded()
    model = ultralytics_library()("yolo11n.yaml")
    model.model.names = {0: "person", **{number: f"thing {number}" for number in range(1, 80)}}
    model.save(str(folder / "people.pt"))
    return {"local": folder / "people.pt", "size": 160, "threshold": 1e-5}


def _saved_network(name: str, folder: Path) -> dict[str, Any]:
    _network(name).save_pretrained(folder)
    return {"local": folder}


def _saved_state(place: str, options: Mapping[str, object], folder: Path) -> dict[str, Any]:
    """Save the state of what ``module:name`` makes with these options, in its full size."""
    torch, (module, name) = _seeded(), place.split(":")
    made = getattr(importlib.import_module(module), name)(**options)
    torch.save(made.state_dict(), folder / "weights.pth")
    return {"local": folder / "weights.pth"}


def _faces(folder: Path, side: int = 0) -> dict[str, Any]:
    """Save a detector of faces; with a side, an encoder of pictures of that side with it."""
    detector = write_face_detector(folder / "detector.onnx")
    if not side:
        return {"local": detector}
    return {"local": write_encoder(folder / "encoder.onnx", side), "detector": detector}


_RAFT = partial(_saved_state, "torchvision.models.optical_flow:raft_large", {"weights": None})
_MAKERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "clip-vit-l-14": _clip,
    "clip-vit-b-32": _clip,
    "dinov2-l-14": partial(_saved_network, "dinov2"),
    "dinov2-base": partial(_saved_network, "dinov2"),
    "dino-b-16": _dino,
    "raft-large": lambda folder: {**_RAFT(folder), "updates": 2},
    "laion-b-32": _laion,
    "laion-l-14": _laion,
    "musiq-spaq": partial(_saved_state, "pyiqa.archs.musiq_arch:MUSIQ", {"pretrained": False}),
    "csd-vit-l": _csd,
    "aesthetic-v2.5": _aesthetic,
    "inception-v3": partial(
        _saved_state, "torchvision.models:inception_v3", {"weights": None, "init_weights": False}
    ),
    "grounding-dino-swin-t": _grounding_dino,
    "people-yolo11n": _people,
    "faces-scrfd-10g": _faces,
    "arcface-r100": partial(_faces, side=112),
    "adaface-ir101": partial(_faces, side=112),
    "facenet-vggface2": partial(_faces, side=160),
    "sam2.1-hiera-tiny": partial(_saved_network, "sam2"),
}
