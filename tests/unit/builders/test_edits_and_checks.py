import pytest

from fabula.builders.katha.checks.settling import CODES
from fabula.builders.katha.drafts import maker_of
from fabula.engine.stage import Failed, Made


def edit(path, old, new):
    return {"id": "x", "path": path, "old": old, "new": new, "who": "ann", "why": "test"}


def apply(katha, fields, *edits):
    return katha.run_stage("apply_edits", {**fields, "edits": list(edits)})


def checks_of(katha, fields, draft):
    return katha.run_stage("verify_record", {**fields, "draft": draft}).fields["checks"]


def test_edit_when_the_old_value_matches_is_applied_and_credited(katha, tale) -> None:
    outcome = apply(
        katha, tale, edit("$.scenes[1].action", tale["scenes"][1]["action"], "The dove drops a leaf")
    )
    assert isinstance(outcome, Made)
    draft = outcome.fields["draft"]
    assert draft["scenes"][1]["action"] == "The dove drops a leaf"
    assert draft["producers"][-1] == {"path": "$.scenes[1].action", "producer": "edit:ann"}
    assert draft["scenes"][0] == tale["scenes"][0]


PROMPTS = ("generation_prompt", "generation_prompt_long")


def prompts_of(scene) -> list:
    return [scene[name] for name in PROMPTS]


def test_scene_when_edited_has_its_drafted_prompts_made_anew_and_credited_to_the_rules(katha, tale) -> None:
    model = {**tale, "scenes_by": "openai:m katha/describe_scenes@1"}
    old = tale["scenes"][1]["visual_must_show"]
    draft = apply(katha, model, edit("$.scenes[1].visual_must_show", old, ["a purple leaf"])).fields["draft"]
    before, after = tale["scenes"][1], draft["scenes"][1]
    assert all(
        "a purple leaf" in new and new != was
        for new, was in zip(*map(prompts_of, (after, before)), strict=True)
    )
    assert after == {**before, **{name: after[name] for name in ("visual_must_show", *PROMPTS)}}
    makers = {name: maker_of(f"$.scenes[1].{name}", draft["producers"]) for name in PROMPTS}
    assert set(makers.values()) == {"rules@1"}
    assert maker_of("$.scenes[0].generation_prompt", draft["producers"]) == model["scenes_by"]
    again = apply(
        katha, model,
        edit("$.scenes[1].visual_must_show", old, ["a purple leaf"]),
        edit("$.scenes[1].generation_prompt", after["generation_prompt"], "A leaf"),
        edit("$.scenes[1].emotion", before["emotion"], "joy"),
    ).fields["draft"]["scenes"][1]  # fmt: skip
    assert again["generation_prompt"] == "A leaf"
    assert again["generation_prompt_long"] != after["generation_prompt_long"]


def test_scene_texts_when_edited_renew_the_long_prompts_of_both_scenes(katha, tale) -> None:
    first, second = (tale["scenes"][number]["scene_text"] for number in (0, 1))
    head, _, tail = first.rpartition(" ")
    draft = apply(
        katha, tale, edit("$.scenes[0].scene_text", first, head),
        edit("$.scenes[1].scene_text", second, f"{tail} {second}"),
    ).fields["draft"]  # fmt: skip
    for number, text in enumerate((head, f"{tail} {second}")):
        assert text in draft["scenes"][number]["generation_prompt_long"]


def test_edit_when_the_old_value_differs_fails_with_both_values(katha, tale) -> None:
    outcome = apply(katha, tale, edit("$.title", "Another", "New"))
    assert isinstance(outcome, Failed)
    assert '"Another"' in outcome.reason and '"The Dove and the Ant"' in outcome.reason


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.story_text", "the story's text cannot be edited"),
        ("$.source_text", "the story's text cannot be edited"),
        ("$.scenes[9].action", "nothing at $.scenes["),
        ("$.scenes[0].mood", "nothing at $.scenes["),
        ("$", "cannot be edited"),
        ("$.questions[0].question_id", "cannot be edited"),
        ("scenes[0]", "starts with $"),
        ("$.scenes[*].action", "cannot read"),
    ],
)
def test_edit_when_the_path_is_not_editable_fails(katha, tale, path, expected) -> None:
    outcome = apply(katha, tale, edit(path, "a", "b"))
    assert isinstance(outcome, Failed) and expected in outcome.reason


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


