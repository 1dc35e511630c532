"""The check that what a model drafted is in the language of its story, languages of one script included.

The script is checked as a reply is read. Here a detector of languages (py3langid, BSD-3-Clause) reads each
list of a draft and the story; what counts is what it says of the story, not the tag that the story bears.
A list is judged only where it is sure of both, and it fails only where neither language is among the likely
ones of the other text: Danish is not told from Norwegian.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ....schemas.canonical import Json
from ...replies import texts_in
from ..drafts import make_check, maker_of

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

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


def detected(text: str) -> tuple[str, ...] | None:
    """Return the likely languages of a text, the likeliest first; None of one that is short or unclear."""
    letters = [char for char in text if char.isalpha()]
    wide = sum(char >= "\u0e00" for char in letters)
    if len(letters) < (LEAST_SIGNS if wide * 2 > len(letters) else LEAST_LETTERS):
        return None
    ranked = _detector().rank(text)[:LIKELY]
    if sum(float(probability) for _, probability in ranked) < SURE:
        return None
    return tuple(str(language) for language, _ in ranked)


@lru_cache(maxsize=1)
def _detector() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


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
