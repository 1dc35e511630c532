"""Episodes of a film: the windows of shots that become one, and the record of each in the official form."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, prod
from typing import Annotated

from pydantic import Field, field_validator

from ...engine.stage import Child, Item, Made, Outcome, Rejected, Tools, stage
from ...schemas.canonical import Json
from ...schemas.entities import ALL, EntityEpisode, EpisodeRecord, shot_key
from ...schemas.values import Check, Own
from ...validators.entities.set_rules import check_episode
from ...validators.entities.view import view_of
from .list_entities import Identities
from .names import Entity, Repair, Script, ScriptShot, in_order, slots_of, within
from .pictures import Views
from .windows import (
    RELEASED,
    UNITS,
    Bounds,
    Load,
    ShotSlots,
    Traits,
    Weights,
    Window,
    choose_windows,
    lengths_of,
    load_of,
    problem_of,
    score_of,
    tier_of,
    traits_of,
)

# -- Stage: the windows of shots of a video that become episodes, by what they ask of a memory
#
# Every run of kept shots whose length a tier has is scored; those are chosen that share no shot and whose
# scores, each times its number of shots, add up to most. By default a video gives at most 4 easy, 2 medium
# and 1 hard episodes, in the proportion of the release: without a limit all of a long video would become
# long episodes.

MOST: Mapping[str, int] = {"easy": 4, "medium": 2, "hard": 1}
"""Episodes of each tier that a video gives at most, as the release has them in proportion: 80, 40 and 20."""
COMBINATIONS = 200
"""Combinations of numbers of episodes by tier that are looked at; with the default there are 5 * 3 * 2."""
_Count = Annotated[int, Field(ge=0, lt=COMBINATIONS)]


class WindowSettings(Own):
    tiers: dict[str, Bounds] = Field(
        default=dict(RELEASED),
        description="Tier -> fewest and most shots. Default: as released. The paper's text has easy 8-12.",
    )
    weights: Weights = Field(default=Weights(), description="How much each part of the score counts.")
    least_score: float = Field(default=0.0, ge=0, le=1, description="Windows below it are not taken.")
    most: dict[str, _Count] | Annotated[int, Field(ge=1, lt=COMBINATIONS)] | None = Field(
        default=dict(MOST),
        description="Episodes of a video at most: tier -> number, of a tier that is not named any; or"
        " one number for all tiers together. Null or {}: any number.",
    )
    hole: int = Field(
        default=3, ge=0, description="Shots left out in a row that a window may span; the release has 0 to 3."
    )

    @field_validator("tiers")
    @classmethod
    def _tiers_can_be_told_apart(cls, tiers: dict[str, Bounds]) -> dict[str, Bounds]:
        problem = problem_of(tiers)
        if problem is not None:
            raise ValueError(problem)
        return tiers

    @field_validator("most")
    @classmethod
    def _choice_ends(cls, most: dict[str, int] | int | None) -> dict[str, int] | int | None:
        count = prod(limit + 1 for limit in most.values()) if isinstance(most, dict) else 0
        if count > COMBINATIONS:
            raise ValueError(
                f"the numbers, each plus one, multiply to {count}, expected at most {COMBINATIONS}; give"
                " smaller ones, or leave out tiers of which there may be any number"
            )
        return most

    def group_of(self, length: int) -> str:
        """Return the name under which windows of so many shots are counted against ``most``."""
        return str(tier_of(length, self.tiers)) if isinstance(self.most, dict) else ""

    @property
    def limits(self) -> dict[str, int]:
        """Name under which windows are counted -> how many may be taken."""
        if isinstance(self.most, dict):
            return self.most
        return {} if self.most is None else {"": self.most}


class Place(Own):
    """A window that was chosen, the field ``window``."""

    video_id: str  # of which video
    file: str  # name of its file
    numbers: tuple[int, ...]  # of its shots, in the video
    shot_ids: tuple[str, ...]  # the same as ids
    start: int  # place of its first shot among the kept ones, from 0
    tier: str  # by its length
    score: float  # 0 to 1
    traits: Traits  # what the score is made of, and more
    load: Load  # what it asks of a memory


@stage(
    version=2,
    shape="expand",
    reads=(
        "video",
        "shots",
        "cast",
        "consolidation",
        "views",
        "local_registries",
        "identities",
        "draft",
        "listed_by",
        "merged_by",
        "draft_by",
    ),
    writes=("window", "entities", "written", "pictures", "origin"),
    reject_codes={
        "too_short": "The video has fewer kept shots in a row than the smallest tier asks for.",
        "low_score": "No window scores more than nothing, or as much as least_score asks for.",
    },
    keep={
        "too_short": "--set plan_windows.tiers=... with a smaller tier",
        "low_score": "--set plan_windows.least_score=0",
    },
    settings=WindowSettings,
)
def plan_windows(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield a child for each window that is chosen; one that is rejected where there is none."""
    settings = tools.own(WindowSettings)
    film = _Film.of(item)
    windows, longest = windows_of([shot["number"] for shot in film.shots], film.slots, settings)
    chosen = choose_windows(windows, settings.limits)
    if not chosen:
        least = lengths_of(settings.tiers)[0]
        yield Child(_id_of(item["video"], film.shots), _why_none(longest, least, settings))
    for window in chosen:
        yield _child(item, film, window, settings)


