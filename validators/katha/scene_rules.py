"""Rules about scenes, transitions and the text that they divide."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, pairwise

from ...errors import ConfigError
from ...schemas.canonical import Json
from ...schemas.plugins import plugins
from ...schemas.text import contains_phrase, normalize_answer
from ...schemas.values import Issue, vocabulary
from ..lines import check_schema
from ..report import issue, label, show
from ..view import Part, Story, check_redacted, first_difference, mentions, squeezed
from .field_rules import (
    check_bundle,
    check_complete,
    check_hashes,
    check_ids,
    check_language,
    check_notices,
    check_review,
    check_rights,
    check_variant_id_forms,
    check_variant_words,
    check_words,
    incomplete_reason,
    missing_fields,
)

_ARTICLES = ("the ", "a ", "an ")


def check_scenes(story: Story) -> Iterator[Issue]:
    """Check that scenes are at least two, numbered from 1 in order, and none is empty."""
    scenes = story.scenes
    if len(scenes) < 2:
        yield issue(
            "scene-count", story.where, "$.scenes", f"expected at least 2 scenes, found {len(scenes)}"
        )
    for position, scene in enumerate(scenes):
        index = scene["scene_index"]
        if index != position + 1:
            path = f"$.scenes[{position}].scene_index"
            yield issue("scene-order", story.where, path, f"expected {position + 1}, found {index}")
        if not scene["scene_text"].strip():
            yield issue(
                "scene-empty", story.where, f"$.scenes[{position}].scene_text", "the scene has no text"
            )


def check_spans(story: Story) -> Iterator[Issue]:
    """Check that the scenes, joined, are the story text; white space does not count."""
    texts = [squeezed(scene["scene_text"]) for scene in story.scenes]
    whole, joined = squeezed(story.record["story_text"]), "".join(texts)
    if joined == whole:
        return
    fitting = sum(whole.startswith(text) for text in accumulate(texts))
    part = min(fitting, max(0, len(texts) - 1))
    expected, found = first_difference(whole, joined)
    message = f"without white space, the story goes on {show(expected)}, the scenes go on {show(found)}"
    yield issue("scene-span", story.where, f"$.scenes[{part}].scene_text", message)


def check_story_text(story: Story) -> Iterator[Issue]:
    """Check that the story text is the normal form of the source text, or of what was written from it."""
    if story.record["provenance"].get("normalised_by") is not None:
        return
    if story.record["story_text"] != story.normal_source:
        expected, found = first_difference(story.normal_source, story.record["story_text"])
        message = f"the normal form of the source has {show(expected)}, the story text {show(found)}"
        yield issue("story-text", story.where, "$.story_text", message)


def check_characters(story: Story) -> Iterator[Issue]:
    """Check that each character of a scene is named in the story; a leading article does not count."""
    for position, scene in enumerate(story.scenes):
        for number, name in enumerate(scene["characters"]):
            if not mentions(story.answer_text, without_article(name)):
                path = f"$.scenes[{position}].characters[{number}]"
                yield issue("character-unknown", story.where, path, f"the story does not name {show(name)}")


def without_article(name: str) -> str:
    """Return a name without a leading English article."""
    folded = name.strip().casefold()
    for article in _ARTICLES:
        if folded.startswith(article):
            return folded[len(article) :]
    return folded


def check_transitions(story: Story) -> Iterator[Issue]:
    """Check that each neighbouring pair of scenes has its one transition, in order."""
    transitions = story.record["transitions"]
    expected = max(0, len(story.scenes) - 1)
    if len(transitions) != expected:
        found = f"expected {expected} for {len(story.scenes)} scenes, found {len(transitions)}"
        yield issue("transition-link", story.where, "$.transitions", found)
        return
    for position, transition in enumerate(transitions):
        link = (transition["from_scene"], transition["to_scene"])
        if link != (position + 1, position + 2):
            found = f"expected scenes {position + 1} to {position + 2}, found {link[0]} to {link[1]}"
            yield issue("transition-link", story.where, f"$.transitions[{position}]", found)


def check_moral_target(story: Story) -> Iterator[Issue]:
    """Check that one transition, and only one, carries the record's moral label (Table 10)."""
    label = story.record["moral_label"]
    targets = [
        (position, transition["moral_target"])
        for position, transition in enumerate(story.record["transitions"])
        if transition["moral_target"] is not None
    ]
    if len(targets) != (label is not None):
        wanted = "one transition" if label is not None else "no transition"
        found = f"expected {wanted} with a moral target for the label {show(label)}, found {len(targets)}"
        yield issue("moral-target", story.where, "$.transitions", found)
    for position, target in targets:
        if target != label:
            path = f"$.transitions[{position}].moral_target"
            yield issue("moral-target", story.where, path, f"expected {show(label)}, found {show(target)}")


