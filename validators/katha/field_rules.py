"""Rules about provenance, rights, review and completeness of a record.

Rules about ids, languages and word lists.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from ...schemas.canonical import Json, digest
from ...schemas.katha import StoryRecord
from ...schemas.paths import parse_path
from ...schemas.text import is_language_tag, is_part_id, is_story_id
from ...schemas.values import Issue, vocabulary
from ..report import issue, show
from ..view import Story

REQUIRED_RECORD = ("narrative_type", "moral_label")
REQUIRED_SCENE = ("action", "state", "generation_prompt")
REQUIRED_TRANSITION = ("transition_type", "action", "consequence", "expected_change", "recoverability_target")
REQUIRED_QUESTION = ("required_evidence",)
REQUIRED_VARIANT = ("subset", "narrative_type")
"""Fields that the paper's Tables 6-8, 11, 13 and 15 call strings without saying that they are optional.

Of ``causality`` null says that the text tells no cause, as it does of many a transition.
"""


def check_hashes(story: Story) -> Iterator[Issue]:
    """Check that the three provenance hashes are those of the record as it stands."""
    whole = story.readable(["variants"])
    try:
        expected = record_hashes(story.record, [variant.data for variant in story.variants if whole])
    except ValueError as error:
        yield issue("text-encoding", story.where, "$", f"the record has no canonical form: {error}")
        return
    if not whole:
        del expected["source_contrastives_sha256"]
    for name, value in expected.items():
        found = story.record["provenance"][name]
        if found != value:
            message = f"expected {show(value[:12])}..., found {show(found[:12])}..."
            yield issue("hash", story.where, f"$.provenance.{name}", message)


def check_rights(story: Story) -> Iterator[Issue]:
    """Check that the rights allow release and that a licence is named; in a run, packing may name it."""
    provenance = story.record["provenance"]
    status = provenance["source_rights_status"]
    if status not in _having("rights_status", "releasable"):
        allowed = ", ".join(sorted(_having("rights_status", "releasable")))
        message = f"expected one of {allowed}, found {show(status)}"
        yield issue("rights", story.where, "$.provenance.source_rights_status", message)
    stated = provenance["dataset_license"]
    if not (story.bundle if stated is None else stated.strip()):
        yield issue("license", story.where, "$.provenance.dataset_license", "no licence is named")


PUBLIC_DOMAIN = "public_domain_or_rights_compatible"
FREE_BEFORE = 1931
"""A copyright of this year or later may still hold: in the United States it lasts 95 years (17 U.S.C. 302 to
304), so that in 2026 what was published before is free. Elsewhere it may hold for longer."""
_YEAR = r"(?:1[5-9]|20)\d\d"
_YEARS = rf"(?P<years>{_YEAR}(?:(?:\s*[,;&\u2013-]|\s+(?:and|to|renewed))+\s*{_YEAR})*)"
NAMES = r"[A-Z][\w.&'’-]*(?: [A-Z&][\w.&'’-]*)*"
NOTICES: Mapping[str, re.Pattern[str]] = {
    "a notice of copyright": re.compile(
        rf"(?:(?:\bcopyright\b|©)[^\n]{{0,60}}?|\(c\)\s*)\b{_YEARS}\b", re.IGNORECASE
    ),
    "a reservation of rights": re.compile(r"\ball rights reserved\b", re.IGNORECASE),
    "an ISBN": re.compile(r"\bISBN(?:-?1[03])?[:\s]*(?:97[89][- ]?)?\d[\d -]{7,15}[\dX]\b"),
    "a publisher with a year": re.compile(
        rf"\b{NAMES} (?:Press|Publishers?|Publishing|Verlag|Books)\b[^.\n]{{0,40}}?\b{_YEARS}\b"
    ),
    "a statement of publication": re.compile(
        rf"\b(?:first )?published (?:in|by)\b[^.\n]{{0,80}}?\b{_YEARS}\b", re.IGNORECASE
    ),
}
"""What is found -> how. Where there are years, only one from :data:`FREE_BEFORE` on speaks against it."""


def check_notices(story: Story) -> Iterator[Issue]:
    """Check that a text that is said to be in the public domain holds no notice of somebody's rights."""
    if story.record["provenance"]["source_rights_status"] != PUBLIC_DOMAIN:
        return
    text, quoted = story.record["source_text"], set()
    for kind, pattern in NOTICES.items():
        for match in pattern.finditer(text):
            found = _sentence(text, match)
            years = re.findall(_YEAR, match.groupdict().get("years") or str(FREE_BEFORE))
            if found not in quoted and int(max(years)) >= FREE_BEFORE:
                quoted.add(found)
                message = f"said to be in the public domain, but it holds {kind}: {show(found)}"
                yield issue("rights-notice", story.where, "$.source_text", message)


