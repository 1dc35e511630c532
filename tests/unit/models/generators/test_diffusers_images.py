"""Local pipelines, with the real classes of diffusers and tiny random weights."""

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.models.chat import CallFault, Reply
from fabula.models.generators.diffusers_images import DiffusersImages
from fabula.models.generators.request import Generated, PictureRequest, read_generated
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.spec import parse_spec
from fabula.testing.model_server import plain_png
from fabula.testing.tiny_pipelines import write_flux, write_sdxl

# Of diffusers' Euler scheduler, which makes an array of a tensor.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)


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


def ask(folder: Path | str, *wanted: dict[str, Any], **extra: Any) -> list[Reply]:
    spec = parse_spec(f"image:diffusers:{folder}")
    options = ModelOptions(extra={"device": "cpu", **extra})

    async def play() -> list[Reply]:
        model = DiffusersImages(spec, options, Redactor())
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


def test_weights_when_not_here_are_named_with_the_command_that_fetches_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(CallFault, match="hf download nobody/nothing --revision abc") as caught:
        ask("nobody/nothing", {}, revision="abc")
    assert caught.value.kind == "no_such_model"


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"dtype": "int4"}, "extra.dtype: Input should be"),
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
