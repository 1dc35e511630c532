"""Weights for tests: every registered model in small, with random weights, in its library's own files.

Networks of torch are saved by their libraries and loaded like the published ones. Graphs of ONNX are built
here: the detector of faces finds red squares, each a face whose points stand as ArcFace wants them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..evaluation.metrics.metric import needs
from ..models.vision.face_encoders import ARCFACE, SIZE

if TYPE_CHECKING:
    from PIL.Image import Image

STRIDE = 32
"""Pixels of a cell in the coarsest grid of the detector of faces; a red square that fills one is a face."""
FACE_SIDE = 64
"""Pixels a side of a found face, around the upper left corner of its cell, in a picture of 640 x 640."""
_PATCH = 56


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


def write_face_detector(file: Path, *, points: bool = True, fixed: bool = True) -> Path:
    """Write a detector of faces in the form of SCRFD: three strides, two anchors a cell.

    ``fixed``: whether it takes 640 x 640 pixels only; the published one takes any size.
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
    kinds = ("scores", "boxes", "points") if points else ("scores", "boxes")
    outputs = []
    for kind, width in zip(kinds, (1, 4, 10), strict=False):
        for stride in (8, 16, STRIDE):
            count, name = (SIZE // stride) ** 2 * 2, f"{kind}_{stride}"
            outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [count, width]))
            if name == "scores_32":
                continue
            row = {"scores": np.zeros(1), "boxes": np.full(4, half), "points": marks.reshape(-1)}[kind]
            known[f"{name}_rows"] = np.tile(row.astype(np.float32), (count, 1))
            nodes.append(helper.make_node("Identity", [f"{name}_rows"], [name]))
    held = [numpy_helper.from_array(value, name) for name, value in known.items()]
    sides = (SIZE, SIZE) if fixed else ("height", "width")
    return _saved(nodes, ((1, 3, *sides), outputs), held, file)


