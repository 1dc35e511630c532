"""Programs that take part in a study: what they are told is saved is on file, once, whatever happens."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from scipy.stats import binom

from fabula.evaluation.judging.packets import question_packets
from fabula.evaluation.judging.settings import JudgeSettings
from fabula.models.chat import CallFault, Image
from fabula.models.generators.drawn.figures import draw_scene
from fabula.models.generators.drawn.images import codes_in, encode_png, read_marks
from fabula.models.generators.drawn.scene import DrawnScene, code_of
from fabula.models.generators.request import Generated, PictureRequest, read_generated
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.registry import open_model
from fabula.models.spec import parse_spec
from fabula.people.review.design import Plan
from fabula.people.review.folder import USUAL_ADDRESS, Study, invite
from fabula.people.review.serve.routes import application
from fabula.people.review.serve.server import Server
from fabula.people.review.standing import Standing, VoteJournal, read_events
from fabula.people.review.status import status
from fabula.schemas.katha import Question, StoryRecord
from fabula.schemas.text import normalize_answer
from fabula.studies.pictures import plan_named
from fabula.testing.drawn_judge import GUESSES, DrawnJudge
from fabula.testing.drawn_service import judge_named, service_of, study_service
from fabula.testing.gold_stories import gold_records
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.model_server.__main__ import load_handler
from fabula.testing.review_studies import toy_study
from fabula.testing.simulated_reviewers import GaveUp, SimulatedReviewer, at_random

NOW = "2026-01-01T00:00:00Z"


async def no_pause(_seconds: float) -> None:
    await asyncio.sleep(0)


class Unsteady(httpx.AsyncBaseTransport):
    """A network that loses requests, and answers to requests that were carried out."""

    def __init__(self, app: Any, draw: random.Random, share: float) -> None:
        self.inner, self.draw, self.share = httpx.ASGITransport(app), draw, share

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.draw.random() < self.share:
            raise httpx.ConnectError("refused")
        answer = await self.inner.handle_async_request(request)
        if self.draw.random() < self.share:
            raise httpx.ReadError("lost")
        return answer


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., tuple[Study, Server, Any]]]:
    """Make a study and serve it in this process."""
    journals = []

    def make(**about: Any) -> tuple[Study, Server, Any]:
        study = toy_study(tmp_path / "study", **about)
        journals.append(VoteJournal(study.folder))
        server = Server(study, journals[-1], lambda: NOW)
        return study, server, application(server)

    yield make
    for journal in journals:
        journal.close()


def links_of(study: Study, server: Server, count: int) -> list[str]:
    return [each.link.removeprefix(USUAL_ADDRESS) for each in invite(study, server.journal, NOW, count)]


def take_part(
    app: Any, links: list[str], policy: Any, share: float = 0.0, **about: Any
) -> list[SimulatedReviewer]:
    async def run(number: int, link: str) -> SimulatedReviewer:
        transport = Unsteady(app, random.Random(f"network {number}"), share)
        async with httpx.AsyncClient(transport=transport, base_url="http://study") as client:
            reviewer = SimulatedReviewer(client, policy, name=f"simulated-{number}", pause=no_pause, **about)
            await reviewer.take_part(link)
            return reviewer

    async def everybody() -> list[SimulatedReviewer]:
        return list(await asyncio.gather(*(run(number, link) for number, link in enumerate(links, 1))))

    return asyncio.run(everybody())


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_answers_when_told_that_they_are_saved_are_on_file_once(served: Any, share: float) -> None:
    study, server, app = served(training=1, stories=5, plan=Plan(raters=3, block=2, repeats=1, gap=2))
    reviewers = take_part(app, links_of(study, server, 3), at_random("any"), share)
    events = read_events(study.folder)
    voted = [event for event in events if event.kind == "voted"]
    told = {(saved.key, saved.id): dict(saved.answers) for each in reviewers for saved in each.saved}
    assert len(told) == 3 * (1 + 5 + 1)
    filed = {(event.item, event.id.rpartition("/")[2]): event.body["answers"] for event in voted}
    assert filed == told
    assert len(voted) == len(filed)
    assert max(Counter(event.id for event in events).values()) == 1
    assert (sum(each.resent for each in reviewers) > 0) == (share > 0)
    document = status(study, server.standing, NOW)
    assert document["votes"] == {"wanted": 15, "given": 15}
    assert {person["state"] for person in document["people"]} == {"finished"}
    assert {each.last.kind for each in reviewers} == {"done"}
    assert Standing.of(events) == Standing.of(read_events(study.folder))


def test_program_when_its_answer_is_refused_gives_up(served: Any) -> None:
    study, server, app = served()
    with pytest.raises(GaveUp, match="vote gives 422"):
        take_part(app, links_of(study, server, 1), lambda _page: {"quality": 77})


def test_program_when_nobody_answers_gives_up(served: Any) -> None:
    study, server, app = served()
    with pytest.raises(GaveUp, match="does not answer"):
        take_part(app, links_of(study, server, 1), at_random(1), 1.0)


# -- The judge that reads drawn frames: each rule by hand, errors and guesses at their shares

SIDE = 256
PLAN = plan_named("transition-aware")
ANT = gold_records()[0]


def pictures(record: StoryRecord, without: Sequence[str] = (), order: Sequence[int] = ()) -> list[Image]:
    """Frames of a story, without marks of some texts, in another order of scenes."""
    panels = {panel.scene: panel.drawn for panel in PLAN.panels(record)}
    frames = []
    for index in order or panels:
        marks = tuple(mark for mark in panels[index].marks if mark.text not in without)
        drawing = draw_scene(DrawnScene(marks=marks), (SIDE, SIDE))
        frames.append(Image(encode_png(drawing.canvas.image), "image/png"))
    return frames


def asked(packet: Any, model: str = "drawn") -> Asked:
    """What the server reads of a judge's packet."""
    system, *rest = packet.messages()
    return Asked("openai", "/v1/chat/completions", model, "".join(map(str, system.parts)), tuple(rest))


