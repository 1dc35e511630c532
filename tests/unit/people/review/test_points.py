"""Who may decide what, and when: decisions are about the votes that were there, and are never lost."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fabula.errors import InputError
from fabula.people.review.flow import free_seat
from fabula.people.review.folder import Invited, Study, link_of
from fabula.people.review.points import NotDecided, Said, cases, decide, decide_from_file, lines, verdict_of
from fabula.people.review.serve.routes import application
from fabula.people.review.serve.running import adjudication_routes
from fabula.people.review.serve.server import Server
from fabula.people.review.standing import Event, Reviewer, VoteJournal
from fabula.people.review.task import Option, Question
from fabula.schemas.canonical import Json
from fabula.testing.review_studies import NOW, add_votes, toy_answers, toy_study
from fabula.testing.reviewed_records import add_adjudicator, answers_of, edit, item_of, record_study, vote_all
from fabula.tests.unit.people.review.test_server import Person

FIRST, LATER = "kb25k_0001", "2026-01-02T03:04:05Z"
KIND = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", "kindness")}

Decide = Callable[..., Event | None]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Two records, of which the first is in dispute about its label; an adjudicator is there."""
    made = vote_all(record_study(tmp_path / "study"), {FIRST: [{}, {}, KIND]})
    add_adjudicator(made)
    return made


def line(study: Study, **changes: Json) -> dict[str, Json]:
    """Return the decision that the label stays, but for some changes."""
    return {"case": f"{item_of(study, FIRST)}:moral_label", "value": "correct", "reason": "So."} | changes


def write_down(study: Study, event: Event | None) -> None:
    if event is not None:
        with VoteJournal(study.folder) as journal:
            journal.add_now(event)


def take(study: Study, **changes: Json) -> Event | None:
    """Decide and write it down."""
    event = decide(study, study.standing(), "simulated-a", line(study, **changes), LATER)
    write_down(study, event)
    return event


def test_case_when_votes_differ_is_open_until_it_is_decided(study: Study) -> None:
    (case,) = cases(study, study.standing())
    assert (case.about, case.question.name, case.own_part) == (FIRST, "moral_label", None)
    event = take(study)
    assert event is not None
    assert (event.kind, event.item, event.reviewer) == ("decided", case.id, "simulated-a")
    assert (event.body["value"], event.body["adjudicator"]) == ("correct", "simulated-a")
    assert cases(study, study.standing()) == []
    (decided,) = cases(study, study.standing(), everything=True)
    assert (decided.answer, decided.is_open) == ("correct", False)


def test_decision_when_taken_again_just_so_is_no_new_one_and_another_replaces_it(study: Study) -> None:
    take(study)
    assert take(study) is None
    take(study, value="corrected", edits=edit("$.moral_label", "wisdom"))
    (case,) = cases(study, study.standing(), everything=True)
    assert (case.answer, dict(case.edits)) == ("corrected", {"$.moral_label": "wisdom"})
    assert [each.value for each in case.decisions] == ["correct", "corrected"]


PLACES = {"value": "moral_label", "reason": "case_reason", "edits": "moral_label_correction", "case": ""}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"value": "wrong"}, "value"), ({"value": None}, "value"), ({"value": ["correct"]}, "value"),
        ({"reason": " \n"}, "reason"), ({"reason": 3}, "reason"), ({"reason": "x" * 5000}, "reason"),
        ({"value": "corrected"}, "edits"),  # nothing is corrected
        ({"edits": edit("$.moral_label", "wisdom")}, "edits"),  # nothing is wrong
        *(({"value": "corrected", "edits": edits}, "edits") for edits in (
            "x", [{"path": 1, "new": "wisdom"}], edit("$.title", "Other"), edit("$.moral_label", None),
            edit("$.moral_label", "compassion"), edit("$.moral_label", "virtue"),
        )),
        ({"case": "i0:moral_label"}, "case"), ({"case": None}, "case"),
    ],
)  # fmt: skip
def test_decision_when_something_is_wrong_is_refused_and_says_where(study, changes, code):
    with pytest.raises(NotDecided) as refused:
        take(study, **changes)
    assert (refused.value.code, refused.value.place) == (code, PLACES[code])
    assert len(cases(study, study.standing())) == 1


