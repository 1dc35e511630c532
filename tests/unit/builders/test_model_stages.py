"""Stages that ask a model: when they ask, what they write, and what comes of no answer."""

from typing import Any

from fabula.engine.stage import Answer, NoAnswer

MODEL = {"planner": "model", "model": "openai:any"}


class PreparedAsker:
    """Answers by the id of the prompt with prepared replies, or raises; notes what was asked, and of whom."""

    def __init__(self, **replies: Any) -> None:
        self.replies, self.asked = replies, []

    async def ask(self, ask: Any) -> Answer[Any]:
        name = ask.prompt.partition("@")[0].removeprefix("katha/")
        self.asked.append((name, ask.request.model))
        reply = self.replies.get(name, NoAnswer("refused", "I would rather not"))
        if isinstance(reply, Exception):
            raise reply
        return Answer(ask.read(reply), ("asked_again",))


def approval(draft: dict[str, Any]) -> dict[str, Any]:
    """Return replies of a verifier that finds nothing wrong."""
    questions = list(enumerate(draft["questions"], start=1))
    asked = [question for _, question in questions if question["question_type"] != "moral"]
    variants = range(1, len(draft["variants"]) + 1)
    fine: dict[str, Any] = {"remark": None, "contradicted": []}
    others = dict.fromkeys(("full", "own_words", "seen"))
    sound: dict[str, Any] = {"gold_supported": True, "one_answer": True, "drawable": True, "repeats": None}
    sound |= {"first_guess": "that a crow flies", "weakness": "none"}
    sound |= {"earlier_scene": 1, "later_scene": 2, "wrong_answers": [], "remark": None}
    kept = {"meaning_changed": True, "description_fits": True, "rest_kept": True, "possible": True}
    seen: dict[str, Any] = {"change": "it is told otherwise", "contradicts": [], "others_changed": False}
    seen |= {"entities_kept": True, "fluent": True}
    return {
        "answer_questions": {
            "answers": [
                {"number": n, "status": "recoverable", "short": question["gold_answer"], **others}
                for n, question in enumerate(asked, start=1)
            ]
        },
        "read_variants": {
            "variants": [
                {"number": n, "change_types": [variant["change_type"]], **seen,
                 "moral_label": variant["contrastive_moral"]}
                for n, variant in enumerate(draft["variants"], start=1)
            ]
        },
        "check_record": {
            "narrative": {"misplaced": None, "missing": [], "added": []},
            "scenes": [{"scene": n, "renderable": True, **fine} for n in range(1, len(draft["scenes"]) + 1)],
            "transitions": [{"from_scene": n, **fine} for n in range(1, len(draft["scenes"]))],
            "labels": {"narrative_type_fits": True, "moral_label_fits": True, "remark": None},
            "questions": [{"number": n, **sound} for n, _ in questions],
            "variants": [{"number": n, "remark": None, **kept} for n in variants],
        },
    }  # fmt: skip


def verified(katha, fields, asker, draft=None, model="openai:judge"):
    draft = draft or fields["draft"]
    done = katha.run_stage("verify_record", {**fields, "draft": draft}, {"model": model}, asker=asker)
    bundle = katha.run_stage("assemble_records", {**fields, "draft": draft, **done.fields}).fields["bundle"]
    return done.fields["checks"], bundle["record"]["validation_status"]


def test_record_when_the_model_finds_nothing_has_only_what_it_was_not_asked_left(katha, tale) -> None:
    asker = PreparedAsker(**approval(tale["draft"]))
    checks, status = verified(katha, tale, asker)
    assert {model for _, model in asker.asked} == {"openai:judge"}
    ruled = [check for check in tale["checks"] if check["producer"] == "rules@1"]
    assert checks[: len(ruled)] == ruled
    judged = [check for check in checks if check["producer"] == "openai:judge"]
    assert {check["passed"] for check in judged} == {True}
    left = {check["code"] for check in checks if check["passed"] is not True}
    unread = {check["code"] for check in tale["checks"] if check["passed"] is not True}
    assert left < unread and not left & {"question_answerable", "variant_sound", "scene_faithful"}
    again = PreparedAsker()
    judged_before = {**tale, "judged": judged}
    assert verified(katha, judged_before, again) == (checks, status)
    assert again.asked == [], "what was judged with the draft is not judged again"
    edited = PreparedAsker(**approval(tale["draft"]))
    verified(katha, {**judged_before, "edits": [{"path": "$.title"}]}, edited)
    assert edited.asked == asker.asked, "but for what a person changed since"
    assert status == "review_needed"


