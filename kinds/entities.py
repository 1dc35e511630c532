"""EntityBench: episodes with registries of entities and schedules of shots, from raw video."""

from .kind import Judging, Kind, Marks, part

MARKS = Marks(("data/scripts/*.json", "scripts/*.json"), worded=("*.json", b'"entity_schedule"'))
EPISODES = Judging(
    "episodes",
    part("evaluation.entities.requests:PROTOCOL"),
    part("people.episodes:STUDY"),
    part("evaluation.entities.scoring:SCORING"),
    part("evaluation.entities.requests:EVALUATING"),
)
KIND = Kind(
    "entities",
    part("releases.entities.form:FORM"),
    part("builders.entities.building:DRAFTING"),
    (EPISODES,),
    ("import-entities",),
    rules=part("releases.entities.tree:RULES"),
    marks=MARKS,
)