def test_decision_when_by_a_reviewer_somebody_revoked_or_on_their_own_vote_is_refused(study: Study) -> None:
    def refused(who: str) -> str:
        with pytest.raises(NotDecided) as caught:
            decide(study, study.standing(), who, line(study), LATER)
        return caught.value.code

    assert [refused(who) for who in ("simulated-1", "nobody", "")] == ["role"] * 3
    about = LATER, study.protocol.sha256
    role = {"role": "adjudicator"}  # of somebody who has voted, in training or in a seat
    write_down(study, Event("1/promoted", *about, "simulated-1", "invited", None, role))
    write_down(study, Event("a/revoked", *about, "simulated-a", "revoked"))
    assert (refused("simulated-1"), refused("simulated-a")) == ("own", "role")


def test_case_when_a_vote_is_missing_or_can_be_changed_is_not_open(tmp_path: Path) -> None:
    study = vote_all(record_study(tmp_path / "open"), {FIRST: [{}, {}, KIND]}, closing=False)
    assert cases(study, study.standing()) == []
    short = record_study(tmp_path / "short", 1)
    first, second, _ = short.seats
    for number, seat in enumerate((first, second), 1):
        item = item_of(short, FIRST)
        said = answers_of(short, item, KIND if number == 2 else None)
        add_votes(short, f"simulated-{number}", {item: said}, seat=seat, closed=["0"])
    assert cases(short, short.standing()) == []
    add_adjudicator(short)
    with pytest.raises(NotDecided) as refused:
        take(short)
    assert refused.value.code == "case"


def test_case_when_a_vote_comes_after_its_decision_is_open_again(study: Study) -> None:
    take(study)
    item, seat = item_of(study, FIRST), next(iter(study.seats))
    changed = answers_of(study, item, KIND)
    add_votes(study, "simulated-1", {item: changed}, seat=seat, at=LATER, begin=False)
    (case,) = cases(study, study.standing())
    assert case.decision is None
    assert [each.value for each in case.decisions] == ["correct"]  # it is still there to be seen


