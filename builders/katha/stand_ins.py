"""What stands for a model's draft in a rehearsal: parts of the right number and about the right length.

They are made of the story's own words, so that later prompts can be counted. Nothing of them is ever kept.
"""

from collections.abc import Mapping, Sequence

from ...schemas.canonical import Json
from ...schemas.katha import Transition
from ..text.words import share

_LONGEST = 160


def filled_transitions(transitions: Sequence[Json], texts: Sequence[str]) -> list[Json]:
    """Return transitions in which words of the later scene stand for what is null."""
    names = [name for name, field in Transition.model_fields.items() if field.annotation == str | None]
    names.remove("moral_target")
    return [
        {**part, **{name: part[name] or texts[part["to_scene"] - 1][:_LONGEST] for name in names}}
        for part in transitions
    ]


def rehearsed_questions(story_id: str, texts: Sequence[str], wanted: Mapping[str, int]) -> list[Json]:
    """Return as many questions of each type as a model is asked for."""
    types = [name for name, number in wanted.items() for _ in range(number)]
    questions = []
    for number, name in enumerate(types, start=1):
        scene = 1 + int(share(story_id, name, str(number)) * (len(texts) - 1))
        answer = " ".join(texts[scene - 1].split()[:8])
        questions.append(
            {
                "question_id": f"{story_id}_q{number:02d}",
                "story_id": story_id,
                "question_type": name,
                "question": f"What happens here: {' '.join(texts[scene].split()[:8])}?",
                "gold_answer": answer,
                "accepted_answers": [answer, " ".join(answer.split()[1:]) or answer],
                "target_scene": None,
                "target_transition": [scene, scene + 1],
                "evidence_scenes": [scene, scene + 1],
                "required_evidence": f"The pictures must show: {answer}.",
                "answerability": "text_supported",
            }
        )
    return questions
