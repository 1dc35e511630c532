"""The checks of a draft that need no model; nothing is rejected by them.

Besides the rules of ``fabula validate`` they look at whether answers are found in the text, accepted answers
cover the canonical one, the characters of a scene are in it or carried over from the one before, and a
variant keeps the characters of its scene; whether two questions ask the same; and whether what a model
drafted is in the story's language (:mod:`.language`). Answers in the words of a person or a model are
judged by these words: where some are not in the story, the check has no verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ....engine.stage import BadReply
from ....schemas.canonical import Json
from ....schemas.text import contains_phrase, normalize_answer, normalize_text
from ....validators.katha.scene_rules import (
    STORY_RULES,
    answers_label,
    check_story,
    incomplete_reason,
    without_article,
)
from ....validators.report import label
from ....validators.view import mentions
from ...step import Problems, by_number, texts_in
from ...text.segments import language_detector, word_set
from ..annotate_transitions import TRANSITION_FIELDS
from ..draft_scenes import LIMIT, SCENE_FIELDS, clip_tokens, fits, unfit_scenes
from ..drafts import make_bundle, make_check, maker_of, scene_texts
from ..write_questions import DISTINCT, repetitions

# -- The check that what a model drafted is in the language of its story, languages of one script included
#
# The script is checked as a reply is read. Here a detector of languages (py3langid, BSD-3-Clause) reads each
# list of a draft and the story; what counts is what it says of the story, not the tag that the story bears.
# A list is judged only where it is sure of both, and it fails only where neither language is among the likely
# ones of the other text: Danish is not told from Norwegian.

CODE = "drafted_language"
SURE = 0.98
"""Least probability of the likely languages of a text together, for it to be judged."""
LEAST_LETTERS, LEAST_SIGNS = 60, 24
"""Letters of a text that is judged; of Chinese, Japanese and Thai, where a letter says more, fewer."""
LIKELY = 3
"""So many languages are likely ones of a text."""

_FIELDS: Mapping[str, Sequence[Sequence[str]]] = {
    "scenes": [("action", "state", "emotion", "visual_evidence", "visual_must_show")],
    "transitions": [("action", "causality", "intention", "emotion", "consequence", "expected_change")],
    "questions": [("question", "gold_answer", "required_evidence"), ("accepted_answers",)],
    "variants": [("semantic_delta",), ("contrastive_scene_text",)],
}
"""The fields of each list that are in the story's language; each group is judged by itself."""


def language_checks(story: Json, draft: Json) -> Iterator[Json]:
    """Yield a check for each list of which a model drafted enough that its language can be told."""
    makers = draft["producers"]
    if not any(_by_model(str(entry["producer"])) for entry in makers):
        return
    wanted = detected(story["text"])
    if wanted is None:
        return
    for name, groups in _FIELDS.items():
        found = [detected(" ".join(_drafted(name, group, draft))) for group in groups]
        known = [text for text in found if text is not None]
        strange = [text for text in known if not _alike(text, wanted)]
        for text in strange[:1]:
            said = f"it is in the language {text[0]}, and the story in {wanted[0]}"
            yield make_check(CODE, f"$.{name}", False, said)
        if known and not strange:
            yield make_check(CODE, f"$.{name}", True, f"in the story's language, {wanted[0]}")


@lru_cache(maxsize=4096)  # a draft is looked at again and again while it is repaired
def detected(text: str) -> tuple[str, ...] | None:
    """Return the likely languages of a text, the likeliest first; None of one that is short or unclear."""
    letters = [char for char in text if char.isalpha()]
    wide = sum(char >= "\u0e00" for char in letters)
    if len(letters) < (LEAST_SIGNS if wide * 2 > len(letters) else LEAST_LETTERS):
        return None
    ranked = language_detector().rank(text)[:LIKELY]
    if sum(float(probability) for _, probability in ranked) < SURE:
        return None
    return tuple(str(language) for language, _ in ranked)


def _alike(first: Sequence[str], second: Sequence[str]) -> bool:
    return first[0] in second or second[0] in first


def _by_model(producer: str) -> bool:
    return " via " in producer


def _drafted(name: str, group: Sequence[str], draft: Json) -> Iterator[str]:
    """Yield the texts of a list that a model drafted; the answers to a moral question may be labels."""
    for number, part in enumerate(draft[name]):
        for key in group:
            if part.get("question_type") == "moral" and key in ("gold_answer", "accepted_answers"):
                continue
            if _by_model(maker_of(f"$.{name}[{number}].{key}", draft["producers"]) or ""):
                yield from texts_in(part[key])