def test_cases_when_a_task_of_another_kind_is_adjudicated_open_where_people_differ(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study", stories=2)
    items = sorted(study.items)
    for number, seat in enumerate(study.seats, 1):
        votes = {item: toy_answers(study, item) for item in items}
        part = study.items[items[0]].parts["questions"][0].id
        if number == 1:
            votes[items[0]] |= {f"valid/{part}": "invalid"}
        add_votes(study, f"simulated-{number}", votes, seat=seat, closed=["0"])
    (case,) = cases(study, study.standing())
    assert (case.item, case.question.name, case.verdict.why) == (items[0], "valid", ("majority",))
    path = study.items[items[0]].parts["questions"][0].values[0].path
    decision = {"case": case.id, "value": "invalid", "edits": edit(path, "the rain"), "reason": "so"}
    add_adjudicator(study)
    # corrections may be left out, not be wrong
    with pytest.raises(NotDecided, match="is not among the fields"):
        decide(study, study.standing(), "simulated-a", {**decision, "edits": edit("$.no", "x")}, LATER)
    event = decide(study, study.standing(), "simulated-a", decision, LATER)
    assert event is not None
    assert event.body["edits"] == edit(path, "the rain")


def test_seat_when_the_study_is_closed_is_given_to_nobody(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1)
    assert free_seat(study, study.standing(), Reviewer("simulated-9")) is not None
    shut = replace(study, protocol=study.protocol.model_copy(update={"closed": True}))
    assert free_seat(shut, shut.standing(), Reviewer("simulated-9")) is None


@pytest.mark.parametrize("doubtful", [{"ambiguous": ("unsure",)}, {"unusable": ("no", "useless")}])
def test_question_when_a_doubtful_answer_is_no_option_is_refused(doubtful: dict[str, Any]) -> None:
    options = [{"value": word, "text": {"en": word}} for word in ("yes", "no")]
    with pytest.raises(ValueError, match="is no option"):
        Question.model_validate(
            {"name": "q", "type": "choice", "title": {"en": "?"}, "options": options, **doubtful}
        )


def write(folder: Path, rows: list[Any]) -> Path:
    texts = (json.dumps(row) + "\n" if isinstance(row, dict) else row for row in rows)
    (folder / "decisions.jsonl").write_text("".join(texts), "utf-8")
    return folder / "decisions.jsonl"


def test_file_of_decisions_when_sound_is_taken_once_and_from_an_adjudicator(study: Study, tmp_path: Path):
    path = write(tmp_path, [line(study)])
    with VoteJournal(study.folder) as journal:
        with pytest.raises(NotDecided, match="not an adjudicator"):
            decide_from_file(study, journal, write(tmp_path, [line(study)] * 2), "simulated-2", LATER)
        write(tmp_path, [line(study)])
        assert decide_from_file(study, journal, path, "simulated-a", LATER) == 1
        assert decide_from_file(study, journal, path, "simulated-a", LATER) == 0
    assert cases(study, study.standing()) == []


def test_file_of_decisions_when_lines_are_wrong_lists_them_all_and_takes_none(study, tmp_path):
    rows = [line(study), line(study), "[1]\n", "{\n", line(study, case="x", more=1), line(study, case="i0:q")]
    path = write(tmp_path, rows)
    with VoteJournal(study.folder) as journal, pytest.raises(InputError) as refused:
        decide_from_file(study, journal, path, "simulated-a", LATER)
    places = [problem.where.partition(" ")[0] for problem in refused.value.problems]
    assert places == [f"decisions.jsonl:{number}" for number in (2, 3, 4, 5, 6)]
    assert len(cases(study, study.standing())) == 1


def test_cases_when_listed_for_people_tell_votes_and_why(study: Study) -> None:
    listed = list(lines(cases(study, study.standing())))
    assert listed[0].endswith("kb25k_0001, moral_label: the reviewers do not all agree")
    assert listed[1:] == [
        "  simulated-1: correct", "  simulated-2: correct",
        '  simulated-3: corrected, [{"new":"kindness","path":"$.moral_label"}]',
    ]  # fmt: skip
    assert list(lines([])) == ["nothing is to be decided"]


# -- How votes on one thing stand, worked by hand: every row of the adjudication rules (Table 19)

LABEL = Question(
    name="moral_label", type="choice", title={"en": "?"}, ambiguous=("ambiguous",), adjudicated=True,
    options=tuple(Option(value=word, text={"en": word}) for word in ("correct", "corrected", "ambiguous")),
)  # fmt: skip
SCENES = Question(
    name="scene_sequence", type="choice", title={"en": "?"}, unusable=("unusable",), adjudicated=True,
    options=tuple(Option(value=word, text={"en": word}) for word in ("valid", "flawed", "unusable")),
)  # fmt: skip
PATH = "$.moral_label"


def said(*answers: Json) -> list[Said]:
    """Return votes: an answer, or an answer with the label that it puts in place."""
    votes = []
    for number, answer in enumerate(answers, 1):
        word, label = answer if isinstance(answer, tuple) else (answer, None)
        votes.append(Said(f"r{number}", word, {} if label is None else {PATH: label}))
    return votes


# answers of three, whether a majority decides -> state, answer, corrections, why somebody decides
TABLE = [
    (("correct", "correct", "correct"), False, "unanimous", "correct", {}, ()),
    (("correct", "correct", "correct"), True, "unanimous", "correct", {}, ()),
    # two or more agree
    (("correct", "correct", ("corrected", "kindness")), True, "majority", "correct", {}, ()),
    (("correct", "correct", ("corrected", "kindness")), False, "majority", "correct", {}, ("majority",)),
    # a label is wrong, and they agree what is right
    ((("corrected", "kindness"),) * 3, False, "unanimous", "corrected", {PATH: "kindness"}, ()),
    ((("corrected", " kindness\n"), ("corrected", "kindness"), "correct"), True, "majority", "corrected",
     {PATH: "kindness"}, ()),
    # conflicting corrections go to somebody, whatever the protocol
    ((("corrected", "kindness"), ("corrected", "kindness"), ("corrected", "wisdom")), True, "conflict",
     "corrected", {}, ("corrections",)),
    ((("corrected", "kindness"), ("corrected", "wisdom"), "correct"), True, "conflict", "corrected", {},
     ("corrections",)),
    # explicit ambiguity of any reviewer
    (("correct", "correct", "ambiguous"), True, "ambiguous", "correct", {}, ("ambiguous",)),
    (("ambiguous", "ambiguous", "ambiguous"), False, "ambiguous", "ambiguous", {}, ("ambiguous",)),
    # nobody agrees
    (("correct", ("corrected", "kindness"), "ambiguous"), True, "ambiguous", None, {},
     ("ambiguous", "no_majority")),
    # it is to be corrected, and nobody says how
    (("corrected", "corrected", "correct"), True, "majority", "corrected", {}, ("uncorrected",)),
]  # fmt: skip


@pytest.mark.parametrize(("answers", "consensus", "state", "answer", "edits", "why"), TABLE)
def test_label_when_three_have_voted_stands_as_the_rules_say(answers, consensus, state, answer, edits, why):
    verdict = verdict_of(LABEL, said(*answers), consensus=consensus, correcting=("corrected",))
    assert (verdict.state, verdict.answer, dict(verdict.edits), verdict.why) == (state, answer, edits, why)


@pytest.mark.parametrize(
    ("answers", "state", "answer", "why"),
    [
        (("unusable", "valid", "valid"), "unusable", "valid", ("unusable",)),
        (("unusable", "unusable", "unusable"), "unusable", "unusable", ("unusable",)),
        (("valid", "flawed", "unusable"), "unusable", None, ("unusable", "no_majority")),
        (("flawed", "flawed", "flawed"), "unanimous", "flawed", ("uncorrected",)),
        (("valid", "valid", "unclear"), "ambiguous", "valid", ("ambiguous",)),  # any task may have it
    ],
)
def test_scenes_when_somebody_cannot_use_them_go_to_an_adjudicator(answers, state, answer, why):
    verdict = verdict_of(SCENES, said(*answers), consensus=True, correcting=("flawed",))
    assert (verdict.state, verdict.answer, verdict.why) == (state, answer, why)


@pytest.mark.parametrize(
    ("answers", "answer", "why"),
    [
        (("correct",), "correct", ()),
        (("correct", "corrected"), None, ("no_majority",)),  # 1 : 1 is no majority
        (("correct", "correct", "corrected", "corrected"), None, ("no_majority",)),
        (("correct", "correct", "correct", "corrected"), "correct", ()),
        (("correct", "correct", "corrected", "ambiguous", "ambiguous"), None, ("ambiguous", "no_majority")),
    ],
)
def test_majority_when_not_three_have_voted_is_more_than_half_in_any_order(answers, answer, why):
    verdict = verdict_of(LABEL, said(*answers), consensus=True)
    assert (verdict.answer, verdict.why) == (answer, why)
    assert verdict_of(LABEL, said(*answers)[::-1], consensus=True) == verdict


# -- The addresses of adjudicators: whose they are, and that reviewers learn nothing of each other from any

SECOND = "kb25k_0002"
NOTE = "They do somebody good, says this reviewer."
CORRECTED = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", "kindness"),
        "moral_label_note": NOTE}  # fmt: skip


