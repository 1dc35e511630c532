"""Writing the recoverability questions: per dimension, with answers in the words of the story.

Per story, as in Table 14, at most: one moral question if there is a label, one consequence, one temporal
order, 1.27 causal, 1.25 emotional and 0.23 action-visibility questions on average; which stories get the
extra ones is fixed by the id. A question is written only about clauses that are read whole; what the text
does not say so is not asked about, and a story may get no question at all.
"""

import re
from collections.abc import Iterator, Sequence

from ...schemas.canonical import Json
from ...schemas.text import contains_phrase, normalize_answer
from ..text.emotions import Felt
from ..text.reading import StoryView
from ..text.statements import Statement
from ..text.tokens import words
from ..text.words import base_form, lexicon, pick, share, word_set
from .action_questions import ask_actions, is_clear_doer
from .asked import Asked, accepted_answers, answer_forms, scene_target
from .draft_scenes import scene_casts
from .stated_causes import StatedCause, find_causes

EXTRA_CAUSAL, EXTRA_EMOTIONAL, ACTION = 0.265, 0.2474, 0.23
"""Share of stories with a second causal, a second emotional, and an action question (Table 14)."""


def ask_questions(view: StoryView, transitions: Sequence[Json], moral_label: str | None) -> list[Json]:
    """Return the questions of a story, in the order of their dimensions."""
    causal = list(_causal(view))
    asked = [*causal, *_emotional(view), *_moral(view, transitions, moral_label)]
    asked += () if causal else _consequence(view)
    taken = {scene for question in asked if question.kind == "consequence" for scene in question.scenes}
    asked += [question for question in ask_actions(view) if not taken & {*question.scenes}]
    shown = [question for question in asked if question.kind == "moral" or _is_shown(view, question)]
    return [_record(view, number, question) for number, question in enumerate(shown, start=1)]


def _is_shown(view: StoryView, asked: Asked) -> bool:
    """Whether the evidence scenes hold every word of the answer, or name whoever is in it as a character."""
    texts = [view.scene_text(scene) for scene in asked.scenes]
    casts = [name for scene in asked.scenes for name in scene_casts(view)[scene]]
    shown, gold = normalize_answer(" ".join((*texts, *casts))), normalize_answer(asked.gold)
    content = (word for word in gold.split() if word not in word_set("words", "function"))
    return contains_phrase(shown, gold) or all(contains_phrase(shown, word) for word in content)


def _record(view: StoryView, number: int, asked: Asked) -> Json:
    transition = asked.transition
    return {
        "question_id": f"{view.id}_q{number:02d}",
        "story_id": view.id,
        "question_type": asked.kind,
        "question": asked.question,
        "gold_answer": asked.gold,
        "accepted_answers": list(asked.accepted),
        "target_scene": None if asked.scene is None else asked.scene + 1,
        "target_transition": None if transition is None else [transition[0] + 1, transition[1] + 1],
        "evidence_scenes": [scene + 1 for scene in asked.scenes],
        "required_evidence": asked.evidence,
        "answerability": "text_supported",
    }


def _word_it(view: StoryView, form: str, **values: object) -> str:
    return str(pick(lexicon("questions")[form], view.id, form)).format(**values)


def _causal(view: StoryView) -> Iterator[Asked]:
    """Ask for stated causes in an earlier scene than their effects: the transition must be what tells."""
    wanted = 1 + (share(view.id, "causal") < EXTRA_CAUSAL)
    for link in view.links:
        first, second = view.scene_at(link.cause), view.scene_at(link.effect)
        question, gold = link.effect.asks("Why"), link.cause.plain
        forms = [f"because {gold}", *answer_forms(view, link.cause)]
        accepted = accepted_answers(gold, question, extra=forms)
        sure = _is_seen(link.effect) and link.effect.reading.last and is_clear_doer(view, link.effect)
        if first >= second or accepted is None or not (wanted and sure):
            continue
        wanted -= 1
        transition, scene = scene_target(first, second)
        evidence = f'It must be visible that "{gold}" brings about "{link.effect.text}".'
        yield Asked("causal", question, gold, accepted, (first, second), evidence, transition, scene)


def _is_seen(statement: Statement) -> bool:
    """Whether a statement tells an event that a picture can show."""
    unseen = (words("cognition") | word_set("asking", "unseen")) & {statement.verb, base_form(statement.verb)}
    return statement.kind == "event" and not statement.negated and not unseen


