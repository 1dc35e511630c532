"""Adapter for OpenAI's embeddings, and for the many servers that speak the same."""

from collections.abc import Mapping
from typing import Any

from ..schemas.canonical import Json
from .chat import ChatRequest, Reply, Usage
from .edge import Edge, text_or_none, tokens, usage_or_none
from .openai_client import openai_client
from .options import ModelOptions
from .secrets import Redactor
from .spec import ModelSpec
from .vectors import first_vector, read_vector, text_to_encode


class OpenAIEmbedding:
    """An encoder behind OpenAI's embeddings: one text per call.

    Several texts in one call would be fewer calls, and numbers that depend on the company they were sent in:
    servers that pad batches give slightly other vectors.

    Args:
        spec: which model, and where.
        options: its settings; ``extra`` may hold ``dimensions``.
        redactor: learns the key and takes it out of all that comes back.

    Raises:
        MissingRequirement: the key or a variable that the settings name is not there.
    """

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        import httpx2

        self._name = spec.name
        self._edge = Edge(options, redactor)
        self._client = openai_client(spec, options, redactor)
        self._raw = httpx2.Response

    async def complete(self, request: ChatRequest) -> Reply:
        """Encode one text.

        Raises:
            CallFault: no reply arrived, or something else than a vector is wanted.
        """
        asked: dict[str, Json] = {"model": self._name, "input": [text_to_encode(request)]}
        body = {"encoding_format": "float", **request.extra, **asked}
        try:
            response = await self._client.post("/embeddings", body=body, cast_to=self._raw)
        except Exception as error:  # noqa: BLE001 - adapter boundary
            failure = error
        else:
            return self._edge.reply(request, response.headers, response.content, read_reply)
        return self._edge.failed(request, failure)

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()


def read_reply(document: Mapping[str, Any]) -> Reply | None:
    """Return the reply in an embeddings response; None where the JSON is none."""
    if not isinstance(document.get("data"), list):
        return None
    usage = document.get("usage")
    counted = usage_or_none(Usage(tokens(usage, "prompt_tokens")))
    model = text_or_none(document.get("model"))
    vector = read_vector(first_vector(document))
    if vector is None:
        return Reply("empty", "", "the service gave no vector that can be used", None, model, counted)
    return Reply("ok", vector, None, None, model, counted)