def moral_question(draft):
    return next(question for question in draft["questions"] if question["question_type"] == "moral")


def test_moral_label_when_edited_rewrites_the_answers_of_a_drafted_question(katha, tale) -> None:
    before = moral_question(tale["draft"])
    draft = apply(katha, tale, edit("$.moral_label", "gratitude", "courage")).fields["draft"]
    after = moral_question(draft)
    assert after["gold_answer"] == "courage"
    assert after["accepted_answers"] == ["courage", "being brave", "bravery"]
    assert after["required_evidence"].endswith("must show courage.")
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {"gold_answer", "accepted_answers", "required_evidence"}
    failed = {check["code"] for check in checks_of(katha, tale, draft) if check["passed"] is False}
    assert failed == {"incomplete"}


def settled(katha, fields, draft):
    checks = checks_of(katha, fields, draft)
    outcome = katha.run_stage("assemble_records", {**fields, "draft": draft, "checks": checks})
    return outcome.fields["bundle"]["record"]["validation_status"]


@pytest.mark.parametrize("key", ["gold_answer", "accepted_answers"])
def test_moral_label_when_edited_leaves_answers_of_a_person_and_asks_for_review(katha, tale, key) -> None:
    number, question = next((n, q) for n, q in enumerate(tale["questions"]) if q["question_type"] == "moral")
    new = {"gold_answer": "being grateful", "accepted_answers": [*question["accepted_answers"], "thanks"]}
    by_hand = edit(f"$.questions[{number}].{key}", question[key], new[key])
    draft = apply(katha, tale, by_hand, edit("$.moral_label", "gratitude", "courage")).fields["draft"]
    assert draft["questions"][number] == {**question, key: new[key]}
    assert settled(katha, tale, draft) == "review_needed"
    failed = {check["code"] for check in checks_of(katha, tale, draft) if check["passed"] is False}
    assert {"answerable", "moral-answer"} <= failed


def by_model(tale, **story):
    maker = "openai:any via katha/write_questions@1#0123456789ab"
    return {**tale, "questions_by": maker, "story": {**tale["story"], **story}}, maker


def test_moral_label_when_edited_credits_the_rules_with_what_they_reworded_of_a_model(katha, tale) -> None:
    fields, maker = by_model(tale)
    number = tale["questions"].index(moral_question(tale["draft"]))
    draft = apply(katha, fields, edit("$.moral_label", "gratitude", "courage")).fields["draft"]
    assert moral_question(draft)["gold_answer"] == "courage"
    made = {
        key: maker_of(f"$.questions[{number}].{key}", draft["producers"]) for key in moral_question(draft)
    }
    reworded = {key for key, who in made.items() if who == "rules@1"}
    assert reworded == {"gold_answer", "accepted_answers", "required_evidence"}
    assert set(made.values()) == {"rules@1", maker}


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("$.questions[0]", {"question_id": "kb25k_0001_q99"}),
        ("$.scenes[1]", {"scene_index": 3}),
        ("$.transitions[0]", {"to_scene": 3}),
        ("$.variants[0]", {"pair_id": "other"}),
    ],
)
def test_edit_when_a_whole_part_is_replaced_may_not_change_its_ids(katha, tale, path, change) -> None:
    from fabula.schemas.paths import get_at

    old = get_at(tale, path)
    outcome = apply(katha, tale, edit(path, old, {**old, **change}))
    assert isinstance(outcome, Failed) and "ids" in outcome.reason and path in outcome.reason
    name = path[2:].partition("[")[0]
    outcome = apply(katha, tale, edit(f"$.{name}", tale[name], tale[name][:-1]))
    assert isinstance(outcome, Failed) and "the number of parts" in outcome.reason
    assert isinstance(apply(katha, tale, edit(path, old, old)), Made)


def test_edit_when_it_leaves_a_part_without_its_fields_fails_before_the_next_one(katha, tale) -> None:
    old = tale["questions"][0]
    bare = edit("$.questions[0]", old, {"question_id": old["question_id"]})
    outcome = apply(katha, tale, bare, edit("$.moral_label", "gratitude", "courage"))
    assert isinstance(outcome, Failed) and outcome.code == "bad_edit" and "$.questions[0]" in outcome.reason