def ask(
    judge: DrawnJudge, record: StoryRecord, frames: list[Image], condition: str = "image"
) -> dict[str, Any]:
    """Question id -> the reply."""
    packets = question_packets(record, condition, frames, 42)
    return {packet.item: judge(asked(packet)) for packet in packets}


def is_right(question: Question, reply: Any) -> bool:
    accepted = {normalize_answer(text) for text in question.accepted_answers}
    return normalize_answer(reply["answer"]) in accepted


def lost(record: StoryRecord, frames: list[Image]) -> dict[str, str]:
    """Type and answer of the questions that are answered wrongly, by the end of their ids."""
    replies = ask(DrawnJudge(gold_records()), record, frames)
    return {
        question.question_id[-3:]: replies[question.question_id]["answer"]
        for question in record.questions
        if not is_right(question, replies[question.question_id])
    }


# The questions of the ant and the dove (scenes needed): q01 action (2), q02 causal (1, 2), q03 emotional
# (2, 3), q04 causal (3, 4), q05 consequence (4, 5), q06 temporal order (2, 3), q07 moral, which the label
# alone gives, and all four causes, too.
CAUSE = str(ANT.transitions[0].causality)


@pytest.mark.parametrize(
    ("without", "order", "answers"),
    [
        ((), (), {}),
        ((ANT.scenes[1].action,), (), {"q01": "unclear"}),
        ((ANT.transitions[2].causality,), (), {"q04": "unclear"}),
        ((ANT.transitions[3].consequence,), (), {"q05": "unclear"}),
        ((ANT.scenes[1].emotion,), (), {"q03": "unclear"}),
        ((ANT.scenes[2].emotion,), (), {"q03": "unclear"}),
        (("gratitude",), (), {}),
        ((CAUSE,), (), {"q02": "unclear"}),
        (("gratitude", CAUSE), (), {"q02": "unclear", "q07": "unclear"}),
        ((), (1, 3, 2, 4, 5), {"q06": ANT.scenes[2].action}),
        ((), (1, 2, 3, 5, 4), {}),
        ((), (1, 2, 3, 4), {"q05": "unclear"}),
    ],
)
def test_judge_when_something_is_left_out_or_moved_loses_what_needs_it(without, order, answers):
    assert lost(ANT, pictures(ANT, without, order)) == answers


