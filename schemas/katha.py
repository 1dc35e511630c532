"""KathaBench records: every field of the paper's Tables 7, 8, 13, 15 and 16 and of A.7 and A.15-A.17.

Strings that the tables require but a drafting planner may not know are nullable here; the rule
``incomplete`` keeps such records out of a release that does not say that it holds drafts.
"""

from typing import Any, Literal

from pydantic import Field

from .values import Check, FieldProducer, Own

SCHEMA_VERSION = "1"


def _is_absent(value: object) -> bool:
    """Whether a field that came later is left out, so that records from before keep their bytes."""
    return value is None


class Scene(Own):
    """One scene (Table 7)."""

    story_id: str = Field(description="Unique identifier of the narrative.")
    scene_index: int = Field(ge=1, description="Place of the scene in the story, counted from 1.")
    scene_text: str = Field(description="The part of the story that the scene covers.")
    characters: tuple[str, ...] = Field(description="Characters or agents that appear.")
    objects: tuple[str, ...] = Field(description="Salient objects.")
    action: str | None = Field(description="What is done in the scene, above all what can be seen.")
    state: str | None = Field(description="How things stand in the scene.")
    emotion: str | None = Field(description="The leading feeling, if there is one.")
    visual_evidence: str | None = Field(description="Visual evidence relevant to the questions, if any.")
    visual_must_show: tuple[str, ...] = Field(description="What must be visible to support recovery.")
    generation_prompt: str | None = Field(description="Prompt for storyboard generation.")
    generation_prompt_long: str | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="Prompt for generators that read more; absent where nobody wrote one.",
    )


class Transition(Own):
    """One transition between adjacent scenes (Table 8)."""

    story_id: str = Field(description="Unique identifier of the narrative.")
    from_scene: int = Field(ge=1, description="Index of the earlier scene.")
    to_scene: int = Field(ge=1, description="Index of the later scene.")
    transition_type: str | None = Field(description="Coarse type; see the vocabulary transition_type.")
    action: str | None = Field(description="What is done or happens on the way, as far as it can be seen.")
    causality: str | None = Field(
        description="What brings the later scene about; null where no cause is told."
    )
    intention: str | None = Field(description="Goal, plan or motivation; annotation only, never scored.")
    emotion: str | None = Field(description="Emotional state or shift.")
    consequence: str | None = Field(description="Outcome produced or revealed.")
    expected_change: str | None = Field(description="Expected change of state.")
    moral_target: str | None = Field(description="Moral label, on one transition of a story.")
    recoverability_target: str | None = Field(
        description="What a viewer must be able to tell from the pictures."
    )


class Question(Own):
    """One recoverability question (Table 13)."""

    question_id: str = Field(description="Unique identifier of the question.")
    story_id: str = Field(description="Narrative that it belongs to.")
    question_type: str = Field(description="Scored dimension; see the vocabulary question_type.")
    question: str = Field(description="The question as the evaluator sees it.")
    gold_answer: str = Field(description="Canonical answer.")
    accepted_answers: tuple[str, ...] = Field(description="Accepted answers, the canonical one included.")
    target_scene: int | None = Field(description="The scene that the question is about.")
    target_transition: tuple[int, int] | None = Field(
        description="The transition that the question is about, as a pair of scenes."
    )
    evidence_scenes: tuple[int, ...] = Field(description="Scenes that hold the evidence.")
    required_evidence: str | None = Field(description="Evidence needed to answer.")
    answerability: str = Field(description="See the vocabulary answerability.")


