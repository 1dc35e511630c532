"""The pages of a study in a browser: accessible, by keyboard, on a phone, in another language, no scripts."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fabula.testing.review_server import StudyServer, serve_study
from fabula.testing.review_visitor import Visitor

pytestmark = pytest.mark.slow

Served = Callable[..., StudyServer]
Visiting = Callable[..., Visitor]


@pytest.fixture
def served(made: Callable[..., Path], tmp_path: Path) -> Iterator[Served]:
    """Serve a study of its own to a test."""
    with ExitStack() as stack:

        def serve(task: str = "compared", **settings: Any) -> StudyServer:
            folder = shutil.copytree(made(task, **settings), tmp_path / "study")
            return stack.enter_context(serve_study(folder))

        yield serve


@pytest.fixture
def begun(served: Served, visiting: Visiting) -> Callable[..., tuple[StudyServer, Visitor, Any]]:
    """Serve a study, and open its first item as somebody who agreed to take part."""

    def begin(task: str = "compared", **settings: Any) -> tuple[StudyServer, Visitor, Any]:
        server, visitor = served(task, **settings), visiting()
        visitor.agree(server.invite()[0])
        visitor.ready()
        return server, visitor, visitor.page

    return begin


def test_pages_when_looked_at_from_link_to_end_are_accessible_quiet_and_ask_nobody_else(served, visiting):
    server, visitor = served("all-types", items=2, training=1), visiting()
    page = visitor.page
    page.goto(server.invite()[0])
    visitor.check()
    visitor.agree(page.url)
    visitor.ready()
    visitor.check()
    page.locator("#save").click()
    visitor.check()
    page.locator("[data-enlarge]").first.click()
    visitor.check()
    page.keyboard.press("Escape")
    page.locator("input[value='\"no\"']").check()
    page.locator("[data-add]").click()
    page.locator("[data-field]").select_option("/title")
    page.locator("[data-new]").fill("The Jar")
    for word in ("wisdom", "patience"):
        page.locator(f"input[value='\"{word}\"']").check()
    page.locator("[data-type=scale] input").first.check()
    for box in page.locator("[data-type=text] [data-unclear]").all():
        box.check()
    visitor.check()
    page.locator("[data-opens=leaving]").click()
    visitor.check()
    page.keyboard.press("Escape")
    page.locator("#save").click()
    page.locator("#feedback").wait_for()
    visitor.check()
    page.locator("#feedback a").click()
    page.locator("#closing").wait_for()
    visitor.check()
    page.locator("#closing [type=submit]").click()
    for _ in range(2):
        visitor.ready()
        visitor.answer_all()
        visitor.save()
    page.locator("#closing [type=submit]").click()
    page.locator("h1", has_text="Thank you").wait_for()
    visitor.check()
    assert visitor.complaints == []
    page.goto(f"{server.url}/there-is-no-such-page")
    visitor.check()
    assert visitor.hosts == {server.url.removeprefix("http://")}
    assert len(server.votes()) == 3


@pytest.mark.parametrize("task", ["compared", "watched"])
def test_item_when_it_compares_or_shows_a_video_is_accessible(served, visiting, task):
    server, visitor = served(task, training=0), visiting()
    visitor.agree(server.invite()[0])
    visitor.page.locator("#questions").wait_for()
    visitor.check(may_doubt=frozenset(("color-contrast", "video-caption")))  # the videos have no sound


def test_study_when_only_the_keyboard_is_used_is_done_from_link_to_end(served, visiting):
    server, visitor = served(training=0), visiting()
    page, keys = visitor.page, visitor.page.keyboard
    page.goto(server.invite()[0])
    visitor.tab_to("#expertise input")
    keys.press("Space")
    visitor.tab_to("#agreeing [type=submit]")
    keys.press("Enter")
    for number in (1, 2, 3):
        page.locator("h1", has_text=f"{number} of 3").wait_for()
        visitor.ready()
        visitor.tab_to(".skip")
        keys.press("Enter")
        visitor.tab_to("[data-name=better] input")
        keys.press("1")
        keys.press("Enter")
        keys.press("6")  # Unclear comes last
        keys.press("Enter")
        assert page.locator("#save").evaluate("(button) => button === document.activeElement")
        keys.press("Enter")
    page.locator("#closing").wait_for()
    visitor.tab_to("#closing [type=submit]")
    keys.press("Enter")
    page.locator("h1", has_text="Thank you").wait_for()
    assert [vote["answers"] for vote in server.votes()] == [{"better": 2, "nicer": "unclear"}] * 3
    assert visitor.complaints == []


def test_item_when_answers_are_missing_goes_to_the_first_and_lists_them_all(begun):
    server, _, page = begun("all-types")
    page.locator("#save").click()
    assert page.locator(":focus").get_attribute("name") == "sound"
    links = page.locator("#faults a")
    assert links.count() == 5
    assert "Why did the crow want to drink? Your answer" in links.all_inner_texts()
    links.nth(1).click()
    assert page.locator(":focus").get_attribute("name") == "quality"
    page.keyboard.press("4")
    assert links.count() == 4
    assert page.locator("fieldset.faulty").count() == 4
    assert server.votes() == []


def test_question_when_it_depends_on_another_appears_and_answers_only_while_it_is_asked(begun):
    server, visitor, page = begun("all-types")
    edits = page.locator("[data-name=edits]")
    assert edits.is_hidden()
    page.locator("[name=sound][value='\"no\"']").check()
    assert edits.is_visible()
    assert "What should stand there instead?" in page.locator("#live").inner_text()
    visitor.answer_all(but=("sound", "edits"))
    for path, value in (
        ("/title", "The Jar"),
        ("/scenes", "5"),
        ("/characters", "a crow\n a jar\n"),
        ("/turns", ""),
    ):
        page.locator("[data-add]").click()
        page.locator("[data-field]").select_option(path)
        page.locator("[data-new]").fill(value)
        page.locator("[data-keep]").click()
    page.locator("[data-add]").click()
    page.locator("[data-field]").select_option("/moral")
    page.locator("[data-pick]").select_option(label="wisdom")
    page.locator("[data-keep]").click()
    page.locator("[data-corrected] button", has_text="Take back").first.click()
    visitor.page.locator("#save").click()
    page.locator("#feedback").wait_for()
    assert server.votes()[0]["answers"]["edits"] == [
        {"path": "/scenes", "new": 5}, {"path": "/characters", "new": ["a crow", "a jar"]},
        {"path": "/turns", "new": []}, {"path": "/moral", "new": "wisdom"},
    ]  # fmt: skip


def test_correction_when_it_is_of_the_wrong_kind_or_changes_nothing_is_not_kept(begun):
    _, _, page = begun("all-types")
    page.locator("[name=sound][value='\"no\"']").check()
    page.locator("[data-add]").click()
    for path, value, fault in (
        ("/scenes", "many", "A whole number is expected."), ("/title", " ", "Something has to stand there."),
        ("/characters", "a crow", "This is what stands there now. Change it, or cancel."),
    ):  # fmt: skip
        page.locator("[data-field]").select_option(path)
        page.locator("[data-new]").fill(value)
        page.locator("[data-keep]").click()
        assert page.locator("[data-wrong]").inner_text() == fault
        assert page.locator(":focus").get_attribute("aria-invalid") == "true"
    assert page.locator("[data-corrected] li").count() == 0


def test_labels_when_moved_by_keyboard_are_voted_in_the_order_shown(begun):
    server, visitor, page = begun("all-types")
    visitor.answer_all()
    page.locator("[data-name=moral] [data-unclear]").uncheck()
    for word in ("honesty", "wisdom", "courage"):
        page.locator(f"[name=moral][value='\"{word}\"']").check()
    page.locator("[name=moral][value='\"patience\"']").click()
    assert not page.locator("[name=moral][value='\"patience\"']").is_checked()
    assert "At most 3" in page.locator("#live").inner_text()
    page.locator("[data-chosen] li", has_text="courage").locator("[data-move=earlier]").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator("[data-chosen] .words").all_inner_texts() == ["courage", "honesty", "wisdom"]
    page.locator("[data-chosen] li", has_text="honesty").locator("[data-move=remove]").click()
    page.locator("#save").click()
    page.locator("#feedback").wait_for()
    assert server.votes()[0]["answers"]["moral"] == ["courage", "wisdom"]


def test_training_when_answered_says_what_was_right_and_why_and_again_when_opened_again(begun):
    server, visitor, page = begun("all-types")
    visitor.answer_all()  # Yes is right, the first of the scale is not
    key = visitor.key
    page.locator("#save").click()
    for _ in range(2):
        feedback = page.locator("#feedback")
        feedback.wait_for()
        assert "1 of 2 right" in feedback.inner_text()
        assert "The record says what the story says." in feedback.inner_text()
        assert page.locator("[data-name=sound] .verdict.good").count() == 1
        assert page.locator("[data-name=quality] .verdict.bad").count() == 1
        page.goto(f"{server.url}/item/{key}")
    page.locator("#feedback a").click()
    page.locator("#closing").wait_for()


def test_picture_when_enlarged_by_keyboard_is_turned_over_made_larger_and_left(begun):
    _, visitor, page = begun(training=0)
    keys = page.keyboard
    visitor.tab_to("[data-enlarge]")
    keys.press("Enter")
    title, stage = page.locator("#enlarged-name"), page.locator(".stage")
    assert title.inner_text() == "Left, Picture 1"
    keys.press("ArrowRight")
    assert title.inner_text() == "Left, Picture 2"
    keys.press("PageUp")
    keys.press("ArrowLeft")
    assert title.inner_text() == "Right, Picture 3"
    keys.press("+")
    assert stage.get_attribute("data-scale") == "2"
    before = stage.evaluate("(box) => box.scrollLeft")
    keys.press("ArrowRight")
    assert stage.evaluate("(box) => box.scrollLeft") > before
    keys.press("Escape")
    assert page.locator("#enlarged").is_hidden()
    assert page.locator(":focus").get_attribute("data-enlarge") == ""
    assert page.locator("img[alt*='story'], img[alt*='.png']").count() == 0


def test_block_when_looked_over_lets_answers_change_or_stay(served: Served, visiting: Visiting) -> None:
    server, visitor = served(training=0), visiting()
    visitor.agree(server.invite()[0])
    for _ in range(3):
        visitor.ready()
        visitor.answer_all()
        visitor.save()
    page = visitor.page
    page.locator(".answered a").nth(1).click()
    visitor.ready()
    page.locator("[data-name=better] input").nth(2).check()
    page.locator("#kept", has_text="Draft saved").wait_for()
    page.reload()
    assert "have not saved" in page.locator(".notice").inner_text()
    page.locator("[data-restores]").click()
    page.locator(".answered a").nth(1).click()
    visitor.ready()
    assert page.locator("[data-name=better] input").first.is_checked()
    page.locator("[data-name=better] input").nth(2).check()
    visitor.save()
    page.locator("#closing").wait_for()
    assert [vote["answers"]["better"] for vote in server.votes()] == [2, 2, 2, 0]


def test_break_when_its_time_is_over_opens_the_way_without_being_loaded_again(served, visiting):
    server = served(training=0, items=3, block=2, settings={"break_seconds": 90})
    visitor = visiting()
    page = visitor.page
    page.clock.install()
    visitor.agree(server.invite()[0])
    for _ in range(2):
        visitor.ready()
        visitor.answer_all()
        visitor.save()
    page.locator("#closing [type=submit]").click()
    onward = page.locator("#onward")
    page.locator("#clock", has_text="The next part opens in 1:").wait_for()
    assert onward.is_hidden()
    page.clock.run_for(91_000)
    assert onward.is_visible()
    assert "You can go on." in page.locator("[data-said]").first.inner_text()


def test_pages_when_another_language_is_chosen_speak_it_and_keep_what_was_begun(begun):
    _, visitor, page = begun("all-types")
    page.locator("[data-type=text] textarea").first.fill("It was thirsty")
    page.locator(".menu a[lang=zh]").click()
    page.locator("html[lang=zh]").wait_for()
    visitor.ready()
    assert page.locator("#save").inner_text() == "保存并继续"
    assert "记录是否符合故事？" in page.locator("legend").first.inner_text()
    assert page.locator("[data-type=text] textarea").first.input_value() == "It was thirsty"
    page.reload()
    assert page.locator("html").get_attribute("lang") == "zh"


def test_study_when_it_is_left_asks_first_and_then_says_so(begun) -> None:
    _, _, page = begun(training=0)
    page.locator("[data-opens=leaving]").click()
    page.locator("[data-closes]").click()
    assert page.locator("#leaving").is_hidden()
    page.locator("[data-opens=leaving]").click()
    page.locator("[data-act=leave]").click()
    page.locator("h1", has_text="You have left the study.").wait_for()


def test_item_when_scripts_are_off_says_so_and_shows_no_form(served: Served, visiting: Visiting) -> None:
    server, visitor, plain = served(training=0), visiting(), visiting(java_script_enabled=False)
    link = server.invite()[0]
    plain.page.goto(link)
    assert plain.page.locator("noscript p").is_visible()
    assert plain.page.locator("form:visible, button:visible").count() == 0
    visitor.agree(link)
    plain.page.goto(link)
    assert "JavaScript" in plain.page.locator("noscript p").inner_text()
    assert plain.page.locator("form:visible").count() == 0


def test_page_when_its_script_does_not_load_says_so_after_a_while(served: Served, visiting: Visiting) -> None:
    server, visitor, without = served(training=0), visiting(), visiting()
    link = server.invite()[0]
    visitor.page.goto(link)
    visitor.page.locator("#agreeing").wait_for()
    assert visitor.page.locator("#unscripted").count() == 0
    without.context.route("**/static/item.js", lambda route: route.abort())
    without.page.goto(link)
    said = without.page.locator("#unscripted")
    assert said.evaluate("(box) => getComputedStyle(box).animationName") == "late"
    assert without.page.locator("form:visible").count() == 0
    said.evaluate("(box) => box.getAnimations()[0].finish()")
    assert said.is_visible()
