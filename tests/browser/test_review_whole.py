"""A review of the sample benchmark from first vote to release, in browsers, while its server is killed."""

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fabula.kinds.making_studies import Wanted, make
from fabula.people.review.folder import Study, invite, open_study
from fabula.people.review.points import cases, decide_from_file
from fabula.people.review.standing import VoteJournal, read_events
from fabula.testing.endurance import rounds
from fabula.testing.review_server import StudyProcess
from fabula.testing.review_visitor import Visitor

pytestmark = pytest.mark.slow

STORIES = rounds(23)
KILLS = rounds(10)
WHEN = "2026-01-05T00:00:00Z"
KINDS = {
    "item": "#save[aria-disabled=false]", "overview": "#closing", "consent": "#agreeing",
    "done": "h1:has-text('You are done')",
}  # fmt: skip
"""What can be open -> what a page of that kind has."""


@pytest.fixture(scope="module")
def fabula(starter: Any) -> Callable[..., str]:
    """Run the command, and return what it printed."""

    def run_fabula(*words: str | Path) -> str:
        done = starter.run(words, os.environ, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    return run_fabula


class Killed:
    """A server that is killed at random moments and started again at the same address."""

    def __init__(self, folder: Path, kills: int) -> None:
        self.folder, self.left = folder, kills
        self.process = StudyProcess(folder)
        self.url, self.port = self.process.url, self.process.port
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._kill, daemon=True)

    def _kill(self) -> None:
        draw = random.Random(1)
        while self.left and not self._over.wait(draw.uniform(2.0, 8.0)):
            self.process.kill()
            self.process = StudyProcess(self.folder, self.port)
            self.left -= 1

    def __enter__(self) -> "Killed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.process.stop()


class Voter(Visitor):
    """A reviewer in a browser, who notes what was acknowledged and comes back to a server that fell."""

    def __init__(self, chromium: Any, link: str) -> None:
        super().__init__(chromium)
        self.link, self.acknowledged = link, set[str]()
        self.page.on("response", self._note)
        self.page.set_default_timeout(120_000)  # for a server that falls again and again

    def _note(self, response: Any) -> None:
        if response.url.endswith("/api/vote") and response.status == 200:
            self.acknowledged.add(json.loads(response.request.post_data)["id"])

    def answer_first(self) -> None:
        """Choose the first option wherever one is to be chosen."""
        self.page.evaluate(
            "() => document.querySelectorAll('fieldset.question[data-type=choice], "
            "fieldset.question[data-type=scale]').forEach((question) => {"
            " if (question.offsetParent) question.querySelector('input[type=radio]').click(); })"
        )

    def submit(self, form: str) -> None:
        """Send a form that is not kept on the device: press again where there was no connection."""
        deadline = time.monotonic() + 120
        while self.page.locator(form).count() and time.monotonic() < deadline:
            with suppress(Exception):  # the page goes while it is pressed
                self.page.locator(f"{form} [type=submit]").click(timeout=2_000)
                self.page.locator(form).wait_for(state="detached", timeout=3_000)
        assert self.page.locator(form).count() == 0

    def look(self) -> str:
        """Return what is open: item, overview, consent or done; a page that is not whole is opened again."""
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            for name, selector in KINDS.items():
                if self.page.locator(f"{selector} >> visible=true").count():
                    return name
            try:
                self.page.wait_for_timeout(50)
                if not self.page.locator("main").count() or self.page.locator("#unscripted").is_visible():
                    self.page.goto(self.link)
            except Exception:  # noqa: BLE001 - the server is being killed
                self.page.wait_for_timeout(200)
        raise AssertionError(self.page.content()[:2000])


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, fabula: Callable[..., str]) -> tuple[Path, Study]:
    """The run of the sample benchmark, and a study of its records for three simulated reviewers."""
    folder = tmp_path_factory.mktemp("sample")
    samples = Path(__file__).parents[2] / "builders/katha/samples"
    source = ("build", "katha", samples / "stories.jsonl", "--records", samples / "gold.jsonl")
    fabula(*source, "--planner", "rules", "--out", folder / "run", "--created-at", WHEN)
    settings = {"expertise": {"none": {"en": "none"}}, "floor": None}  # the browser votes at once
    wanted = Wanted(preset="kathabench-review", simulated=True, settings=settings)
    make(folder / "study", folder / "run", {"limit": STORIES}, wanted)
    return folder / "run", open_study(folder / "study")