def check_variant_ids(story: Story) -> Iterator[Issue]:
    """Check that the record's list of variants and the variants name each other."""
    listed = list(story.record["provenance"]["contrastive_variant_ids"])
    found = sorted(str(variant.data["variant_id"]) for variant in story.variants)
    if listed != found:
        path = "$.provenance.contrastive_variant_ids"
        yield issue("variant-reference", story.where, path, f"expected {show(found)}, found {show(listed)}")
    for variant in story.variants:
        if variant.data["base_story_id"] != story.id:
            message = f"expected {show(story.id)}, found {show(variant.data['base_story_id'])}"
            yield issue("story-reference", variant.where, "$.base_story_id", message)


def check_variant_texts(story: Story) -> Iterator[Issue]:
    """Check that a variant changes the scene that it names, and no other."""
    originals = [squeezed(scene["scene_text"]) for scene in story.scenes]
    for variant in story.variants:
        changed = variant.data["changed_scene_id"]
        if not 1 <= changed <= len(originals):
            message = f"expected a scene of 1 to {len(originals)}, found {changed}"
            yield issue("variant-scene", variant.where, "$.changed_scene_id", message)
            continue
        text = squeezed(variant.data["contrastive_scene_text"])
        if text == originals[changed - 1] or not text:
            message = f"the text of scene {changed} is {'as before' if text else 'empty'}"
            yield issue("variant-same", variant.where, "$.contrastive_scene_text", message)
        expected = "".join([*originals[: changed - 1], text, *originals[changed:]])
        whole = squeezed(variant.data["contrastive_story_text"])
        if whole != expected:
            base, found = first_difference(expected, whole)
            change = f"without white space, {show(base)} became {show(found)}"
            message = f"expected only scene {changed} to change: {change}"
            yield issue("variant-text", variant.where, "$.contrastive_story_text", message)


def check_entities(story: Story) -> Iterator[Issue]:
    """Check that characters of the changed scene that the base story names are still named in the variant."""
    for variant in story.variants:
        changed = variant.data["changed_scene_id"]
        if not 1 <= changed <= len(story.scenes):
            continue
        text = normalize_answer(variant.data["contrastive_story_text"])
        for name in story.scenes[changed - 1]["characters"]:
            plain = without_article(name)
            if mentions(story.answer_text, plain) and not mentions(text, plain):
                message = f"the variant no longer names {show(name)}"
                yield issue("entity-lost", variant.where, "$.contrastive_story_text", message)


def check_variant_labels(story: Story) -> Iterator[Issue]:
    """Check moral labels, the description of the change, narrative type and subset against the record."""
    record = story.record
    for variant in story.variants:
        data = variant.data
        yield from _expect(variant, "original_moral", record["moral_label"], "variant-moral")
        if data["contrastive_moral"] is not None and data["contrastive_moral"] == data["original_moral"]:
            message = f"{show(data['contrastive_moral'])} is the label of the original story"
            yield issue("variant-moral", variant.where, "$.contrastive_moral", message)
        if not data["semantic_delta"].strip():
            yield issue("variant-delta", variant.where, "$.semantic_delta", "semantic_delta is empty")
        yield from _expect(variant, "narrative_type", record["narrative_type"], "variant-context")
        yield from _expect(variant, "subset", record["split"], "variant-context")


def _expect(variant: Part, name: str, wanted: object, code: str) -> Iterator[Issue]:
    if variant.data[name] != wanted:
        message = f"expected {show(wanted)} as in the record, found {show(variant.data[name])}"
        yield issue(code, variant.where, f"$.{name}", message)


# -- Rules about recoverability questions and their answers

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


