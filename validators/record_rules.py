"""The rules that look at one story and its variants: the registry, and :func:`check_story`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ..errors import ConfigError
from ..schemas.canonical import Json
from ..schemas.plugins import plugins
from ..schemas.values import Issue
from .katha.field_rules import (
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
from .katha.scene_rules import (
    check_answers,
    check_characters,
    check_entities,
    check_moral_answers,
    check_moral_target,
    check_question_places,
    check_scenes,
    check_spans,
    check_story_text,
    check_temporal,
    check_transitions,
    check_variant_ids,
    check_variant_labels,
    check_variant_texts,
)
from .lines import check_schema
from .report import label
from .view import Part, Story, check_redacted

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