@pytest.fixture
def voters(chromium: Any) -> Iterator[list[Voter]]:
    made: list[Voter] = []
    yield made
    for voter in made:
        voter.close()


@pytest.mark.endurance
@pytest.mark.waits
def test_review_when_its_server_is_killed_loses_no_vote_and_ends_in_gold_files(
    chromium: Any, sample: tuple[Path, Study], voters: list[Voter], fabula: Callable[..., str], tmp_path: Path
) -> None:
    run, study = sample
    with VoteJournal(study.folder) as journal:
        people = invite(study, journal, WHEN, 3)
        (adjudicator,) = invite(study, journal, WHEN, 1, role="adjudicator")
    with Killed(study.folder, KILLS) as server:
        for each in people:
            voters.append(Voter(chromium, server.url + each.link.partition("8765")[2]))
        vote_until_done(voters)
        assert server.left == 0 or STORIES < 3
    events = read_events(study.folder)
    votes = [event for event in events if event.kind == "voted"]
    on_file = Counter(event.id.partition("/")[2] for event in votes)
    acknowledged = set().union(*(voter.acknowledged for voter in voters))
    assert acknowledged <= set(on_file)  # none is lost
    assert max(on_file.values()) == 1
    assert set(Counter((event.reviewer, event.item) for event in votes).values()) == {1}  # none is double
    assert len(votes) == 3 * len(study.items)

    decided = decide_all(study, adjudicator.reviewer, tmp_path / "decisions.jsonl")
    assert decided > 0
    reviews = tmp_path / "reviews"
    fabula("review", "export", study.folder, "--out", reviews)
    rows = [json.loads(line) for line in (reviews / "human_validation.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == len(study.items)
    assert {row["protocol_complete"] for row in rows} == {True}
    assert {row["resolution"] for row in rows} == {"human_adjudicated"}  # the third always doubts the label

    fabula("edit", run, "--from", reviews / "edits.jsonl")
    fabula("run", "retry", run)
    options = ("--version", "0.1.0", "--license", "CC-BY-4.0", "--allow-drafts", "--subset", "human_gold=1")
    reviewed = ("--reviews", reviews, "--accept-careless")  # all three always take the first option
    fabula("release", "pack", run, *options, *reviewed, "--out", tmp_path / "release")
    fabula("release", "verify", tmp_path / "release")
    (member,) = [json.loads(line)["story_id"] for line in
                 (tmp_path / "release/subsets/human_gold.jsonl").read_text("utf-8").splitlines()]  # fmt: skip
    records = [json.loads(line) for line in
               (tmp_path / "release/annotations.jsonl").read_text("utf-8").splitlines()]  # fmt: skip
    statuses = {record["story_id"]: record["validation_status"] for record in records}
    assert statuses[member] == "human_adjudicator_accepted"
    told = fabula("stats", tmp_path / "release")
    assert "Moral-target label" in told
    assert "simulated" in (tmp_path / "release/dataset_card.md").read_text("utf-8")


def vote_until_done(voters: list[Voter]) -> None:
    """Let all answer in turns; the third finds every moral label ambiguous."""
    working = list(voters)
    while working:
        for voter in list(working):
            kind = voter.look()
            if kind == "done":
                working.remove(voter)
            elif kind == "consent":
                voter.page.locator("#agreeing input[value=none]").check()
                if voter is not voters[-1]:  # one does not want the votes published
                    voter.page.locator("#agreeing input[name=publish]").check()
                voter.submit("#agreeing")
            elif kind == "overview":
                voter.submit("#closing")
            else:
                voter.answer_first()
                if voter is voters[-1]:
                    voter.page.locator("""input[name=moral_label][value='"ambiguous"']""").check()
                voter.save()


def decide_all(study: Study, who: str, path: Path) -> int:
    """Decide every open case as the record has it; return how many."""
    lines = [
        json.dumps({"case": case.id, "value": case.said[0].answer, "reason": "as the story tells it"})
        for case in cases(study, study.standing())
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with VoteJournal(study.folder) as journal:
        return decide_from_file(study, journal, path, who, WHEN)
