"""Opening models: ours, and those of plug-ins."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from fabula.errors import ConfigError, MissingRequirement
from fabula.models.generators.request import PictureRequest, read_generated
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import ADAPTERS, check_provider, open_model, providers
from fabula.models.spec import parse_spec

PLUGIN = """
class House:
    def __init__(self, spec, options, redactor):
        self.spec = spec
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "house_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fabula.chat_models]\nhouse = house_models:House\nopenai = house_models:House\n"
    )
    (tmp_path / "house_models.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_model_when_a_plug_in_serves_it_is_opened(plugin: None) -> None:
    model = open_model(parse_spec("house:big"), ModelOptions(), Redactor())
    assert type(model).__name__ == "House"
    assert providers()[-1] == "house"


def test_model_when_ours_is_never_a_plug_in_s(plugin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key")
    assert type(open_model(parse_spec("openai:x"), ModelOptions(), Redactor())).__name__ == "OpenAIChat"
    assert len(providers()) == len(ADAPTERS) + 1


def test_model_when_nobody_serves_it_names_who_there_is() -> None:
    with pytest.raises(ConfigError, match="openai, google, anthropic"):
        open_model(parse_spec("mystery:x"), ModelOptions(), Redactor())


@pytest.mark.parametrize("spec", ["openai:x", "google:x", "anthropic:x"])
def test_model_when_its_key_is_missing_is_not_opened(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingRequirement, match="API_KEY"):
        open_model(parse_spec(spec), ModelOptions(), Redactor())


def test_model_when_its_library_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingRequirement, match=r"fabula\[anthropic\]"):
        open_model(parse_spec("anthropic:x"), ModelOptions(), Redactor())


def test_modules_when_imported_load_no_sdk() -> None:
    names = ["client", "options", "replies", "registry", "prices", "keys", "edge", "faults"]
    names += ["transport", "openai_models", "google_chat", "anthropic_chat"]
    makers = ["openai_images", "google_images", "google_videos", "diffusers_images", "command"]
    names += [f"generators.{maker}" for maker in makers]
    code = "\n".join(f"import fabula.models.{name}" for name in names)
    heavy = (
        "{'openai', 'google.genai', 'anthropic', 'httpx2', 'json_repair', 'genai_prices', 'jsonschema_rs',"
        " 'torch', 'diffusers', 'PIL'}"
    )
    code += f"\nimport sys\nassert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


GENERATORS = """
import base64
from fabula.models.chat import Reply, Usage
from fabula.models.generators.request import Generated, GeneratedFile, PictureRequest


class Easel:
    def __init__(self, spec, options, redactor):
        self.name = spec.name

    async def complete(self, request):
        picture = PictureRequest.of(request)
        file = GeneratedFile(f"{self.name}: {picture.prompt}".encode(), "image/png")
        return Reply("ok", Generated(file, unsupported=("seed",)).packed(), usage=Usage())

    async def close(self):
        pass
"""


@pytest.fixture
def generators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "house_easel-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-easel\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fabula.image_models]\neasel = house_easel:Easel\n[fabula.video_models]\nreel = house_easel:Easel\n"
    )
    (tmp_path / "house_easel.py").write_text(GENERATORS)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("spec", ["image:easel:oil", "video:reel:oil"])
def test_generator_when_a_plug_in_serves_it_is_asked_like_ours(spec: str, generators: None) -> None:
    read = parse_spec(spec)
    check_provider(read)
    model = open_model(read, ModelOptions(), Redactor())
    reply = asyncio.run(model.complete(PictureRequest(spec, "a fox", seed=7).chat()))
    made = read_generated(reply.text)
    assert (made.file.data, made.unsupported) == (b"oil: a fox", ("seed",))
    assert read.provider in providers(read.makes)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("image:easel:oil", "no provider easel of images; there are: openai, google, compatible, diffusers"),
        ("video:openai:sora", "no provider openai of videos; there are: google, command, drawn"),
        ("image:anthropic:x", "no provider anthropic of images"),
    ],
)
def test_generator_when_nobody_serves_it_names_who_there_is(spec: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_provider(parse_spec(spec))
