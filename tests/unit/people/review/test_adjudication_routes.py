"""The addresses of adjudicators: whose they are, and that reviewers learn nothing of each other from any."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fabula.people.review.folder import Study, link_of
from fabula.people.review.journal import Event, VoteJournal
from fabula.people.review.points import cases
from fabula.people.review.serve.access import page_token, session_of
from fabula.people.review.serve.routes import application
from fabula.people.review.serve.running import adjudication_routes
from fabula.people.review.serve.server import Server
from fabula.testing.review_studies import NOW, add_votes, toy_answers, toy_study
from fabula.testing.reviewed_records import add_adjudicator, answers_of, edit, item_of, record_study, vote_all

FIRST, SECOND = "kb25k_0001", "kb25k_0002"
NOTE = "They do somebody good, says this reviewer."
KIND = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", "kindness"),
        "moral_label_note": NOTE}  # fmt: skip


class Browser:
    """Somebody's browser, without the browser."""

    def __init__(self, served: Server, who: str) -> None:
        self.client = TestClient(application(served, adjudication_routes), base_url="http://testserver")
        self.client.get(link_of(served.study, who, "http://testserver"), follow_redirects=False)
        session = session_of(served.study.secret, self.client.cookies.get("fabula_review"), 12)
        assert session is not None
        self.token = page_token(served.study.secret, session)

    def get(self, path: str) -> Any:
        return self.client.get(path, follow_redirects=False)

    def decide(self, sent: str = "decision-0001", **line: Any) -> Any:
        headers = {"x-review-token": self.token, "content-type": "application/json"}
        return self.client.post("/api/decide", content=json.dumps({**line, "id": sent}), headers=headers)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    made = vote_all(record_study(tmp_path / "study", 2), {FIRST: [{}, {}, KIND]})
    add_adjudicator(made)
    return made


@pytest.fixture
def served(study: Study) -> Iterator[Server]:
    with VoteJournal(study.folder) as journal:
        yield Server(study, journal, lambda: NOW)


def case_of(study: Study) -> str:
    return f"{item_of(study, FIRST)}:moral_label"


def test_adjudicator_when_they_open_their_link_sees_cases_and_no_items(served: Server) -> None:
    browser = Browser(served, "simulated-a")
    assert browser.get("/").headers["location"] == "/cases"
    page = browser.get("/cases")
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    assert "1 of 1 cases are open." in page.text
    assert FIRST in page.text and SECOND not in page.text


def test_case_when_opened_shows_votes_under_letters_and_escapes_what_was_written(
    served: Server, study: Study
) -> None:
    page = Browser(served, "simulated-a").get(f"/case/{case_of(study)}").text
    for said in ("Reviewer A", "Reviewer B", "Reviewer C", NOTE, "kindness", "compassion"):
        assert said in page
    assert "simulated-1" not in page and "simulated-3" not in page


def test_decision_when_sent_twice_counts_once(served: Server, study: Study) -> None:
    browser, line = (
        Browser(served, "simulated-a"),
        {"case": case_of(study), "value": "correct", "reason": "So."},
    )
    assert browser.decide(**line).json() == {"saved": True}
    assert browser.decide(**line).json() == {"saved": True}
    (case,) = cases(study, study.standing(), everything=True)
    assert len(case.decisions) == 1
    assert "0 of 1 cases are open." in browser.get("/cases").text
    again = browser.get(f"/case/{case_of(study)}").text
    assert "Decided:" in again and "So." in again


@pytest.mark.parametrize(
    ("line", "status", "why", "fields"),
    [
        ({"value": "wrong", "reason": "So."}, 422, "answers", {"moral_label": "value"}),
        ({"value": "correct", "reason": " "}, 422, "answers", {"case_reason": "reason"}),
        ({"value": "corrected", "reason": "So."}, 422, "answers", {"moral_label_correction": "edits"}),
        ({"value": "correct", "reason": "So.", "case": "i0:moral_label"}, 409, "closed", {}),
        ({"value": "correct", "reason": "So.", "id": "x"}, 422, "id", {}),
    ],
)
def test_decision_when_something_is_wrong_is_refused_with_the_place(
    served: Server, study: Study, line: dict[str, Any], status: int, why: str, fields: dict[str, str]
) -> None:
    answer = Browser(served, "simulated-a").decide(
        **{"case": case_of(study), "sent": line.pop("id", "decision-0001"), **line}
    )
    assert (answer.status_code, answer.json()) == (status, {"why": why, "fields": fields})
    assert len(cases(study, study.standing())) == 1


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**62,
    1e308,
    "",
    "x" * 30_000,
    [],
    [[]],
    {},
    [{"path": 1}],
    [{"path": [], "new": {}}],
    [{"path": "$.moral_label", "new": {"a": 1}}],
    [{"path": "$.moral_label", "new": [1]}],
)


