"""StoryEval: suites of event prompts."""

from .kind import Judging, Kind, Marks, part

MARKS = Marks(("prompts.jsonl",), suffix=".json")
VIDEOS = Judging(
    "events",
    part("evaluation.events.requests:PROTOCOL"),
    part("people.events:STUDY"),
    part("evaluation.events.score:SCORING"),
    part("evaluation.events.requests:EVALUATING"),
)
KIND = Kind(
    "events",
    part("releases.events.form:FORM"),
    part("builders.events.building:DRAFTING"),
    (VIDEOS,),
    rules=part("releases.events.form:RULES"),
    marks=MARKS,
)
