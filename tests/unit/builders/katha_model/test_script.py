"""Telling scripts apart."""

import pytest

from fabula.builders.replies import main_script, script_problem

TEXTS = {
    "en": "A fox saw some grapes on a high vine and jumped as high as he could.",
    "hi": "एक जंगल में एक शेर रहता था। वह बहुत घमंडी था, और सब जानवर उससे डरते थे।",
    "zh": "从前有一只狐狸，它很饿。它看见葡萄架上挂着葡萄。狐狸跳起来，想摘葡萄，但是够不着。",
    "ja": "むかしむかし、あるところにキツネがいました。キツネは葡萄を見つけて、何度も跳びました。",
    "ru": "Лиса увидела виноград на высокой лозе и прыгнула так высоко, как только могла.",
    "ar": "كان هناك أسد نائم في الغابة. مر فأر صغير فوق أنفه، فاستيقظ الأسد غاضبا.",
    "ko": "여우가 높은 덩굴에 달린 포도를 보고 할 수 있는 한 높이 뛰어올랐습니다.",
}


@pytest.mark.parametrize("story", TEXTS)
@pytest.mark.parametrize("reply", TEXTS)
def test_reply_when_in_another_script_is_told(story, reply) -> None:
    problem = script_problem(TEXTS[story], story, TEXTS[reply])
    same = main_script(TEXTS[story]) == main_script(TEXTS[reply])
    assert (problem is None) == same
    if problem is not None:
        assert f"language {story}" in problem


def test_reply_when_short_or_without_letters_is_not_judged() -> None:
    assert script_problem(TEXTS["hi"], "hi", "yes, 1, 2, 3") is None
    assert script_problem("1 2 3", "en", TEXTS["zh"]) is None
    assert main_script("... 42") is None


def test_reply_when_it_quotes_some_foreign_words_is_taken() -> None:
    assert script_problem(TEXTS["hi"], "hi", TEXTS["hi"] + " cause_effect wisdom") is None