@dataclass(frozen=True, slots=True)
class _Film:
    """A video as its windows share it."""

    shots: Sequence[Json]
    script: Script
    identities: Identities
    views: Views
    slots: Sequence[ShotSlots]

    @classmethod
    def of(cls, item: Item) -> "_Film":
        script = Script.model_validate(item["draft"])
        identities = Identities.model_validate(item["identities"])
        return cls(
            [entry["shot"] for entry in item["shots"]],
            script,
            identities,
            Views.model_validate(item["views"]),
            slots_of(script, identities.entities),
        )


def windows_of(
    numbers: Sequence[int], slots: Sequence[ShotSlots], settings: WindowSettings
) -> tuple[list[Window], int]:
    """Return all windows that may be chosen, and how long the longest run without a large hole is.

    ``numbers``: of the shots in their video, ascending.
    """
    holes = [0, *(b - a - 1 > settings.hole for a, b in pairwise(numbers))]
    # run[place]: shots in the run that a place begins, up to the next large hole.
    run = [0] * (len(numbers) + 1)
    for index in range(len(numbers) - 1, -1, -1):
        after = index + 1
        run[index] = 1 + (run[after] if after < len(numbers) and not holes[after] else 0)
    least = round(settings.least_score * UNITS)
    windows = []
    for start in range(len(numbers)):
        for length in lengths_of(settings.tiers):
            if length <= run[start]:
                score = score_of(slots[start : start + length], settings.weights)
                if score >= least:
                    windows.append(Window(start, length, score * length, settings.group_of(length)))
    return windows, max(run)


def _why_none(longest: int, least: int, settings: WindowSettings) -> Rejected:
    if longest < least:
        smaller = f" --set 'plan_windows.tiers={{easy = [{longest}, {least}]}}'" if longest > 1 else ""
        return Rejected(
            "too_short",
            f"{longest} kept shots in a row, and the smallest tier takes {least}; take a longer video, or"
            f" keep more of its shots, see funnel.json{smaller and ', or give smaller tiers:'}{smaller}",
        )
    return Rejected(
        "low_score",
        f"no window scores above {settings.least_score:g}; nobody and nothing is seen again in it",
    )


def _child(item: Item, film: _Film, window: Window, settings: WindowSettings) -> Child:
    part = slice(window.start, window.stop)
    shots, slots, identities = film.shots[part], film.slots[part], film.identities
    numbers = tuple(shot["number"] for shot in shots)
    entities, labels = in_order(within(entity, numbers) for entity in identities.entities)
    position = Place(
        video_id=item["video"]["video_id"],
        file=item["video"]["file"].replace("\\", "/").rpartition("/")[2],
        numbers=numbers,
        shot_ids=tuple(shot["shot_id"] for shot in shots),
        start=window.start,
        tier=str(tier_of(window.length, settings.tiers)),
        score=round(window.value / window.length / UNITS, 6),
        traits=traits_of(slots),
        load=load_of(slots),
    )
    people = [person for entity in entities for person in entity.persons]
    fields: Mapping[str, Json] = {
        "window": position.as_json(),
        "entities": [entity.as_json() for entity in entities],
        "written": _part(film.script, part, labels).as_json(),
        "pictures": film.views.part(numbers, people).as_json(),
        "origin": {
            "makers": {name: item[name] for name in ("listed_by", "merged_by", "draft_by")},
            "members": {labels[old]: list(ids) for old, ids in identities.members.items() if old in labels},
            "merges": _merges(item, identities, people),
            "repairs": [repair.as_json() for repair in _repairs(item, identities, set(numbers), labels)],
        },
    }
    return Child(_id_of(item["video"], shots), Made(fields))


def _part(script: Script, part: slice, labels: Mapping[str, str]) -> Script:
    """Return the shots of a window, its scenes numbered from 1; it begins anew."""
    shots: list[ScriptShot] = []
    scene = 0
    before = None
    for shot in script.shots[part]:
        begins = shot.scene != before
        before = shot.scene
        scene += begins
        shots.append(shot.model_copy(update={"scene": scene, "cut": shot.cut or begins}))
    kept = {shot.number for shot in shots}
    repairs = tuple(
        repair.model_copy(update={"entity": labels.get(repair.entity or "")})
        for repair in script.repairs
        if repair.shot in kept
    )
    return Script(overview="", shots=tuple(shots), repairs=repairs)


