"""Adapter for Google's models that answer with pictures, through generateContent of google-genai.

A size is sent as the aspect ratio that it has and, from 1,536 pixels on, as ``2K`` or ``4K``: pixels cannot
be chosen. What else a model takes goes into ``extra``, which is merged into the request's body.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...schemas.canonical import Json
from ..chat import ChatRequest, Image, Part, Reply, ReplyOutcome, Usage
from ..edge import text_or_none, tokens
from ..google_chat import BLOCKED, close_google, google_client, google_usage, pick, post_contents, read_reply
from ..keys import Redactor
from ..options import ModelOptions
from ..spec import ModelSpec
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

RATIOS = (
    *("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"),
    *("1:4", "4:1", "1:8", "8:1"),
)
"""Aspect ratios that the service knows."""

_NEAR = 0.02
_SIZES = ((3072, "4K"), (1536, "2K"))


def aspect_ratio(width: int | None, height: int | None, known: tuple[str, ...] = RATIOS) -> str | None:
    """Return the known aspect ratio that a size has, within 2 %; None where it has none."""
    if not width or not height:
        return None
    for ratio in known:
        across, _, down = ratio.partition(":")
        if abs(width * int(down) / (height * int(across)) - 1) <= _NEAR:
            return ratio
    return None


def image_size(width: int, height: int) -> str | None:
    """Return the service's word for about so many pixels; None for the usual, which is about 1024 x 1024."""
    side = math.sqrt(width * height)
    return next((word for least, word in _SIZES if side >= least), None)


class GoogleImages(PictureService):
    """A Gemini model that answers with a picture; what it takes are references, a seed and aspect ratios."""

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        from google.genai import types

        super().__init__(spec, options, redactor)
        self._types = types
        self._client, self._http = google_client(spec, options, redactor, LONGEST_PICTURE)

    async def close(self) -> None:
        """Close connections."""
        await close_google(self._client, self._http)

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        types, picture, more = self._types, PictureRequest.of(request), extras(request)
        ratio = aspect_ratio(picture.width, picture.height)
        shape: dict[str, str] = {}
        if ratio is not None and picture.width and picture.height:
            size = image_size(picture.width, picture.height)
            shape = {"aspect_ratio": ratio, **({} if size is None else {"image_size": size})}
        config = types.GenerateContentConfig(
            response_modalities=["TEXT", "IMAGE"],
            image_config=types.ImageConfig(**shape) if shape else None,
            seed=picture.seed,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            automatic_continuation=False,
            should_return_http_response=True,
            http_options=types.HttpOptions(extra_body=more) if more else None,
        )
        asked: tuple[Part, ...] = (picture.prompt, *picture.references)
        parts = [self._part(part) for part in asked]
        return {
            "model": self._name,
            "contents": [types.Content(role="user", parts=parts)],
            "config": config,
        }

    def _part(self, part: Part) -> Any:  # noqa: ANN401 - SDK type
        if isinstance(part, Image):
            return self._types.Part.from_bytes(data=part.data, mime_type=part.media_type)
        return self._types.Part(text=part)

    async def _send(self, body: dict[str, Any]) -> tuple[Mapping[str, str], bytes | str]:
        return await post_contents(self._client, body)

    def _read(
        self,
        request: ChatRequest,  # noqa: ARG002
        picture: PictureRequest,
        document: Mapping[str, Any],
    ) -> Reply | None:
        said = read_reply(document)
        if said is None:
            return None
        inline = _inline(document)
        usage = _usage(document, picture, is_empty=inline is None and not said.text)
        data = None if inline is None else bytes_of(inline.get("data"))
        if inline is None or data is None or said.finish in BLOCKED:
            outcome, detail = _without_picture(said)
            return replace(said, outcome=outcome, detail=detail, usage=usage)
        taken: list[Choice] = ["references", "seed"]
        if aspect_ratio(picture.width, picture.height) is not None:
            taken.append("size")
        made = Generated(
            file_of(data, text_or_none(pick(inline, "mimeType"))),
            seed=picture.seed,
            unsupported=not_taken(picture, taken),
        )
        return Reply("ok", made.packed(), None, said.finish, said.reported_model, usage)


def _inline(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first picture of the first candidate that is no draft; None where it has none."""
    candidates = document.get("candidates") or [{}]
    for part in (candidates[0].get("content") or {}).get("parts") or []:
        inline = pick(part, "inlineData")
        if isinstance(inline, Mapping) and not part.get("thought"):
            return inline
    return None


def _without_picture(said: Reply) -> tuple[ReplyOutcome, str | None]:
    """Return what a reply without a picture is, and why."""
    if said.outcome in ("blocked", "truncated"):
        return said.outcome, said.detail
    if said.text.strip():
        # It answers in words where it will not make the picture.
        return "refused", said.detail
    return "empty", said.detail or NO_FILE.format("picture")


def _usage(document: Mapping[str, Any], picture: PictureRequest, *, is_empty: bool) -> Usage | None:
    counts = pick(document, "usageMetadata")
    usage = google_usage(counts, is_empty=is_empty)
    if usage is None or not isinstance(counts, Mapping):
        return None
    seen, drawn = (_of_pictures(pick(counts, f"{name}TokensDetails")) for name in ("prompt", "candidates"))
    return replace(
        usage,
        image_input_tokens=seen if seen is not None or picture.references else 0,
        image_output_tokens=drawn if usage.output_tokens else 0,
    )


def _of_pictures(details: Json) -> int | None:
    """Return the tokens of pictures among the counts by modality; None where they are not told."""
    if not isinstance(details, list):
        return None
    counts = [
        tokens({"count": pick(entry, "tokenCount")}, "count")
        for entry in details
        if isinstance(entry, Mapping) and entry.get("modality") == "IMAGE"
    ]
    return None if None in counts else sum(count for count in counts if count is not None)