def test_judge_when_it_has_the_text_answers_rightly_whatever_is_drawn() -> None:
    judge = DrawnJudge(gold_records())
    frames = pictures(ANT, [str(ANT.scenes[1].action)])
    for reply in ask(judge, ANT, [], "text").values():
        assert reply["evidence_status"] == "recoverable"
    both = ask(judge, ANT, frames, "text_image")
    for question in ANT.questions:
        reply = both[question.question_id]
        assert reply["final_answer"] == question.gold_answer
        support = "omitted" if question.question_id.endswith("q01") else "supported"
        assert reply["image_support"] == support


def rates(judge: DrawnJudge, frames_of: Any, models: Sequence[str]) -> tuple[int, int]:
    """How many questions are answered rightly, of how many."""
    right = total = 0
    for record in gold_records()[:9]:
        packets = list(question_packets(record, "image", frames_of(record), 42))
        for model in models:
            for each, packet in zip(record.questions, packets, strict=True):
                right += is_right(each, judge(asked(packet, model)))
                total += 1
    return right, total


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[Image]]:
    return {record.story_id: pictures(record) for record in gold_records()[:9]}


@pytest.mark.parametrize("error", [0.1, 0.3])
def test_judge_when_it_errs_is_wrong_as_often_as_said(error: float, drawn: dict[str, list[Image]]) -> None:
    """Everything is visible, so each question is answered wrongly with the error's chance; and of frames
    without any mark each is answered rightly with it. Both within 99.9% of the binomial."""
    judge = DrawnJudge(gold_records(), error)
    models = [f"judge {number}" for number in range(8)]
    right, total = rates(judge, lambda record: drawn[record.story_id], models)
    low, high = binom.ppf([0.0005, 0.9995], total, 1 - error)
    assert total > 500
    assert low <= right <= high
    blank = [Image(encode_png(draw_scene(DrawnScene(), (SIDE, SIDE)).canvas.image), "image/png")]
    right, total = rates(judge, lambda _: blank, models)
    low, high = binom.ppf([0.0005, 0.9995], total, error)
    assert low <= right <= high


def test_judge_when_it_guesses_is_right_by_chance_whatever_is_shown(drawn: dict[str, list[Image]]) -> None:
    judge = DrawnJudge(gold_records(), guessing=True)
    models = [f"judge {number}" for number in range(8)]
    right, total = rates(judge, lambda record: drawn[record.story_id], models)
    low, high = binom.ppf([0.0005, 0.9995], total, 1 / GUESSES)
    assert low <= right <= high


def test_judge_when_asked_twice_answers_alike_and_otherwise_of_other_frames() -> None:
    judge = DrawnJudge(gold_records(), 0.5)
    frames, others = pictures(ANT), pictures(ANT, ["leaf"])
    assert ask(judge, ANT, frames) == ask(judge, ANT, frames)
    assert ask(judge, ANT, frames) != ask(judge, ANT, others)


# One service for a whole study: pictures from words, verdicts from pixels, under its own name only.


def ask_drawn_service(url: str, name: str, prompt: str, **chosen: Any) -> Generated:
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
        made = ask_drawn_service(server.openai_url, "drawn-faithful", panel.prompt, width=512, height=512)
        again = ask_drawn_service(server.openai_url, "drawn-faithful", panel.prompt, width=512, height=512)
        lossy = ask_drawn_service(server.openai_url, "drawn", panel.prompt, width=512, height=512)
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
            made = ask_drawn_service(server.openai_url, "drawn-faithful", panel.prompt, width=512, height=512)
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
        ask_drawn_service(server.openai_url, "gpt-image-2", "a scene", width=512, height=512)


def test_service_when_named_on_the_command_line_is_found() -> None:
    assert load_handler("fabula.testing.drawn_service:study_service") is study_service
