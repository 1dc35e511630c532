"""The page of a study: planted losses first, everything escaped, nothing to load, what is missing said."""

import re

from fabula.evaluation.recoverability.definitions import Definitions
from fabula.experiments.tables.page import GROUPS, render_study, study_page, write_page
from fabula.experiments.tables.registry import TABLES, make_tables
from fabula.experiments.tables.results import read_results

FEW = Definitions(resamples=100)


def page_of(folder):
    results = read_results(folder, FEW)
    return study_page(results, make_tables(results))


def test_page_when_written_has_planted_losses_first_and_every_table_or_its_reason(small):
    study = small(6, pictures=True)
    files = write_page(study.folder, FEW)
    assert files[0] == study.folder / "index.html"
    text = files[0].read_text("utf-8")
    heads = re.findall(r'<h2 id="([a-z]+)">', text)
    assert heads[0] == "planted" and heads[1] == "results" and heads[-1] == "definitions"
    assert "no loss was planted" in text and "Semantic Compass was not tuned" in text
    page = page_of(study.folder)
    shown = {table.name for section in page.sections for _, table in section.tables}
    absent = [title for section in page.sections for title, _ in section.absent]
    assert len(shown) + len(absent) == len(TABLES)
    assert {table.group for table in TABLES} <= set(GROUPS)


def test_page_when_read_by_a_browser_loads_nothing_and_allows_only_its_own_script(small):
    text = render_study(page_of(small(6, pictures=True).folder))
    assert "default-src &#39;none&#39;" in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text)
    assert text.count("<script>") == 1


def test_page_when_there_are_pictures_shows_the_same_story_by_all_methods(small):
    page = page_of(small(8, pictures=True).folder)
    stories = next(section.stories for section in page.sections if section.name == "stories")
    assert [story.label for story in stories][:3] == ["Largest gap", "Typical gap", "Smallest gap"]
    assert all(len(story.methods) == 4 for story in stories)
    assert all(len(method.frames) == 5 and method.frames[0].data for method in stories[0].methods)
    assert set(stories[0].methods[0].values) >= {"From images", "STG"}
    assert len({story.story_id for story in stories}) == len(stories)


def test_page_when_there_are_two_stories_says_that_there_is_no_interval(small):
    page = page_of(small(2).folder)
    assert any("too few for intervals and tests" in warning for warning in page.warnings)
    text = render_study(page)
    assert "their pictures" not in text.lower() and "Its pictures are not at hand." in text
    assert not re.search(r'class="sub">\[', text)  # where intervals stand


def test_page_when_nothing_was_judged_is_made_all_the_same(small):
    study = small(2)
    (study.folder / "evaluation" / "judgements.jsonl").unlink()
    page = page_of(study.folder)
    assert "Nothing was judged yet" in " ".join(page.warnings)
    assert "Pipelines (after Table 41)" in render_study(page)


def test_page_when_names_are_hostile_escapes_them(small, closed):
    wrong = closed.model_copy(
        update={"closed": closed.closed.model_copy(update={"name": "<script>x</script>\u202e"})}
    )
    text = render_study(page_of(small(2, unseeded=("fine",), renderers={"fine": wrong}).folder))
    assert "<script>x" not in text and "&lt;script&gt;x" in text
    assert "\u202e" not in text and "[U+202E]" in text


def test_page_when_made_again_has_the_same_bytes(small):
    study = small(6, pictures=True)
    first = write_page(study.folder, FEW)[0].read_bytes()
    assert write_page(study.folder, FEW)[0].read_bytes() == first