def _merges(item: Item, identities: Identities, people: Sequence[str]) -> list[Json]:
    """Return what made the people of a window one, and what was refused, by whomever."""
    own = frozenset(people)
    by_cast = [merge for person in item["cast"] if person["person_id"] in own for merge in person["merges"]]
    by_names = [merge.as_json() for merge in identities.merges if {merge.one, merge.other} & own]
    refused = [merge for merge in item["consolidation"]["refused"] if {merge["one"], merge["other"]} & own]
    return [*by_cast, *refused, *by_names]


def _repairs(
    item: Item, identities: Identities, numbers: set[int], labels: Mapping[str, str]
) -> Iterator[Repair]:
    """Yield what was repaired in the registries as far as it is about a window."""
    for registry in item["local_registries"]:
        for entry in registry["repairs"]:
            repair = Repair.model_validate(entry)
            if repair.shot in numbers or (repair.shot is None and numbers & set(registry["shots"])):
                yield repair
    for repair in identities.repairs:
        whole = repair.shot is None and (repair.entity is None or repair.entity in labels)
        if whole or repair.shot in numbers:
            yield repair.model_copy(update={"entity": labels.get(repair.entity or "")})


def _id_of(video: Json, shots: Sequence[Json]) -> str:
    """Return the id of an episode in the form of the release: video, first and last shot from 0, seconds."""
    if not shots:
        return f"{video['video_id']}__i0_j0__T0"
    first, last = shots[0], shots[-1]
    seconds = ceil(last["end"] - first["start"])
    return f"{video['video_id']}__i{first['number'] - 1}_j{last['number'] - 1}__T{seconds}"


# -- Stage: the episode in the official form, what is known beyond it, who made what, and findings

SPLIT = "split_ids"
"""Name of the split file that the builder writes."""

LISTS = (("character", "characters"), ("location", "places"), ("object", "objects"))


@stage(
    version=1,
    reads=(
        "window",
        "origin",
        "entities",
        "overview",
        "script",
        "registry",
        "overview_by",
        "described_by",
        "enriched_by",
        "verified_by",
    ),
    writes=("record",),
)
def assemble_episodes(item: Item, tools: Tools) -> Outcome:
    """Return the record: the line of ``episodes.jsonl``, window, identities, repairs and findings."""
    script = Script.model_validate(item["script"])
    registry = [Entity.model_validate(entity) for entity in item["registry"]]
    entry = episode_entry(item.id, str(item["overview"]), script, registry)
    window = Place.model_validate(item["window"])
    entry["_window_shot_ids"] = [f"{item.id}__shot{number:04d}" for number in window.numbers]
    slots = slots_of(script, registry)
    window = window.model_copy(update={"traits": traits_of(slots), "load": load_of(slots)})
    repairs = [*_planned(item, registry), *script.repairs]
    keys = {number: key for number, key, _ in _keyed(script)}
    episode = EpisodeRecord(
        episode_id=item.id,
        tiers={SPLIT: tuple(sorted((ALL, window.tier)))},
        entry=EntityEpisode.model_validate(_ordered(entry)),
        source=window.file,
        producers=_producers(item),
        checks=tuple(_check(repair, keys) for repair in repairs),
    )
    issues = check_episode(view_of(item.id, episode.entry), f"scripts/{item.id}.json")
    return Made(
        {
            "record": {
                "episode": episode.as_json(),
                # Stored objects are sorted by key, and in these the order says something.
                "order": {name: list(entry[name]) for name in _KEYED},
                "window": window.as_json(),
                "members": _members(item, registry),
                "aliases": {entity.label: list(entity.aliases) for entity in registry},
                "merges": item["origin"]["merges"],
                "repairs": [repair.as_json() for repair in repairs],
                "findings": [
                    {"path": issue.path, "code": issue.code, "level": issue.level, "note": issue.message}
                    for issue in issues
                ],
            }
        }
    )


_KEYED = ("entity_schedule", "entity_descriptions", "_name_map")


