"""Random weights for the real architectures of models that look at pictures, in their libraries' own files.

Speed does not depend on the values. Sizes are those of the published configurations; ``depth`` cuts the
number of layers, for a first look.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fabula.models.vision.predictors import WIDTHS
from fabula.testing.tiny_vision import write_face_detector

if TYPE_CHECKING:
    import torch

Network = TypeVar("Network", bound="torch.nn.Module")
Settings = dict[str, Any]
_SPREAD = 0.02


def write_weights(name: str, folder: Path, depth: int | None = None) -> tuple[Settings, int]:
    """Write weights for a registered model, unless they are there.

    Args:
        name: of the model.
        folder: where; a folder per model is made below.
        depth: most layers of a transformer; None for all.

    Returns:
        The settings with which its loader takes them, and the number of parameters.
    """
    place = folder / f"{name}-{depth or 'whole'}"
    noted = place / "parameters.txt"
    fresh = not noted.is_file()
    place.mkdir(parents=True, exist_ok=True)
    settings, count = MAKERS[name](place, depth, fresh)
    if fresh:
        noted.write_text(str(count))
    return settings, int(noted.read_text())


def _filled(make: "Callable[[], Network]") -> "Network":
    """Return a module whose parameters are drawn, without the slower draws of its library."""
    import torch

    torch.manual_seed(42)
    with torch.device("meta"):
        module = make()
    module = module.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, _SPREAD)
    return module


def _size(module: "torch.nn.Module") -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _clip(place: Path, depth: int | None, fresh: bool) -> tuple[Settings, int]:
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    if not fresh:
        return {"local": place}, 0
    config = CLIPVisionConfig(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=depth or 24, num_attention_heads=16,
        image_size=224, patch_size=14, projection_dim=768,
    )  # fmt: skip
    module = _filled(lambda: CLIPVisionModelWithProjection(config))
    module.save_pretrained(place)
    return {"local": place}, _size(module)


def _dinov2(place: Path, depth: int | None, fresh: bool) -> tuple[Settings, int]:
    from transformers import Dinov2Config, Dinov2Model

    if not fresh:
        return {"local": place}, 0
    config = Dinov2Config(
        hidden_size=1024, num_hidden_layers=depth or 24, num_attention_heads=16, image_size=518, patch_size=14
    )
    module = _filled(lambda: Dinov2Model(config))
    module.save_pretrained(place)
    return {"local": place}, _size(module)


def _csd(place: Path, depth: int | None, fresh: bool) -> tuple[Settings, int]:
    import torch

    file, width, inner = place / "csd.pth", 1024, 4096
    if not fresh:
        return {"local": file}, 0
    shapes: dict[str, tuple[int, ...]] = {
        "class_embedding": (width,), "positional_embedding": (257, width), "conv1.weight": (width, 3, 14, 14),
        "ln_pre.weight": (width,), "ln_pre.bias": (width,), "ln_post.weight": (width,),
        "ln_post.bias": (width,),
    }  # fmt: skip
    block = {
        "attn.in_proj_weight": (3 * width, width), "attn.in_proj_bias": (3 * width,),
        "attn.out_proj.weight": (width, width), "attn.out_proj.bias": (width,),
        "ln_1.weight": (width,), "ln_1.bias": (width,), "ln_2.weight": (width,), "ln_2.bias": (width,),
        "mlp.c_fc.weight": (inner, width), "mlp.c_fc.bias": (inner,),
        "mlp.c_proj.weight": (width, inner), "mlp.c_proj.bias": (width,),
    }  # fmt: skip
    for layer in range(depth or 24):
        shapes |= {f"transformer.resblocks.{layer}.{name}": shape for name, shape in block.items()}
    torch.manual_seed(42)
    state = {f"module.backbone.{name}": torch.randn(shape) * _SPREAD for name, shape in shapes.items()}
    state |= {f"module.last_layer_{head}": torch.randn(width, 768) for head in ("style", "content")}
    torch.save({"model_state_dict": state}, file)
    return {"local": file}, sum(tensor.numel() for tensor in state.values())


def _aesthetic(place: Path, depth: int | None, fresh: bool) -> tuple[Settings, int]:
    import torch
    from transformers import SiglipVisionConfig, SiglipVisionModel

    settings = {"local": place / "siglip", "head": place / "head.pth"}
    if not fresh:
        return settings, 0
    config = SiglipVisionConfig(
        hidden_size=1152, intermediate_size=4304, num_hidden_layers=depth or 27, num_attention_heads=16,
        image_size=384, patch_size=14,
    )  # fmt: skip
    module = _filled(lambda: SiglipVisionModel(config))
    module.save_pretrained(settings["local"])
    state: dict[str, Any] = {}
    for number, sizes in enumerate(pairwise((1152, *WIDTHS))):
        layer = torch.nn.Linear(*sizes).state_dict()
        state |= {f"layers.{number}.{name}": tensor for name, tensor in layer.items()}
    torch.save(state, settings["head"])
    return settings, _size(module) + sum(tensor.numel() for tensor in state.values())


def _inception(place: Path, depth: int | None, fresh: bool) -> tuple[Settings, int]:  # noqa: ARG001
    import torch
    from torchvision.models import inception_v3

    file = place / "inception.pth"
    if not fresh:
        return {"local": file}, 0
    module = inception_v3(weights=None, init_weights=False)
    torch.save(module.state_dict(), file)
    return {"local": file}, _size(module)


def _grounding_dino(place: Path, depth: int | None, fresh: bool) -> tuple[Settings, int]:
    from transformers import BertTokenizer, GroundingDinoConfig, GroundingDinoForObjectDetection

    if not fresh:
        return {"local": place}, 0
    most = 6 if depth is None else max(2, min(depth, 6))  # with one its tied heads cannot be built
    layers = {"encoder_layers": most, "decoder_layers": most}
    module = GroundingDinoForObjectDetection(GroundingDinoConfig(**layers))  # by default the Swin-T one
    module.save_pretrained(place)
    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "character")
    BertTokenizer(vocab={word: number for number, word in enumerate(words)}).save_pretrained(place)
    return {"local": place}, _size(module)


def _people(place: Path, depth: int | None, fresh: bool) -> tuple[Settings, int]:  # noqa: ARG001
    from fabula.models.vision.detectors import ultralytics_library

    file = place / "people.pt"
    if not fresh:
        return {"local": file}, 0
    model = ultralytics_library()("yolo11n.yaml")
    model.model.names = {0: "person", **{number: f"thing {number}" for number in range(1, 80)}}
    model.save(str(file))
    return {"local": file}, _size(model.model)


def _arcface(place: Path, depth: int | None, fresh: bool) -> tuple[Settings, int]:
    settings = {"local": place / "encoder.onnx", "detector": place / "detector.onnx"}
    if not fresh:
        return settings, 0
    write_face_detector(settings["detector"])
    return settings, write_iresnet(settings["local"], (3, 13, depth or 30, 3))


def write_iresnet(file: Path, blocks: tuple[int, ...]) -> int:
    """Write an IResNet (ArcFace's network; 3, 13, 30, 3 blocks are r100) as a graph of ONNX.

    Normalisations are folded into the convolutions, as exporting does.

    Returns:
        The number of parameters.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    draw, held, nodes = np.random.default_rng(42), [], []

    def keep(name: str, *shape: int) -> str:
        values = draw.standard_normal(shape, dtype=np.float32) * np.float32(_SPREAD)
        held.append(numpy_helper.from_array(values, name))
        return name

    def convolve(given: str, name: str, sizes: tuple[int, int], side: int = 3, stride: int = 1) -> str:
        weights = keep(f"{name}.weight", sizes[1], sizes[0], side, side)
        pads = [side // 2] * 4
        nodes.append(helper.make_node("Conv", [given, weights, keep(f"{name}.bias", sizes[1])], [name],
                                      strides=[stride, stride], pads=pads))  # fmt: skip
        return name

    def bend(given: str, width: int) -> str:
        slope = keep(f"{given}.slope", width, 1, 1)
        nodes.append(helper.make_node("PRelu", [given, slope], [f"{given}.bent"]))
        return f"{given}.bent"

    at, width = bend(convolve("pixels", "stem", (3, 64)), 64), 64
    for name, (before, after), stride in _blocks(blocks):
        inner = bend(convolve(at, f"{name}.a", (before, after)), after)
        inner = convolve(inner, f"{name}.b", (after, after), stride=stride)
        straight = convolve(at, f"{name}.c", (before, after), 1, stride) if stride == 2 else at
        nodes.append(helper.make_node("Add", [inner, straight], [name]))
        at, width = name, after
    nodes.append(helper.make_node("Flatten", [at], ["flat"]))
    ends = [keep("end.weight", width * 7 * 7, 512), keep("end.bias", 512)]
    nodes.append(helper.make_node("Gemm", ["flat", *ends], ["rows"]))
    given = [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 112, 112])]
    made = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 512])]
    graph = helper.make_graph(nodes, "iresnet", given, made, held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(file))
    return sum(int(np.prod(tensor.dims)) for tensor in held)


def _blocks(counts: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, int], int]]:
    before = 64
    for stage, (count, after) in enumerate(zip(counts, (64, 128, 256, 512), strict=True)):
        for number in range(count):
            yield f"{stage}.{number}", (before, after), 2 if number == 0 else 1
            before = after


MAKERS: dict[str, Callable[[Path, int | None, bool], tuple[Settings, int]]] = {
    "clip-vit-l-14": _clip,
    "dinov2-l-14": _dinov2,
    "csd-vit-l": _csd,
    "aesthetic-v2.5": _aesthetic,
    "inception-v3": _inception,
    "arcface-r100": _arcface,
    "grounding-dino-swin-t": _grounding_dino,
    "people-yolo11n": _people,
}
"""Registered model -> what writes weights for it."""
