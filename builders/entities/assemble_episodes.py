"""Stage: the episode in the official form, what is known beyond it, who made what, and findings."""

from collections.abc import Iterator, Mapping, Sequence

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.entities import ALL, EntityEpisode, EpisodeRecord, shot_key
from ...schemas.values import Check
from ...validators.entities.set_rules import check_episode
from ...validators.entities.view import view_of
from .names import Entity, Repair, Script, ScriptShot, slots_of
from .plan_windows import Place
from .windows import load_of, traits_of

SPLIT = "split_ids"
"""Name of the split file that the builder writes."""

LISTS = (("character", "characters"), ("location", "places"), ("object", "objects"))

SPEC = StageSpec(
    name="assemble_episodes",
    version=1,
    shape="map",
    reads=(
        "window", "origin", "entities", "overview", "script", "registry", "overview_by", "described_by",
        "enriched_by", "verified_by",
    ),
    writes=("record",),
)  # fmt: skip


def run(item: Item, tools: Tools) -> Outcome:
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
    """Yield number, key and shot of a script, in order."""
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