def verdicts(katha, tale, part, number, change, code, **texts):
    """Return the verdicts of one check after a change of one part and of scene texts."""
    scenes = [
        {**scene, "scene_text": texts.get(f"scene{scene['scene_index']}", scene["scene_text"])}
        for scene in tale["draft"]["scenes"]
    ]
    draft = {**tale["draft"], "scenes": scenes}
    draft[part] = [{**e, **change} if i == number else e for i, e in enumerate(draft[part])]
    path = f"$.{part}[{number}]"
    checks = checks_of(katha, tale, draft)
    return [c["passed"] for c in checks if c["code"] == code and c["path"].startswith(path)]


def test_variant_when_a_character_is_only_inside_another_word_has_lost_it(katha, tale) -> None:
    index = tale["variants"][0]["changed_scene_id"]
    scene = {f"scene{index}": "The ant wanted water."}
    scenes = [
        {**s, "characters": ["the ant"]} if s["scene_index"] == index else s for s in tale["draft"]["scenes"]
    ]
    fields = {**tale, "draft": {**tale["draft"], "scenes": scenes}}
    for text, passed in (("The elephant wanted water.", False), ("An ant slept.", True)):
        change = {"contrastive_scene_text": text}
        assert verdicts(katha, fields, "variants", 0, change, "entities_preserved", **scene) == [passed]


def test_checks_when_the_draft_is_sound_leave_only_what_no_rule_settles_open(katha, tale) -> None:
    unsettled = {check["code"] for check in tale["checks"] if check["passed"] is not True}
    screens = {code for code in unsettled if code.startswith("screen_")}
    assert screens == {"screen_harmful_content", "screen_wordplay", "screen_external_knowledge"}
    asked = [part for part in tale["draft"]["questions"] if part["question_type"] != "moral"]
    across = any(question["target_transition"] for question in asked)
    nobody = {*CODES} - {"question_not_guessable", "question_worth_asking"}  # which no record lacks
    nobody -= set() if across else {"question_depends_on_transition"}
    assert unsettled - screens == {*nobody, "incomplete"}


@pytest.mark.parametrize(
    ("part", "number", "change", "code"),
    [
        ("questions", 0, {"gold_answer": "a dragon", "accepted_answers": ["a dragon"]}, "answerable"),
        ("questions", 0, {"accepted_answers": ["the wind"]}, "answers_cover"),
        ("scenes", 0, {"characters": ["dragon"]}, "entity_continuity"),
        ("variants", 0, {"contrastive_scene_text": "Nobody came."}, "entities_preserved"),
        ("variants", 0, {"contrastive_story_text": "x"}, "variant-text"),
        ("transitions", 0, {"action": None}, "incomplete"),
        ("transitions", 0, {"to_scene": 3}, "transition-link"),
    ],
)
def test_checks_when_something_is_wrong_mark_the_record_for_review(katha, tale, part, number, change, code):
    elements = [{**e, **change} if i == number else e for i, e in enumerate(tale["draft"][part])]
    checks = checks_of(katha, tale, {**tale["draft"], part: elements})
    assert code in {check["code"] for check in checks if check["passed"] is False}
    bundle = katha.run_stage("assemble_records", {**tale, "checks": checks}).fields["bundle"]
    assert bundle["record"]["validation_status"] == "review_needed"


def test_checks_when_a_person_answers_in_other_words_have_no_verdict(katha) -> None:
    loaded = katha.load(
        [("stories", katha.samples / "stories.jsonl"), ("records", katha.samples / "gold.jsonl")]
    )
    fields = loaded["kb25k_0001"]
    unjudged = {key: value for key, value in fields["given"].items() if key != "checks"}
    made = katha.draft({**fields, "given": unjudged})
    verdicts = {check["passed"] for check in made["checks"] if check["code"] == "answerable"}
    assert None in verdicts and False not in verdicts
    assert made["bundle"]["record"]["validation_status"] == "review_needed"


def test_label_when_a_story_had_none_reaches_the_moral_choice(katha, tale) -> None:
    bare = [{**part, "moral_target": None} for part in tale["transitions"]]
    bare[1]["transition_type"] = "moral_choice"
    fields = {**tale, "moral_label": None, "transitions": bare}
    outcome = apply(katha, fields, edit("$.moral_label", None, "patience"))
    assert isinstance(outcome, Made), outcome
    marked = [part for part in outcome.fields["draft"]["transitions"] if part["moral_target"] is not None]
    assert [(part["moral_target"], part["transition_type"]) for part in marked] == [
        ("patience", "moral_choice")
    ]