def check_variant_questions(story: Story) -> Iterator[Issue]:
    """Check the questions of variants: as those of stories, told by the variant, another answer there.

    What an answer in other words says cannot be judged by a rule; that the story has its very words and the
    variant has not, can.
    """
    for variant in story.variants:
        asked = variant.data.get("questions")
        if not asked or not 1 <= variant.data["changed_scene_id"] <= len(story.scenes):
            continue
        told = told_by_variant(story.record, variant)
        yield from check_question_places(told)
        yield from check_answers(told)
        yield from check_temporal(told)
        if variant.data["contrastive_moral"] is not None:
            yield from check_moral_answers(told)
        source = {normalize_answer(each["question"]): _accepted(each) for each in story.record["questions"]}
        for position, question in enumerate(asked):
            path, gold = f"$.questions[{position}]", normalize_answer(question["gold_answer"])
            if contains_phrase(story.answer_text, gold) and not contains_phrase(told.answer_text, gold):
                message = f"{show(question['gold_answer'])} stands in the base story, not in the variant"
                yield issue("variant-answer", variant.where, f"{path}.gold_answer", message)
            same = source.get(normalize_answer(question["question"]), frozenset()) & _accepted(question)
            if same:
                message = f"{show(min(same))} answers the same question about the base story"
                yield issue("variant-answer", variant.where, f"{path}.accepted_answers", message)


def told_by_variant(record: Mapping[str, Json], variant: Part) -> Story:
    """Return what a variant tells and is asked as a story, at the variant's place."""
    data = variant.data
    scenes = [
        {**scene, "scene_text": data["contrastive_scene_text"]}
        if number == data["changed_scene_id"]
        else scene
        for number, scene in enumerate(record["scenes"], start=1)
    ]
    told = {
        "scenes": scenes, "questions": data["questions"], "story_text": data["contrastive_story_text"],
        "moral_label": data["contrastive_moral"],
    }  # fmt: skip
    return Story(variant.where, {**record, **told})


def _accepted(question: Mapping[str, Json]) -> frozenset[str]:
    return frozenset(map(normalize_answer, (question["gold_answer"], *question["accepted_answers"])))


# -- The rules that look at one story and its variants: the registry, and :func:`check_story`

__all__ = ["STORY_RULES", "StoryRule", "check_part", "check_story", "incomplete_reason", "missing_fields"]


@dataclass(frozen=True, slots=True)
class StoryRule:
    """One rule about a story."""

    name: str  # its name, for choosing rules
    check: Callable[[Story], Iterator[Issue]]  # story -> findings; a function
    # the fields that it relies on, ``variants`` for the variants and ``bundle`` for what a run keeps beside
    # the record. It does not run where one of them has a schema error.
    reads: tuple[str, ...]