# -- The checks of a draft that need no model

_LABEL_QUESTIONS = frozenset(["moral"])
_RULES = frozenset(rule.name for rule in STORY_RULES) - {"hashes"}
"""All but those about hashes, which are made here: they would only be made a second time."""


def rule_checks(story: Json, draft: Json) -> list[Json]:
    """Return every check of a draft (``schemas.values.Check``): of single fields, then the rules."""
    return [
        *_field_checks(story, draft),
        *_repetitions(draft["questions"]),
        *language_checks(story, draft),
        *_record_checks(story, draft),
    ]


def _repetitions(questions: Sequence[Json]) -> Iterator[Json]:
    for number, reason in repetitions(questions).items():
        yield make_check(DISTINCT, f"$.questions[{number}].question", False, reason)


def _field_checks(story: Json, draft: Json) -> Iterator[Json]:
    text = normalize_answer(story["normalized_text"])
    authors = {entry["path"]: str(entry["producer"]) for entry in draft["producers"]}
    for number, question in enumerate(draft["questions"]):
        if question["question_type"] in _LABEL_QUESTIONS:
            yield _names_label(number, question, draft["moral_label"])
        else:
            yield _answerable(number, question, text, draft["scenes"], authors)
        yield _covered(number, question)
    unfit = unfit_scenes(story, scene_texts(draft["scenes"]))
    yield make_check(
        "scenes_fit", "$.scenes", unfit is None, unfit or "sentences and lengths allow the scenes"
    )
    yield from _continuity(draft["scenes"], text)
    yield from _prompts(draft)
    for number, variant in enumerate(draft["variants"]):
        yield _keeps_entities(number, variant, draft["scenes"])


def _answerable(
    number: int, question: Json, text: str, scenes: Sequence[Json], authors: Mapping[str, str]
) -> Json:
    path = f"$.questions[{number}].gold_answer"
    gold = normalize_answer(question["gold_answer"])
    if not gold:
        return make_check("answerable", path, False, "the answer is empty")
    evidence = [scene for scene in question["evidence_scenes"] if 1 <= scene <= len(scenes)]
    parts = [scenes[scene - 1] for scene in evidence]
    # Who is only "he" in a scene is called by name in answers.
    shown = " ".join(normalize_answer(" ".join((part["scene_text"], *part["characters"]))) for part in parts)
    if contains_phrase(shown, gold):
        return make_check("answerable", path, True, f"found in the evidence scenes {evidence}")
    words = [word for word in gold.split() if word not in word_set("words", "function")]
    missing = [word for word in words if not contains_phrase(shown, word)]
    if words and not missing:
        return make_check("answerable", path, True, f"its words are found in the evidence scenes {evidence}")
    drafted = authors.get("$.questions[*].gold_answer", "").startswith("rules")
    if drafted and path not in authors:
        return make_check("answerable", path, False, f"not in the evidence scenes: {' '.join(missing)}")
    elsewhere = (
        "; they are elsewhere in the story" if all(contains_phrase(text, word) for word in missing) else ""
    )
    return make_check(
        "answerable", path, None, f"words that the evidence scenes lack: {' '.join(missing)}{elsewhere}"
    )


def _names_label(number: int, question: Json, label: str | None) -> Json:
    path = f"$.questions[{number}].gold_answer"
    if answers_label(question, label):
        return make_check("answerable", path, True, f"the answer names the moral label {label}")
    return make_check("answerable", path, False, f"the answers do not name the moral label {label}")


def _covered(number: int, question: Json) -> Json:
    path = f"$.questions[{number}].accepted_answers"
    accepted = [normalize_answer(answer) for answer in question["accepted_answers"]]
    covered = normalize_answer(question["gold_answer"]) in accepted
    return make_check("answers_cover", path, covered, f"{len(set(accepted))} accepted answers")


