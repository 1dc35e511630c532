"""Reading model specs."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fabula.models
from fabula.errors import ConfigError, FabulaError, MissingRequirement
from fabula.models.chat import ChatRequest, Message
from fabula.models.generators.request import PictureRequest, read_generated
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions, check_weights, options_for
from fabula.models.registry import ADAPTERS, check_adapter, check_provider, open_model, providers
from fabula.models.spec import ModelSettings, ModelSpec, OpenWeights, parse_spec


@pytest.mark.parametrize(
    ("text", "provider", "name", "base_url"),
    [
        ("openai:gpt-4.1-mini", "openai", "gpt-4.1-mini", None),
        ("openai:ft:gpt-4.1:org::id", "openai", "ft:gpt-4.1:org::id", None),
        ("google:gemini-2.5-pro", "google", "gemini-2.5-pro", None),
        ("anthropic:claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5", None),
        ("house-model:v2", "house-model", "v2", None),
        ("http://localhost:8000/v1#qwen3-vl", "compatible", "qwen3-vl", "http://localhost:8000/v1"),
        ("https://[::1]:8000/v1/#Qwen/Qwen3", "compatible", "Qwen/Qwen3", "https://[::1]:8000/v1"),
    ],
)
def test_spec_when_of_a_known_form_is_read(text: str, provider: str, name: str, base_url: str | None) -> None:
    spec = parse_spec(text)
    assert spec == ModelSpec(text, provider, name, base_url)
    assert str(spec) == text
    assert ModelSettings(model=text).models() == (text,)
    assert ModelSettings().models() == ()


@pytest.mark.parametrize(
    "text",
    [
        "", "gpt-4.1-mini", "openai:", ":gpt", "openai:a b", "OpenAI:x\n", "openai:" + "x" * 400,
        "http://localhost:8000/v1", "http://#name", "http://host:port/v1#m", "ftp://h/v1#m",
    ],
)  # fmt: skip
def test_spec_when_of_another_form_is_refused_with_the_forms_shown(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected .*NAME"):
        parse_spec(text)


def test_spec_when_the_address_holds_a_password_does_not_repeat_it() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec("https://me:hunter2hunter2@host/v1#m")
    assert "hunter2" not in str(caught.value)
    assert "api_key_env" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "https://host/v1?key=hunter2hunter2#m",
        "https://host/v1?hunter2hunter2#m",
        "https://host/v1#m?k=hunter2hunter2",
        "embedding:https://host/v1?api_key=hunter2hunter2#m",
        "openai:x?hunter2hunter2",
        "https://host/v1/token=hunter2hunter2#m",
        "htps://me:hunter2hunter2@host/v1#m",
        "sk-proj-hunter2hunter2",
        "AIzaSyhunter2hunter2",
    ],
)
def test_spec_when_it_may_hold_a_secret_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec(text)
    assert "hunter2" not in str(caught.value) and "hunter2" not in repr(caught.value.__context__)
    assert "api_key_env" in str(caught.value) or "what looks like a key" in str(caught.value)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "weights", "public"),
    [
        ("vllm:Qwen/Qwen2.5-VL-7B-Instruct", OpenWeights("Qwen/Qwen2.5-VL-7B-Instruct"), None),
        ("sglang:a/b@refs/pr/1", OpenWeights("a/b", "refs/pr/1"), None),
        ("hf:/models/mine", OpenWeights(path=Path("/models/mine")), "hf:mine"),
        ("llamacpp:../w/smol.gguf", OpenWeights(path=Path("../w/smol.gguf")), "llamacpp:smol.gguf"),
        ("llamacpp:a/b-GGUF@v1:Q4_K_M", OpenWeights("a/b-GGUF", "v1", "Q4_K_M"), None),
        ("compatible:qwen3-vl", None, "compatible:qwen3-vl"),
        ("http://10.0.0.7:8000/v1#qwen3-vl", None, "compatible:qwen3-vl"),
        ("embedding:http://localhost:1/v1#e", None, "embedding:compatible:e"),
        ("openai:gpt-4.1-mini", None, None),
    ],
)
def test_spec_when_of_an_open_model_says_which_weights_and_keeps_places_private(text, weights, public):
    spec = parse_spec(text)
    assert (spec.weights, spec.public) == (weights, public or text)
    assert spec.is_local == (weights is not None)


@pytest.mark.parametrize(
    "text", ["vllm:qwen", "llamacpp:Qwen/Qwen3", "hf:a/b:Q4", "llamacpp:model.bin", "vllm:x.gguf"]
)
def test_spec_when_an_open_model_is_named_wrongly_shows_how_they_are_named(text: str) -> None:
    with pytest.raises(ConfigError, match=rf"expected {text.partition(':')[0]}:"):
        parse_spec(text)


def key_of(text: str, **settings: Any) -> str:
    options = options_for(parse_spec(text), {text: settings})
    return options.apply(ChatRequest(text, (Message("user", ("hi",)),))).key()


def test_key_of_an_open_model_holds_its_commit_and_precision_and_no_place(tmp_path, monkeypatch):
    branch, pinned = "vllm:org/name", f"vllm:org/name@{COMMIT}"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    refs = tmp_path / "models--org--name/refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text(COMMIT)
    assert key_of(branch) == key_of(pinned)
    assert key_of(pinned, program="/opt/vllm/bin/vllm", context=4096, concurrency=2) == key_of(pinned)
    others = [
        key_of(pinned, dtype="float16"), key_of(pinned, quantization="awq"), key_of(pinned, args=["--x"]),
        key_of(f"vllm:org/name@{COMMIT[::-1]}"), key_of(f"sglang:org/name@{COMMIT}"),
    ]  # fmt: skip
    assert len({key_of(pinned), *others}) == 6
    (refs / "main").write_text(COMMIT[::-1])  # the branch moves
    assert key_of(branch) == key_of(f"vllm:org/name@{COMMIT[::-1]}")


def test_key_of_a_file_or_a_folder_is_that_of_its_bytes_wherever_it_lies(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text("{}")
        (tmp_path / folder / "model.safetensors").write_bytes(b"weights")
        (tmp_path / folder / f"{folder}.gguf").write_bytes(b"GGUF")
    keys = [key_of(f"llamacpp:{tmp_path}/{name}/{name}.gguf") for name in ("one", "two")]
    assert len(set(keys)) == 1
    (tmp_path / "two/two.gguf").write_bytes(b"GGUF, another")
    assert key_of(f"llamacpp:{tmp_path}/two/two.gguf") not in keys
    (tmp_path / "two/two.gguf").rename(tmp_path / "one/one.gguf")
    (tmp_path / "two/one.gguf").write_bytes((tmp_path / "one/one.gguf").read_bytes())
    assert key_of(f"hf:{tmp_path}/one") == key_of(f"hf:{tmp_path}/two")


def test_weights_when_nobody_knows_them_are_named_before_a_run_and_missing_in_an_estimate(tmp_path):
    for text, said in (("hf:org/none", "not in the Hub's cache"), (f"hf:{tmp_path}/no", "does not exist")):
        spec = parse_spec(text)
        options = options_for(spec, {})
        assert options.weights is None
        with pytest.raises(FabulaError, match=said):
            check_weights(spec, options.weights)
    assert options_for(parse_spec("hf:org/none"), {"hf:org/none": {"weights": COMMIT}}).weights == COMMIT


def test_server_with_a_name_of_its_own_moves_without_being_asked_anew() -> None:
    moved = [key_of("compatible:qwen", base_url=f"http://{host}:8000/v1") for host in ("10.0.0.1", "h")]
    assert len(set(moved)) == 1
    old = "http://10.0.0.1:8000/v1#qwen"
    assert key_of(old) == key_of(old, base_url="http://10.0.0.2:9000/v1")  # moved since
    spec = parse_spec("compatible:qwen")
    for reached in (check_adapter, lambda spec, options: open_model(spec, options, Redactor())):
        with pytest.raises(ConfigError, match="nothing says where this server is"):
            reached(spec, options_for(spec, {}))


def test_key_of_a_request_made_before_there_were_open_models_is_as_it_was() -> None:
    assert ChatRequest("openai:x", (Message("user", ("hi",)),)).key() == (
        "cfd2a19dbc09eb81fa02154bd7a988fea1e8e61f86c113e46b13c0f78a2c8c2f"
    )
    options = options_for(parse_spec("openai:x"), {})
    assert set(options.identity()) == {"structured", "unsupported", "extra"}


def test_options_of_open_models_are_patient_and_only_theirs() -> None:
    defaults = {
        text: options_for(parse_spec(text), {text: {"weights": COMMIT}})
        for text in ("vllm:a/b", "sglang:a/b", "llamacpp:a/b:Q4_0", "hf:a/b")
    }
    assert [(each.concurrency, each.call_timeout) for each in defaults.values()] == [
        (64, 3600.0), (64, 3600.0), (4, 3600.0), (8, 3600.0)
    ]  # fmt: skip
    near, far = "http://127.0.0.1:8000/v1#m", "http://10.0.0.1:8000/v1#m"
    assert [options_for(parse_spec(text), {}).call_timeout for text in (near, far)] == [3600.0, 180.0]
    with pytest.raises(ConfigError, match="dtype: this key is for open models"):
        options_for(SPEC, given(dtype="float16"))


# Settings of one model.

SPEC = parse_spec("openai:gpt-4.1-mini")


def given(**values: Any) -> dict[str, dict[str, Any]]:
    return {SPEC.text: values}


def test_options_when_given_as_toml_values_are_read() -> None:
    options = options_for(
        SPEC,
        given(
            concurrency=8,
            unsupported=["temperature"],
            headers={"X-Team": "stories", "Authorization": "Bearer ${GATEWAY}"},
            proxy="http://${PROXY_USER}:${PROXY_PASSWORD}@proxy:3128",
            prices={"input": 1.5, "output": 6},
            extra={"reasoning_effort": "low"},
        ),
    )
    assert options.unsupported == ("temperature",)
    assert options.prices is not None
    assert options.prices.output == 6.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"concurency": 1}, "concurency: there is no such key; there are: base_url"),
        ({"concurrency": 0}, "concurrency: at least 1 is wanted here, found 0"),
        ({"structured": "xml"}, "structured: expected 'schema', 'json' or 'prompt'"),
        ({"base_url": "localhost:8000"}, "base_url: expected an address that starts with http"),
        ({"base_url": "http://u:p@host"}, "base_url: expected the password of the address as ${VARIABLE}"),
        ({"base_url": "http://${U}@host"}, "base_url: expected an address without user"),
        ({"proxy": "ftp://host"}, "proxy: expected an address that starts with http"),
        ({"headers": {"X Y": "a"}}, "headers: expected header names"),
        ({"headers": {"X-A": "a\nb"}}, "headers.X-A: expected printable ASCII"),
        ({"prices": {"input": -1, "output": 1}}, "prices.input: at least 0 is wanted here, found -1"),
        (
            {"prices": {"input": 1}},
            "prices: expected both input and output, in USD per million tokens, found one",
        ),
        ({"prices": {"picture": 1, "cached_input": 1}}, "prices: expected both input and output"),
        ({"prices": {}}, "prices: expected input and output, picture, or second, found none of them"),
        (
            {"extra": {"picture": {"steps": 3}}},
            "extra.picture: expected only what Fabula does not set itself",
        ),
        ({"patience": float("inf")}, "patience: a number that is neither infinite nor NaN is wanted"),
    ],
)
def test_options_when_a_value_is_wrong_name_section_and_key(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        options_for(SPEC, given(**values))
    assert f'[models."openai:gpt-4.1-mini"] {expected}' in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"headers": {"Authorization": "Bearer planted-secret"}},
        {"headers": {"x-api-key": "planted-secret"}},
        {"headers": {"Cookie": "planted-secret"}},
        {"headers": {"api_token": 12, "x": "planted-secret"}},
        {"proxy": "http://me:planted-secret@proxy"},
        {"proxy": "http://me:${A}planted-secret@proxy"},
        {"proxy": "http://planted-secret@proxy"},
        {"base_url": "http://me:planted-secret@host"},
        {"api_key_env": "sk-planted-secret"},
        {"api_key_env": ["planted-secret"]},
    ],
)
def test_options_when_a_secret_stands_in_them_are_refused_without_repeating_it(values):
    with pytest.raises(ConfigError) as caught:
        options_for(SPEC, given(**values))
    assert "planted" not in str(caught.value)
    assert "planted" not in repr(caught.value.__context__)


def test_apply_when_the_model_refuses_settings_leaves_them_out_and_adds_extras() -> None:
    options = ModelOptions(unsupported=("temperature", "seed"), structured="json", extra={"effort": "low"})
    request = ChatRequest(
        "m", (Message("user", ("hi",)),), temperature=0.0, seed=7, extra={"effort": "high", "a": 1}
    )
    applied = options.apply(request)
    assert (applied.temperature, applied.seed, applied.structured) == (None, None, "json")
    assert applied.extra == {"effort": "low", "a": 1}
    assert applied.key() != request.key()


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ({"max_tokens": 9000}, "extra.max_tokens"),
        ({"n": 4}, "extra.n"),
        ({"generationConfig": {"maxOutputTokens": 9000}}, "extra.generationConfig.maxOutputTokens"),
        ({"logit_bias": [{"top_p": float("nan")}]}, "extra.logit_bias.top_p"),
    ],
)
def test_extra_when_it_would_cost_more_than_is_set_aside_or_is_no_json_is_refused(extra, named):
    with pytest.raises(ConfigError) as caught:
        options_for(parse_spec("openai:gpt-x"), {"openai:gpt-x": {"extra": extra}})
    assert named in str(caught.value)
    assert "secret" not in str(caught.value)


# Opening models: ours, and those of plug-ins.

PLUGIN = """
class House:
    def __init__(self, spec, options, redactor):
        self.spec = spec
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, *entries: str) -> None:
    """Install a package of one module with these entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("".join(f"{entry}\n" for entry in entries))
    (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapters = ("house = house_models:House", "openai = house_models:House")
    install(tmp_path, monkeypatch, "house_models", PLUGIN, "[fabula.chat_models]", *adapters)


def test_model_when_a_plug_in_serves_it_is_opened(plugin: None) -> None:
    model = open_model(parse_spec("house:big"), ModelOptions(), Redactor())
    assert type(model).__name__ == "House"
    assert providers()[-1] == "house"


def test_model_when_ours_is_never_a_plug_in_s(plugin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key")
    assert type(open_model(parse_spec("openai:x"), ModelOptions(), Redactor())).__name__ == "OpenAIChat"
    assert len(providers()) == len(ADAPTERS) + 1


@pytest.mark.parametrize("spec", ["openai:x", "google:x", "anthropic:x"])
def test_model_when_its_key_is_missing_is_not_opened(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingRequirement, match="API_KEY"):
        open_model(parse_spec(spec), ModelOptions(), Redactor())


def test_model_when_its_library_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingRequirement, match=r"fabula\[anthropic\]"):
        open_model(parse_spec("anthropic:x"), ModelOptions(), Redactor())


def test_modules_when_imported_load_no_sdk() -> None:
    here = Path(fabula.models.__path__[0])
    names = [path.stem for path in here.glob("*.py")]
    names += [f"generators.{path.stem}" for path in here.glob("generators/*.py")]
    assert {"client", "anthropic_chat", "generators.diffusers_images"} <= {*names}
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
    images, videos = "[fabula.image_models]\neasel", "[fabula.video_models]\nreel"
    entries = (f"{images} = house_easel:Easel", f"{videos} = house_easel:Easel")
    install(tmp_path, monkeypatch, "house_easel", GENERATORS, *entries)


@pytest.mark.parametrize("spec", ["image:easel:oil", "video:reel:oil"])
def test_generator_when_a_plug_in_serves_it_is_asked_like_ours(spec: str, generators: None) -> None:
    read = parse_spec(spec)
    check_provider(read)
    model = open_model(read, ModelOptions(), Redactor())
    reply = asyncio.run(model.complete(PictureRequest(spec, "a fox", seed=7).chat()))
    made = read_generated(reply.text)
    assert (made.file.data, made.unsupported) == (b"oil: a fox", ("seed",))
    assert read.provider in providers(read.makes)
