"""Local pipelines, with the real classes of diffusers and tiny random weights."""

import asyncio
import io
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fabula.models.chat import CallFault, Reply
from fabula.models.generators.diffusers_images import DiffusersImages, DiffusersVideos
from fabula.models.generators.request import Generated, PictureRequest, read_generated
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.spec import parse_spec
from fabula.testing.model_server import plain_png

# Tiny pipelines of the published ones' classes, with random weights: their pictures mean nothing.

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
    from transformers import CLIPTextModel

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
    pipe = parts.FluxPipeline(
        scheduler=parts.FlowMatchEulerDiscreteScheduler(), vae=vae, transformer=transformer.eval(),
        text_encoder=CLIPTextModel(_text_config()).eval(), tokenizer=words,
        text_encoder_2=_long_text(), tokenizer_2=words,
    )  # fmt: skip
    pipe.save_pretrained(folder)
    return folder


def write_wan(folder: Path, seed: int = 0) -> Path:
    """Write a pipeline of Wan's classes that makes a few small frames of a text."""
    import torch

    torch.manual_seed(seed)
    parts: Any = import_module("diffusers")  # without types
    words, text = _words(), _long_text()
    transformer = parts.WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=16, out_channels=16,
        text_dim=32, freq_dim=256, ffn_dim=32, num_layers=1, cross_attn_norm=True,
        qk_norm="rms_norm_across_heads", rope_max_seq_len=32,
    )  # fmt: skip
    vae = parts.AutoencoderKLWan(
        base_dim=3, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True]
    )
    parts.WanPipeline(
        tokenizer=words, text_encoder=text, transformer=transformer.eval(), vae=vae.eval(),
        scheduler=parts.FlowMatchEulerDiscreteScheduler(shift=7.0),
    ).save_pretrained(folder)  # fmt: skip
    return folder


def write_ltx(folder: Path, seed: int = 0) -> Path:
    """Write a pipeline of LTX's classes that makes a few small frames of a text and a first frame."""
    import torch

    torch.manual_seed(seed)
    parts: Any = import_module("diffusers")  # without types
    words, text = _words(), _long_text()
    transformer = parts.LTXVideoTransformer3DModel(
        in_channels=8, out_channels=8, patch_size=1, patch_size_t=1, num_attention_heads=4,
        attention_head_dim=8, cross_attention_dim=32, num_layers=1, caption_channels=32,
    )  # fmt: skip
    vae = parts.AutoencoderKLLTXVideo(
        latent_channels=8, block_out_channels=(8,) * 4, decoder_block_out_channels=(8,) * 4,
        layers_per_block=(1,) * 5, decoder_layers_per_block=(1,) * 5,
        spatio_temporal_scaling=(True, True, False, False),
        decoder_spatio_temporal_scaling=(True, True, False, False), decoder_inject_noise=(False,) * 5,
        upsample_residual=(False,) * 4, upsample_factor=(1,) * 4, timestep_conditioning=False, patch_size=1,
        patch_size_t=1, encoder_causal=True, decoder_causal=False,
    )  # fmt: skip
    parts.LTXImageToVideoPipeline(
        tokenizer=words, text_encoder=text, transformer=transformer.eval(), vae=vae.eval(),
        scheduler=parts.FlowMatchEulerDiscreteScheduler(),
    ).save_pretrained(folder)  # fmt: skip
    return folder


def _long_text() -> Any:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(vocab_size=len(_words()), d_model=32, d_kv=8, d_ff=37, num_layers=1, num_heads=4)
    return T5EncoderModel(config).eval()


def _words() -> Any:
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import CLIPTokenizer

    vocabulary = {"<|startoftext|>": 0, "<|endoftext|>": 1}
    for character in sorted(ByteLevel.alphabet()):
        vocabulary[character] = len(vocabulary)
        vocabulary[f"{character}</w>"] = len(vocabulary)
    return CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=WORDS)


def _text_config() -> Any:
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        vocab_size=len(_words()), bos_token_id=0, eos_token_id=1, pad_token_id=1, hidden_size=32,
        intermediate_size=37, num_attention_heads=4, num_hidden_layers=2, projection_dim=32,
    )  # fmt: skip


# Of diffusers' Euler scheduler, which makes an array of a tensor.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model is slower on several
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def sdxl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sdxl(tmp_path_factory.mktemp("weights") / "sdxl")


@pytest.fixture(scope="module")
def flux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_flux(tmp_path_factory.mktemp("weights") / "flux")


def ask(folder: Path | str, *wanted: dict[str, Any], makes: str = "image", **extra: Any) -> list[Reply]:
    spec = parse_spec(f"{makes}:diffusers:{folder}")
    options = ModelOptions(extra={"device": "cpu", **extra})

    async def play() -> list[Reply]:
        model = {"image": DiffusersImages, "video": DiffusersVideos}[makes](spec, options, Redactor())
        try:
            asked = [
                PictureRequest(spec.text, **{"prompt": "a fox", "width": 64, "height": 64, "steps": 1, **one})
                for one in wanted
            ]
            return [await model.complete(options.apply(picture.chat())) for picture in asked]
        finally:
            await model.close()

    return asyncio.run(play())


def made(folder: Path, *wanted: dict[str, Any], **extra: Any) -> list[Generated]:
    return [read_generated(reply.text) for reply in ask(folder, *wanted, **extra)]