class Browser(Person):
    """Somebody's browser, where cases may be decided."""

    def __init__(self, served: Server, who: str) -> None:
        invited = Invited(who, "reviewer", None, link_of(served.study, who))
        super().__init__(application(served, adjudication_routes), served.study, invited)

    def get(self, path: str) -> Any:
        return self.client.get(path, follow_redirects=False)

    def decide(self, sent: str = "decision-0001", **line: Any) -> Any:
        return self.post("decide", {**line, "id": sent})


@pytest.fixture
def disputed(tmp_path: Path) -> Study:
    made = vote_all(record_study(tmp_path / "study", 2), {FIRST: [{}, {}, CORRECTED]})
    add_adjudicator(made)
    return made


@pytest.fixture
def served(disputed: Study) -> Iterator[Server]:
    with VoteJournal(disputed.folder) as journal:
        yield Server(disputed, journal, lambda: NOW)


def case_of(disputed: Study) -> str:
    return f"{item_of(disputed, FIRST)}:moral_label"


def test_adjudicator_when_they_open_their_link_sees_cases_and_no_items(served: Server) -> None:
    browser = Browser(served, "simulated-a")
    assert browser.get("/").headers["location"] == "/cases"
    page = browser.get("/cases")
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    assert "1 of 1 cases are open." in page.text
    assert FIRST in page.text and SECOND not in page.text