STORY_RULES: tuple[StoryRule, ...] = (
    StoryRule("redacted", check_redacted, ()),
    StoryRule("ids", check_ids, ("story_id", "scenes", "transitions", "questions")),
    StoryRule("variant-id-forms", check_variant_id_forms, ("variants",)),
    StoryRule("language", check_language, ("language",)),
    StoryRule(
        "words",
        check_words,
        (
            "narrative_type",
            "moral_label",
            "split",
            "validation_status",
            "evidence_status",
            "provenance.source_dataset",
            "provenance.source_rights_status",
            "transitions",
            "questions",
        ),
    ),
    StoryRule("variant-words", check_variant_words, ("variants",)),
    StoryRule("scenes", check_scenes, ("scenes",)),
    StoryRule("spans", check_spans, ("scenes", "story_text")),
    StoryRule("story-text", check_story_text, ("story_text", "source_text", "provenance")),
    StoryRule("characters", check_characters, ("scenes", "story_text")),
    StoryRule("transitions", check_transitions, ("scenes", "transitions")),
    StoryRule("moral-target", check_moral_target, ("transitions", "moral_label")),
    StoryRule("question-places", check_question_places, ("scenes", "questions")),
    StoryRule("answers", check_answers, ("questions",)),
    StoryRule("moral-answers", check_moral_answers, ("questions", "moral_label")),
    StoryRule("temporal", check_temporal, ("scenes", "questions")),
    StoryRule(
        "variant-ids",
        check_variant_ids,
        ("story_id", "provenance.contrastive_variant_ids", "variants"),
    ),
    StoryRule("variant-texts", check_variant_texts, ("scenes", "variants")),
    StoryRule("entities", check_entities, ("scenes", "story_text", "variants")),
    StoryRule(
        "variant-labels",
        check_variant_labels,
        ("moral_label", "narrative_type", "split", "variants"),
    ),
    StoryRule(
        "variant-questions",
        check_variant_questions,
        ("scenes", "questions", "story_text", "variants"),
    ),
    StoryRule(
        "hashes",
        check_hashes,
        (
            "story_id",
            "title",
            "language",
            "source_text",
            "scenes",
            "transitions",
            "questions",
            "provenance.source_prompt_hash",
            "provenance.source_annotations_sha256",
            "provenance.source_contrastives_sha256",
        ),
    ),
    StoryRule(
        "rights",
        check_rights,
        ("provenance.source_rights_status", "provenance.dataset_license"),
    ),
    StoryRule("rights-notices", check_notices, ("source_text", "provenance.source_rights_status")),
    StoryRule("review", check_review, ("validation_status", "evidence_status")),
    StoryRule("bundle", check_bundle, ("validation_status", "bundle")),
    StoryRule(
        "complete",
        check_complete,
        ("narrative_type", "moral_label", "scenes", "transitions", "questions"),
    ),
)
"""Every rule about one story. The first, the JSON Schema itself, is always run."""

GROUP = "fabula.rules"
"""Entry points of this group add rules to ``fabula validate``: the object is a :class:`StoryRule`."""


def check_story(
    record: Mapping[str, Json], variants: Sequence[Mapping[str, Json]], only: Collection[str] | None = None
) -> list[Issue]:
    """Return every finding about one record and its variants, sorted.

    The schema is checked first; rules that read a field with a schema error do not run. The places in the
    issues are the story id and the variant ids, the paths start at the record or the variant.
    """
    unknown = set(only or ()) - {rule.name for rule in STORY_RULES}
    if unknown:
        raise KeyError(
            f"no rule {sorted(unknown)[0]!r}; there are: {', '.join(rule.name for rule in STORY_RULES)}"
        )
    parts = [Part(label(variant.get("variant_id")), variant) for variant in variants]
    return sorted(check_part(Story(label(record.get("story_id")), record, parts), only)[1])


def check_part(
    story: Story, only: Collection[str] | None = None, *, own: bool = False
) -> tuple[Story, list[Issue]]:
    """Check one story as it was read; return it with its broken fields noted, and the findings.

    With ``own`` the rules of packages check it, too. Builders do without: their results depend on our rules.
    """
    issues: list[Issue] = []
    broken: set[str] = set(story.broken)
    for finding in check_schema("katha_record", story.record, story.where):
        issues.append(finding.issue)
        broken.update(filter(None, [finding.broken]))
    for variant in story.variants:
        for finding in check_schema("katha_variant", variant.data, variant.where):
            issues.append(finding.issue)
            broken.update(["variants"] if finding.broken else [])
    if story.bundle:
        for finding in check_schema("katha_bundle_shell", story.bundle, story.where):
            issues.append(finding.issue)
            broken.update(["bundle"] if finding.broken else [])
    checked = replace(story, broken=broken) if broken else story
    for rule in (*STORY_RULES, *(_rules_of_packages() if own else ())):
        if (only is None or rule.name in only) and checked.readable(rule.reads):
            issues.extend(rule.check(checked))
    return checked, issues


@cache
def _rules_of_packages() -> tuple[StoryRule, ...]:
    """Return the rules of the entry-point group."""
    rules: dict[str, StoryRule] = {}
    for entry in plugins(GROUP):
        rule = entry.load()
        if not isinstance(rule, StoryRule) or rule.name in (*rules, *(ours.name for ours in STORY_RULES)):
            raise ConfigError(
                f"entry point {entry.name} of {GROUP}", what="it is no StoryRule, or one has that name",
                fix=f"correct {entry.value}; CONTRIBUTING.md shows how",
            )  # fmt: skip
        rules[rule.name] = rule
    return tuple(rules.values())
