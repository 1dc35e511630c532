"""Adapter for OpenAI's image models, and for the many servers that speak the same.

A request without reference images is sent as JSON to ``/images/generations``, one with them as a form to
``/images/edits``. Neither has a place for a seed, a number of steps or a negative prompt; for a server that
has one, its settings say what it calls them: ``extra = { takes = { seed = "seed" } }``.
"""

from collections.abc import Mapping
from typing import Any, get_args

from ...schemas.canonical import Json, canonical_text
from ..chat import CallFault, ChatRequest, Image, Reply, Usage
from ..edge import text_or_none, tokens, usage_or_none
from ..keys import Redactor
from ..openai_models import openai_client
from ..options import ModelOptions
from ..spec import COMPATIBLE, ModelSpec
from .request import (
    LONGEST_PICTURE,
    NO_FILE,
    Choice,
    Generated,
    PictureRequest,
    PictureService,
    bytes_of,
    extras,
    file_of,
    not_taken,
)

TAKES = "takes"
"""Key of ``extra`` that names further choices: choice -> parameter of the server."""

_NAMEABLE: Mapping[str, str] = {"seed": "seed", "steps": "steps", "negative": "negative"}
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}


class OpenAIImages(PictureService):
    """A model behind OpenAI's images: one picture a call, in base64.

    Sizes are sent as they are, as ``size=WIDTHxHEIGHT``, and need both sides. Other members of ``extra`` are
    sent as they are, such as ``quality``.
    """

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        super().__init__(spec, options, redactor)
        self._is_own = spec.provider == COMPATIBLE
        self._client = openai_client(spec, options, redactor, LONGEST_PICTURE)

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        picture = PictureRequest.of(request)
        more = extras(request)
        body: dict[str, Any] = {"model": self._name, "prompt": picture.prompt}
        for choice, name in _names(more.pop(TAKES, {})).items():
            value = getattr(picture, _NAMEABLE[choice])
            if value is not None:
                body[name] = value
        if picture.width is not None and picture.height is not None:
            body["size"] = f"{picture.width}x{picture.height}"
        if self._is_own:
            # OpenAI's own models give base64 and refuse the parameter; others would give an address.
            body["response_format"] = "b64_json"
        body = {**body, **more}
        return {**body, "image": picture.references} if picture.references else body

    async def _send(self, body: dict[str, Any]) -> tuple[Mapping[str, str], bytes | str]:
        from httpx2 import Response

        references: tuple[Image, ...] = body.pop("image", ())
        if not references:
            response = await self._client.post("/images/generations", body=body, cast_to=Response)
            return response.headers, response.content
        name = "image" if len(references) == 1 else "image[]"
        files = [
            (
                name,
                (f"reference_{number}.{_ENDINGS.get(image.media_type, 'bin')}", image.data, image.media_type),
            )
            for number, image in enumerate(references, 1)
        ]
        response = await self._client.post(
            "/images/edits",
            body={key: _in_form(value) for key, value in body.items()},
            files=files,
            options={"headers": {"Content-Type": "multipart/form-data"}},
            cast_to=Response,
        )
        return response.headers, response.content

    def _read(
        self, request: ChatRequest, picture: PictureRequest, document: Mapping[str, Any]
    ) -> Reply | None:
        entries = document.get("data")
        if not isinstance(entries, list):
            return None
        model, usage = text_or_none(document.get("model")), _usage(document.get("usage"), picture)
        first: Mapping[str, Any] = entries[0] if entries else {}
        data = bytes_of(first.get("b64_json"))
        if data is None and isinstance(first.get("url"), str):
            raise CallFault(
                "unsupported",
                "the server gives an address in place of the picture, and nothing is fetched from there; set"
                f' what makes it give base64 in extra of [models."{request.model}"]',
                maybe_paid=True,
            )
        if data is None:
            return Reply("empty", "", NO_FILE.format(self.makes), None, model, usage)
        taken: list[Choice] = ["references"]
        if picture.width is not None and picture.height is not None:
            taken.append("size")
        taken += _names(extras(request).get(TAKES, {}))
        width, height = _size(document.get("size"))
        form = text_or_none(document.get("output_format"))
        made = Generated(
            file_of(data, None if form is None else f"image/{form}"),
            revised_prompt=text_or_none(first.get("revised_prompt")),
            seed=picture.seed if "seed" in taken else None,
            steps=picture.steps if "steps" in taken else None,
            width=width,
            height=height,
            unsupported=not_taken(picture, taken),
        )
        return Reply("ok", made.packed(), None, None, model, usage)


def _names(given: Json) -> dict[Choice, str]:
    """Return the choices that settings name, each with the server's word for it."""
    if not isinstance(given, Mapping) or not all(
        name in _NAMEABLE and isinstance(word, str) and word for name, word in given.items()
    ):
        raise CallFault(
            "unsupported",
            f"set takes to the server's words for {', '.join(_NAMEABLE)}, as in"
            ' extra = { takes = { seed = "seed" } }',
        )
    return {choice: str(given[choice]) for choice in get_args(Choice) if choice in given}


def _in_form(value: Json) -> str:
    """Return a parameter as a field of a form."""
    return value if isinstance(value, str) else canonical_text(value)


def _size(text: Json) -> tuple[int | None, int | None]:
    """Return width and height from a text such as ``1024x1536``."""
    width, _, height = text.partition("x") if isinstance(text, str) else ("", "", "")
    return (int(width), int(height)) if width.isdecimal() and height.isdecimal() else (None, None)


def _usage(usage: Json, picture: PictureRequest) -> Usage | None:
    """Return the counts; of what they are made of, None for what is not told."""
    if not isinstance(usage, Mapping):
        return None
    seen = tokens(usage.get("input_tokens_details"), "image_tokens")
    return usage_or_none(
        Usage(
            tokens(usage, "input_tokens"),
            tokens(usage, "output_tokens"),
            image_input_tokens=seen if seen is not None or picture.references else 0,
            image_output_tokens=tokens(usage.get("output_tokens_details"), "image_tokens"),
        )
    )