def episode_entry(name: str, overview: str, script: Script, registry: Sequence[Entity]) -> dict[str, Json]:
    """Return an episode in the official form, without the ids of its shots.

    The prompt of a shot is its action, after a line ``<name>: <description>`` for each entity that no shot
    before schedules, and a blank line.
    """
    scenes: dict[int, dict[str, Json]] = {}
    schedule: dict[str, Json] = {}
    known: set[str] = set()
    for number, key, shot in _keyed(script):
        scene = scenes.setdefault(
            shot.scene,
            {"scene_num": shot.scene, "video_prompts": [], "cut": [], "action_descriptions": []},
        )
        shown = [entity for entity in registry if number in entity.shots]
        new = [entity for entity in shown if entity.label not in known]
        known.update(entity.label for entity in new)
        header = "".join(f"{entity.name}: {entity.description}\n" for entity in new)
        scene["video_prompts"].append(f"{header}\n{shot.action}" if header else shot.action)
        scene["cut"].append(shot.cut)
        scene["action_descriptions"].append(shot.action)
        schedule[key] = {
            plural: [entity.name for entity in shown if entity.kind == kind] for kind, plural in LISTS
        }
    return {
        "story_name": name,
        "story_overview": overview,
        "scenes": list(scenes.values()),
        "entity_schedule": schedule,
        "entity_descriptions": {
            entity.label: {"name": entity.name, "label": entity.label, "description": entity.description}
            for entity in registry
        },
        "_window_shot_ids": [],
        "_num_scenes": len(scenes),
        "_num_shots": len(script.shots),
        "_name_map": {entity.label: entity.name for entity in registry},
    }


def in_official_order(record: Json) -> EntityEpisode:
    """Return the episode of a record with schedule, registry and map of names in their order."""
    entry = record["episode"]["entry"]
    kept = {name: {key: entry[name][key] for key in keys} for name, keys in record["order"].items()}
    return EntityEpisode.model_validate(_ordered({**entry, **kept}))


def _ordered(entry: Mapping[str, Json]) -> dict[str, Json]:
    """Return an entry with its keys as the official files have them."""
    scene = ("scene_num", "video_prompts", "cut", "action_descriptions")
    names = ("story_name", "story_overview", "scenes", "entity_schedule", "entity_descriptions",
             "_window_shot_ids", "_num_scenes", "_num_shots", "_name_map")  # fmt: skip
    made = {name: entry[name] for name in names}
    made["scenes"] = [{name: lists[name] for name in scene} for lists in made["scenes"]]
    made["entity_schedule"] = {
        key: {plural: shot[plural] for _, plural in LISTS} for key, shot in made["entity_schedule"].items()
    }
    made["entity_descriptions"] = {
        label: {name: entity[name] for name in ("name", "label", "description")}
        for label, entity in made["entity_descriptions"].items()
    }
    return made


def _keyed(script: Script) -> Iterator[tuple[int, str, ScriptShot]]:
    counts: dict[int, int] = {}
    for shot in script.shots:
        counts[shot.scene] = counts.get(shot.scene, 0) + 1
        yield shot.number, shot_key(shot.scene, counts[shot.scene]), shot


def _planned(item: Item, registry: Sequence[Entity]) -> Iterator[Repair]:
    """Yield what was repaired before the window was cut out, with the labels that entities have now."""
    names = {entity["label"]: entity["name"] for entity in item["entities"]}
    labels = {entity.name: entity.label for entity in registry}
    for entry in item["origin"]["repairs"]:
        repair = Repair.model_validate(entry)
        yield repair.model_copy(update={"entity": labels.get(names.get(repair.entity or "", ""))})


def _members(item: Item, registry: Sequence[Entity]) -> dict[str, Json]:
    """Return label -> what the entity was made of: ids of persons, or of local entities."""
    names = {entity["label"]: entity["name"] for entity in item["entities"]}
    by_name = {names[label]: ids for label, ids in item["origin"]["members"].items()}
    return {entity.label: by_name.get(entity.name, []) for entity in registry}


def _check(repair: Repair, keys: Mapping[int, str]) -> Check:
    key = keys.get(repair.shot) if repair.shot is not None else None
    path = "$" if key is None else f"$.entity_schedule['{key}']"
    return Check(code=repair.code, path=path, passed=repair.done != "left", note=_note(repair))


def _note(repair: Repair) -> str:
    return f"{repair.found} ({repair.done})"


def _producers(item: Item) -> dict[str, str]:
    """Return part of the entry -> who made it; where several had a hand in it, all of them in order."""
    makers = {**item["origin"]["makers"], **{name: item[name] for name in _LATER}}

    def by(*names: str) -> str:
        each = (maker for name in names for maker in str(makers[name]).split("; "))
        return "; ".join(dict.fromkeys(each))

    return {
        "$.story_overview": by("overview_by"),
        "$.scenes[*].cut": by("draft_by"),
        "$.scenes[*].action_descriptions": by("draft_by", "enriched_by", "verified_by"),
        "$.entity_schedule": by("listed_by", "merged_by", "verified_by"),
        "$.entity_descriptions": by("listed_by", "merged_by", "described_by"),
    }


_LATER = ("overview_by", "described_by", "enriched_by", "verified_by")
