import pytest

from fabula.engine.stage import Failed, Made


def edit(path, old, new):
    return {"id": "x", "path": path, "old": old, "new": new, "who": "ann", "why": "test"}


def apply(katha, fields, *edits):
    return katha.run_stage("apply_edits", {**fields, "edits": list(edits)})


def checks_of(katha, fields, draft):
    return katha.run_stage("verify_record", {**fields, "draft": draft}).fields["checks"]


@pytest.fixture
def tale(drafted):
    return drafted["kb25k_0001"]


def test_edit_when_the_old_value_matches_is_applied_and_credited(katha, tale) -> None:
    outcome = apply(
        katha, tale, edit("$.scenes[1].action", tale["scenes"][1]["action"], "The dove drops a leaf")
    )
    assert isinstance(outcome, Made)
    draft = outcome.fields["draft"]
    assert draft["scenes"][1]["action"] == "The dove drops a leaf"
    assert draft["producers"][-1] == {"path": "$.scenes[1].action", "producer": "edit:ann"}
    assert draft["scenes"][0] == tale["scenes"][0]


def test_edit_when_the_old_value_differs_fails_with_both_values(katha, tale) -> None:
    outcome = apply(katha, tale, edit("$.title", "Another", "New"))
    assert isinstance(outcome, Failed)
    assert '"Another"' in outcome.reason and '"The Dove and the Ant"' in outcome.reason


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.story_text", "the story's text cannot be edited"),
        ("$.source_text", "the story's text cannot be edited"),
        ("$.scenes[9].action", "nothing is there"),
        ("$.scenes[0].mood", "nothing is there"),
        ("$", "cannot be edited"),
        ("$.questions[0].question_id", "cannot be edited"),
        ("scenes[0]", "starts with $"),
        ("$.scenes[*].action", "cannot read"),
    ],
)
def test_edit_when_the_path_is_not_editable_fails(katha, tale, path, expected) -> None:
    outcome = apply(katha, tale, edit(path, "a", "b"))
    assert isinstance(outcome, Failed) and expected in outcome.reason


@pytest.mark.parametrize(
    ("path", "new"),
    [("$.title", 7), ("$.scenes[0].characters", "ant"), ("$.questions[0].accepted_answers", [1])],
)
def test_edit_when_the_new_value_has_another_type_fails(katha, tale, path, new) -> None:
    from fabula.schemas.paths import get_at

    old = get_at({"title": tale["story"]["title"], **tale}, path)
    outcome = apply(katha, tale, edit(path, old, new))
    assert isinstance(outcome, Failed) and path.split("[")[0].removeprefix("$.") in outcome.reason


def test_scene_texts_when_edited_must_still_cover_the_story(katha, tale) -> None:
    first, second = (tale["scenes"][n]["scene_text"] for n in (0, 1))
    moved, rest = first.split(". ", 1)
    one = edit("$.scenes[0].scene_text", first, moved + ".")
    two = edit("$.scenes[1].scene_text", second, f"{rest} {second}")
    assert isinstance(apply(katha, tale, one), Failed)
    assert isinstance(apply(katha, tale, one, two), Made)


def test_moral_label_when_edited_changes_its_copies(katha, tale) -> None:
    draft = apply(katha, tale, edit("$.moral_label", "gratitude", "kindness")).fields["draft"]
    assert [t["moral_target"] for t in draft["transitions"] if t["moral_target"]] == ["kindness"]
    assert {variant["original_moral"] for variant in draft["variants"]} == {"kindness"}


def test_checks_when_the_draft_is_sound_leave_only_the_screening_open(katha, tale) -> None:
    unsettled = {check["code"] for check in tale["checks"] if check["passed"] is not True}
    assert unsettled == {"screen_harmful_content", "screen_wordplay", "screen_external_knowledge"}


@pytest.mark.parametrize(
    ("part", "number", "change", "code"),
    [
        ("questions", 0, {"gold_answer": "a dragon", "accepted_answers": ["a dragon"]}, "answerable"),
        ("questions", 0, {"accepted_answers": ["the wind"]}, "answers_cover"),
        ("scenes", 0, {"characters": ["dragon"]}, "entity_continuity"),
        ("variants", 1, {"contrastive_scene_text": "Nobody came."}, "entities_preserved"),
        ("variants", 0, {"contrastive_story_text": "x"}, "variant-text"),
        ("transitions", 0, {"action": None}, "incomplete"),
        ("transitions", 0, {"to_scene": 3}, "transition-link"),
    ],
)
def test_checks_when_something_is_wrong_mark_the_record_for_review(
    katha, tale, part, number, change, code
) -> None:
    elements = [{**e, **change} if i == number else e for i, e in enumerate(tale["draft"][part])]
    checks = checks_of(katha, tale, {**tale["draft"], part: elements})
    assert code in {check["code"] for check in checks if check["passed"] is False}
    bundle = katha.run_stage("assemble_records", {**tale, "checks": checks}).fields["bundle"]
    assert bundle["record"]["validation_status"] == "review_needed"


def test_checks_when_a_person_answers_in_other_words_have_no_verdict(katha) -> None:
    loaded = katha.load(
        [("stories", katha.samples / "stories.jsonl"), ("records", katha.samples / "gold.jsonl")]
    )
    made = katha.draft(loaded["kb25k_0001"])
    verdicts = {check["passed"] for check in made["checks"] if check["code"] == "answerable"}
    assert None in verdicts and False not in verdicts
    assert made["bundle"]["record"]["validation_status"] == "review_needed"
