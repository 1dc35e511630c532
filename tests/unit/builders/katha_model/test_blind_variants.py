"""Variants that a reader compares with the story without having been told what was changed."""

from collections import Counter

import pytest

from fabula.builders.katha.checks.verifying import MORAL, READ, check_draft
from fabula.builders.katha.write_contrastives import wanted_kinds
from fabula.engine.stage import NoAnswer
from fabula.schemas.vocabulary import vocabulary
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.katha_model import KathaModel


def reading(model, hat, draft, **seen):
    """The checks of the first variant, read as given."""

    def handler(asked):
        reply = KathaModel()(asked)
        if prompt_of(asked) == "katha/read_variants":
            reply["variants"][0] |= seen
        return reply

    checks = model.run(check_draft(hat.story, draft, model.tools(handler)))
    return {check["code"]: check for check in checks if check["path"].startswith("$.variants[0]")}


def test_variant_when_read_as_it_was_meant_passes(model, hat, draft) -> None:
    checks = reading(model, hat, draft)
    assert checks[READ]["passed"] is True and checks[MORAL]["passed"] is True


@pytest.mark.parametrize(
    ("seen", "fault"),
    [
        ({"change_type": None}, "read as None, not as"),
        ({"others_changed": True}, "more than one meaning"),
        ({"entities_kept": False}, "not kept"),
        ({"fluent": False}, "does not read well"),
    ],
)
def test_variant_when_read_otherwise_fails_with_what_was_seen(model, hat, draft, seen, fault) -> None:
    check = reading(model, hat, draft, change="Now it rains.", **seen)[READ]
    assert check["passed"] is False
    assert fault in check["note"] and "Now it rains." in check["note"]


def test_variant_when_it_is_read_as_another_value_fails(model, hat, draft) -> None:
    other = next(
        word for word in vocabulary("moral_label").values if word != draft["variants"][0]["original_moral"]
    )
    check = reading(model, hat, draft, moral_label=other)[MORAL]
    assert check["passed"] is False and other in check["note"]


def test_variants_when_the_reader_refuses_have_no_verdict(model, hat, draft) -> None:
    def silent(asked):
        if prompt_of(asked) == "katha/read_variants":
            return NoAnswer("refused", "no")
        return KathaModel()(asked)

    checks = model.run(check_draft(hat.story, draft, model.tools(silent)))
    assert {check["passed"] for check in checks if check["code"] == READ} == {None}


def test_kinds_of_change_over_many_stories_come_equally_often() -> None:
    counts = Counter(kind for number in range(3000) for kind in wanted_kinds(f"story_{number}", 2))
    assert set(counts) == set(vocabulary("change_type").values)
    assert all(900 < count < 1100 for count in counts.values())
