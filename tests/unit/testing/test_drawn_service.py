"""One service for a whole study: pictures from words, verdicts from pixels, under its own name only."""

import asyncio
import json
from typing import Any

import pytest

from fabula.evaluation.judging.packets import question_packets
from fabula.evaluation.judging.settings import JudgeSettings
from fabula.generation.plans import plan_named
from fabula.models.chat import CallFault, Image
from fabula.models.generators.drawn.codes import code_of
from fabula.models.generators.drawn.reading import codes_in, read_marks
from fabula.models.generators.request import Generated, PictureRequest, read_generated
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import open_model
from fabula.models.spec import parse_spec
from fabula.testing.drawn_service import judge_named, service_of, study_service
from fabula.testing.gold_stories import gold_records
from fabula.testing.model_server import ModelServer
from fabula.testing.model_server.__main__ import load_handler

ANT = gold_records()[0]


def ask(url: str, name: str, prompt: str, **chosen: Any) -> Generated:
    spec = f"image:{url}#{name}"

    async def complete() -> str:
        model = open_model(parse_spec(spec), ModelOptions(), Redactor())
        try:
            reply = await model.complete(PictureRequest(spec, prompt, **chosen).chat())
        finally:
            await model.close()
        assert reply.reported_model == "drawn stand-in"
        return reply.text

    return read_generated(asyncio.run(complete()))


def test_service_when_asked_for_a_picture_draws_what_the_prompt_says() -> None:
    panel = plan_named("scene").panels(ANT)[1]
    with ModelServer(study_service) as server:
        made = ask(server.openai_url, "drawn-faithful", panel.prompt, width=512, height=512)
        again = ask(server.openai_url, "drawn-faithful", panel.prompt, width=512, height=512)
        lossy = ask(server.openai_url, "drawn", panel.prompt, width=512, height=512)
    assert made.file == again.file
    assert made.truth is None  # as of any service: what it drew is known from its pixels alone
    wanted = {(mark.kind, code_of(mark.text)) for mark in panel.drawn.marks}
    assert wanted <= {(mark.kind, mark.code) for mark in read_marks(made.file.data)}
    assert codes_in(lossy.file.data) < codes_in(made.file.data)


def test_service_when_it_judges_its_own_pictures_answers_every_question_rightly() -> None:
    with ModelServer(study_service) as server:
        spec = f"{server.openai_url}#drawn"
        frames = []
        for panel in plan_named("transition-aware").panels(ANT):
            made = ask(server.openai_url, "drawn-faithful", panel.prompt, width=512, height=512)
            frames.append(Image(made.file.data, made.file.media_type))

        async def answers() -> list[str]:
            model = open_model(parse_spec(spec), ModelOptions(), Redactor())
            packets = question_packets(ANT, "image", frames, 42)
            settings = JudgeSettings(judges=(spec,)).for_judge(spec)
            replies = [await model.complete(packet.request(settings, 42)) for packet in packets]
            await model.close()
            return [json.loads(reply.text)["answer"] for reply in replies]

        assert asyncio.run(answers()) == [question.gold_answer for question in ANT.questions]


@pytest.mark.parametrize(
    ("name", "error", "guessing"),
    [("drawn", 0.0, False), ("drawn-0.1", 0.1, False), ("drawn-0.3", 0.3, False), ("drawn-1", 1.0, False),
     ("drawn-guessing", 0.0, True)],
)  # fmt: skip
def test_judge_when_named_is_as_its_name_says(name: str, error: float, guessing: bool) -> None:
    judge = judge_named(name, gold_records())
    assert (judge.error, judge.guessing) == (error, guessing)


def test_service_when_asked_under_the_name_of_a_model_refuses() -> None:
    refused = pytest.raises(CallFault, match="ask for the model drawn")
    with ModelServer(service_of(gold_records())) as server, refused:
        ask(server.openai_url, "gpt-image-2", "a scene", width=512, height=512)


def test_service_when_named_on_the_command_line_is_found() -> None:
    assert load_handler("fabula.testing.drawn_service:study_service") is study_service
