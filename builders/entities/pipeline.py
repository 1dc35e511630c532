"""The stages of the episode builder, in order, and the files that a finished run holds."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from ...engine.execute import STORE
from ...engine.pipeline import Pipeline
from ...engine.stage import Item
from ...releases.entities.pictures import PICTURES
from ...releases.entities.tree import FOLDER, EntitySet, Episode, SplitFile, write_tree
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.entities import ALL, TIERS, TakenPicture
from ..step import added_fields, keeping_added, with_packages
from .assemble_episodes import SPLIT, in_official_order
from .pictures import PersonView, Views

STAGES = (
    "load_videos",
    "detect_shots",
    "list_shots",
    "measure_quality",
    "read_subtitles",
    "judge_style",
    "compare_shots",
    "filter_shots",
    "detect_people",
    "track_people",
    "embed_tracklets",
    "group_shots",
    "cluster_people",
    "consolidate_people",
    "take_keyframes",
    "list_entities",
    "merge_entities",
    "write_script",
    "plan_windows",
    "write_overview",
    "polish_descriptions",
    "enrich_actions",
    "verify_script",
    "assemble_episodes",
)

EPISODES, SHOTS, ENTITIES = "episodes.jsonl", "shots.jsonl", "entities.jsonl"
IDENTITIES, FINDINGS, FUNNEL = "identities.jsonl", "findings.jsonl", "funnel.json"
"""Files beside the official tree; see docs/episodes.md."""

_PLACES = tuple(f"{__package__}.{name}" for name in STAGES)
_ADDED = added_fields("entities", _PLACES)

PIPELINE = Pipeline(
    name="entities",
    stages=with_packages("entities", _PLACES, before="assemble_episodes"),
    final_fields=(*_ADDED, "pictures"),
    finish=f"{__name__}:finish",
    identity=f"{__package__}.load_videos:identity",
)


def finish(folder: Path, items: Iterable[Item]) -> None:
    """Write the official tree; beside it the same as flat rows, identities with their merges, findings."""
    # Another pipeline that ends like this one need not hand on its pictures.
    made = [
        (item["record"], item.fields.get("pictures", {})) for item in keeping_added(folder, items, _ADDED)
    ]
    made.sort(key=lambda pair: str(pair[0]["episode"]["episode_id"]))
    records = [record for record, _ in made]
    episodes = tuple(Episode.of(in_official_order(record)) for record in records)
    write_tree(folder / FOLDER, EntitySet(episodes, (SplitFile.of(SPLIT, tiers_of(records)),)))
    write_atomic(folder / EPISODES, jsonl_lines(record["episode"] for record in records))
    write_atomic(folder / SHOTS, jsonl_lines(row for record in records for row in _shots(record)))
    write_atomic(folder / ENTITIES, jsonl_lines(row for record in records for row in _entities(record)))
    write_atomic(folder / IDENTITIES, jsonl_lines(map(_identities, records)))
    write_atomic(folder / FINDINGS, jsonl_lines(map(_findings, records)))
    taken = (picture.as_json() for record, views in made for picture in _pictures(record, views))
    write_atomic(folder / PICTURES, jsonl_lines(taken))


def tiers_of(records: Sequence[Json]) -> dict[str, list[str]]:
    """Return tier -> ids of its episodes: the usual tiers first, ``all`` last."""
    tiers: dict[str, list[str]] = {}
    for record in records:
        tiers.setdefault(record["window"]["tier"], []).append(record["episode"]["episode_id"])
    order = [*(tier for tier in TIERS if tier in tiers), *sorted(set(tiers) - set(TIERS))]
    return {**{tier: tiers[tier] for tier in order}, ALL: [name for tier in order for name in tiers[tier]]}


def _shots(record: Json) -> Iterable[Json]:
    episode = in_official_order(record)
    ids, numbers = record["window"]["shot_ids"], record["window"]["numbers"]
    for shot_id, number, shot in zip(ids, numbers, episode.shots(), strict=True):
        yield {
            "episode_id": record["episode"]["episode_id"], "shot": shot.key, "source_shot": shot_id,
            "source_number": number, "cut": shot.cut, "action": shot.action, "prompt": shot.prompt,
            "characters": list(shot.scheduled.characters), "places": list(shot.scheduled.places),
            "objects": list(shot.scheduled.objects),
        }  # fmt: skip


def _entities(record: Json) -> Iterable[Json]:
    episode = in_official_order(record)
    shown = {label: [] for label in episode.entity_descriptions}  # type: dict[str, list[str]]
    labels = {entry.name: label for label, entry in episode.entity_descriptions.items()}
    for shot in episode.shots():
        scheduled = shot.scheduled
        for name in (*scheduled.characters, *scheduled.places, *scheduled.objects):
            shown[labels[name]].append(shot.key)
    for label, entry in episode.entity_descriptions.items():
        yield {
            "episode_id": record["episode"]["episode_id"], "label": label, "name": entry.name,
            "description": entry.description, "shots": shown[label],
            "made_of": record["members"][label], "aliases": record["aliases"][label],
        }  # fmt: skip


def _pictures(record: Json, views: Json) -> Iterable[TakenPicture]:
    """Yield keyframes in the order of shots, then the crops of people in the order of the registry."""
    known, episode = Views.model_validate(views), record["episode"]["episode_id"]
    shots = {source: number for number, source in enumerate(record["window"]["numbers"], 1)}
    for source, shot in shots.items():
        for number, name in enumerate(known.of_shot(source).files, 1):
            yield TakenPicture(
                episode_id=episode, kind="keyframe", shot=shot, label=None, number=number,
                file=f"{STORE}/{name}",
            )  # fmt: skip
    for label, people in record["members"].items():
        crops = [pair for person in people for pair in _crops(known.of_person(person))]
        for number, (name, source) in enumerate(crops, 1):
            yield TakenPicture(
                episode_id=episode, kind="crop", shot=shots.get(source), label=label, number=number,
                file=f"{STORE}/{name}",
            )  # fmt: skip


def _crops(person: PersonView) -> Iterable[tuple[str, int | None]]:
    return zip_longest(person.files, person.shots[: len(person.files)])


def _identities(record: Json) -> Json:
    window = record["window"]
    return {
        "episode_id": record["episode"]["episode_id"],
        "members": record["members"],
        "merges": record["merges"],
        **{name: window[name] for name in ("video_id", "tier", "score", "start", "traits", "load")},
    }


def _findings(record: Json) -> Json:
    return {
        "id": record["episode"]["episode_id"],
        "findings": record["findings"],
        "repairs": record["repairs"],
    }
