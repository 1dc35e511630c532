"""What each plan shows a generator, and that no question ever stands in a prompt."""

from dataclasses import replace

import pytest

from fabula.errors import ConfigError
from fabula.generation.plans import PLANS, plan_named
from fabula.generation.prompt_leaks import check_panels, leaks_of
from fabula.releases.loading import Release
from fabula.schemas.katha import StoryRecord
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.katha_samples import sample_bundles


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoryRecord, ...]:
    release: Release = judged_release(tmp_path_factory.mktemp("release"), sample_bundles(6))
    return release.records


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_plan_when_made_of_any_sample_story_has_a_picture_for_each_scene_and_no_question(
    plan, records: tuple[StoryRecord, ...]
) -> None:
    for record in records:
        panels = plan.panels(record)
        assert [panel.scene for panel in panels] == [scene.scene_index for scene in record.scenes]
        check_panels(record, plan, panels)


def test_plans_when_they_show_more_have_the_marks_of_those_that_show_less(
    records: tuple[StoryRecord, ...],
) -> None:
    for record in records:
        for scene in record.scenes:
            shown = {plan.name: set(plan.panel(record, scene).drawn.marks) for plan in PLANS}
            assert shown["direct"] <= shown["rule"] <= shown["scene"] <= shown["transition-aware"]
            assert shown["caption"] <= shown["scene"]
            assert {mark.kind for mark in shown["direct"]} <= {"character"}
            assert not {mark.kind for mark in shown["scene"]} & {"cause", "consequence", "moral", "intention"}


def test_direct_plan_when_made_shows_the_whole_story_and_nothing_of_the_annotation(
    records: tuple[StoryRecord, ...],
) -> None:
    record = records[0]
    prompt = plan_named("direct").panel(record, record.scenes[1]).prompt
    assert record.story_text in prompt
    assert record.scenes[1].action not in prompt
    assert record.transitions[0].causality not in prompt


def test_transition_aware_plan_when_made_tells_both_sides_of_a_scene(
    records: tuple[StoryRecord, ...],
) -> None:
    record = records[0]
    prompt = plan_named("transition-aware").panel(record, record.scenes[1]).prompt
    before, after = prompt.split("It leads to the next scene")
    assert record.transitions[0].causality in before
    assert record.transitions[1].causality in after
    first = plan_named("transition-aware").panel(record, record.scenes[0]).prompt
    assert "comes from the scene before" not in first


def test_leaks_when_a_plan_gives_away_a_question_or_an_answer_are_found(
    records: tuple[StoryRecord, ...],
) -> None:
    record, plan = records[0], plan_named("caption")
    panel = plan.panels(record)[0]
    question = next(each for each in record.questions if each.question_type == "causal")
    asked = replace(panel, prompt=f"{panel.prompt} {question.question}")
    assert any(leak.endswith("question") or ".question:" in leak for leak in leaks_of(record, plan, asked))
    answered = replace(panel, prompt=f"{panel.prompt} ({question.accepted_answers[0]})")
    assert any("accepted_answers" in leak for leak in leaks_of(record, plan, answered))
    with pytest.raises(ConfigError, match="gives away what judges are asked"):
        check_panels(record, plan, (answered,))
    # What the plan may show anyhow is no leak, though an answer says the same.
    allowed = replace(answered, texts=(*panel.texts, question.accepted_answers[0]))
    assert not list(leaks_of(record, plan, allowed))


def test_oracle_when_nobody_accepted_the_records_can_be_made_of_none(
    records: tuple[StoryRecord, ...],
) -> None:
    oracle = plan_named("oracle")
    assert not any(oracle.usable(record) for record in records)
    status = records[0].evidence_status.model_copy(update={"human_evidence_accepted": True})
    assert oracle.usable(records[0].model_copy(update={"evidence_status": status}))
    with pytest.raises(ConfigError, match="there is no such plan; there are: direct, rule"):
        plan_named("orakel")
