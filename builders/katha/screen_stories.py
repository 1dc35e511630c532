"""Stage: turn away what cannot become a benchmark record (section C.3 and the ethics statement).

Every rejection quotes what it rests on. The rest is kept as checks. A cue that is found speaks against a
story; that none is found proves nothing, so such a check has no verdict (``passed`` is null), and neither
has one in a language without cue lists (they are English). Two more criteria of C.3 show only
while drafting: too few events for the scenes is ``draft_scenes`` / ``too_short``; no question or no
contrastive variant is ``write_questions`` / ``not_askable``, ``write_contrastives`` / ``not_contrastable``.

Fables hold wolves that eat lambs, kings that kill and thieves that hang. The list of harmful content is
therefore short: explicit sexual content, graphic torture, weapons of mass harm, calls for hate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ...schemas.base import Own
from ...schemas.canonical import Json
from ...schemas.ids import primary_language
from ...schemas.vocabulary import vocabulary
from ..text.words import word_count
from .rules.screening import event_share, moral_conflict, personal_data, quoted_cue


class Settings(Own):
    """Settings of the stage."""

    max_words: int = Field(default=25_000, ge=1, description="Words; characters in scripts without spaces.")
    min_event_share: float = Field(
        default=0.2, ge=0, le=1, description="Share of clauses that tell an event."
    )
    near_duplicates: Literal["reject", "keep"] = "reject"


CODES = {
    "too_long": "The story has more words than the setting max_words.",
    "rights_unresolved": "Its rights status does not allow release.",
    "near_duplicate": "It nearly equals another story of the run, which is kept.",
    "personal_data": "It holds an e-mail address, a telephone or identity number, or a postal address.",
    "harmful_content": "It holds explicit sexual content, graphic torture, mass harm or a call for hate.",
    "wordplay": "It depends on wordplay, which cannot be shown.",
    "external_knowledge": "It refers to knowledge outside its text.",
    "mainly_descriptive": "Few of its clauses tell an event.",
    "several_moral_targets": "It states more than one moral.",
}

SPEC = StageSpec(
    name="screen_stories",
    version=1,
    shape="map",
    reads=("story", "duplicate_of", "analysis"),
    writes=("screening",),
    reject_codes=CODES,
    settings=Settings,
)


@dataclass(frozen=True, slots=True)
class _Case:
    """What a criterion looks at."""

    story: Json
    duplicate_of: Json
    analysis: Json
    settings: Settings

    @property
    def text(self) -> str:
        return str(self.story["normalized_text"])

    @property
    def english(self) -> bool:
        return primary_language(self.story["language"]) == "en"


_Verdict = tuple[bool | None, str]
"""Whether the story passes (null: not judged), and the evidence."""

_NOT_JUDGED: _Verdict = (None, "not judged: there is no cue list for this language")
_NOT_RULED_OUT: _Verdict = (None, "no cue found; cue words alone cannot rule it out")


def run(item: Item, tools: Tools) -> Outcome:
    """Return the checks passed or not judged, or a rejection with the first criterion that fails."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    case = _Case(item["story"], item["duplicate_of"], item["analysis"], settings)
    checks = []
    for code, criterion in _CRITERIA.items():
        passed, note = criterion(case)
        if passed is False:
            return Rejected(code, note)
        checks.append({"code": f"screen_{code}", "path": "$.story_text", "passed": passed, "note": note})
    return Made({"screening": checks})


def _length(case: _Case) -> _Verdict:
    count = word_count(case.text)
    return count <= case.settings.max_words, f"{count} words; max_words is {case.settings.max_words}"


def _rights(case: _Case) -> _Verdict:
    status = case.story["rights_status"]
    return status in vocabulary("rights_status").having("releasable"), f"rights status {status!r}"


def _duplicate(case: _Case) -> _Verdict:
    found = case.duplicate_of
    if found is None:
        return True, "no near-duplicate in the run"
    note = f"{found['similarity']:.0%} like story {found['id']}"
    return case.settings.near_duplicates == "keep", note


def _personal(case: _Case) -> _Verdict:
    found = personal_data(case.text)
    return found is None, f"found {found}" if found else "no address or number of a person found"


def _cues(key: str, *more: str) -> Callable[[_Case], _Verdict]:
    def criterion(case: _Case) -> _Verdict:
        if not case.english:
            return _NOT_JUDGED
        found = next((quote for name in (key, *more) if (quote := quoted_cue(case.text, name))), None)
        return (False, f"found {found}") if found else _NOT_RULED_OUT

    return criterion


def _descriptive(case: _Case) -> _Verdict:
    if not case.english:
        return _NOT_JUDGED
    events, total, example = event_share(case.text, case.analysis)
    note = f"{events} of {total} clauses tell an event"
    passed = events >= case.settings.min_event_share * total
    return passed, note if passed else f"{note}; one that does not: {example!r}"


def _morals(case: _Case) -> _Verdict:
    if not case.english:
        return _NOT_JUDGED
    if case.story["moral_label"] is not None:
        return True, "one moral label given by the author"
    found = moral_conflict(case.text)
    return (False, f"found {found}") if found else _NOT_RULED_OUT


_CRITERIA: dict[str, Callable[[_Case], _Verdict]] = {
    "too_long": _length,
    "rights_unresolved": _rights,
    "near_duplicate": _duplicate,
    "personal_data": _personal,
    "harmful_content": _cues("sexual", "torture", "mass_harm", "abuse"),
    "wordplay": _cues("wordplay"),
    "external_knowledge": _cues("external_knowledge"),
    "mainly_descriptive": _descriptive,
    "several_moral_targets": _morals,
}