def test_case_when_opened_shows_votes_under_letters_and_escapes_what_was_written(served, disputed):
    page = Browser(served, "simulated-a").get(f"/case/{case_of(disputed)}").text
    for said in ("Reviewer A", "Reviewer B", "Reviewer C", NOTE, "kindness", "compassion"):
        assert said in page
    assert "simulated-1" not in page and "simulated-3" not in page


def test_decision_when_sent_twice_counts_once(served: Server, disputed: Study) -> None:
    browser, case = Browser(served, "simulated-a"), case_of(disputed)
    sent = [browser.decide(case=case, value="correct", reason="So.").json() for _ in range(2)]
    assert sent == [{"saved": True}] * 2
    (decided,) = cases(disputed, disputed.standing(), everything=True)
    assert len(decided.decisions) == 1
    assert "0 of 1 cases are open." in browser.get("/cases").text
    again = browser.get(f"/case/{case}").text
    assert "Decided:" in again and "So." in again


@pytest.mark.parametrize(
    ("line", "status", "why", "fields"),
    [
        ({"value": "wrong"}, 422, "answers", {"moral_label": "value"}),
        ({"reason": " "}, 422, "answers", {"case_reason": "reason"}),
        ({"value": "corrected"}, 422, "answers", {"moral_label_correction": "edits"}),
        ({"case": "i0:moral_label"}, 409, "closed", {}),
        ({"sent": "x"}, 422, "id", {}),
    ],
)
def test_decision_when_something_is_wrong_is_refused_with_the_place(
    served, disputed, line, status, why, fields
):
    right = {"case": case_of(disputed), "value": "correct", "reason": "So.", "sent": "decision-0001"}
    answer = Browser(served, "simulated-a").decide(**right | line)
    assert (answer.status_code, answer.json()) == (status, {"why": why, "fields": fields})
    assert len(cases(disputed, disputed.standing())) == 1


ODD: tuple[Any, ...] = (
    None, True, -1, 2**62, 1e308, "", "x" * 30_000, [], [[]], {}, [{"path": 1}], [{"path": [], "new": {}}],
    [{"path": "$.moral_label", "new": {"a": 1}}], [{"path": "$.moral_label", "new": [1]}],
)  # fmt: skip


@pytest.mark.parametrize("field", ["case", "value", "reason", "edits"])
def test_decision_when_something_is_of_another_type_is_refused(served, disputed, field):
    browser = Browser(served, "simulated-a")
    for number, value in enumerate(ODD):
        line = {"case": case_of(disputed), "value": "corrected", "reason": "So.",
                "edits": [{"path": "$.moral_label", "new": "kindness"}], field: value}  # fmt: skip
        assert browser.decide(f"odd-{number:05d}", **line).status_code in (409, 422), (field, value)
    assert cases(disputed, disputed.standing(), everything=True)[0].decisions == ()