class Variant(Own):
    """One contrastive variant (Table 15)."""

    variant_id: str = Field(description="Unique identifier of the variant.")
    base_story_id: str = Field(description="Story that it is derived from.")
    variant_kind: str = Field(description="Variant family; see the vocabulary variant_kind.")
    subset: str | None = Field(description="Split of the base story; null until splits are assigned.")
    narrative_type: str | None = Field(description="Narrative type of the base story.")
    has_variant: bool = Field(description="Whether the variant is active.")
    pair_id: str = Field(description="Identifier of the pair that base and variant form.")
    changed_scene_id: int = Field(ge=1, description="Index of the scene that is changed.")
    change_type: str = Field(description="See the vocabulary change_type.")
    original_moral: str | None = Field(description="Moral label of the base story.")
    contrastive_moral: str | None = Field(description="Moral label of the variant, if it supports one.")
    semantic_delta: str = Field(description="The change, in words.")
    contrastive_scene_text: str = Field(description="Text of the changed scene.")
    contrastive_story_text: str = Field(description="The whole contrastive story.")
    questions: tuple[Question, ...] | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="Questions about what the variant tells otherwise; story_id is the variant's id. Absent "
        "where there are none.",
    )


class Provenance(Own):
    """Where a record comes from (A.15-A.17). Hashes are SHA-256 of canonical JSON, in hexadecimal."""

    source_dataset: str = Field(description="Source family; see the vocabulary source_dataset.")
    source_reference: str | None = Field(description="Where in the collection.")
    source_prompt_hash: str = Field(
        description="Hash of id, language and text of the source story, as handed in."
    )
    source_annotations_sha256: str = Field(description="Hash of title, scenes, transitions and questions.")
    source_contrastives_sha256: str = Field(description="Hash of the story's variants.")
    contrastive_variant_ids: tuple[str, ...] = Field(description="Ids of the story's variants, in order.")
    created_at: str = Field(
        description="When the run was created, RFC 3339, UTC.", json_schema_extra={"format": "date-time"}
    )
    source_rights_status: str = Field(description="See the vocabulary rights_status.")
    dataset_license: str | None = Field(
        description="Licence of the record, such as CC-BY-4.0; null in a run until it is packed."
    )
    normalised_by: str | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="Who wrote the story text from the source; absent where it is the source.",
    )


class EvidenceStatus(Own):
    """Whether people accepted the evidence (A.7)."""

    human_evidence_accepted: bool = Field(description="True only where people voted so.")
    resolution: str = Field(description="See the vocabulary resolution.")


class StoryRecord(Own):
    """One benchmark record: one line of ``annotations.jsonl`` (Table 23)."""

    story_id: str = Field(description="Id of the story: letters, digits, dashes and underscores.")
    title: str = Field(description="Story title.")
    language: str = Field(description="BCP 47 language tag of the story.")
    source_text: str = Field(description="The story as it was handed in, untouched.")
    story_text: str = Field(description="The story in normalised form; the scenes are spans of it.")
    narrative_type: str | None = Field(description="See the vocabulary narrative_type (Table 6).")
    moral_label: str | None = Field(description="See the vocabulary moral_label (Table 11).")
    moral: Literal["not_applicable"] | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="not_applicable where the story supports no value and has no label; else absent.",
    )
    split: str = Field(description="See the vocabulary split.")
    scenes: tuple[Scene, ...] = Field(description="Scenes in story order.")
    transitions: tuple[Transition, ...] = Field(description="Transitions in story order.")
    questions: tuple[Question, ...] = Field(description="Recoverability questions.")
    provenance: Provenance = Field(description="Where the record comes from.")
    validation_status: str = Field(description="See the vocabulary validation_status.")
    evidence_status: EvidenceStatus = Field(description="Whether people accepted the evidence.")


class HumanValidation(Own):
    """Summary of the human review of one story (Table 16). Written only from votes."""

    story_id: str = Field(description="Story that was reviewed.")
    decision: str = Field(description="See the vocabulary decision.")
    validation_status: str = Field(description="See the vocabulary validation_status.")
    evidence_source: str = Field(description="Evidence used in the review.")
    protocol_complete: bool = Field(description="Whether the protocol was completed.")
    annotator_ids: tuple[str, ...] = Field(description="Anonymised ids of the reviewers.")
    adjudicator_id: str | None = Field(description="Anonymised id of the adjudicator, if any.")
    resolution: str = Field(description="See the vocabulary resolution.")
    final_moral_label: str = Field(description="Moral label after review.")
    correction_flags: tuple[str, ...] = Field(description="Fields that were corrected.")
    signed_at: str = Field(
        description="When the summary was finalised, RFC 3339.", json_schema_extra={"format": "date-time"}
    )
    seen_sha256: str | None = Field(
        default=None,
        exclude_if=_is_absent,
        pattern=r"^[0-9a-f]{64}$",
        description="Hash of what the reviewers were shown; absent where that is unknown.",
    )
    content_sha256: str | None = Field(
        default=None,
        exclude_if=_is_absent,
        pattern=r"^[0-9a-f]{64}$",
        description="Hash of the content that the review stands for: what was shown, with the corrections "
        "that were decided; absent where that is unknown.",
    )