def write_encoder(file: Path, side: int = 112, dimensions: int = 16, seed: int = 0) -> Path:
    """Write an encoder: the means of sixteen parts of a picture, times random weights."""
    from onnx import TensorProto, helper, numpy_helper

    weights = encoder_weights(dimensions, seed)
    nodes = [
        helper.make_node(
            "AveragePool", ["pixels"], ["means"], kernel_shape=[side // 4] * 2, strides=[side // 4] * 2
        ),
        helper.make_node("Flatten", ["means"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["rows"]),
    ]
    outputs = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", dimensions])]
    return _saved(nodes, (("n", 3, side, side), outputs), [numpy_helper.from_array(weights, "weights")], file)


def encoder_weights(dimensions: int = 16, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the weights of :func:`write_encoder`, shape (48, dimensions)."""
    return np.random.default_rng(seed).standard_normal((48, dimensions)).astype(np.float32)


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


def _clip(folder: Path) -> dict[str, Any]:
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer

    _seeded()
    small = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "projection_dim": 16,
    }  # fmt: skip
    vocabulary = clip_vocabulary()
    marks = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}  # as published, though wrong
    config = CLIPConfig(
        vision_config={**small, "image_size": 28, "patch_size": 14},
        text_config={**small, **marks, "vocab_size": len(vocabulary), "max_position_embeddings": 77},
        projection_dim=16,
    )
    CLIPModel(config).save_pretrained(folder)
    CLIPTokenizer(vocab=vocabulary, merges=[]).save_pretrained(folder)
    return {"local": folder}


def clip_vocabulary() -> dict[str, int]:
    """Return a vocabulary for CLIP's tokenizer without merges: a token for every byte, ends of words apart.

    As in the published one, the mark of a text's end has the highest number.
    """
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    marks = list(bytes_to_unicode().values())
    tokens = (*marks, *(f"{mark}</w>" for mark in marks), "<|startoftext|>", "<|endoftext|>")
    return {token: number for number, token in enumerate(tokens)}


def _dinov2(folder: Path) -> dict[str, Any]:
    from transformers import Dinov2Config, Dinov2Model

    _seeded()
    config = Dinov2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=224, patch_size=_PATCH
    )
    Dinov2Model(config).save_pretrained(folder)
    return {"local": folder}


def _dino(folder: Path) -> dict[str, Any]:
    from transformers import ViTConfig, ViTModel

    _seeded()
    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=224,
        patch_size=16,
    )  # fmt: skip
    model = ViTModel(config, add_pooling_layer=False)
    model.embeddings.position_embeddings.data.normal_(std=0.5)  # as far apart as trained ones are
    model.save_pretrained(folder)
    return {"local": folder}


def _raft(folder: Path) -> dict[str, Any]:
    from torchvision.models.optical_flow import raft_large

    torch = _seeded()
    torch.save(raft_large(weights=None).state_dict(), folder / "raft.pth")
    return {"local": folder / "raft.pth", "updates": 2}


def _laion(folder: Path) -> dict[str, Any]:
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    torch = _seeded()
    config = CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, projection_dim=16,
        image_size=224, patch_size=_PATCH,
    )  # fmt: skip
    CLIPVisionModelWithProjection(config).save_pretrained(folder / "clip")
    torch.save(torch.nn.Linear(16, 1).state_dict(), folder / "head.pth")
    return {"local": folder / "clip", "head": folder / "head.pth"}


def _musiq(folder: Path) -> dict[str, Any]:
    from pyiqa.archs.musiq_arch import MUSIQ

    torch = _seeded()
    torch.save(MUSIQ(pretrained=False).state_dict(), folder / "musiq.pth")
    return {"local": folder / "musiq.pth"}


def _csd(folder: Path) -> dict[str, Any]:
    torch, width, inner = _seeded(), 64, 256
    shapes = {
        "class_embedding": (width,), "positional_embedding": ((224 // _PATCH) ** 2 + 1, width),
        "conv1.weight": (width, 3, _PATCH, _PATCH), "ln_pre.weight": (width,), "ln_pre.bias": (width,),
        "ln_post.weight": (width,), "ln_post.bias": (width,),
    }  # fmt: skip
    block = {
        "attn.in_proj_weight": (3 * width, width), "attn.in_proj_bias": (3 * width,),
        "attn.out_proj.weight": (width, width), "attn.out_proj.bias": (width,),
        "ln_1.weight": (width,), "ln_1.bias": (width,), "ln_2.weight": (width,), "ln_2.bias": (width,),
        "mlp.c_fc.weight": (inner, width), "mlp.c_fc.bias": (inner,),
        "mlp.c_proj.weight": (width, inner), "mlp.c_proj.bias": (width,),
    }  # fmt: skip
    shapes |= {f"transformer.resblocks.0.{name}": shape for name, shape in block.items()}
    state = {f"module.backbone.{name}": torch.randn(shape) * 0.2 for name, shape in shapes.items()}
    heads = {f"module.last_layer_{head}": torch.randn(width, 24) for head in ("style", "content")}
    torch.save({"model_state_dict": state | heads}, folder / "csd.pth")
    return {"local": folder / "csd.pth"}


def _aesthetic(folder: Path) -> dict[str, Any]:
    from itertools import pairwise

    from transformers import SiglipVisionConfig, SiglipVisionModel

    torch = _seeded()
    config = SiglipVisionConfig(
        hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=384,
        patch_size=128,
    )  # fmt: skip
    SiglipVisionModel(config).save_pretrained(folder / "siglip")
    state: dict[str, Any] = {}
    for number, sizes in enumerate(pairwise((24, 1024, 128, 64, 16, 1))):
        layer = torch.nn.Linear(*sizes).state_dict()
        state |= {f"layers.{number}.{name}": tensor for name, tensor in layer.items()}
    torch.save(state, folder / "head.pth")
    return {"local": folder / "siglip", "head": folder / "head.pth"}


def _inception(folder: Path) -> dict[str, Any]:
    from torchvision.models import inception_v3

    torch = _seeded()
    torch.save(inception_v3(weights=None, init_weights=False).state_dict(), folder / "inception.pth")
    return {"local": folder / "inception.pth"}


def _grounding_dino(folder: Path) -> dict[str, Any]:
    from transformers import (
        BertConfig,
        BertTokenizer,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        SwinConfig,
    )

    _seeded()
    backbone = SwinConfig(
        image_size=32, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4,
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    text = BertConfig(
        vocab_size=16, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32,
    )  # fmt: skip
    config = GroundingDinoConfig(
        backbone_config=backbone, text_config=text, d_model=32, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        num_queries=12, max_text_len=16,
    )  # fmt: skip
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
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


def _faces(folder: Path) -> dict[str, Any]:
    return {"local": write_face_detector(folder / "detector.onnx")}


def _arcface(folder: Path) -> dict[str, Any]:
    return {"local": write_encoder(folder / "encoder.onnx"), "detector": _faces(folder)["local"]}


def _facenet(folder: Path) -> dict[str, Any]:
    return {"local": write_encoder(folder / "encoder.onnx", 160), "detector": _faces(folder)["local"]}


def _sam2(folder: Path) -> dict[str, Any]:
    from transformers import Sam2Config, Sam2Model

    _seeded()
    backbone = {
        "embed_dim_per_stage": [12, 24, 48, 96], "blocks_per_stage": [1, 1, 2, 1],
        "global_attention_blocks": [3], "image_size": [256, 256], "hidden_size": 12,
        "model_type": "sam2_hiera_det_model",
    }  # fmt: skip
    vision = {
        "backbone_config": backbone, "fpn_hidden_size": 32, "backbone_channel_list": [96, 48, 24, 12],
        "backbone_feature_sizes": [[64, 64], [32, 32], [16, 16]],
    }  # fmt: skip
    config = Sam2Config(
        vision_config=vision,
        prompt_encoder_config={"hidden_size": 32, "image_size": 256},
        mask_decoder_config={"hidden_size": 32, "mlp_dim": 32, "iou_head_hidden_dim": 32},
    )
    Sam2Model(config).save_pretrained(folder)
    return {"local": folder}


_MAKERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "clip-vit-l-14": _clip,
    "clip-vit-b-32": _clip,
    "dinov2-l-14": _dinov2,
    "dinov2-base": _dinov2,
    "dino-b-16": _dino,
    "raft-large": _raft,
    "laion-b-32": _laion,
    "laion-l-14": _laion,
    "musiq-spaq": _musiq,
    "csd-vit-l": _csd,
    "aesthetic-v2.5": _aesthetic,
    "inception-v3": _inception,
    "grounding-dino-swin-t": _grounding_dino,
    "people-yolo11n": _people,
    "faces-scrfd-10g": _faces,
    "arcface-r100": _arcface,
    "adaface-ir101": _arcface,
    "facenet-vggface2": _facenet,
    "sam2.1-hiera-tiny": _sam2,
}
