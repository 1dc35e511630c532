"""What a browser gets: nothing of a story under image-only evidence, nothing of others, no script to run."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from fabula.kinds.making_studies import Wanted, make
from fabula.people.review.folder import Study, StudyPlan, link_of, make_study, open_study
from fabula.people.review.items import Drawn, Part
from fabula.people.review.plan import Plan, load_preset
from fabula.people.review.standing import VoteJournal
from fabula.releases.loading import load
from fabula.schemas.values import vocabulary
from fabula.testing.review_server import StudyServer, serve_study
from fabula.testing.review_studies import NOW
from fabula.testing.review_visitor import Visitor
from fabula.testing.study_sources import storyboard_evaluation

SETTINGS = {"expertise": {"none": {"en": "none"}}}
HOSTILE = "<script>window.hit = 1</script><img src=x onerror='window.hit = 2'>{{ 7 * 7 }}"
TRICKS = (
    "media/../key.jsonl", "media/..%2Fkey.jsonl", "media/%2e%2e%2fsecret.key", "static/../../key.jsonl",
    "static/..%2f..%2fserver.py", "item/..%2f..%2fkey.jsonl", "media//etc/passwd", "media/" + "a" * 3000,
    "key.jsonl", "votes.sqlite",
)  # fmt: skip
STORED = "() => JSON.stringify([{...localStorage}, {...sessionStorage}])"


class Reader(Visitor):
    """A reviewer in a browser of which every byte is kept: addresses, what was sent, what came."""

    def __init__(self, chromium: Any, **settings: Any) -> None:
        super().__init__(chromium, **settings)
        self.got: list[bytes] = []
        self.page.on("request", lambda request: self.got.append(
            f"{unquote(request.url)}\n{request.headers}\n{request.post_data}".encode()))  # fmt: skip
        self.page.on("response", self._keep)

    def _keep(self, response: Any) -> None:
        self.got.append(str(response.headers).encode())
        if response.status != 303:
            self.got.append(response.body())

    def all_bytes(self) -> bytes:
        """Return every byte that the browser sent, got, or keeps."""
        self.page.wait_for_load_state("networkidle")
        kept = [self.page.content(), self.page.evaluate(STORED), json.dumps(self.context.cookies())]
        return b"\n".join([*self.got, *(text.encode() for text in kept)])


@pytest.fixture
def reading(chromium: Any) -> Iterator[Callable[[], Reader]]:
    made: list[Reader] = []

    def open_reader() -> Reader:
        made.append(Reader(chromium))
        return made[-1]

    yield open_reader
    for reader in made:
        reader.close()


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    made = storyboard_evaluation(tmp_path_factory.mktemp("evaluation"), 2)
    return made.run, made.release


def go_through(server: StudyServer, reader: Reader) -> None:
    """Enter, agree, answer the first item."""
    reader.agree(server.invite()[0])
    reader.ready()
    for question in reader.page.locator("fieldset.question:visible").all():
        boxes = question.locator("input[type=radio], [data-unclear]")
        if boxes.count():
            boxes.last.check()
    reader.save()
    reader.ready()


@pytest.mark.parametrize("task", ["preference", "ratings", "recoverability"])
def test_image_only_task_when_every_byte_is_read_tells_nothing_of_the_story(
    task: str, evaluation: tuple[Path, Path], reading: Callable[[], Reader], tmp_path: Path
) -> None:
    run, release = evaluation
    given = {"conditions": ("image",)} if task == "recoverability" else {}
    given |= {"pairs": ("model-a:model-b",)} if task == "preference" else {}
    make(tmp_path / "study", run, given, Wanted(task=task, settings=SETTINGS))
    study, reader = open_study(tmp_path / "study"), reading()
    with serve_study(study.folder) as server:
        go_through(server, reader)
        content = reader.all_bytes()
    asked = {part.text for item in study.items.values() for parts in item.parts.values() for part in parts}
    offered = {
        *asked,
        *vocabulary("moral_label").values,
    }  # the questions, and the labels that all can choose from
    secrets = set(secrets_of(study, release)) - offered
    assert len(secrets) > 20
    found = [secret for secret in secrets if secret.lower().encode() in content.lower()]
    assert found == []
    pictures = [got for got in reader.got if got.startswith(b"\x89PNG")]
    assert len(pictures) >= 2
    for chunk in (b"tEXt", b"iTXt", b"zTXt", b"eXIf", b"iCCP", b"tIME"):
        assert chunk not in b"".join(pictures)


def secrets_of(study: Study, release: Path) -> Iterator[str]:
    """Yield what must not reach a browser: ids, titles, texts, labels of the stories, methods, file names."""
    for record in load(release).records:
        yield from (record.story_id, record.story_text, record.source_text)
        yield from (scene.scene_text for scene in record.scenes)
        yield from (question.question_id for question in record.questions)
        yield from (question.gold_answer for question in record.questions if len(question.gold_answer) > 8)
        if len(record.title) > 5:
            yield record.title
    for stands in study.stands.values():
        yield from stands.methods
        yield from (file for file in stands.files.values())
    yield str(study.folder)
    yield release.name if len(release.name) > 8 else str(release)


def test_pages_of_one_reviewer_when_another_votes_stay_the_same_to_the_byte(evaluation, reading, tmp_path):
    make(tmp_path / "study", evaluation[0], {}, Wanted(task="recoverability", settings=SETTINGS))
    first, second = reading(), reading()
    with serve_study(tmp_path / "study") as server:
        links = server.invite(2)
        first.agree(links[0])
        first.ready()
        before = first.page.evaluate("() => fetch('/').then((answer) => answer.text())")
        second.agree(links[1])
        second.ready()
        said = "a word that nobody else knows"
        second.page.locator("fieldset.question[data-type=text] textarea").first.fill(said)
        for question in second.page.locator("fieldset.question:visible").all():
            boxes = question.locator("input[type=radio], [data-unclear]")
            if boxes.count() and not question.locator("textarea").count():
                boxes.last.check()
        for question in second.page.locator("fieldset.question[data-type=text]").all()[1:]:
            question.locator("[data-unclear]").check()
        second.save()
        after = first.page.evaluate("() => fetch('/').then((answer) => answer.text())")
        assert before == after
        go_on = first.all_bytes()
        other = next(name for name in server.study.standing().reviewers if name not in links[0])
        assert said.encode() not in go_on
        people = {name for name, person in server.study.standing().reviewers.items() if person.votes}
        assert len(people) == 1
        assert not [name for name in people if name.encode() in go_on], other


@pytest.fixture
def hostile(tmp_path: Path) -> Study:
    """A study of drafts whose texts are scripts."""
    task = "audit"
    items = [
        Drawn(
            about=f"d{number}", story=f"s{number}", stratum="question",
            texts={"title": HOSTILE, "scenes": [HOSTILE, "plain"], "kind": "question", "shown": HOSTILE},
            parts={"reasons": (Part(id=f"p{number}", text=HOSTILE),)},
        )
        for number in range(2)
    ]  # fmt: skip
    settings = {**SETTINGS, "simulated": True, "consent": {"en": HOSTILE}}
    rules = load_preset("storyeval").ruled({})
    plan = StudyPlan("hostile", HOSTILE[:200], task, Plan(raters=1), rules, NOW, settings=settings)
    return make_study(tmp_path / "study", plan, items)


def test_texts_when_they_are_scripts_are_shown_and_not_run(hostile, reading):
    reader = reading()
    with serve_study(hostile.folder) as server:
        reader.page.goto(server.invite()[0])
        assert HOSTILE in reader.page.locator("main").inner_text()
        reader.agree(reader.page.url)
        reader.page.locator("#questions").wait_for()
        assert reader.page.evaluate("() => window.hit") is None
        assert "49" not in reader.page.locator("main").inner_text()
        assert reader.page.locator("main").inner_text().count("<script>") >= 1
    assert not [text for text in reader.complaints if re.search("Content Security Policy|Refused", text)]


def test_address_when_a_path_trick_is_tried_gives_no_file_of_the_study(hostile, reading):
    reader = reading()
    with serve_study(hostile.folder) as server:
        reader.agree(server.invite()[0])
        for path in TRICKS:
            answer = reader.context.request.get(f"{server.url}/{path}")
            assert answer.status in (404, 405), path
            assert "stratum" not in answer.text()


def test_vote_when_replayed_or_sent_under_anothers_session_changes_nothing(hostile, reading):
    first, second = reading(), reading()
    with serve_study(hostile.folder) as server:
        first.agree(server.invite()[0])
        first.page.locator("#questions").wait_for()
        token = first.page.locator("meta[name=review-token]").get_attribute("content")
        body = {"id": "replayed-1", "place": first.key, "answers": {}, "loaded": True}
        second.page.goto(server.invite()[0])
        answer = second.context.request.post(
            f"{server.url}/api/vote", data=json.dumps(body),
            headers={"content-type": "application/json", "x-review-token": token or ""},
        )  # fmt: skip
        assert answer.status == 403
        assert server.votes() == []
    with VoteJournal(hostile.folder) as journal:
        assert not [event for event in journal.events() if event.kind == "voted"]
    assert link_of(hostile, "somebody") != link_of(hostile, "somebody-else")
