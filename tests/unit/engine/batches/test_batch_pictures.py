"""Pictures in batches: inside the requests, or once each in the service's store of files."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.asker import Desk
from fabula.engine.batches.books import Batching, Lane
from fabula.engine.batches.carrier import LARGE
from fabula.engine.budget import Budget
from fabula.engine.calls import Calls
from fabula.engine.journal import Journal
from fabula.models.chat import ChatRequest, Image, Message
from fabula.models.keys import Redactor
from fabula.models.options import options_for
from fabula.models.registry import open_batches
from fabula.models.spec import parse_spec
from fabula.testing.model_server import Asked, Dropped, ModelServer, ServerError

SMALL, LARGER = (Image(bytes([number]) * size, "image/png") for number, size in ((1, 50), (2, LARGE)))
OTHER = Image(b"3" * (LARGE + 1), "image/jpeg")


def answer(asked: Asked) -> str:
    return " ".join(str(len(picture.data)) for picture in asked.images)


def request_of(model: str, *pictures: Image) -> ChatRequest:
    return ChatRequest(model, (Message("user", ("What is there?", *pictures)),))


def ask(
    folder: Path, server: ModelServer, provider: str, waves: list[list[tuple[Image, ...]]], **more: Any
) -> Any:
    """Ask about pictures, one wave after the other, in batches; return the texts of the replies."""
    spec = parse_spec(f"{provider}:eyes")
    address = server.openai_url if provider == "openai" else server.url
    options = options_for(spec, {spec.text: {"base_url": address, **more.pop("settings", {})}})
    batching = replace(Batching(on=True, first_look=0.001, longest_look=0.004), **more)

    def open_lane(model: str) -> Lane:
        return Lane(model, open_batches(spec, options, Redactor()), options, None)

    async def run(calls: Calls) -> list[str]:
        desk = Desk(calls, Budget(None, 0.0), {spec.text: options}, _no_line)
        desk.use_batches(batching, open_lane).start([])
        texts = []
        for wave in waves:
            asked = [request_of(spec.text, *pictures) for pictures in wave]
            replies = await asyncio.gather(*(desk.reply(request, 0, "look") for request in asked))
            texts += [reply.text for _, reply in replies]
        for task in [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
            task.cancel()
        await desk.shut()
        return texts

    with Journal.open(folder) as journal:
        calls = Calls(journal)
        try:
            return asyncio.run(run(calls))
        finally:
            calls.close()


def _no_line(_: str) -> Any:
    raise AssertionError("nothing is asked singly here")


def uploads(server: ModelServer) -> list[bytes]:
    return [data for _, data in server.files.values() if data in (SMALL.data, LARGER.data, OTHER.data)]


WAVES = [[(SMALL,), (LARGER,), (LARGER, SMALL)], [(LARGER, OTHER), (OTHER,)]]
TEXTS = ["50", str(LARGE), f"{LARGE} 50", f"{LARGE} {LARGE + 1}", str(LARGE + 1)]


@pytest.mark.parametrize("stored", [False, True])
def test_pictures_when_asked_about_are_seen_and_large_ones_sent_once_where_that_is_wanted(
    tmp_path: Path, provider: str, stored: bool
) -> None:
    with ModelServer(answer) as server:
        assert ask(tmp_path, server, provider, WAVES, settings={"batch_files": stored}) == TEXTS
        sent = uploads(server)
    expected = [LARGER.data, OTHER.data] if stored and provider != "openai" else []
    assert sorted(sent) == sorted(expected)


def test_picture_when_stored_by_an_earlier_process_is_not_sent_again_until_it_is_old(
    tmp_path: Path, provider: str
) -> None:
    if provider == "openai":
        pytest.skip("chat completions take no ids of pictures")
    hour = 3600.0
    with ModelServer(answer) as server:
        for number, later in enumerate((0.0, 10 * hour, 30 * 24 * hour)):
            pictures: tuple[Image, ...] = (LARGER, Image(bytes([number]), "image/png"))
            moment = partial(float, 1.7e9 + later)
            ask(tmp_path, server, provider, [[pictures]], settings={"batch_files": True}, now=moment)
        assert len(uploads(server)) == 2


@pytest.mark.parametrize("fault", [Dropped(), ServerError(503)], ids=repr)
def test_picture_when_its_upload_fails_is_sent_again(tmp_path: Path, provider: str, fault: Any) -> None:
    struck: list[int] = []

    def first_two(asked: Asked) -> Any:
        if asked.protocol == "batches" and asked.step == "upload" and len(struck) < 2:
            struck.append(1)
            return fault
        return None

    with ModelServer(answer, faults=first_two) as server:
        assert ask(tmp_path, server, provider, WAVES, settings={"batch_files": True}) == TEXTS