def test_reviewer_when_they_ask_for_cases_finds_nothing_and_decides_nothing(served, disputed):
    browser, case = Browser(served, "simulated-1"), case_of(disputed)
    nobody = TestClient(application(served, adjudication_routes), base_url="http://testserver")
    for path in ("/cases", f"/case/{case}", "/case/none"):
        answer = browser.get(path)
        assert (answer.status_code, nobody.get(path).status_code) == (404, 404)
        assert NOTE not in answer.text and FIRST not in answer.text
    answer = browser.decide(case=case, value="correct", reason="So.")
    assert (answer.status_code, answer.json()) == (403, {"why": "page"})


def pages_of_third(disputed: Study, said: dict[str, Any]) -> list[str]:
    """Return the pages that a third reviewer gets after two have voted, without the names that are drawn."""
    first, second, third = disputed.seats
    (item,) = disputed.items
    answers = answers_of(disputed, item, said)
    for number, seat in enumerate((first, second), 1):
        add_votes(disputed, f"simulated-{number}", {item: answers}, seat=seat, closed=["0"])
    add_votes(disputed, "simulated-3", {}, seat=third)
    add_adjudicator(disputed)
    with VoteJournal(disputed.folder) as journal:
        browser = Browser(Server(disputed, journal, lambda: NOW), "simulated-3")
        paths = ("/", f"/item/{item}", "/cases", f"/case/{item}:moral_label")
        shown = [browser.get(path) for path in paths]
    assert [page.status_code for page in shown] == [200, 200, 404, 404]
    parts = [part.id for listed in disputed.items[item].parts.values() for part in listed]
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
    differing = pages_of_third(record_study(tmp_path / "differing", 1), CORRECTED)
    assert agreeing == differing
    assert NOTE not in "".join(differing)


def test_adjudicator_when_they_reviewed_an_item_does_not_see_its_cases(served, disputed):
    """Somebody who has voted before, in whatever role."""
    item = item_of(disputed, FIRST)
    body = {"answers": answers_of(disputed, item), "seat": next(iter(disputed.seats)), "block": "0"}
    protocol = disputed.protocol.sha256
    served.journal.add_now(Event("a/voted", NOW, protocol, "simulated-a", "voted", item, body))
    browser = Browser(served, "simulated-a")
    assert "There is nothing to decide at the moment." in browser.get("/cases").text
    assert browser.get(f"/case/{case_of(disputed)}").status_code == 404
    answer = browser.decide(case=case_of(disputed), value="correct", reason="So.")
    assert (answer.status_code, answer.json()["why"]) == (403, "page")


def test_pictures_when_of_a_case_are_shown_to_adjudicators_and_not_to_reviewers_who_are_through(tmp_path):
    disputed = toy_study(tmp_path / "study", stories=1)
    (item,) = disputed.items
    part = disputed.items[item].parts["questions"][0].id
    for number, seat in enumerate(disputed.seats, 1):
        said = toy_answers(disputed, item) | ({f"valid/{part}": "invalid"} if number == 1 else {})
        add_votes(disputed, f"simulated-{number}", {item: said}, seat=seat, closed=["0"])
    add_adjudicator(disputed)
    name = disputed.items[item].media[0].name
    with VoteJournal(disputed.folder) as journal:
        served = Server(disputed, journal, lambda: NOW)
        adjudicator, reviewer = Browser(served, "simulated-a"), Browser(served, "simulated-1")
        page = adjudicator.get(f"/case/{item}:valid:{part}").text
        assert f"/media/{name}" in page
        assert adjudicator.get(f"/media/{name}").status_code == 200
        assert reviewer.get(f"/media/{name}").status_code == 404
