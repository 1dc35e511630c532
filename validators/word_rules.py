"""Rules about ids, languages and word lists."""

from collections.abc import Iterator, Mapping
from functools import cache

from ..schemas.canonical import Json
from ..schemas.ids import is_language_tag, is_part_id, is_story_id
from ..schemas.issue import Issue
from ..schemas.vocabulary import vocabulary
from .codes import issue, show
from .view import Story

RECORD_WORDS = {"narrative_type": "narrative_type", "moral_label": "moral_label", "split": "split",
                "validation_status": "validation_status"}  # fmt: skip
PROVENANCE_WORDS = {"source_dataset": "source_dataset", "source_rights_status": "rights_status"}
TRANSITION_WORDS = {"transition_type": "transition_type", "moral_target": "moral_label"}
QUESTION_WORDS = {"question_type": "question_type", "answerability": "answerability"}
VARIANT_WORDS = {"variant_kind": "variant_kind", "subset": "split", "narrative_type": "narrative_type",
                 "change_type": "change_type", "original_moral": "moral_label",
                 "contrastive_moral": "moral_label"}  # fmt: skip
REVIEW_WORDS = {"decision": "decision", "validation_status": "validation_status", "resolution": "resolution",
                "final_moral_label": "moral_label"}  # fmt: skip


def check_ids(story: Story) -> Iterator[Issue]:
    """Check that ids are well-formed and that parts carry the id of their story."""
    record = story.record
    if not is_story_id(record["story_id"]):
        yield issue("id-form", story.where, "$.story_id", f"{show(record['story_id'])} is not a valid id")
    for name in ("scenes", "transitions", "questions"):
        for position, part in enumerate(record[name]):
            if part["story_id"] != record["story_id"]:
                message = f"expected {show(record['story_id'])}, found {show(part['story_id'])}"
                yield issue("story-reference", story.where, f"$.{name}[{position}].story_id", message)
    for position, question in enumerate(record["questions"]):
        yield from check_id(story.where, f"$.questions[{position}].question_id", question["question_id"])


def check_variant_id_forms(story: Story) -> Iterator[Issue]:
    """Check that the ids of variants and pairs are well-formed."""
    for variant in story.variants:
        for name in ("variant_id", "pair_id"):
            yield from check_id(variant.where, f"$.{name}", variant.data[name])


def check_id(where: str, path: str, value: str) -> Iterator[Issue]:
    """Check the id of a part of a story: it becomes part of file names and keys."""
    if not is_part_id(value):
        yield issue("id-form", where, path, f"{show(value)} is not a valid id")


def check_language(story: Story) -> Iterator[Issue]:
    """Check that the language has the shape of a BCP 47 tag."""
    language = story.record["language"]
    if not is_language_tag(language):
        yield issue("language-tag", story.where, "$.language", f"{show(language)} is not a language tag")


def check_words(story: Story) -> Iterator[Issue]:
    """Check every field of the record that has a word list."""
    record = story.record
    yield from check_values(story.where, "$", record, RECORD_WORDS)
    yield from check_values(story.where, "$.provenance", record["provenance"], PROVENANCE_WORDS)
    yield from check_values(
        story.where, "$.evidence_status", record["evidence_status"], {"resolution": "resolution"}
    )
    for position, transition in enumerate(record["transitions"]):
        yield from check_values(story.where, f"$.transitions[{position}]", transition, TRANSITION_WORDS)
    for position, question in enumerate(record["questions"]):
        yield from check_values(story.where, f"$.questions[{position}]", question, QUESTION_WORDS)


def check_variant_words(story: Story) -> Iterator[Issue]:
    """Check every field of the variants that has a word list."""
    for variant in story.variants:
        yield from check_values(variant.where, "$", variant.data, VARIANT_WORDS)


def check_values(
    where: str, path: str, part: Mapping[str, Json], words: Mapping[str, str]
) -> Iterator[Issue]:
    """Check fields of one object against their word lists; null is the matter of the rule ``incomplete``."""
    for name, list_name in words.items():
        value = part[name]
        known, closed = _words(list_name)
        if value is not None and value not in known:
            code = "unlisted-value" if closed else "unfamiliar-value"
            message = (
                f"expected a value of the list {list_name}, found {show(value)}{_nearest(list_name, value)}"
            )
            yield issue(code, where, f"{path}.{name}", message)


@cache
def _words(name: str) -> tuple[frozenset[str], bool]:
    words = vocabulary(name)
    return frozenset(words.values), words.closed


def _nearest(list_name: str, value: str) -> str:
    from difflib import get_close_matches

    matches = get_close_matches(vocabulary(list_name).resolve(value), vocabulary(list_name).values, n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""