class StoryCheck(Check):
    """The result of one check of a story record, and who judged."""

    producer: str | None = Field(
        default=None, description="Who judged: rules@1, a model, author:<name>; null where nobody did."
    )


class LeftOut(Own):
    """Sentences of a source that its narrative does not tell."""

    sentences: tuple[int, ...] = Field(description="Numbers of the sentences, from 1.")
    reason: str = Field(description="Why they were left out.")


class Narrative(Own):
    """How the story text was written from the source (A.16); none where it is the source."""

    producer: str = Field(description="Who wrote it.")
    source_sha256: str = Field(description="Hash of the source text.")
    alignment: tuple[tuple[int, ...], ...] = Field(
        description="For each scene the numbers of the source sentences that it tells, from 1."
    )
    left_out: tuple[LeftOut, ...] = Field(description="What no scene tells, and why.")


class GivenAnswer(Own):
    """An answer that a person gave from the story's text: one line of a file of ``--answers``."""

    story_id: str = Field(description="The story.")
    question_id: str = Field(description="The question.")
    answer: str = Field(min_length=1, max_length=1000, description="The answer.")
    who: str = Field(min_length=1, max_length=100, description="Who gave it.")


class GrownAnswer(Own):
    """What became of an answer that somebody gave without having seen the accepted ones."""

    question_id: str = Field(description="The question.")
    answer: str = Field(description="The answer.")
    producer: str = Field(description="Who gave it.")
    judge: str | None = Field(description="Who judged it; null where nobody did.")
    verdict: bool | None = Field(description="Whether it is the canonical answer in other words.")
    joined: bool = Field(description="Whether it joined the accepted answers.")
    reason: str = Field(description="Why it joined, or did not.")


class Rewritten(Own):
    """What became of a part of a draft in which a check found something."""

    part: str = Field(description="The list: scenes, transitions, questions or variants.")
    number: int = Field(ge=1, description="Place of the part in the list, from 1.")
    outcome: str = Field(description="What was done, and what the findings weighed before and after.")
    findings: tuple[str, ...] = Field(description="What was found, as whoever wrote it again was told.")
    first: dict[str, Any] | None = Field(
        default=None, exclude_if=_is_absent, description="Fields of the first version that differ."
    )
    second: dict[str, Any] | None = Field(
        default=None, exclude_if=_is_absent, description="The same fields of the second version."
    )


class KathaBundle(Own):
    """What a run keeps per story: the record, its variants, who made each field, and the checks."""

    record: StoryRecord
    variants: tuple[Variant, ...]
    producers: tuple[FieldProducer, ...]
    checks: tuple[StoryCheck, ...]
    narrative: Narrative | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="How the story text was written from the source, if it was.",
    )
    answers: tuple[GrownAnswer, ...] | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="How the accepted answers grew, if anybody answered before they were frozen.",
    )
    rewritten: tuple[Rewritten, ...] | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="What a check of the draft found in parts, and which version of each stayed.",
    )


class ProducerLine(Own):
    """One line of ``producers.jsonl``: who made which fields of a record."""

    id: str = Field(description="Record id.")
    fields: tuple[FieldProducer, ...] = Field(description="Paths and their producers.")
    narrative: Narrative | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="How the story text was written from the source, if it was.",
    )
    answers: tuple[GrownAnswer, ...] | None = Field(
        default=None,
        exclude_if=_is_absent,
        description="How the accepted answers grew, if anybody answered before they were frozen.",
    )