def test_record_when_the_model_contradicts_a_field_is_marked_for_review(katha, tale) -> None:
    scenes = [{**part, "state": "It is night."} for part in tale["draft"]["scenes"]]
    draft = {**tale["draft"], "scenes": scenes}
    replies = approval(draft)
    replies["check_record"]["scenes"][1].update(remark="It is day.", contradicted=["state"])
    checks, status = verified(katha, tale, PreparedAsker(**replies), draft)
    failed = [check for check in checks if check["passed"] is False and check["code"] != "incomplete"]
    assert [(check["path"], "It is day." in check["note"]) for check in failed] == [
        ("$.scenes[1].state", True)
    ]
    assert status == "review_needed"


def test_answer_in_other_words_when_the_model_judged_it_needs_no_verdict_of_the_rules(katha, tale) -> None:
    # The rules have no verdict on an answer whose words are not in the story, unless the rules wrote it.
    first = {
        **tale["questions"][0],
        "question_type": "consequence",
        "gold_answer": "kin to a plumber",
        "accepted_answers": ["kin to a plumber"],
    }
    draft = {**tale["draft"], "questions": [first, *tale["questions"][1:]]}
    path = "$.questions[0].gold_answer"
    draft["producers"] = [
        *draft["producers"],
        {"path": path, "producer": "openai:any via katha/write_questions"},
    ]

    def verdicts(replies, model="openai:judge"):
        checks, status = verified(katha, tale, PreparedAsker(**replies), draft, model=model)
        assert status == "review_needed"
        return {check["code"]: check["passed"] for check in checks if check["path"] == path}

    assert verdicts({}, model=None) == {"answerable": None}
    assert verdicts(approval(draft)) == {"model_answerable": True}
    assert verdicts({}) == {"answerable": None, "model_answerable": None}


def test_rule_when_it_fails_is_not_overruled_by_a_model(katha, tale) -> None:
    first = {**tale["questions"][0], "accepted_answers": ["the wind"]}
    draft = {**tale["draft"], "questions": [first, *tale["questions"][1:]]}
    checks, status = verified(katha, tale, PreparedAsker(**approval(draft)), draft)
    assert "answers_cover" in {check["code"] for check in checks if check["passed"] is False}
    assert status == "review_needed"


def test_stages_when_a_person_gave_everything_ask_nothing(katha, tale) -> None:
    given = {name: tale[name] for name in ("scenes", "transitions", "questions", "variants")}
    fields = {**tale, "given": {"author": "ann", **given}}
    asker = PreparedAsker()
    for stage, part in (
        ("draft_scenes", "scenes"),
        ("annotate_transitions", "transitions"),
        ("write_questions", "questions"),
        ("write_contrastives", "variants"),
    ):
        made = katha.run_stage(stage, fields, MODEL, asker=asker).fields
        assert made[f"{part}_by"] is None
        assert made.get(part, given.get(part)) == given.get(part)
        fields.update(made)
    settings = {**MODEL, "verifier": "openai:any"}
    replies = approval(tale["draft"])
    replies["check_record"]["scenes"][0].update(remark="No.", contradicted=["state"])
    asker = PreparedAsker(**replies)
    fields.update(katha.run_stage("repair_draft", fields, settings, asker=asker).fields)
    assert {name for name, _ in asker.asked} <= set(replies) and fields["repair_log"] == []
    draft = katha.run_stage("apply_edits", fields).fields["draft"]
    assert {entry["producer"] for entry in draft["producers"]} == {"author", "hand:ann"}


def test_given_variant_when_it_has_a_moral_of_its_own_is_asked_for_it_by_rules_where_wanted(
    katha, tale
) -> None:
    variants = [{**part, "contrastive_moral": "honesty"} for part in tale["variants"][:1]]
    fields = {**tale, "given": {"author": "ann", "variants": variants}}
    assert katha.run_stage("write_contrastives", fields).fields["variants"] == variants
    made = katha.run_stage("write_contrastives", fields, {"questions": 1}).fields
    (question,) = made["variants"][0]["questions"]
    assert (question["question_type"], question["gold_answer"]) == ("moral", "honesty")
    assert question["story_id"] == variants[0]["variant_id"] and made["variants_by"] is None
    draft = katha.run_stage("apply_edits", {**fields, **made}).fields["draft"]
    makers = {entry["path"]: entry["producer"] for entry in draft["producers"]}
    assert makers["$.variants[*].questions"] == "rules@1"
    assert makers["$.variants[*].semantic_delta"] == "hand:ann"