def _continuity(scenes: Sequence[Json], text: str) -> Iterator[Json]:
    """Check that each character of a scene is named in it, or was in the scene before."""
    before: frozenset[str] = frozenset()
    for number, scene in enumerate(scenes):
        shown, names = normalize_answer(scene["scene_text"]), scene["characters"]
        strange = [name for name in names if not _names(shown, name) and name not in before]
        unknown = [name for name in strange if not _names(text, name)]
        note = (
            f"not in the scene nor in the one before: {', '.join(strange)}"
            if strange
            else "all accounted for"
        )
        passed = False if unknown else (None if strange else True)
        yield make_check("entity_continuity", f"$.scenes[{number}].characters", passed, note)
        before = frozenset(names)


def _prompts(draft: Json) -> Iterator[Json]:
    """Check that each short prompt fits what CLIP reads."""
    for number, scene in enumerate(draft["scenes"]):
        if scene["generation_prompt"]:
            path = f"$.scenes[{number}].generation_prompt"
            note = f"counted as {clip_tokens(scene['generation_prompt'])} CLIP tokens; {LIMIT} are read"
            yield make_check("prompt_too_long", path, fits(scene["generation_prompt"]), note)


def _names(text: str, name: str) -> bool:
    return mentions(text, without_article(name))


def _keeps_entities(number: int, variant: Json, scenes: Sequence[Json]) -> Json:
    path = f"$.variants[{number}].contrastive_scene_text"
    index = variant["changed_scene_id"]
    if not 1 <= index <= len(scenes):
        return make_check("entities_preserved", path, False, f"there is no scene {index}")
    before = normalize_answer(scenes[index - 1]["scene_text"])
    after = normalize_answer(variant["contrastive_scene_text"])
    named = [name for name in scenes[index - 1]["characters"] if _names(before, name)]
    lost = [name for name in named if not _names(after, name)]
    note = f"no longer named: {', '.join(lost)}" if lost else f"{len(named)} characters kept"
    return make_check("entities_preserved", path, not lost, note)


def _record_checks(story: Json, draft: Json) -> list[Json]:
    """Return one failed check per finding of the record rules, or one passed check for all of them."""
    # Split, time and licence come later; the rules need some value there.
    bundle = make_bundle(story, draft, (), "train", "1970-01-01T00:00:00Z", "given later")
    found = check_story(bundle["record"], bundle["variants"], _RULES)
    shorter = {"incomplete": incomplete_reason(bundle["record"], bundle["variants"])}
    places = {label(part["variant_id"]): f"$.variants[{n}]" for n, part in enumerate(draft["variants"])}
    failed = [
        make_check(
            issue.code,
            places.get(issue.where, "$") + issue.path[1:],
            False,
            shorter.get(issue.code) or issue.message,
        )
        for issue in found
        if issue.level == "error" or issue.code == "incomplete"
    ]
    return failed or [make_check("record_rules", "$", True, "all rules of fabula validate hold")]


# -- Reading the replies to the prompts that check a draft

LONGEST_NOTE = 300
READERS = ("short", "full", "own_words")
"""The readers who answer in one reply to ``katha/answer_questions``, the first the most usual one."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a model says of the answers to one question."""

    supported: bool  # whether the text supports the canonical answer
    wrong: frozenset[int]  # positions, from 0, of the other answers that are not the same answer
    remark: str  # what is wrong, in one line; empty if nothing is


def read_answers(reply: Json, count: int) -> list[tuple[str, ...]]:
    """Return the readers' answers of a reply to ``katha/answer_questions``.

    None where the text is unclear.
    """
    answers: list[tuple[str, ...]] = []
    for entry in by_number(reply["answers"], "number", _upto(count), "answers to the questions"):
        told: dict[str, str] = {}
        for text in (normalize_text(entry[reader] or "") for reader in READERS):
            told.setdefault(normalize_answer(text), text)
        told.pop("", None)
        if entry["status"] == "recoverable" and not told:
            raise BadReply(f"question {entry['number']} is recoverable, but no reader says an answer")
        answers.append(tuple(told.values()) if entry["status"] == "recoverable" else ())
    return answers


def read_guess(reply: Json) -> str | None:
    """Return the guess of a reply to ``katha/guess_answers``; None where there is none."""
    return normalize_text(reply["answer"] or "") or None if reply["status"] == "guessed" else None


def read_judgements(reply: Json, counts: Sequence[int]) -> list[Judged]:
    """Return the judgements of a reply to ``katha/check_answers``, one for each question."""
    entries = by_number(reply["questions"], "number", _upto(len(counts)), "judgements of the questions")
    problems = Problems()
    judged = [
        Judged(entry["gold_supported"], _wrong(entry, count, problems), note(entry["remark"]))
        for entry, count in zip(entries, counts, strict=True)
    ]
    problems.settle()
    return judged


