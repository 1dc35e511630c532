"""Estimates and bounds of token counts."""

import pytest

from fabula.models.chat import ChatRequest, Image, Message, ReplySchema
from fabula.models.options import ModelOptions
from fabula.models.prices import bound_tokens, estimate_request, estimate_tokens


def ask(*parts: str | Image, schema: ReplySchema | None = None) -> ChatRequest:
    return ChatRequest("m", (Message("user", parts),), schema)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("fox", 1),  # 3 / 4 rounded up
        ("a" * 400, 100),
        ("狐" * 10, 10),  # one each
        ("ф" * 10, 7),  # 0.7 each
        ("狐 " * 4, 5),  # 4 + 4 / 4
    ],
)
def test_estimate_when_scripts_differ_counts_each_its_way(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_bound_when_compared_is_never_below_the_bytes() -> None:
    text = "狐 and fox \ud800" * 50
    request = ask(text, schema=ReplySchema("s", {"type": "string", "description": "é" * 30}))
    bound = bound_tokens(request, ModelOptions())
    assert bound > len(text.encode("utf-8", "surrogatepass")) + 60
    assert bound > estimate_request(request)


def test_bound_when_there_are_images_counts_what_the_settings_say() -> None:
    image = Image(b"x", "image/png")
    plain, more = ModelOptions(image_tokens=500), ModelOptions(image_tokens=800)
    assert bound_tokens(ask("a", image, image), more) - bound_tokens(ask("a", image, image), plain) == 600
    assert estimate_request(ask("a", image)) > estimate_request(ask("a"))
