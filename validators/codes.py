"""Every code that a validator reports: what it means, how bad it is, and what to do about it.

The table is the documentation of the rules: :func:`rule_table` prints it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..schemas.issue import Issue, Level


@dataclass(frozen=True, slots=True)
class Code:
    """One stable code.

    Attributes:
        meaning: what must hold, in one sentence.
        cure: what to do where it does not.
        level: ``error`` or ``warning``.
    """

    meaning: str
    cure: str
    level: Level = "error"


SECRET_REMOVED = Code(
    "No text had a secret taken out of it.",
    "a service repeated your key: replace the key, then write the text by hand, or ask for it again",
)
"""For the codes of every kind of data set."""

_FILE = {
    "encoding": Code("Files are UTF-8.", "save the file as UTF-8 and validate again"),
    "byte-order-mark": Code(
        "Files start without a byte order mark.", "save the file as UTF-8 without BOM", "warning"
    ),
    "json": Code("Each line holds one JSON value.", "correct the JSON on this line, or remove the line"),
    "truncated": Code("The last line is complete.", "the file was cut off: write or copy it again"),
    "json-object": Code("Each line holds a JSON object.", "put one record per line, as an object"),
    "repeated-key": Code("No key occurs twice in an object.", "keep one of the two keys"),
    "line-length": Code("A line has at most 64 MiB.", "put one record per line, LF at its end"),
    "kind": Code(
        "Each line is something known: a record, a variant, an envelope, a review.",
        "remove the line, or give it the fields of its kind (fabula schemas export)",
    ),
    "missing-file": Code("The files of a release are there.", "pack the release again"),
    "schema": Code("Each part satisfies its JSON Schema.", "give the field the type the schema asks for"),
    "timestamp": Code("Times are RFC 3339.", "write the time like 2025-01-31T12:00:00Z"),
    "unknown-field": Code(
        "Records have no fields beyond the schema; such fields are kept.",
        "remove the field, or keep it knowingly",
        "warning",
    ),
    "empty": Code("A run or release holds a story.", "build it from stories that qualify, then pack it"),
    "envelope": Code("An envelope's kind, version and id agree with its payload.", "build the run again"),
}

_RECORD = {
    "id-form": Code(
        "Ids are A-Z a-z 0-9 _ -, begin with a letter or digit, have at most 64 characters (parts 96).",
        "rename it, in the story's source file for a story id",
    ),
    "id-repeated": Code("Story, question, variant and pair ids occur once.", "rename one of the two"),
    "story-reference": Code("Every part carries the id of its story.", "set story_id to the record's id"),
    "language-tag": Code("The language is a BCP 47 tag.", "use a tag such as en, hi or zh-Hans"),
    "unlisted-value": Code(
        "Closed word lists are kept to.", "use one of the listed values; `fabula schemas words` prints them"
    ),
    "unfamiliar-value": Code(
        "Open word lists are kept to where possible; other values are kept.",
        "use a listed value if one fits; `fabula schemas words` prints them",
        "warning",
    ),
    "scene-count": Code("A story has at least two scenes.", "split the story into more scenes"),
    "scene-order": Code(
        "Scenes are numbered from 1 without a gap, in order.", "number the scenes 1, 2, 3, ..."
    ),
    "scene-empty": Code("No scene is empty.", "give the scene text, or merge it with a neighbour"),
    "scene-span": Code(
        "The scene texts, joined, are the story text.",
        "let the scenes cover the story text once, from start to end",
    ),
    "story-text": Code(
        "story_text is the normal form of source_text.", "build the record again from its source"
    ),
    "character-unknown": Code(
        "Every character of a scene is named in the story.", "use the name that the story uses", "warning"
    ),
    "transition-link": Code(
        "Each pair of neighbouring scenes has one transition, in order.",
        "write one transition per neighbouring pair",
    ),
    "moral-target": Code(
        "Exactly one transition carries the moral target, and it is the record's label.",
        "set moral_target on one transition to the record's moral_label",
    ),
    "question-scene": Code("Target and evidence scenes exist.", "name a scene of the story"),
    "question-transition": Code(
        "A target transition links neighbouring scenes of the story.",
        "name two neighbouring scenes, the earlier first",
    ),
    "question-evidence": Code(
        "Evidence scenes are there, each once, in story order.",
        "list the scenes that hold the evidence, in order",
    ),
    "answer-not-accepted": Code(
        "The gold answer is among the accepted ones, after normalisation.",
        "add the gold answer to accepted_answers",
    ),
    "answer-repeated": Code("Accepted answers differ after normalisation.", "remove one of the two"),
    "answer-empty": Code("Answers say something.", "write an answer that could be wrong"),
    "answer-leak": Code("The question does not contain its answer.", "ask without naming the answer"),
    "moral-answer": Code(
        "The answers to a moral question name the record's moral label.",
        "correct the question's answers, or the label",
    ),
    "temporal-order": Code(
        "The answer to a temporal question happens before the latest evidence scene.",
        "correct the answer or the evidence scenes",
    ),
    "variant-reference": Code(
        "contrastive_variant_ids names the story's variants, all of them, in order.",
        "list exactly the ids of the story's variants, sorted",
    ),
    "variant-scene": Code("The changed scene exists.", "name a scene of the base story"),
    "variant-same": Code(
        "The changed scene's text differs from the original.", "change the scene, or drop the variant"
    ),
    "variant-text": Code(
        "The contrastive story is the base story with only the changed scene replaced.",
        "put the other scenes back as they are in the base story",
    ),
    "entity-lost": Code(
        "The characters of the changed scene stay in the contrastive story.",
        "name the character again; only a transition may change",
    ),
    "variant-moral": Code(
        "original_moral is the record's label and contrastive_moral is another one or null.",
        "copy the label from the record, or set contrastive_moral to null",
    ),
    "variant-delta": Code("semantic_delta says what changes.", "describe the change in words"),
    "variant-context": Code(
        "Narrative type and subset of a variant are those of its base story.",
        "copy narrative_type and split from the record",
    ),
    "hash": Code(
        "The provenance hashes are those of the record.",
        "undo the change, or build the record again (fabula edit keeps track of corrections)",
    ),
    "text-encoding": Code(
        "Texts hold no lone surrogates and no numbers beyond JSON's.", "write the text again from its source"
    ),
    "secret-removed": SECRET_REMOVED,
    "rights": Code("The rights allow release.", "settle the rights, or leave the story out"),
    "license": Code("A record names its licence.", "set dataset_license, such as CC-BY-4.0"),
    "review-mismatch": Code(
        "Validation status and evidence status agree about the review.",
        "use a status for unreviewed records unless votes are on file",
    ),
    "check-mismatch": Code(
        "A record marked auto_checked has passed every automatic check of its draft.",
        "set validation_status to review_needed, or settle the checks",
    ),
    "producer-path": Code(
        "Producers name JSON paths of the record.", "write a path such as $.scenes[*].action"
    ),
    "incomplete": Code(
        "Strings that a release requires are filled.",
        "fill the fields by hand or with a model; such a record stays out of a pack",
        "warning",
    ),
}

_SET = {
    "orphan": Code(
        "Every variant and review belongs to a story of the data set.", "add the story, or remove this line"
    ),
    "review-unproven": Code(
        "A status that claims a review has accepting votes on file.",
        "add the line to human_validation.jsonl, or use a status for unreviewed records",
    ),
    "review-differs": Code(
        "A review summary agrees with its record.",
        "correct the review, or copy the reviewed values into the record",
    ),
    "near-duplicate": Code("No two stories are nearly the same.", "remove one of the two", "warning"),
    "split-leak": Code(
        "No story or near-duplicate is in two splits.", "put both into one split, or remove one"
    ),
    "split-size": Code("Split sizes are near 70/15/10/5.", "assign the splits again in a new run", "warning"),
    "split-strata": Code(
        "Each narrative type and moral label is spread over the splits as the whole is.",
        "assign the splits again in a new run",
        "warning",
    ),
    "assignment": Code("assignments.jsonl and the records agree.", "build the run again"),
    "statistics": Code("statistics.json equals recomputation.", "pack the release again"),
    "moral-balance": Code("moral_balance_requirements.json equals recomputation.", "pack the release again"),
    "balance": Code("balance.json equals recomputation.", "build the run again"),
    "producer-missing": Code(
        "Every record of a release has a line that says who made its fields.", "pack the release again"
    ),
    "manifest": Code(
        "Records agree with run.json or release.json.", "build the run or pack the release again"
    ),
}

CODES: dict[str, Code] = {**_FILE, **_RECORD, **_SET}
"""Code -> its meaning, cure and level."""


_WORDS: dict[object, str] = {None: "null", True: "true", False: "false"}


def issue(code: str, where: str, path: str, message: str) -> Issue:
    """Return an issue with the cure and level of its code."""
    known = CODES[code]
    return Issue(where, path, code, message, known.cure, known.level)


def show(value: object, limit: int = 80) -> str:
    """Return a value as it appears in a message: on one line, quoted, cut, plain where it must be."""
    text = _WORDS.get(value, repr(value)) if value is None or isinstance(value, bool) else repr(value)
    # repr keeps printable characters and escapes the rest, lone surrogates and line ends included.
    return text if len(text) <= limit else f"{text[: limit - 4]}...{text[-1]}"


def label(value: object) -> str:
    """Return an id as a place names it: itself if it is plain and short, else as :func:`show` has it."""
    return value if isinstance(value, str) and value.isprintable() and len(value) <= 64 else show(value)


def rule_table(codes: Mapping[str, Code] = CODES) -> str:
    """Return codes as a Markdown table for the documentation."""
    rows = [f"| `{name}` | {code.level} | {code.meaning} | {code.cure} |" for name, code in codes.items()]
    return "\n".join(["| code | level | what must hold | what to do |", "|---|---|---|---|", *rows])
