"""The images of OpenAI, and of the many servers that speak the same: JSON, or a form with pictures."""

import base64
from collections.abc import Mapping
from typing import Any

from ...models.chat import Image, Message
from ...schemas.canonical import Json
from .answers import Answer, Problem
from .asked import Asked
from .openai_wire import CREATED, ERRORS
from .wire import BadRequest, HttpRequest, WireError, given, member

BLOCKED = WireError(
    400,
    "image_generation_user_error",
    "Your request was rejected by the safety system.",
    {"code": "moderation_blocked"},
)


class ImagesWire:
    """``POST .../images/generations`` and ``POST .../images/edits``.

    A model that refuses, and a filter that stops it, answer with an error; there is no field for a refusal.
    """

    errors: Mapping[str, WireError] = {**ERRORS, "content_filter": BLOCKED}
    methods = frozenset(("POST",))

    def takes(self, path: str) -> bool:
        """Return whether a path belongs to this format."""
        return path.endswith(("/images/generations", "/images/edits"))

    def read(self, request: HttpRequest, document: Mapping[str, Any]) -> Asked:
        """Return what was asked: the prompt and the reference images as the only message."""
        references = document.get("image") or document.get("image[]") or ()
        if request.path.endswith("/edits") and not references:
            raise BadRequest("'image' is missing")
        if not all(isinstance(image, Image) for image in references):
            raise BadRequest("'image' is no file")
        if int(document.get("n", 1)) != 1:
            raise BadRequest("this server makes one picture at a time")
        message = Message("user", (member(document, "prompt", str), *references))
        seed = document.get("seed")
        return Asked(
            "images",
            request.path,
            member(document, "model", str),
            "",
            (message,),
            params=given(size=document.get("size"), seed=None if seed is None else int(seed)),
            wants="image",
        )

    def reply(self, asked: Asked, answer: Answer) -> Mapping[str, Json] | Problem:
        """Return a response with the picture in base64; nothing in it where there is none."""
        if answer.blocked or answer.refusal is not None:
            return Problem("content_filter", answer.refusal)
        used = answer.counts(asked)
        entry: dict[str, Json] = {"b64_json": ""}
        picture = answer.picture
        if picture is not None:
            entry["b64_json"] = base64.b64encode(picture.data).decode("ascii")
            if picture.revised_prompt is not None:
                entry["revised_prompt"] = picture.revised_prompt
        return {
            "created": CREATED,
            "model": answer.served_as(asked),
            "data": [entry] * answer.choices,
            "output_format": "png" if picture is None else picture.media_type.removeprefix("image/"),
            **({"size": asked.params["size"]} if "size" in asked.params else {}),
            "usage": {
                "input_tokens": used["input_tokens"],
                "output_tokens": used["output_tokens"],
                "total_tokens": used["input_tokens"] + used["output_tokens"],
                "input_tokens_details": {
                    "image_tokens": used["image_input_tokens"],
                    "text_tokens": used["input_tokens"] - used["image_input_tokens"],
                },
                "output_tokens_details": {
                    "image_tokens": used["image_output_tokens"],
                    "text_tokens": used["output_tokens"] - used["image_output_tokens"],
                },
            },
        }

    def error(self, _: int, error: WireError, problem: Problem) -> Mapping[str, Json]:
        """Return the body of an error response."""
        about = {"message": problem.message or error.message, "type": error.kind, "param": None, "code": None}
        return {"error": {**about, **error.more}}
