"""Rules about recoverability questions and their answers."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from ...schemas.canonical import Json
from ...schemas.text import contains_phrase, normalize_answer
from ...schemas.values import Issue
from ...schemas.vocabulary import vocabulary
from ..codes import issue, show
from ..view import Story

_SAYS_NOTHING = frozenset(
    ("yes", "no", "true", "false", "none", "nothing", "something", "someone", "somebody", "it", "unknown",
     "unclear", "not known", "n a", "na", "null", "tbd", "todo", "answer", "the answer", "see text")
)  # fmt: skip


_OR = ("or", "oder", "ou", "o", "या", "还是", "還是", "或")


def check_question_places(story: Story) -> Iterator[Issue]:
    """Check that target scene, target transition and evidence scenes are places in the story."""
    last = len(story.scenes)
    for position, question in enumerate(story.record["questions"]):
        path = f"$.questions[{position}]"
        target = question["target_scene"]
        if target is not None and not 1 <= target <= last:
            yield _no_scene(story, f"{path}.target_scene", target)
        for number, scene in enumerate(question["evidence_scenes"]):
            if not 1 <= scene <= last:
                yield _no_scene(story, f"{path}.evidence_scenes[{number}]", scene)
        yield from _check_evidence(story, path, question["evidence_scenes"])
        link = question["target_transition"]
        if link is not None and not (1 <= link[0] < last and link[1] == link[0] + 1):
            found = f"expected neighbouring scenes of 1 to {last}, found {link[0]} to {link[1]}"
            yield issue("question-transition", story.where, f"{path}.target_transition", found)


def _no_scene(story: Story, path: str, scene: int) -> Issue:
    return issue(
        "question-scene", story.where, path, f"expected a scene of 1 to {len(story.scenes)}, found {scene}"
    )


def _check_evidence(story: Story, path: str, scenes: list[int]) -> Iterator[Issue]:
    if not scenes:
        yield issue(
            "question-evidence", story.where, f"{path}.evidence_scenes", "there are no evidence scenes"
        )
    elif any(later <= earlier for earlier, later in pairwise(scenes)):
        found = f"expected ascending scenes, each once, found {scenes}"
        yield issue("question-evidence", story.where, f"{path}.evidence_scenes", found)


def check_answers(story: Story) -> Iterator[Issue]:
    """Check gold and accepted answers: contained, distinct, saying something, not leaked in the question."""
    for position, question in enumerate(story.record["questions"]):
        path = f"$.questions[{position}]"
        gold = normalize_answer(question["gold_answer"])
        accepted = [normalize_answer(answer) for answer in question["accepted_answers"]]
        if gold not in accepted:
            found = f"{show(question['gold_answer'])} is not among the {len(accepted)} accepted answers"
            yield issue("answer-not-accepted", story.where, f"{path}.accepted_answers", found)
        seen: dict[str, int] = {}
        for number, answer in enumerate(accepted):
            here = f"{path}.accepted_answers[{number}]"
            if says_nothing(answer):
                found = f"{show(question['accepted_answers'][number])} would accept almost anything"
                yield issue("answer-empty", story.where, here, found)
            if answer in seen:
                yield issue("answer-repeated", story.where, here, f"the same as answer [{seen[answer]}]")
            seen.setdefault(answer, number)
        yield from _check_leak(story, path, question, [gold, *accepted])


def check_moral_answers(story: Story) -> Iterator[Issue]:
    """Check that the answers to a moral question name the record's moral label."""
    label = story.record["moral_label"]
    for position, question in enumerate(story.record["questions"]):
        if question["question_type"] == "moral" and not answers_label(question, label):
            wanted = f"an answer that names {show(label)}" if label is not None else "a moral label"
            gold = f"the gold answer {show(question['gold_answer'])}"
            found = f"expected {wanted}, found {gold}" + ("" if label is not None else " and no label")
            yield issue("moral-answer", story.where, f"$.questions[{position}].gold_answer", found)


def answers_label(question: Mapping[str, Json], label: str | None) -> bool:
    """Return whether the gold answer of a question or an accepted one contains a label, as whole words."""
    wanted = normalize_answer(label or "")
    answers = (question["gold_answer"], *question["accepted_answers"])
    return any(contains_phrase(normalize_answer(answer), wanted) for answer in answers)


def says_nothing(answer: str) -> bool:
    """Return whether a normalised answer is empty or stands for no answer."""
    return not answer or answer in _SAYS_NOTHING


def _check_leak(story: Story, path: str, question: Mapping[str, Json], answers: list[str]) -> Iterator[Issue]:
    asked = normalize_answer(question["question"])
    if offers_choice(question["question_type"], asked):
        return
    for answer in answers:
        if contains_phrase(asked, answer):
            yield issue(
                "answer-leak", story.where, f"{path}.question", f"the question contains {show(answer)}"
            )
            return


def offers_choice(question_type: str, asked: str) -> bool:
    """Return whether a question names its alternatives, as a choice among labels or between two events does.

    A question that lists moral labels, or two events of which one came first, must name the answer among
    them; that gives nothing away. A temporal question is known by the word "or".
    """
    if question_type == "temporal_order":
        return any(contains_phrase(asked, word) for word in _OR)
    labels = (name.replace("_", " ") for name in vocabulary("moral_label").values)
    return question_type == "moral" and sum(contains_phrase(asked, label) for label in labels) >= 3


def check_temporal(story: Story) -> Iterator[Issue]:
    """Check that what comes first comes first.

    Where the text of a temporal question's answer is found in the story, the first scene that holds it
    must come before the latest evidence scene. An answer in other words cannot be judged by a rule.
    """
    for position, question in enumerate(story.record["questions"]):
        evidence = question["evidence_scenes"]
        answer = normalize_answer(question["gold_answer"])
        if question["question_type"] != "temporal_order" or len(evidence) < 2 or not answer:
            continue
        first = next(
            (i for i, text in enumerate(story.scene_answers, 1) if contains_phrase(text, answer)), None
        )
        if first is not None and first >= max(evidence):
            found = (
                f"the answer is first found in scene {first}, the latest evidence scene is {max(evidence)}"
            )
            yield issue("temporal-order", story.where, f"$.questions[{position}].gold_answer", found)
