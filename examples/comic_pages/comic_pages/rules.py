"""What a page must satisfy beyond its types."""

from collections.abc import Iterator

from fabula.examples.comic_pages.comic_pages.records import ComicPage
from fabula.schemas.values import Issue


def check_page(page: ComicPage, where: str) -> Iterator[Issue]:
    """Yield what is wrong with a page."""
    count = len(page.panels)
    numbers = [panel.scene_index for panel in page.panels]
    if numbers != list(range(1, count + 1)):
        yield _wrong(where, "$.panels", "panel-order", f"panels are numbered {numbers}", "number them from 1")
    pairs = [(one.from_scene, one.to_scene) for one in page.transitions]
    if pairs != [(number, number + 1) for number in range(1, count)]:
        what = f"transitions join {pairs}, not each panel and the next"
        yield _wrong(where, "$.transitions", "transition-order", what, "give one for each two neighbours")
    if not page.questions:
        yield _wrong(where, "$.questions", "no-question", "the page has no question", "leave the page out")
    for at, question in enumerate(page.questions):
        path = f"$.questions[{at}]"
        named = {*question.evidence_scenes, *(question.target_transition or ())}
        named |= set() if question.target_scene is None else {question.target_scene}
        if not named <= set(range(1, count + 1)):
            what = f"it is about panels {sorted(named)} of a page with {count}"
            yield _wrong(where, path, "question-place", what, "ask about panels of the page")
        if question.gold_answer not in question.accepted_answers:
            what = "its gold answer is not among the accepted ones"
            yield _wrong(where, path, "question-answer", what, "add it to the accepted answers")


def _wrong(where: str, path: str, code: str, what: str, fix: str) -> Issue:
    return Issue(where, path, code, what, fix)
