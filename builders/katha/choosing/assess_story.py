"""Stage: whether a story is fit for the benchmark (section C.3), and its labels (Tables 6 and 11).

The rules of ``screen_stories`` can only find cues that speak against a story. Where a model drafts, it judges
each exclusion and each condition of C.3 with a reason. ``unfit`` turns the story away, ``unsure`` leaves the
check without a verdict, which sends the record to people. Without a model nothing is judged here. The labels
of a person stand, then those of the story's author, then a model's, which come with the same reply.
"""

from collections.abc import Mapping

from ....schemas.canonical import Json
from ...replies import Problems, by_key, language, needed
from ...rows import NOT_APPLICABLE
from ...step import PlannerSettings, Step, Unfit
from ..drafts import LABELS, Sketch, given_label, make_check

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

CODES = {
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


STEP = Step(
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
    reject_codes=CODES,
    keep=dict.fromkeys(CODES, "another --model, or --set assess_story.planner=rules, which asks nobody"),
    spare=True,
)
