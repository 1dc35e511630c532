"""The three real SDKs, asking a model server one question; each gives what it got in the same shape."""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fabula.models.chat import Image
from fabula.testing.model_server import ModelServer

KEY = "sk-planted-123456"
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["moral", "words"],
    "properties": {
        "moral": {"type": "string", "enum": ["greed", "pride"]},
        "words": {"type": "array", "items": {"type": "string"}, "minItems": 2},
    },
}
PICTURE = Image(b"\x89PNG\r\n\x1a\n\xfb\xff picture", "image/png")


@dataclass
class Got:
    """What an SDK returned."""

    text: str | None
    finish: str | None
    usage: tuple[int, int]
    raw: Any


def openai_request(text: str, wants: dict[str, Any]) -> dict[str, Any]:
    parts: list[Any] = [{"type": "text", "text": text}]
    for image in wants.get("images", ()):
        url = f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    request: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}],
        "max_completion_tokens": 500,
        "temperature": 0.0,
    }
    if wants.get("schema"):
        about = {"name": "moral_of", "strict": True, "schema": wants["schema"]}
        request["response_format"] = {"type": "json_schema", "json_schema": about}
    return request


def openai_got(reply: Any) -> Got:
    usage = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
    if not reply.choices:
        return Got(None, None, usage, reply)
    return Got(reply.choices[0].message.content, reply.choices[0].finish_reason, usage, reply)


def google_request(text: str, wants: dict[str, Any]) -> dict[str, Any]:
    from google.genai import types

    parts = [types.Part.from_text(text=text)]
    parts += [types.Part.from_bytes(data=i.data, mime_type=i.media_type) for i in wants.get("images", ())]
    config: dict[str, Any] = {}
    if wants.get("schema"):
        config = {"response_mime_type": "application/json", "response_json_schema": wants["schema"]}
    return {
        "model": "tiny",
        "contents": [types.Content(role="user", parts=parts)],
        "config": types.GenerateContentConfig(
            system_instruction="Be brief.", max_output_tokens=500, temperature=0.0, **config
        ),
    }


def google_got(reply: Any) -> Got:
    about = reply.usage_metadata
    usage = (about.prompt_token_count, about.candidates_token_count + (about.thoughts_token_count or 0))
    if not reply.candidates:
        return Got(None, None, usage, reply)
    first = reply.candidates[0]
    return Got(reply.text if first.content else None, first.finish_reason.value, usage, reply)


def anthropic_request(text: str, wants: dict[str, Any]) -> dict[str, Any]:
    content: list[Any] = [{"type": "text", "text": text}]
    for image in wants.get("images", ()):
        data = base64.b64encode(image.data).decode()
        source = {"type": "base64", "media_type": image.media_type, "data": data}
        content.append({"type": "image", "source": source})
    request: dict[str, Any] = {
        "model": "tiny",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 500,
        "extra_body": {"temperature": 0.0},
    }
    if wants.get("tool"):
        request["tools"] = [{"name": "moral_of", "input_schema": wants["schema"]}]
        request["tool_choice"] = {"type": "tool", "name": "moral_of"}
    elif wants.get("schema"):
        request["output_config"] = {"format": {"type": "json_schema", "schema": wants["schema"]}}
    return request


def anthropic_got(reply: Any) -> Got:
    usage = (reply.usage.input_tokens, reply.usage.output_tokens)
    texts = [block.text for block in reply.content if block.type == "text"]
    return Got(texts[0] if texts else None, reply.stop_reason, usage, reply)


def google_options(server: ModelServer, wants: dict[str, Any]) -> Any:
    from google.genai import types

    return types.HttpOptions(
        base_url=server.google_url,
        api_version="v1beta",
        timeout=int(wants.get("timeout", 30) * 1000),
        retry_options=types.HttpRetryOptions(attempts=1),
    )


def ask(server: ModelServer, protocol: str, text: str = "The fox.", **wants: Any) -> Got:
    """Ask once through the real SDK, without retries; its exceptions come through."""
    timeout = wants.get("timeout", 30)
    key = wants.get("key", KEY)
    if protocol == "openai":
        import openai

        with openai.OpenAI(base_url=server.openai_url, api_key=key, max_retries=0, timeout=timeout) as client:
            return openai_got(client.chat.completions.create(**openai_request(text, wants)))
    if protocol == "google":
        from google import genai

        google = genai.Client(api_key=key, http_options=google_options(server, wants))
        try:
            return google_got(google.models.generate_content(**google_request(text, wants)))
        finally:
            google.close()
    import anthropic

    with anthropic.Anthropic(
        base_url=server.anthropic_url, api_key=key, max_retries=0, timeout=timeout
    ) as claude:
        return anthropic_got(claude.messages.create(**anthropic_request(text, wants)))


async def ask_async(server: ModelServer, protocol: str, texts: list[str], **wants: Any) -> list[Got]:
    """Ask all at once through the real asynchronous SDK."""
    if protocol == "openai":
        import openai

        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key=KEY, max_retries=0) as client:
            calls = [client.chat.completions.create(**openai_request(text, wants)) for text in texts]
            return [openai_got(reply) for reply in await asyncio.gather(*calls)]
    if protocol == "google":
        from google import genai

        google = genai.Client(api_key=KEY, http_options=google_options(server, wants))
        try:
            asked = [google.aio.models.generate_content(**google_request(text, wants)) for text in texts]
            return [google_got(reply) for reply in await asyncio.gather(*asked)]
        finally:
            await google.aio.aclose()
            google.close()
    import anthropic

    async with anthropic.AsyncAnthropic(base_url=server.anthropic_url, api_key=KEY, max_retries=0) as claude:
        made = [claude.messages.create(**anthropic_request(text, wants)) for text in texts]
        return [anthropic_got(reply) for reply in await asyncio.gather(*made)]


class Sdks:
    """What the tests of the server use."""

    key = KEY
    schema = SCHEMA
    picture = PICTURE
    ask = staticmethod(ask)
    ask_async = staticmethod(ask_async)

    @staticmethod
    def status(server: ModelServer, protocol: str, **wants: Any) -> tuple[int, Any]:
        """Ask, and return status and body of the error that the SDK reports."""
        with pytest.raises(Exception) as caught:
            ask(server, protocol, **wants)
        error: Any = caught.value
        status = error.code if protocol == "google" else error.status_code
        return status, error


@pytest.fixture(scope="session")
def sdks() -> type[Sdks]:
    return Sdks


@pytest.fixture(params=["openai", "google", "anthropic"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def serve() -> Any:
    """Make a server that runs until the test ends."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def start(*args: Any, **options: Any) -> ModelServer:
            return stack.enter_context(ModelServer(*args, **options))

        starter: Callable[..., ModelServer] = start
        yield starter