def test_sdxl_when_seeds_are_given_draws_by_them_and_says_what_it_took(sdxl: Path) -> None:
    from PIL import Image

    first, same, other = made(sdxl, {"seed": 42}, {"seed": 42}, {"seed": 43, "negative": "cat"})
    assert first.file == same.file != other.file
    assert (first.seed, first.width, first.height, first.steps, first.unsupported) == (42, 64, 64, 1, ())
    assert other.unsupported == ()
    picture = Image.open(io.BytesIO(first.file.data))
    assert (picture.format, picture.size) == ("PNG", (64, 64))


def test_sdxl_when_choices_are_not_taken_records_them(sdxl: Path) -> None:
    from fabula.models.chat import Image

    reference = (Image(plain_png(8, 8, "x"), "image/png"),)
    plain, rich = made(
        sdxl, {"seed": 1},
        {"seed": 1, "negative": "cat", "references": reference, "scene": {"marks": []}}, guidance_scale=0.0,
    )  # fmt: skip
    assert rich.unsupported == ("references", "negative", "scene")
    assert rich.file == plain.file, "what is recorded as not taken changes nothing"


def test_flux_when_its_guidance_is_off_heeds_no_negative_prompt(flux: Path) -> None:
    plain, negative = made(flux, {"seed": 5}, {"seed": 5, "negative": "cat"})
    assert (negative.unsupported, negative.file == plain.file) == (("negative",), True)
    (heeded,) = made(flux, {"seed": 5, "negative": "cat"}, true_cfg_scale=4.0)
    assert (heeded.unsupported, heeded.file != plain.file) == ((), True)


def test_weights_when_not_here_are_named_with_the_command_that_fetches_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(CallFault, match="hf download nobody/nothing --revision abc") as caught:
        ask("nobody/nothing", {}, revision="abc")
    assert caught.value.kind == "no_such_model"


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"dtype": "int4"}, "extra.dtype: expected"),
        ({"guidence": 3}, "extra.guidence: StableDiffusionXLPipeline takes no such parameter"),
        ({"device": "nowhere"}, "extra.device: "),
    ],
)
def test_options_when_wrong_are_named(sdxl: Path, extra: dict[str, Any], words: str) -> None:
    with pytest.raises(CallFault) as caught:
        ask(sdxl, {}, **extra)
    assert caught.value.kind == "unsupported" and words in caught.value.message


def test_call_when_given_up_stops_the_pipeline(sdxl: Path) -> None:
    spec = parse_spec(f"image:diffusers:{sdxl}")
    options = ModelOptions(extra={"device": "cpu"})

    async def play() -> list[Reply]:
        model = DiffusersImages(spec, options, Redactor())
        endless = PictureRequest(spec.text, "a fox", width=64, height=64, steps=1000, seed=1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await model.complete(endless.chat())
        short = PictureRequest(spec.text, "a fox", width=64, height=64, steps=1, seed=1)
        reply = await model.complete(options.apply(short.chat()))
        await model.close()
        return [reply]

    assert asyncio.run(play())[0].outcome == "ok"


# Videos.


@pytest.fixture(scope="module")
def wan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wan(tmp_path_factory.mktemp("weights") / "wan")


@pytest.fixture(scope="module")
def ltx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ltx(tmp_path_factory.mktemp("weights") / "ltx")


def frames_in(video: Generated) -> list[Any]:
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(video.file.data)) as container:
        assert container.streams.video[0].average_rate == 8
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def apart(video: Generated, other: Generated) -> float:
    """Return how far the pixels are apart in the mean: on a busy processor a seed's may differ by a few."""
    import numpy as np

    ours, theirs = (np.stack(frames_in(one)).astype(float) for one in (video, other))
    return float(np.abs(ours - theirs).mean())


def test_video_when_a_pipeline_of_text_makes_it_has_its_size_and_the_nearest_length(wan: Path) -> None:
    wanted = {"seed": 42, "width": 32, "height": 16, "seconds": 1.0}
    first, same, other = made(wan, wanted, wanted, {**wanted, "seed": 43}, makes="video", fps=8)
    assert 4 * apart(first, same) < apart(first, other)
    assert (first.file.media_type, first.width, first.height, first.seed) == ("video/mp4", 32, 16, 42)
    # Eight frames a second for a second: Wan makes multiples of four and one more, so nine.
    frames = frames_in(first)
    assert (len(frames), frames[0].shape, first.unsupported) == (9, (16, 32, 3), ())


def test_video_when_a_first_frame_is_given_goes_to_pipelines_that_take_one(wan: Path, ltx: Path) -> None:
    from fabula.models.chat import Image

    picture, other = (Image(plain_png(32, 32, text), "image/png") for text in ("x", "y"))
    wanted = {"seed": 1, "width": 32, "height": 32, "seconds": 0.5, "first_frame": picture}
    rich = {**wanted, "references": (other,)}
    plain, led, again = (
        made(folder, one, makes="video", fps=8)[0]
        for folder, one in ((wan, rich), (ltx, rich), (ltx, wanted))
    )
    assert plain.unsupported == ("references", "first_frame")
    assert led.unsupported == ("references",)
    assert apart(led, again) < 1  # what is no first frame changes nothing
    alone = {name: value for name, value in rich.items() if name != "first_frame"}
    with pytest.raises(CallFault, match="begins with a picture, and none is given"):
        made(ltx, alone, makes="video", fps=8)
    (begun,) = made(ltx, alone, makes="video", fps=8, begin_with="reference")
    assert begun.unsupported == () and len(frames_in(begun)) == 5
    from_frame, from_reference = frames_in(led), frames_in(begun)
    assert (from_frame[0] != from_reference[0]).any()