_END = re.compile(r"(?<=\w\w)[.!?](?=\s|$)|\n|$")


def _sentence(text: str, match: re.Match[str], most: int = 80) -> str:
    """Return the sentence or line of a finding, with at most so many characters before and behind it."""
    before = text[max(0, match.start() - most) : match.start()]
    start = max((end.end() for end in _END.finditer(before) if end[0]), default=0)
    behind = text[match.end() : match.end() + most]
    end = _END.search(behind)
    return (before[start:] + match[0] + behind[: len(behind) if end is None else end.end()]).strip()


def check_review(story: Story) -> Iterator[Issue]:
    """Check that the two status fields tell the same about the review (A.7, D.7)."""
    status, evidence = story.record["validation_status"], story.record["evidence_status"]
    reviewed = status in _having("validation_status", "reviewed")
    resolved = evidence["resolution"] in _having("resolution", "reviewed")
    if reviewed != resolved:
        message = f"validation_status is {show(status)}, but resolution is {show(evidence['resolution'])}"
        yield issue("review-mismatch", story.where, "$.evidence_status.resolution", message)
    if evidence["human_evidence_accepted"] and not resolved:
        message = f"accepted by people, but resolution is {show(evidence['resolution'])}"
        yield issue("review-mismatch", story.where, "$.evidence_status.human_evidence_accepted", message)


@cache
def _having(name: str, attribute: str) -> frozenset[str]:
    return frozenset(vocabulary(name).having(attribute))


def names_judges(checks: Sequence[Mapping[str, Json]]) -> bool:
    """Return whether checks say who judged; those of earlier versions do not, and lack what nobody made."""
    return any("producer" in check for check in checks)


def is_settled(check: Mapping[str, Json]) -> bool:
    """Return whether a check allows ``auto_checked``: it passed.

    Runs of earlier versions, whose checks name no producer, let screening without a verdict pass.
    """
    earlier = "producer" not in check and str(check["code"]).startswith("screen_")
    return check["passed"] is True or (check["passed"] is None and earlier)


def check_bundle(story: Story) -> Iterator[Issue]:
    """Check what a run keeps beside a record: checks against the status, producers against paths."""
    status = story.record["validation_status"]
    for position, check in enumerate(story.bundle.get("checks", ())):
        if status == "auto_checked" and not is_settled(check):
            outcome = "could not judge" if check["passed"] is None else "failed"
            message = f"the record is marked auto_checked, but the check {show(check['code'])} {outcome}"
            yield issue("check-mismatch", story.where, f"$.checks[{position}]", message)
    for position, entry in enumerate(story.bundle.get("producers", ())):
        if not producer_path_fits(entry["path"]):
            message = f"{show(entry['path'])} names no field of a record"
            yield issue("producer-path", story.where, f"$.producers[{position}].path", message)


def producer_path_fits(path: str) -> bool:
    """Return whether a producer's path, ``[*]`` standing for every element, begins at a field of a record."""
    try:
        steps = parse_path(path.replace("[*]", "[0]"))
    except ValueError:
        return False
    return bool(steps) and (steps[0] in StoryRecord.model_fields or steps[0] == "variants")


