"""Stage: turn away what cannot become a benchmark record (section C.3 and the ethics statement).

Every rejection quotes what it rests on. The rest is kept as checks. A cue that is found speaks against a
story; that none is found proves nothing, so such a check has no verdict (``passed`` is null), and neither
has one in a language without cue lists (they are English). Another criterion of C.3 shows only while
drafting: a story that the scenes cannot tell is ``draft_scenes`` / ``too_short`` or ``not_five_scenes``.
That rules ask and rewrite nothing says nothing about a story.

Fables hold wolves that eat lambs, kings that kill and thieves that hang. The list of harmful content is
therefore short: explicit sexual content, graphic torture, weapons of mass harm, calls for hate.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from ....engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from ....schemas.canonical import Json
from ....schemas.text import primary_language
from ....schemas.values import Own, vocabulary
from ...rows import NOT_APPLICABLE
from ...step import PlannerSettings, Problems, Step, Unfit, by_key, language, needed
from ...text.segments import Analysis, find_verb, lower_words, phrase_pattern, verb_kind, word_count
from ..drafts import LABELS, Sketch, given_label, make_check

_PERSONAL = {
    "an e-mail address": re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}", re.IGNORECASE),
    "a telephone number": re.compile(r"(?<![\w.])\+?\(?\d{2,4}\)?(?:[ .-]?\d{2,4}){2,4}(?![\w.]*\d)"),
    "an identity number": re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)|(?<!\d)\d{4} \d{4} \d{4}(?!\d)"),
    "a postal address": re.compile(
        r"(?<!\d)\d{1,5} (?:[A-Z][a-z]+ ){1,3}(?:Street|St\.|Avenue|Ave\.|Road|Rd\.|Lane|Boulevard|Blvd\.)"
    ),
}
_MIN_DIGITS = 9


def personal_data(text: str) -> str | None:
    """Return what kind of personal data the text holds, with a quotation, or None."""
    for kind, pattern in _PERSONAL.items():
        for match in pattern.finditer(text):
            if kind != "a telephone number" or sum(char.isdigit() for char in match[0]) >= _MIN_DIGITS:
                return f"{kind}: {_around(text, match)}"
    return None


def quoted_cue(text: str, key: str) -> str | None:
    """Return the first cue of an English list in its surroundings, or None."""
    match = phrase_pattern("screening", key).search(text)
    return None if match is None else _around(text, match)


def _around(text: str, match: re.Match[str], width: int = 40) -> str:
    start, end = max(0, match.start() - width), min(len(text), match.end() + width)
    return f'"{"..." if start else ""}{text[start:end]}{"..." if end < len(text) else ""}"'


def event_share(text: str, analysis: Json) -> tuple[int, int, str]:
    """Return how many clauses tell an event or speech, how many there are, and one that does not."""
    events, example = 0, ""
    segments = Analysis.from_json(analysis).segments
    for segment in segments:
        clause = text[segment.start : segment.end]
        words = lower_words(clause)
        verb = find_verb(words)
        # A coordinate clause may begin with its verb.
        kind = (
            verb_kind(words, verb)
            if verb is not None
            else ("event" if words[:1] and _past(words[0]) else None)
        )
        if kind in ("event", "speech"):
            events += 1
        elif not example:
            example = clause[:100]
    return events, len(segments), example


def _past(word: str) -> bool:
    return find_verb(["and", word]) is not None or word.endswith("ing")


def moral_conflict(text: str) -> str | None:
    """Return a quotation of two stated morals that differ, or None."""
    statements = phrase_pattern("screening", "moral_statements").finditer(text)
    stated = [text[match.end() : match.end() + 200].split(".", maxsplit=1)[0].strip() for match in statements]
    distinct = list(dict.fromkeys(statement.casefold() for statement in stated))
    if len(distinct) < 2:
        return None
    return f'{len(distinct)} stated morals: "{stated[0][:60]}", "{stated[-1][:60]}"'


class Settings(Own):
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

KEEP = {
    "too_long": "--set screen_stories.max_words=N",
    "rights_unresolved": "no option keeps it: its rights forbid a release",
    "near_duplicate": "--set screen_stories.near_duplicates=keep",
    "personal_data": "take it out of the text",
    "mainly_descriptive": "--set screen_stories.min_event_share=0",
    **dict.fromkeys(
        ("harmful_content", "wordplay", "external_knowledge", "several_moral_targets"),
        "no option keeps it: change its text where the quoted words mislead, or leave it out",
    ),
}

SPEC = StageSpec(
    name="screen_stories",
    version=3,
    shape="map",
    reads=("story", "duplicate_of", "analysis"),
    writes=("screening",),
    reject_codes=CODES,
    keep=KEEP,
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
    settings = tools.own(Settings)
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
    allowed = status in vocabulary("rights_status").having("releasable")
    if status == "unresolved":  # it may be drafted; releases leave it out
        return None, "nobody has said its rights; releases leave it out until somebody does"
    return allowed, f"rights status {status!r}"


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


# -- Stage: whether a story is fit for the benchmark (section C.3), and its labels (Tables 6 and 11)
#
# The rules of ``screen_stories`` can only find cues that speak against a story. Where a model drafts, it
# judges each exclusion and each condition of C.3 with a reason. ``unfit`` turns the story away, ``unsure``
# leaves the check without a verdict, which sends the record to people. Without a model nothing is judged
# here. The labels of a person stand, then those of the story's author, then a model's, which come with the
# same reply.

CRITERIA: Mapping[str, str] = {
    "events": "mainly_descriptive",
    "no_wordplay": "wordplay",
    "self_contained": "external_knowledge",
    "one_moral": "several_moral_targets",
    "harmless": "harmful_content",
    "five_scenes": "not_five_scenes",
    "four_transitions": "too_few_transitions",
    "askable": "not_askable",
    "contrastable": "not_contrastable",
}
"""Criterion of the prompt -> the code under which a story that does not meet it is turned away."""

ASSESSED = {
    "mainly_descriptive": "The model finds that it mainly describes.",
    "wordplay": "The model finds that its point is in words that cannot be shown.",
    "external_knowledge": "The model finds that it cannot be understood from its text alone.",
    "several_moral_targets": "The model finds several morals equally plausible.",
    "harmful_content": "The model finds harmful content.",
    "not_five_scenes": "The model finds that five pictures cannot tell it.",
    "too_few_transitions": "The model finds fewer than four changes that matter.",
    "not_askable": "The model finds nothing that can be asked and settled by the text.",
    "not_contrastable": "The model finds no scene that could be told differently.",
}


def _show(sketch: Sketch, settings: PlannerSettings) -> Json:
    story = sketch.story
    return {"language": language(story), "story": story["normalized_text"], "title": story["title"]}


def _read(reply: Json, sketch: Sketch, settings: PlannerSettings) -> Json:
    """Return the checks of a reply, one for each criterion, and its labels; an unsure check has no verdict.

    The turning point, which the model states first in order to choose well, is not kept.
    """
    problems, checks = Problems(), []
    for entry in by_key(reply["criteria"], "criterion", list(CRITERIA), "criteria"):
        reason = needed(entry, "reason", entry["criterion"], problems)
        passed = {"fit": True, "unfit": False}.get(entry["verdict"])
        said = reason if passed is not None else f"not settled, a person decides: {reason}"
        checks.append(make_check(f"screen_{CRITERIA[entry['criterion']]}", "$.story_text", passed, said))
    if (reply["morals"] == "one") != (reply["moral_label"] is not None):
        problems.add("moral_label must be a value of the list where morals is one, and null where it is not")
    problems.settle()
    moral = NOT_APPLICABLE if reply["morals"] == "none" else None
    return {"assessment": checks, **{name: reply[name] for name in LABELS}, "moral": moral}


def _settle(drafted: Json, sketch: Sketch, settings: PlannerSettings) -> Json:
    made = drafted or {"assessment": [], "moral": None}
    for check in made["assessment"]:
        if check["passed"] is False:
            raise Unfit(str(check["code"]).removeprefix("screen_"), str(check["note"]))
    known = {name: given_label(sketch.given, name) or sketch.story[name] for name in LABELS}
    if sketch.story.get("moral") is not None:  # its author says that it has none
        made = {**made, "moral_label": None, "moral": NOT_APPLICABLE}
    labels = {name: label or made.get(name) for name, label in known.items()}
    moral = made["moral"] if labels["moral_label"] is None else None
    return {"assessment": made["assessment"], **labels, "moral": moral}


ASSESS_STORY = Step(
    id="katha/assess_story",
    version=4,
    writes=("assessment", *LABELS, "moral"),
    by="labels_by",
    reads=("story", "given"),
    sketch=Sketch.of,
    rules=lambda sketch, settings: None,
    show=_show,
    read=_read,
    settle=_settle,
    reject_codes=ASSESSED,
    keep=dict.fromkeys(ASSESSED, "another --model, or --set assess_story.planner=rules, which asks nobody"),
    spare=True,
)
