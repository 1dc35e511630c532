"""Votes on their way from a browser: none is lost, none counts twice, nothing of an item stays behind."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.people.review.folder import Study, link_of
from fabula.people.review.points import cases
from fabula.people.review.standing import read_events
from fabula.testing.review_server import StudyProcess, StudyServer, serve_study
from fabula.testing.review_visitor import KEPT, ONLINE, Visitor
from fabula.testing.reviewed_records import add_adjudicator, edit, record_study, vote_all

pytestmark = pytest.mark.slow

STORED = "() => JSON.stringify([{...localStorage}, {...sessionStorage}])"
Served = Callable[..., StudyServer]


@pytest.fixture
def folder(made: Callable[..., Path], tmp_path: Path) -> Path:
    """A study of its own for a test."""
    return Path(shutil.copytree(made("compared", training=0), tmp_path / "study"))


@pytest.fixture
def server(folder: Path) -> Iterator[StudyServer]:
    """The study, served."""
    with serve_study(folder) as running:
        yield running


@pytest.fixture
def visitor(chromium: Any) -> Iterator[Visitor]:
    """Somebody with a browser."""
    made = Visitor(chromium)
    yield made
    made.close()


def begin(visitor: Visitor, link: str) -> None:
    visitor.agree(link)
    visitor.ready()


def test_vote_when_the_network_is_lost_waits_and_counts_once(server: StudyServer, visitor: Visitor) -> None:
    begin(visitor, server.invite()[0])
    visitor.answer_all()
    key = visitor.key
    visitor.context.set_offline(True)
    visitor.page.locator("#save").click()
    visitor.page.locator("#said", has_text="No connection").wait_for()
    assert (visitor.key, visitor.kept, server.votes()) == (key, 1, [])
    assert visitor.page.locator("#asked").evaluate("(box) => box.inert")
    visitor.context.set_offline(False)
    visitor.page.locator("h1", has_text="2 of 3").wait_for()
    assert len(server.votes()) == 1
    assert visitor.page.evaluate(STORED).count(key) == 0


def test_vote_when_its_answer_is_lost_is_sent_again_with_its_id_and_counts_once(server, visitor):
    begin(visitor, server.invite()[0])
    visitor.answer_all()
    sent: list[str] = []

    def lose_the_first(route: Any) -> None:
        sent.append(route.request.post_data_json["id"])
        answer = route.fetch()
        assert answer.ok
        route.abort() if len(sent) == 1 else route.fulfill(response=answer)

    visitor.page.route("**/api/vote", lose_the_first)
    visitor.page.locator("#save").click()
    visitor.page.locator("#said", has_text="No connection").wait_for()
    visitor.page.evaluate(ONLINE)
    visitor.page.locator("h1", has_text="2 of 3").wait_for()
    assert len(sent) == 2
    assert len(set(sent)) == 1
    assert len(server.votes()) == 1


@pytest.mark.parametrize(
    "answer", [{"status": 502, "body": "<html>bad gateway</html>"}, {"status": 404, "body": "no"}]
)
def test_vote_when_a_proxy_answers_in_place_of_the_server_is_kept(server, visitor, answer):
    begin(visitor, server.invite()[0])
    visitor.answer_all()
    visitor.page.route("**/api/vote", lambda route: route.fulfill(**answer))
    visitor.page.locator("#save").click()
    visitor.page.locator("#said", has_text="could not save").wait_for()
    assert (visitor.kept, server.votes()) == (1, [])
    visitor.page.unroute("**/api/vote")
    visitor.page.evaluate(ONLINE)
    visitor.page.locator("h1", has_text="2 of 3").wait_for()
    assert len(server.votes()) == 1


def test_vote_when_the_server_is_killed_and_comes_back_counts_once(folder: Path, visitor: Visitor) -> None:
    with serve_study(folder) as running:
        link, port = running.invite()[0], running.port
    first = StudyProcess(folder, port)
    begin(visitor, link)
    visitor.answer_all()
    first.kill()
    visitor.page.locator("#save").click()
    visitor.page.locator("#said", has_text="No connection").wait_for()
    second = StudyProcess(folder, port)
    visitor.page.evaluate(ONLINE)
    visitor.page.locator("h1", has_text="2 of 3").wait_for()
    second.stop()
    assert [event.kind for event in read_events(folder)].count("voted") == 1


def test_vote_when_the_tab_was_closed_before_it_was_sent_is_sent_when_the_study_is_opened_again(
    server: StudyServer, visitor: Visitor
) -> None:
    begin(visitor, server.invite()[0])
    visitor.answer_all()
    visitor.page.route("**/api/vote", lambda route: route.abort())
    visitor.page.locator("#save").click()
    visitor.page.locator("#said", has_text="No connection").wait_for()
    visitor.page.close()
    page = visitor.context.new_page()
    page.goto(server.url)
    page.locator("h1", has_text="2 of 3").wait_for()
    assert len(server.votes()) == 1
    assert page.evaluate(STORED).count("answers") == 0


def test_vote_when_the_session_has_ended_waits_for_its_own_link_and_for_nobody_elses(server, visitor):
    mine, other = server.invite(2)
    begin(visitor, mine)
    visitor.answer_all()
    visitor.context.clear_cookies()
    visitor.page.locator("#save").click()
    visitor.page.locator("#said", has_text="session has expired").wait_for()
    begin(visitor, other)
    assert (visitor.kept, server.votes()) == (1, [])
    visitor.page.goto(mine)
    visitor.page.locator("h1", has_text="2 of 3").wait_for()
    assert (visitor.kept, len(server.votes())) == (0, 1)


def test_vote_when_sent_has_what_happened_on_the_page(server: StudyServer, visitor: Visitor) -> None:
    begin(visitor, server.invite()[0])
    page = visitor.page
    page.locator("[data-enlarge]").first.click()
    page.keyboard.press("Escape")
    visitor.answer_all()
    page.locator("#kept", has_text="Draft saved").wait_for()
    page.reload()
    visitor.ready()
    visitor.save()
    vote = server.votes()[0]
    moments = [moment for moment, _ in vote["timeline"]]
    events = [what for _, what in vote["timeline"]]
    assert moments == sorted(moments)
    assert events[0] == "visible"
    assert events[-1] == "sent"
    assert {"zoom", "active", "hidden"} <= set(events)  # away while the page was loaded again
    assert events.count("loaded") == 2
    assert events.index("loaded") < events.index("zoom") < events.index("hidden")
    assert vote["language"] == "en"


def test_page_when_loaded_again_has_what_was_begun(made, tmp_path, visitor):
    folder = shutil.copytree(made("all-types", training=0), tmp_path / "study")
    with serve_study(folder) as server:
        begin(visitor, server.invite()[0])
        page = visitor.page
        page.locator("[name=sound][value='\"no\"']").check()
        page.locator("[data-add]").click()
        page.locator("[data-field]").select_option("/title")
        page.locator("[data-new]").fill("The Jar")
        page.locator("[data-keep]").click()
        page.locator("[name=moral][value='\"wisdom\"']").check()
        page.locator("[name=moral][value='\"honesty\"']").check()
        page.locator("textarea:visible").first.fill("Thirst <b>&")
        page.locator("#kept", has_text="Draft saved").wait_for()
        page.reload()
        visitor.ready()
        assert page.locator("[name=sound][value='\"no\"']").is_checked()
        assert page.locator("[data-corrected] ins").inner_text() == "The Jar"
        assert page.locator("[data-chosen] .words").all_inner_texts() == ["wisdom", "honesty"]
        assert page.locator("textarea:visible").first.input_value() == "Thirst <b>&"
        assert server.votes() == []
    assert "Thirst" not in page.evaluate(STORED)


def test_item_when_a_picture_does_not_load_cannot_be_voted_on_but_loaded_again(server, visitor):
    visitor.context.route("**/media/*", lambda route: route.abort())
    visitor.agree(server.invite()[0])
    page = visitor.page
    page.locator("#trouble .notice").wait_for()
    visitor.answer_all()
    page.locator("#save").click(force=True)
    assert page.locator("#save").get_attribute("aria-disabled") == "true"
    assert page.locator(":focus").inner_text() == "Load again"
    visitor.context.unroute("**/media/*")
    page.keyboard.press("Enter")
    visitor.ready()
    assert page.locator("#trouble .notice").count() == 0
    visitor.save()
    assert len(server.votes()) == 1


def test_item_when_it_is_reported_as_not_loading_makes_way_for_the_next(server, visitor):
    visitor.context.route("**/media/*", lambda route: route.abort())
    visitor.agree(server.invite()[0])
    page = visitor.page
    page.locator("#trouble .notice").wait_for()
    key = visitor.key
    page.locator("#trouble button", has_text="Report").click()
    page.locator("h1", has_text="2 of 3").wait_for()
    broken = [event for event in server.journal.events() if event.kind == "broken"]
    assert [(event.item, event.body["what"]) for event in broken] == [(key, "6 of 6: picture")]
    assert server.votes() == []


def test_video_when_it_was_skipped_through_is_not_watched_and_no_vote_is_taken(made, tmp_path, visitor):
    with serve_study(shutil.copytree(made("watched", training=0), tmp_path / "study")) as server:
        visitor.agree(server.invite()[0])
        page, video = visitor.page, visitor.page.locator("video")
        page.locator("#said", has_text="Watch every video").wait_for()
        ended = "(video) => new Promise((done) => { video.onended = () => done(); video.play(); })"
        video.evaluate("(video) => { video.currentTime = video.duration / 2; }")
        video.evaluate(ended)
        visitor.answer_all()
        page.locator("#save").click(force=True)
        assert (page.locator("#save").get_attribute("aria-disabled"), server.votes()) == ("true", [])
        video.evaluate("(video) => { video.playbackRate = 4; video.currentTime = 0; }")
        video.evaluate(ended)
        assert video.evaluate("(video) => video.playbackRate") == 1
        visitor.ready()
        visitor.save()
        events = [what for _, what in server.votes()[0]["timeline"]]
        assert "played:1:1.00" in events
        assert any(what.startswith("played:1:0.") for what in events)


def test_link_when_followed_from_another_site_opens_the_study(server: StudyServer, visitor: Visitor) -> None:
    link = server.invite()[0]
    page = visitor.page
    page.route("http://mail.test/", lambda route: route.fulfill(
        content_type="text/html", body=f'<title>Mail</title><a href="{link}">Your link</a>'))  # fmt: skip
    page.goto("http://mail.test/")
    page.locator("a").click()
    page.locator("#agreeing").wait_for()


# -- The pages of adjudicators in a browser: accessible, by keyboard, in the dark, on a phone

FIRST = "kb25k_0001"
QUESTION = f"{FIRST}_q1"
MENDED = {
    f"recoverability_qa/{QUESTION}": "needs_edit", f"qa_note/{QUESTION}": "<b>Too long.</b>",
    f"qa_correction/{QUESTION}": edit("$.questions[0].gold_answer", "the river rose"),
}  # fmt: skip
KIND = {"moral_label": "corrected", "moral_label_correction": edit("$.moral_label", "kindness")}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[StudyServer]:
    study = vote_all(record_study(tmp_path / "study", 2), {FIRST: [{}, MENDED, {**MENDED, **KIND}]})
    add_adjudicator(study)
    with serve_study(study.folder) as server:
        yield server


def decided(study: Study) -> list[tuple[str, object, object, object]]:
    listed = cases(study, study.standing(), everything=True)
    return [
        (case.question.name, case.decision.value, dict(case.decision.edits), case.decision.reason)
        for case in listed
        if case.decision is not None
    ]


def test_cases_when_decided_one_after_the_other_are_accessible_quiet_and_saved(served, visiting):
    visitor = visiting()
    page = visitor.page
    page.goto(link_of(served.study, "simulated-a", served.url))
    visitor.check()
    page.locator(".cases a").first.click()
    visitor.check()
    page.locator("#save").click()  # nothing is decided yet
    assert page.locator("#faults li").count() == 2
    page.locator("[data-take]").last.click()
    page.locator("textarea:visible").last.fill("The last scene is about help.")
    visitor.check()
    page.locator("#save").click()
    page.wait_for_url("**/case/*recoverability*")
    assert page.locator(".votes b", has_text="<b>").count() == 0
    visitor.check()
    page.locator("#asked input[value='\"valid\"']").check()
    page.locator("textarea:visible").last.fill("It is in the story.")
    page.locator("#save").click()
    page.wait_for_url("**/cases")
    visitor.check()
    assert visitor.complaints == []
    assert visitor.hosts == {f"127.0.0.1:{served.port}"}
    by_name = {name: rest for name, *rest in decided(served.study)}
    assert by_name["recoverability_qa"] == ["valid", {}, "It is in the story."]
    assert by_name["moral_label"][0] in ("correct", "corrected")


def test_case_when_the_network_is_lost_is_decided_once_it_is_back(served, visiting):
    visitor = visiting()
    page = visitor.page
    page.goto(link_of(served.study, "simulated-a", served.url))
    page.locator(".cases a").first.click()
    page.locator("#asked input[value='\"correct\"']").check()
    page.locator("textarea:visible").last.fill("It fits.")
    visitor.context.set_offline(True)
    page.locator("#save").click()
    page.locator("#said.warn").wait_for()
    page.wait_for_function(f"({KEPT})() === 1")
    visitor.context.set_offline(False)
    page.evaluate("() => { dispatchEvent(new Event('online')); }")
    page.wait_for_url("**/case/*recoverability*", wait_until="commit")
    assert decided(served.study) == [("moral_label", "correct", {}, "It fits.")]


def test_case_when_decided_with_the_keyboard_alone_needs_no_mouse(served, visiting):
    visitor = visiting()
    page = visitor.page
    page.goto(link_of(served.study, "simulated-a", served.url))
    visitor.tab_to(".cases a")
    page.keyboard.press("Enter")
    page.locator("#questions").wait_for()
    visitor.tab_to("#asked input[type=radio]")
    page.keyboard.press("1")
    page.keyboard.press("Enter")  # goes on to the reason
    page.keyboard.type("It fits.")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/case/*recoverability*")
    assert decided(served.study) == [("moral_label", "correct", {}, "It fits.")]


def test_pages_when_in_chinese_or_without_scripts_say_so(served, visiting):
    link = link_of(served.study, "simulated-a", served.url)
    chinese = visiting(locale="zh-CN")
    chinese.page.goto(link)
    assert chinese.heading == "待裁定的案例"
    chinese.page.locator(".cases a").first.click()
    assert "评审人 A" in chinese.page.locator(".votes").inner_text()
    bare = visiting(java_script_enabled=False)
    bare.page.goto(link)
    bare.page.locator(".cases a").first.click()
    assert not bare.page.locator("#questions").is_visible()
    assert bare.page.locator("noscript, .notice.warn").count() > 0