def check_complete(story: Story) -> Iterator[Issue]:
    """Report a record that lacks strings which a release requires."""
    whole = story.readable(["variants"])
    missing = missing_fields(story.record, [variant.data for variant in story.variants if whole])
    if missing:
        message = f"missing: {', '.join(_by_field(missing, story.record, len(story.variants)))}"
        yield issue("incomplete", story.where, "$", message)


def _by_field(missing: Sequence[str], record: Mapping[str, Json], variants: int) -> list[str]:
    """Return paths as one for each field, with the numbers of its elements, ``*`` where it lacks in all."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for path in missing:
        name, _, rest = path.partition("[")
        number, _, field = rest.rpartition("]")
        numbers.setdefault((name, field), []).extend(filter(None, [number]))
    sizes = {**{f"$.{name}": len(record[name]) for name in ("scenes", "transitions", "questions")},
             "$.variants": variants}  # fmt: skip
    return [
        f"{name}[{'*' if len(which) == sizes[name] else ','.join(which)}]{field}" if which else name
        for (name, field), which in numbers.items()
    ]


def incomplete_reason(record: Mapping[str, Json], variants: Sequence[Mapping[str, Json]]) -> str | None:
    """Return in a few words what a record still lacks before it can be released, or ``None`` if nothing."""
    missing = missing_fields(record, variants)
    if not missing:
        return None
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    return f"missing: {', '.join(missing[:4])}{more}"


def missing_fields(record: Mapping[str, Json], variants: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return the path of every field that a record still lacks before it can be released.

    Required are the strings that the paper's tables list without calling them optional; null and blank
    both count as missing.
    """
    required = [name for name in REQUIRED_RECORD if name != "moral_label" or record.get("moral") is None]
    return [
        *_missing("$", record, required),
        *_missing_in("scenes", record["scenes"], REQUIRED_SCENE),
        *_missing_in("transitions", record["transitions"], REQUIRED_TRANSITION),
        *_missing_in("questions", record["questions"], REQUIRED_QUESTION),
        *_missing_in("variants", variants, REQUIRED_VARIANT),
    ]


def _missing_in(name: str, parts: Sequence[Mapping[str, Json]], required: Sequence[str]) -> Iterator[str]:
    for position, part in enumerate(parts):
        yield from _missing(f"$.{name}[{position}]", part, required)


def _missing(path: str, part: Mapping[str, Json], required: Sequence[str]) -> Iterator[str]:
    for name in required:
        value = part[name]
        if value is None or not value.strip():
            yield f"{path}.{name}"


def record_hashes(record: Mapping[str, Json], variants: Sequence[Mapping[str, Json]]) -> dict[str, str]:
    """Return the provenance hashes of a record, as SHA-256 of canonical JSON (64 hexadecimal digits).

    Returned: ``source_prompt_hash``: id, language and source text, which stay as they were handed in.
    ``source_annotations_sha256``: title, scenes, transitions and questions, which may be corrected. (The
    record does not keep the title that was handed in, so that it cannot be part of the former.)
    ``source_contrastives_sha256``: the variants, sorted by ``variant_id``.
    """
    prompt = {
        "id": record["story_id"],
        "language": record["language"],
        "text": record["source_text"],
    }
    annotations = {name: record[name] for name in ("title", "scenes", "transitions", "questions")}
    contrastives = sorted(variants, key=lambda variant: str(variant["variant_id"]))
    return {
        "source_prompt_hash": digest(prompt),
        "source_annotations_sha256": digest(annotations),
        "source_contrastives_sha256": digest(contrastives),
    }


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
        for position, question in enumerate(variant.data.get("questions") or ()):
            path = f"$.questions[{position}]"
            yield from check_id(variant.where, f"{path}.question_id", question["question_id"])
            if question["story_id"] != variant.data["variant_id"]:
                message = f"expected {show(variant.data['variant_id'])}, found {show(question['story_id'])}"
                yield issue("story-reference", variant.where, f"{path}.story_id", message)


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
        for position, question in enumerate(variant.data.get("questions") or ()):
            yield from check_values(variant.where, f"$.questions[{position}]", question, QUESTION_WORDS)


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