def _emotional(view: StoryView) -> Iterator[Asked]:
    """Ask how somebody feels who shows it, as in "laughed with relief": a picture cannot show more."""
    wanted = 1 + (share(view.id, "emotional") < EXTRA_EMOTIONAL)
    start = int(share(view.id, "feeling") * view.count)
    for scene in [*range(start, view.count), *range(start)]:
        felt = view.felt(scene)
        for feeling in felt:
            said = feeling.statement
            shown = base_form(said.verb) in word_set("asking", "signs")
            alone = sum(_same(feeling, other) for other in felt) == 1 and not _is_mixed(view, scene, feeling)
            if not (wanted and shown and alone and is_clear_doer(view, said)):
                continue
            subject, word = said.subject, feeling.word
            question = f"How did {subject} feel in scene {scene + 1}?"
            extra = [said.plain, *answer_forms(view, said)]
            accepted = accepted_answers(word, question, extra=extra)
            if accepted is not None:
                wanted -= 1
                evidence = f"Face and body of {subject} in scene {scene + 1} must show: {word}."
                yield Asked("emotional", question, word, accepted, (scene,), evidence, scene=scene)


def _is_mixed(view: StoryView, scene: int, feeling: Felt) -> bool:
    """Whether words of the scene may tell that somebody feels something else, too."""
    others = {other.word for other in view.felt(scene) if not _same(feeling, other)}
    told = view.feelings(scene)
    return any(f.emotion != feeling.emotion and f.word not in others for f in told if f.word != feeling.word)


def _same(feeling: Felt, other: Felt) -> bool:
    return feeling.statement.subject.split()[-1] == other.statement.subject.split()[-1]


def _moral(view: StoryView, transitions: Sequence[Json], label: str | None) -> Iterator[Asked]:
    question = _word_it(view, "moral")
    accepted = _moral_answers(label, question)
    bearers = [t for t in transitions if t["moral_target"] == label]
    if accepted is None or not bearers:
        return
    pair = (bearers[0]["from_scene"] - 1, bearers[0]["to_scene"] - 1)
    evidence = _moral_evidence(pair[0] + 1, pair[1] + 1, accepted[0])
    yield Asked("moral", question, accepted[0], accepted, pair, evidence, pair)


def _moral_answers(label: str | None, question: str) -> tuple[str, ...] | None:
    words = lexicon("morals")["answers"].get(label)
    return accepted_answers(words[0], question, extra=words[1:]) if words else None


def _moral_evidence(first: int, second: int, gold: str) -> str:
    return f"The choice between scene {first} and scene {second} must show {gold}."


def relabelled(question: Json, label: str) -> Json | None:
    """Return a moral question answered by another label; None where there are no words for it."""
    accepted = _moral_answers(label, question["question"])
    if accepted is None:
        return None
    gold, evidence = accepted[0], question["required_evidence"]
    if question["target_transition"] is not None:
        first, second = question["target_transition"]
        evidence = _moral_evidence(first, second, gold)
    return {
        **question, "gold_answer": gold, "accepted_answers": list(accepted), "required_evidence": evidence,
    }  # fmt: skip


def _consequence(view: StoryView) -> Iterator[Asked]:
    """Ask what came of something, where the text says why and that one deed came of it which can be seen."""
    deeds = {s.reading.start: s for s in view.statements if s is not None and _is_seen(s)}
    for cause in reversed(find_causes(view)):
        gold, told = cause.effect, [deeds[at] for at in range(*cause.span) if at in deeds]
        if gold is None or cause.cause is None or len(told) != 1 or not _is_alone(view, told[0], cause):
            continue
        reason = f" {cause.cause}".replace(" so ", " very ").strip()
        question = f"What happened because {reason}?"
        accepted = accepted_answers(gold, question, extra=[told[0].text])
        if accepted is not None and not _COMPARED.search(reason):
            first, second = view.scene_of_place(cause.begins), view.scene_at(told[0])
            transition, scene = scene_target(first, second)
            evidence = f'It must be visible that "{gold}" comes of "{reason}".'
            places = tuple(dict.fromkeys((first, second)))
            yield Asked("consequence", question, gold, accepted, places, evidence, transition, scene)
            return


_COMPARED = re.compile(r"er of |\b(?:more|none|nobody|not|never|no)\b|^(?:in|on|at|by|for|after|before)\b")


def _is_alone(view: StoryView, deed: Statement, cause: StatedCause) -> bool:
    """Whether an effect is one deed from beginning to end, and nothing else stands beside its cause."""
    begins = not deed.reading.elided and len(view.text[cause.span[0] : deed.reading.start].split()) <= 4
    return cause.alone and begins and not view.text[deed.reading.end : cause.span[1]].strip()
