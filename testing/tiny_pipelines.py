"""Tiny pipelines of the published ones' classes, with random weights: their pictures mean nothing."""

from importlib import import_module
from pathlib import Path
from typing import Any

WORDS = 77
"""Most tokens that their text encoder reads."""


def write_sdxl(folder: Path, seed: int = 0) -> Path:
    """Write a pipeline of SDXL's classes that makes 64 x 64 pixels in well under a second."""
    import torch
    from transformers import CLIPTextModel, CLIPTextModelWithProjection

    torch.manual_seed(seed)
    parts: Any = import_module("diffusers")  # without types
    words, config = _words(), _text_config()
    unet = parts.UNet2DConditionModel(
        block_out_channels=(32, 64),
        layers_per_block=1,
        sample_size=32,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        transformer_layers_per_block=(1, 1),
        projection_class_embeddings_input_dim=80,
        cross_attention_dim=64,
    )
    vae = parts.AutoencoderKL(
        block_out_channels=(32, 64),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        sample_size=64,
    )
    pipe = parts.StableDiffusionXLPipeline(
        vae, CLIPTextModel(config).eval(), CLIPTextModelWithProjection(config).eval(), words, words,
        unet.eval(), parts.EulerDiscreteScheduler(), add_watermarker=False,
    )  # fmt: skip
    pipe.save_pretrained(folder)
    return folder


def write_flux(folder: Path, seed: int = 0) -> Path:
    """Write a pipeline of FLUX's classes that makes small pictures in a moment."""
    import torch
    from transformers import CLIPTextModel, T5Config, T5EncoderModel

    torch.manual_seed(seed)
    parts: Any = import_module("diffusers")  # without types
    words = _words()
    transformer = parts.FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8),
    )  # fmt: skip
    vae = parts.AutoencoderKL(
        sample_size=32, in_channels=3, out_channels=3, block_out_channels=(4,), layers_per_block=1,
        latent_channels=1, norm_num_groups=1, use_quant_conv=False, use_post_quant_conv=False,
        shift_factor=0.0609, scaling_factor=1.5035,
    )  # fmt: skip
    long_text = T5EncoderModel(
        T5Config(vocab_size=len(words), d_model=32, d_kv=8, d_ff=37, num_layers=1, num_heads=4)
    )
    pipe = parts.FluxPipeline(
        scheduler=parts.FlowMatchEulerDiscreteScheduler(), vae=vae, transformer=transformer.eval(),
        text_encoder=CLIPTextModel(_text_config()).eval(), tokenizer=words,
        text_encoder_2=long_text.eval(), tokenizer_2=words,
    )  # fmt: skip
    pipe.save_pretrained(folder)
    return folder


def _words() -> Any:  # noqa: ANN401 - a tokenizer
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import CLIPTokenizer

    vocabulary = {"<|startoftext|>": 0, "<|endoftext|>": 1}
    for character in sorted(ByteLevel.alphabet()):
        vocabulary[character] = len(vocabulary)
        vocabulary[f"{character}</w>"] = len(vocabulary)
    return CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=WORDS)


def _text_config() -> Any:  # noqa: ANN401 - a configuration
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        vocab_size=len(_words()), bos_token_id=0, eos_token_id=1, pad_token_id=1, hidden_size=32,
        intermediate_size=37, num_attention_heads=4, num_hidden_layers=2, projection_dim=32,
    )  # fmt: skip
