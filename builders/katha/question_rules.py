"""Writing the recoverability questions: per dimension, with answers in the words of the story.

Per story, as in Table 14: one moral question if there is a label, one consequence, one temporal order,
1.27 causal, 1.25 emotional and 0.23 action-visibility questions on average; which stories get the extra
ones is fixed by the id. A dimension that the text does not support is left out.

Accepted answers: the canonical one and shorter forms of it, all in the words of the story.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...schemas.canonical import Json
from ...schemas.text import contains_phrase, normalize_answer
from ..text.emotions import dominant
from ..text.reading import LONGEST_CLAUSE, StoryView, main_action
from ..text.segments import strip_lead
from ..text.words import content_words, find_verb, lexicon, lower_words, pick, share, word_set
from .annotate_transitions import find_links

_SPLIT = (",", ";", " and ", " but ", " until ", " while ", " because ")


def accepted_answers(
    gold: str, question: str, *, english: bool, extra: Iterable[str] = ()
) -> tuple[str, ...] | None:
    """Return the accepted answers, the canonical one first, or None where it may not be asked for.

    Every answer has a content word, none is contained in the question, and no two are equal after
    normalisation. An answer that is too long to be compared is not asked for.
    """
    if len(gold.split()) > LONGEST_CLAUSE:
        return None
    forms = [gold, *extra, *(_shorter(gold) if english else ())]
    asked = normalize_answer(question)
    kept: dict[str, str] = {}
    for form in forms:
        normal = normalize_answer(form)
        degenerate = not normal or (english and not content_words(form)) or len(normal) < 2
        if not degenerate and not contains_phrase(asked, normal):
            kept.setdefault(normal, form)
    return tuple(kept.values()) if normalize_answer(gold) in kept else None


def _shorter(gold: str) -> list[str]:
    """Return shorter forms: without the connective, without the determiner, the first clause."""
    core = strip_lead(gold)
    forms = [core]
    first, _, rest = core.partition(" ")
    if first.lower() in word_set("words", "determiners") and len(rest.split()) >= 2:
        forms.append(rest)
    forms += [head for mark in _SPLIT for head in _head(core, mark)]
    return forms


def _head(core: str, mark: str) -> Sequence[str]:
    head = core.partition(mark)[0].strip(" ,;")
    words = lower_words(head)
    whole = (
        head != core and len(words) >= 3 and find_verb(words) is not None and len(content_words(head)) >= 2
    )
    return (head,) if whole else ()


EXTRA_CAUSAL, EXTRA_EMOTIONAL, ACTION = 0.265, 0.2474, 0.23
"""Share of stories with a second causal, a second emotional, and an action question (Table 14)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in the making; scenes are indices from 0."""

    kind: str
    question: str
    gold: str
    accepted: tuple[str, ...]
    scenes: tuple[int, ...]
    evidence: str
    transition: tuple[int, int] | None = None
    scene: int | None = None


def ask_questions(view: StoryView, transitions: Sequence[Json], moral_label: str | None) -> list[Json]:
    """Return the questions of a story, in the order of their dimensions."""
    asked = [*_causal(view), *_emotional(view), *_moral(view, transitions, moral_label), *_consequence(view)]
    asked += [*_temporal(view), *_action(view)]
    return [_record(view, number, question) for number, question in enumerate(asked, start=1)]


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


def _place(first: int, second: int) -> tuple[tuple[int, int] | None, int | None]:
    """Return the target transition for two adjacent scenes, else the target scene."""
    return ((first, second), None) if second - first == 1 else (None, second)


def _causal(view: StoryView) -> Iterator[Asked]:
    wanted = 1 + (share(view.id, "causal") < EXTRA_CAUSAL)
    made = 0
    effects: set[str] = set()
    for link in sorted(find_links(view), key=lambda link: link.kind != "cause"):
        form = "causal" if link.kind == "cause" else "purpose"
        question = _word_it(view, form, cue=link.effect)
        accepted = accepted_answers(link.reason, question, english=True)
        if made == wanted or accepted is None or link.effect in effects or '"' in link.effect:
            continue
        made += 1
        effects.add(link.effect)
        first, second = sorted((link.reason_scene, link.effect_scene))
        transition, scene = _place(first, second)
        evidence = f'It must be visible that "{link.reason}" and "{link.effect}" belong together.'
        scenes = tuple(dict.fromkeys((first, second)))
        yield Asked("causal", question, link.reason, accepted, scenes, evidence, transition, scene)


def _emotional(view: StoryView) -> Iterator[Asked]:
    wanted = 1 + (share(view.id, "emotional") < EXTRA_EMOTIONAL)
    options = [*_feelings(view), *_shifts(view)]
    if options and share(view.id, "shift") < 0.5:
        options = [*options[-1:], *options[:-1]]
    yield from options[:wanted]


def _feelings(view: StoryView) -> Iterator[Asked]:
    scenes = [scene for scene in range(view.count) if dominant(view.feelings(scene))]
    start = int(share(view.id, "feeling") * len(scenes))
    for scene in scenes[start:] + scenes[:start]:
        emotion = str(dominant(view.feelings(scene)))
        words = _words_for(view, scene)
        question = _word_it(view, "emotional", scene=scene + 1)
        accepted = accepted_answers(words[0], question, english=True, extra=[emotion, *words[1:]])
        if accepted is not None:
            evidence = f"Faces and bodies in scene {scene + 1} must show: {words[0]}."
            yield Asked("emotional", question, words[0], accepted, (scene,), evidence, scene=scene)


def _shifts(view: StoryView) -> Iterator[Asked]:
    """Yield the first change of feeling between two adjacent scenes."""
    for scene in range(view.count - 1):
        before, after = dominant(view.feelings(scene)), dominant(view.feelings(scene + 1))
        if not before or not after or before == after:
            continue
        gold = f"from {_words_for(view, scene)[0]} to {_words_for(view, scene + 1)[0]}"
        question = _word_it(view, "emotional_shift", first=scene + 1, second=scene + 2)
        extra = [gold.removeprefix("from "), f"from {before} to {after}", f"{before} to {after}"]
        accepted = accepted_answers(gold, question, english=True, extra=extra)
        if accepted is not None:
            evidence = f"Scene {scene + 1} must show {before}, scene {scene + 2} {after}."
            yield Asked(
                "emotional", question, gold, accepted, (scene, scene + 1), evidence, (scene, scene + 1)
            )
            return


def _words_for(view: StoryView, scene: int) -> list[str]:
    """Return the words of a scene that tell its dominant emotion, the surest first."""
    feelings = view.feelings(scene)
    emotion = dominant(feelings)
    told = sorted((f for f in feelings if f.emotion == emotion), key=lambda f: -f.weight)
    return list(dict.fromkeys(f.word for f in told))


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
    return accepted_answers(words[0], question, english=True, extra=words[1:]) if words else None


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
    if not view.english:
        return
    last = view.count - 1
    causes = [main_action(view, scene) for scene in range(last - 1, -1, -1)]
    for clause in (clause for clause in causes if clause is not None):
        cue = view.full(clause)
        for event in reversed(view.events(last)):
            asked = _pair(view, "consequence", "consequence", (clause.scene, last), (cue, view.full(event)))
            if asked is not None:
                yield asked
                return


def _temporal(view: StoryView) -> Iterator[Asked]:
    """Ask for the event right before the first event of a scene: the last one of the scene before."""
    count = view.count - 1
    start = int(share(view.id, "temporal") * count)
    for at in [*range(start, count), *range(start)]:
        if not view.by_scene[at] or not view.by_scene[at + 1]:
            continue  # a boundary set by hand inside a clause can leave a scene without a clause of its own
        before, after = view.by_scene[at][-1], view.by_scene[at + 1][0]
        texts = (view.full(after), view.full(before))
        asked = _pair(view, "temporal_order", "temporal_order", (at, at + 1), texts)
        if asked is not None:
            yield asked
            return


def _pair(
    view: StoryView, kind: str, form: str, scenes: tuple[int, int], texts: tuple[str, str]
) -> Asked | None:
    """Return a question that quotes one clause and asks for another; None where that gives it away."""
    cue, gold = texts
    if '"' in cue or not cue.strip():
        return None
    question = _word_it(view, form, cue=cue)
    accepted = accepted_answers(gold, question, english=view.english)
    if accepted is None:
        return None
    transition, scene = _place(*scenes)
    evidence = f'Scene {scenes[0] + 1} and scene {scenes[1] + 1} must show "{gold}" and "{cue}".'
    return Asked(kind, question, gold, accepted, scenes, evidence, transition, scene)


def _action(view: StoryView) -> Iterator[Asked]:
    if share(view.id, "action") >= ACTION or not view.english:
        return
    actions = [main_action(view, scene) for scene in range(view.count)]
    seen = [clause for clause in actions if clause is not None and clause.motion]
    start = int(share(view.id, "which") * len(seen))
    for clause in seen[start:] + seen[:start]:
        question = _word_it(view, "action_visibility", scene=clause.scene + 1)
        gold = view.full(clause)
        accepted = accepted_answers(gold, question, english=True)
        if accepted is not None:
            evidence = f'Scene {clause.scene + 1} must show: "{gold}".'
            yield Asked(
                "action_visibility", question, gold, accepted, (clause.scene,), evidence, scene=clause.scene
            )
            return
