"""CSD ViT-L: the style of a picture, by the visual tower of CLIP ViT-L/14 with a style head.

The published checkpoint names its tensors as OpenAI's CLIP does. They are put into the tower of transformers,
every one and no other, so that a checkpoint of another model is an error and never a random head.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import needing
from .networks import Network, NetworkEncoder, Preparation, loaded_card, settled
from .store import Card
from .weights import Place, Source, library, load_state, load_strictly, missing, needed

SOURCE = Source(
    "tomg-group-umd/CSD-ViT-L", "5bc26a6fb0487f3f00a2a7313135103a005b1b67", "pytorch_model.bin",
    "40e92fad63a361b8136100cd234c42d401ef9b34ff1748234318929ebcc7e7a1", size=2_438_228_893,
)  # fmt: skip
"""The authors' own upload. Two public projects that do not know each other give this hash and size; the file
itself was not at hand here."""
PREPARATION = Preparation(224, 0, "stretched")
CARD = Card("csd-vit-l", SOURCE.repo, SOURCE.sha256, PREPARATION.text(), 768, 1e-4, "CC-BY-4.0")

_TOWER, _STYLE, _CONTENT = "backbone.", "last_layer_style", "last_layer_content"
_PLAIN = {
    "class_embedding": "embeddings.class_embedding",
    "positional_embedding": "embeddings.position_embedding.weight",
    "conv1.weight": "embeddings.patch_embedding.weight",
    "ln_pre.weight": "pre_layrnorm.weight",
    "ln_pre.bias": "pre_layrnorm.bias",
    "ln_post.weight": "post_layernorm.weight",
    "ln_post.bias": "post_layernorm.bias",
}
_IN_BLOCK = {
    "attn.out_proj": "self_attn.out_proj",
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}


def load_csd(place: Place, local: Path | None = None) -> NetworkEncoder:
    """Return the style encoder.

    ``local``: the checkpoint; None for the published one.
    """
    source = SOURCE if local is None else replace(SOURCE, sha256="")
    tower, head = make_tower(load_state(source, local))
    tower, head = settled(tower, place.checked()), head.to(place.device, tower.dtype)
    card = loaded_card(CARD, replace(SOURCE, revision=""), local)  # its hash, wherever the file lies
    return NetworkEncoder(
        Network(card, place, lambda pixels: tower(pixel_values=pixels).pooler_output @ head, PREPARATION)
    )


def make_tower(state: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the visual tower that a checkpoint holds, and its style head of shape (width, dimensions).

    Sizes are read off the tensors, and a head has one attention head per 64 of its width, as CLIP has it.
    """
    with needing(missing("transformers")):
        from transformers import CLIPVisionConfig, CLIPVisionModel
    try:
        patches = state[f"{_TOWER}conv1.weight"]
        places = state[f"{_TOWER}positional_embedding"]
        inner = state[f"{_TOWER}transformer.resblocks.0.mlp.c_fc.weight"]
        head = state[_STYLE]
    except KeyError as error:
        raise needed(SOURCE, f"a checkpoint without {error.args[0]}") from error
    width, patch = patches.shape[0], patches.shape[-1]
    layers = sum(name.endswith(".ln_1.weight") for name in state)
    config = CLIPVisionConfig(
        hidden_size=width, intermediate_size=inner.shape[0], num_hidden_layers=layers,
        num_attention_heads=max(1, width // 64), patch_size=patch,
        image_size=round((places.shape[0] - 1) ** 0.5) * patch, projection_dim=head.shape[1],
        hidden_act="quick_gelu",
    )  # fmt: skip
    tower = CLIPVisionModel(config)
    load_strictly(tower, dict(_renamed(state, tower)), SOURCE)
    return tower, head


def _renamed(state: Mapping[str, Any], tower: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - torch's own
    """Yield the tensors of the tower under the names that transformers has for them."""
    torch = library()
    prefix = "vision_model." if any(name.startswith("vision_model.") for name in tower.state_dict()) else ""
    for name, tensor in state.items():
        if not name.startswith(_TOWER) or name == f"{_TOWER}proj":
            continue  # the heads are taken by themselves, and the projection of CLIP is not used
        inner = name.removeprefix(_TOWER)
        if inner in _PLAIN:
            yield prefix + _PLAIN[inner], tensor
            continue
        _, _, number, rest = inner.split(".", 3)
        layer = f"{prefix}encoder.layers.{number}."
        if rest.startswith("attn.in_proj_"):
            kind = rest.removeprefix("attn.in_proj_")
            for part, piece in zip(("q", "k", "v"), torch.chunk(tensor, 3), strict=True):
                yield f"{layer}self_attn.{part}_proj.{kind}", piece
            continue
        layer_part, _, kind = rest.rpartition(".")
        yield f"{layer}{_IN_BLOCK.get(layer_part, layer_part)}.{kind}", tensor
