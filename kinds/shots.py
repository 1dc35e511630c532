"""ViStoryBench: bilingual shot scripts with characters and their reference images."""

from .kind import Judging, Kind, Marks, part

IMAGES = Judging(
    "images",
    part("evaluation.shots.requests:PROTOCOL"),
    part("people.shots:STUDY"),
    part("evaluation.shots.scoring:SCORING"),
    part("evaluation.shots.requests:EVALUATING"),
)
KIND = Kind(
    "shots",
    part("releases.shots.form:FORM"),
    part("builders.shots.building:DRAFTING"),
    (IMAGES,),
    ("import-shots",),
    rules=part("releases.shots.imports:RULES"),
    marks=Marks(("ViStory/*/story.json", "*/story.json")),
)
