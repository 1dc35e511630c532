"""Writing the recoverability questions: per dimension, with answers in the words of the story.

Per story, as in Table 14, at most: one moral question if there is a label, one consequence, one temporal
order, 1.27 causal, 1.25 emotional and 0.23 action-visibility questions on average; which stories get the
extra ones is fixed by the id. A question is written only about clauses that are read whole; what the text
does not say so is not asked about, and a story may get no question at all.
"""

from collections.abc import Iterator, Sequence

from ...schemas.canonical import Json
from ...schemas.text import contains_phrase, normalize_answer
from ..text.emotions import Felt
from ..text.reading import StoryView
from ..text.statements import Link, Statement
from ..text.words import lexicon, pick, share, word_set
from .action_questions import ask_actions, ask_first
from .annotate_transitions import feeling_shift
from .asked import Asked, accepted_answers, answer_forms, scene_target
from .draft_scenes import scene_casts

EXTRA_CAUSAL, EXTRA_EMOTIONAL, ACTION = 0.265, 0.2474, 0.23
"""Share of stories with a second causal, a second emotional, and an action question (Table 14)."""


def ask_questions(view: StoryView, transitions: Sequence[Json], moral_label: str | None) -> list[Json]:
    """Return the questions of a story, in the order of their dimensions."""
    links = view.links
    causal = list(_causal(view, links))
    asked = [question for question, _ in causal]
    asked += [*_emotional(view), *_moral(view, transitions, moral_label)]
    asked += _consequence(view, [link for link in links if link not in [used for _, used in causal]])
    asked += [*(list(_temporal(view)) or ask_first(view)), *ask_actions(view)]
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


def _causal(view: StoryView, links: Sequence[Link]) -> Iterator[tuple[Asked, Link]]:
    """Ask for stated causes in an earlier scene than their effects: the transition must be what tells."""
    wanted = 1 + (share(view.id, "causal") < EXTRA_CAUSAL)
    for link in links:
        first, second = view.scene_at(link.cause), view.scene_at(link.effect)
        question, gold = link.effect.asks("Why"), link.cause.plain
        forms = [f"because {gold}", *answer_forms(view, link.cause)]
        accepted = accepted_answers(gold, question, extra=forms)
        if first >= second or accepted is None or not wanted:
            continue
        wanted -= 1
        transition, scene = scene_target(first, second)
        evidence = f'It must be visible that "{gold}" brings about "{link.effect.text}".'
        yield Asked("causal", question, gold, accepted, (first, second), evidence, transition, scene), link


def _emotional(view: StoryView) -> Iterator[Asked]:
    wanted = 1 + (share(view.id, "emotional") < EXTRA_EMOTIONAL)
    options = [*_feelings(view), *_shifts(view)]
    if options and share(view.id, "shift") < 0.5:
        options = [*options[-1:], *options[:-1]]
    yield from options[:wanted]


def _feelings(view: StoryView) -> Iterator[Asked]:
    start = int(share(view.id, "feeling") * view.count)
    for scene in [*range(start, view.count), *range(start)]:
        felt = view.felt(scene)
        for feeling in felt:
            subject, word = feeling.statement.subject, feeling.word
            if sum(_same(feeling, other) for other in felt) > 1 or _is_mixed(view, scene, feeling):
                continue
            question = f"How did {subject} feel in scene {scene + 1}?"
            extra = [feeling.statement.plain, *answer_forms(view, feeling.statement), feeling.emotion]
            accepted = accepted_answers(word, question, extra=extra)
            if accepted is not None:
                evidence = f"Face and body of {subject} in scene {scene + 1} must show: {word}."
                yield Asked("emotional", question, word, accepted, (scene,), evidence, scene=scene)


def _is_mixed(view: StoryView, scene: int, feeling: Felt) -> bool:
    """Whether words of the scene may tell that somebody feels something else, too."""
    others = {other.word for other in view.felt(scene) if not _same(feeling, other)}
    words = view.feelings(scene)
    return any(f.emotion != feeling.emotion and f.word not in others for f in words if f.word != feeling.word)


def _same(feeling: Felt, other: Felt) -> bool:
    return feeling.statement.subject.split()[-1] == other.statement.subject.split()[-1]


def _shifts(view: StoryView) -> Iterator[Asked]:
    """Yield the first change of somebody's feeling between two adjacent scenes."""
    for scene in range(view.count - 1):
        shift = feeling_shift(view, scene)
        if shift is None or len({felt.word in lexicon("emotions")["adjectives"] for felt in shift}) > 1:
            continue  # "from fear to delighted" is no answer
        before, after = shift
        gold = f"from {before.word} to {after.word}"
        subject = after.statement.subject
        question = f"How did the feeling of {subject} change from scene {scene + 1} to scene {scene + 2}?"
        extra = [gold.removeprefix("from "), f"from {before.emotion} to {after.emotion}"]
        accepted = accepted_answers(gold, question, extra=extra)
        if accepted is not None:
            evidence = f"Scene {scene + 1} must show {before.emotion}, scene {scene + 2} {after.emotion}."
            places = (scene, scene + 1)
            yield Asked("emotional", question, gold, accepted, places, evidence, places)
            return


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


def _consequence(view: StoryView, links: Sequence[Link]) -> Iterator[Asked]:
    for link in reversed(links):
        first, second = view.scene_at(link.cause), view.scene_at(link.effect)
        if first > second or link.effect.kind in ("speech", "thought", "modal"):
            continue
        question, gold = f"What happened because {link.cause.plain}?", link.effect.text
        accepted = accepted_answers(gold, question, extra=answer_forms(view, link.effect))
        if accepted is not None:
            transition, scene = scene_target(first, second)
            evidence = f'It must be visible that "{gold}" comes of "{link.cause.plain}".'
            places = tuple(dict.fromkeys((first, second)))
            yield Asked("consequence", question, gold, accepted, places, evidence, transition, scene)
            return


def _temporal(view: StoryView) -> Iterator[Asked]:
    """Ask for the last event of a scene, which is told right before the first event of the next one."""
    pairs = [
        (before, after)
        for before, after in zip(view.statements, view.statements[1:], strict=False)
        if before is not None and after is not None and _follows(view, before, after)
    ]
    start = int(share(view.id, "temporal") * len(pairs))
    for before, after in pairs[start:] + pairs[:start]:
        question = _word_it(view, "temporal_order", cue=after.text)
        accepted = accepted_answers(before.text, question, extra=answer_forms(view, before))
        if accepted is not None:
            scenes = (view.scene_at(before), view.scene_at(after))
            transition, scene = scene_target(*scenes)
            shown = (
                f'scene {scenes[0] + 1} must show "{before.text}"',
                f'scene {scenes[1] + 1} "{after.text}"',
            )
            evidence = f"First {', then '.join(shown)}."
            yield Asked(
                "temporal_order", question, before.text, accepted, scenes, evidence, transition, scene
            )
            return


def _follows(view: StoryView, before: Statement, after: Statement) -> bool:
    """Whether two events are told one right after the other, the second at the start of a new scene."""
    if view.scene_at(before) == view.scene_at(after):
        return False
    verbs = [(s.subject, s.verb) for s in view.statements if s is not None]
    told_once = all(verbs.count((event.subject, event.verb)) == 1 for event in (before, after))
    return (
        before.reading.last
        and before.reading.link in ("", "and", "but", "so", "and so", "yet")
        and after.reading.link in ("", "and", "but", "so")
        and all(event.kind == "event" and not event.negated for event in (before, after))
        and told_once
    )
