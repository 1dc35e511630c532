"""Stage: the story of an episode in two to four sentences, from the actions of its shots."""

from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from ..replies import Problems
from ..step import PlannerSettings, Step
from .films import Episode, episode_of
from .names import joined
from .pictures import check_english, tidy
from .write_script import sheet_of

LONGEST_OVERVIEW = 160


def _rules(episode: Episode, settings: PlannerSettings) -> Json:
    """Return how many shots there are, where, and who is seen in how many."""
    places = [entity.name for entity in episode.entities if entity.kind == "location"]
    people = [entity for entity in episode.entities if entity.kind == "character"]
    count = len(episode.numbers)
    where = f" at {joined(places)}" if places else ""
    seen = [f"{entity.name} in {len(entity.shots)}" for entity in people]
    seen[:1] = [f"{person.name} is seen in {_shots(len(person.shots))}" for person in people[:1]]
    said = joined(seen) if people else "Nobody is seen"
    return f"This episode has {_shots(count)}{where}. {said}."


def _shots(count: int) -> str:
    return "1 shot" if count == 1 else f"{count} shots"


def _show(episode: Episode, settings: PlannerSettings) -> Json:
    return {
        "entities": [sheet_of(entity) for entity in episode.entities],
        "shots": [shot.action for shot in episode.script.shots],
    }


def read_overview(reply: Json) -> str:
    """Return the overview."""
    problems = Problems()
    check_english(reply, problems)
    text = tidy(reply["overview"])
    words = len(text.split())
    if not normalize_answer(text) or words > LONGEST_OVERVIEW:
        problems.add(f"the overview has {words} words; write two to four sentences")
    problems.settle()
    return text


STEP = Step(
    id="entities/write_overview",
    version=1,
    writes=("overview",),
    by="overview_by",
    reads=("entities", "written", "pictures"),
    sketch=episode_of,
    rules=_rules,
    show=_show,
    read=lambda reply, episode, settings: read_overview(reply),
)