def _wrong(entry: Json, count: int, problems: Problems) -> frozenset[int]:
    strange = [number for number in entry["wrong_answers"] if not 1 <= number <= count]
    if strange:
        problems.add(
            f"question {entry['number']} has {count} other answers; wrong_answers names {strange[0]}"
        )
    return frozenset(number - 1 for number in entry["wrong_answers"])


def read_contrasts(reply: Json, count: int) -> list[Json]:
    """Return what a reply to ``katha/read_variants`` says, in order."""
    entries = by_number(reply["variants"], "number", _upto(count), "readings of the variants")
    return [{**entry, "change": note(entry["change"])} for entry in entries]


def judges_labels(draft: Json, which: Mapping[str, Sequence[int]]) -> bool:
    """Return whether everything in a draft is judged, and its labels with it."""
    return all(len(which[name]) == len(draft[name]) for name in KEYS)


def read_record(reply: Json, draft: Json, which: Mapping[str, Sequence[int]], counts: Sequence[int]) -> Json:
    """Return the judgements of a reply to ``katha/check_record``, each list in order.

    A field that is null or empty says nothing that could be contradicted; it is left out.

    ``which``: list -> the positions, from 0, that were to be judged.
    """
    scenes, problems = len(draft["scenes"]), Problems()
    judged = {
        name: by_number(reply[name], key, [at + 1 for at in which[name]], f"judgements of {name}")
        for name, key in KEYS.items()
    }
    for entry, at, count in zip(judged["questions"], which["questions"], counts, strict=True):
        _check_question(entry, draft["questions"][at], scenes, problems)
        _wrong(entry, count, problems)
    for name in ("missing", "added"):
        for entry in reply["narrative"][name]:
            entry["remark"] = note(entry["remark"])
    labels = reply["labels"] if judges_labels(draft, which) else {"remark": None}
    if labels is None:
        problems.add("labels are to be judged; found null")
    problems.settle()
    return {
        **{name: _noted(judged[name]) for name in ("questions", "variants")},
        "scenes": _said(judged["scenes"], [draft["scenes"][at] for at in which["scenes"]], SCENE_FIELDS),
        "transitions": _said(
            judged["transitions"], [draft["transitions"][at] for at in which["transitions"]],
            TRANSITION_FIELDS,
        ),
        "labels": {**labels, "remark": note(labels["remark"])},
        "narrative": {**reply["narrative"], "misplaced": note(reply["narrative"]["misplaced"])},
    }  # fmt: skip


KEYS = {"scenes": "scene", "transitions": "from_scene", "questions": "number", "variants": "number"}
"""List of a record -> the key of the form under which its parts are numbered."""


def depends_on_transition(question: Mapping[str, Json]) -> bool:
    """Return whether what a question asks about has two halves; a moral is of the whole story."""
    return question["target_transition"] is not None and question["question_type"] != "moral"


def _check_question(entry: Json, question: Json, scenes: int, problems: Problems) -> None:
    halves = (entry["earlier_scene"], entry["later_scene"])
    if depends_on_transition(question) and not all(
        half is not None and 1 <= half <= scenes for half in halves
    ):
        problems.add(
            f"question {entry['number']}: earlier_scene and later_scene must be scenes of 1 to {scenes},"
            " where the two halves of what it asks about happen"
        )
    repeats = entry["repeats"]
    if repeats is not None and not 1 <= repeats < entry["number"]:
        problems.add(
            f"question {entry['number']}: repeats must be the number of an earlier question, or null"
        )


def _said(entries: Sequence[Json], parts: Sequence[Mapping[str, Json]], names: Sequence[str]) -> list[Json]:
    return [
        {**entry, "contradicted": [name for name in names if name in entry["contradicted"] and part[name]]}
        for entry, part in zip(_noted(entries), parts, strict=True)
    ]


def _noted(entries: Sequence[Json]) -> list[Json]:
    return [{**entry, "remark": note(entry["remark"])} for entry in entries]


def note(text: str | None) -> str:
    """Return a model's remark as one line of at most 300 characters."""
    return normalize_text(text or "")[:LONGEST_NOTE]


def _upto(count: int) -> list[int]:
    return list(range(1, count + 1))
