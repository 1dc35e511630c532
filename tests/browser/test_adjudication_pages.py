"""The pages of adjudicators in a browser: accessible, by keyboard, in the dark, on a phone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.people.review.folder import Study, link_of
from fabula.people.review.points import cases
from fabula.testing.review_server import StudyServer, serve_study
from fabula.testing.review_visitor import KEPT, Visitor
from fabula.testing.reviewed_records import add_adjudicator, edit, record_study, vote_all

pytestmark = pytest.mark.slow

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


@pytest.fixture
def visiting(chromium: Any) -> Iterator[Callable[..., Visitor]]:
    visitors: list[Visitor] = []

    def visit(**settings: Any) -> Visitor:
        visitors.append(Visitor(chromium, **settings))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.close()


def decided(study: Study) -> list[tuple[str, object, object, object]]:
    listed = cases(study, study.standing(), everything=True)
    return [
        (case.question.name, case.decision.value, dict(case.decision.edits), case.decision.reason)
        for case in listed
        if case.decision is not None
    ]


def test_cases_when_decided_one_after_the_other_are_accessible_quiet_and_saved(
    served: StudyServer, visiting: Callable[..., Visitor]
) -> None:
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


def test_case_when_the_network_is_lost_is_decided_once_it_is_back(
    served: StudyServer, visiting: Callable[..., Visitor]
) -> None:
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


def test_case_when_decided_with_the_keyboard_alone_needs_no_mouse(
    served: StudyServer, visiting: Callable[..., Visitor]
) -> None:
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


def test_pages_when_in_chinese_or_without_scripts_say_so(
    served: StudyServer, visiting: Callable[..., Visitor]
) -> None:
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