@pytest.mark.parametrize("field", ["case", "value", "reason", "edits"])
def test_decision_when_something_is_of_another_type_is_refused(
    served: Server, study: Study, field: str
) -> None:
    browser = Browser(served, "simulated-a")
    for number, value in enumerate(ODD):
        line = {"case": case_of(study), "value": "corrected", "reason": "So.",
                "edits": [{"path": "$.moral_label", "new": "kindness"}], field: value}  # fmt: skip
        assert browser.decide(f"odd-{number:05d}", **line).status_code in (409, 422), (field, value)
    assert cases(study, study.standing(), everything=True)[0].decisions == ()


def test_reviewer_when_they_ask_for_cases_finds_nothing_and_decides_nothing(
    served: Server, study: Study
) -> None:
    browser, case = Browser(served, "simulated-1"), case_of(study)
    for path in ("/cases", f"/case/{case}", "/case/none"):
        answer = browser.get(path)
        assert answer.status_code == 404
        assert NOTE not in answer.text and FIRST not in answer.text
    answer = browser.decide(case=case, value="correct", reason="So.")
    assert (answer.status_code, answer.json()) == (403, {"why": "page"})
    nobody = TestClient(application(served, adjudication_routes), base_url="http://testserver")
    assert nobody.get("/cases").status_code == 404
    assert nobody.get(f"/case/{case}").status_code == 404


def pages_of_third(study: Study, said: dict[str, Any]) -> list[str]:
    """Return the pages that a third reviewer gets after two have voted, without the names that are drawn."""
    first, second, third = study.seats
    (item,) = study.items
    answers = answers_of(study, item, said)
    for number, seat in enumerate((first, second), 1):
        add_votes(study, f"simulated-{number}", {item: answers}, seat=seat, closed=["0"])
    add_votes(study, "simulated-3", {}, seat=third)
    add_adjudicator(study)
    with VoteJournal(study.folder) as journal:
        browser = Browser(Server(study, journal, lambda: NOW), "simulated-3")
        paths = ("/", f"/item/{item}", "/cases", f"/case/{item}:moral_label")
        shown = [browser.get(path) for path in paths]
    assert [page.status_code for page in shown] == [200, 200, 404, 404]
    parts = [part.id for listed in study.items[item].parts.values() for part in listed]
    mark = shown[0].text.partition('name="review-mark" content="')[2].partition('"')[0]
    texts = []
    for page in shown:
        text = page.text
        for number, name in enumerate((browser.token, mark, item, *parts)):
            text = text.replace(name, str(number))
        texts.append(text)
    return texts


def test_reviewer_when_others_have_voted_learns_nothing_of_it(tmp_path: Path) -> None:
    """The pages of a third reviewer are the same to the letter, whatever the others said."""
    agreeing = pages_of_third(record_study(tmp_path / "agreeing", 1), {})
    differing = pages_of_third(record_study(tmp_path / "differing", 1), KIND)
    assert agreeing == differing
    assert NOTE not in "".join(differing)


def test_adjudicator_when_they_reviewed_an_item_does_not_see_its_cases(served: Server, study: Study) -> None:
    """Somebody who has voted before, in whatever role."""
    item, seat = item_of(study, FIRST), next(iter(study.seats))
    protocol = study.protocol.sha256
    voted = Event(
        "simulated-a/voted", NOW, protocol, "simulated-a", "voted", item,
        {"answers": answers_of(study, item), "seat": seat, "block": "0"},
    )  # fmt: skip
    served.journal.add_now(voted)
    browser = Browser(served, "simulated-a")
    assert "There is nothing to decide at the moment." in browser.get("/cases").text
    assert browser.get(f"/case/{case_of(study)}").status_code == 404
    answer = browser.decide(case=case_of(study), value="correct", reason="So.")
    assert (answer.status_code, answer.json()["why"]) == (403, "page")


def test_pictures_when_of_a_case_are_shown_to_adjudicators_and_not_to_reviewers_who_are_through(
    tmp_path: Path,
) -> None:
    study = toy_study(tmp_path / "study", stories=1)
    (item,) = study.items
    part = study.items[item].parts["questions"][0].id
    for number, seat in enumerate(study.seats, 1):
        said = toy_answers(study, item) | ({f"valid/{part}": "invalid"} if number == 1 else {})
        add_votes(study, f"simulated-{number}", {item: said}, seat=seat, closed=["0"])
    add_adjudicator(study)
    name = study.items[item].media[0].name
    with VoteJournal(study.folder) as journal:
        served = Server(study, journal, lambda: NOW)
        adjudicator, reviewer = Browser(served, "simulated-a"), Browser(served, "simulated-1")
        page = adjudicator.get(f"/case/{item}:valid:{part}").text
        assert f"/media/{name}" in page
        assert adjudicator.get(f"/media/{name}").status_code == 200
        assert reviewer.get(f"/media/{name}").status_code == 404
