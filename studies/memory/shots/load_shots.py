"""Stage: one item per episode, with its script and what the bank knows of its entities."""

from collections.abc import Iterator

from ....engine.stage import Child, Item, Made, StageSpec, Tools
from ....errors import InputError
from ....evaluation.entities.load_episodes import chosen_episodes
from ....evaluation.entities.looking.settings import EpisodeSelection
from ....releases.entities.tree import read_entity_set
from ....schemas.canonical import Json
from ..bank import read_bank
from .packets import known_entities

EPISODES, BANK = "episodes", "bank"
"""Roles of the sources: the set of episodes, and the bank of their entities."""

SPEC = StageSpec(
    name="load_shots", version=1, shape="expand", reads=("sources",),
    writes=("episode_id", "script", "known", "bank"), settings=EpisodeSelection,
)  # fmt: skip


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per episode that is chosen."""
    (episodes,), (folder,) = tools.of_role(item, EPISODES), tools.of_role(item, BANK)
    whole, _ = read_entity_set(episodes, rules=False)
    bank = read_bank(folder)
    chosen = chosen_episodes(whole, tools.own(EpisodeSelection))
    missing = [each.episode_id for each in chosen.episodes if each.episode_id not in bank.by_id]
    if missing:
        what = f"the bank has no entities of {len(missing)} episodes: {', '.join(missing[:5])}"
        fix = "build them, too: fabula memory build; or choose what it has, with --episode, --tier or --limit"
        raise InputError.one(str(folder), what=what, fix=fix)
    for episode in chosen.episodes:
        entries = bank.by_id[episode.episode_id]
        known = known_entities(episode.episode_id, episode.script, entries, bank.folder)
        fields: dict[str, Json] = {
            "episode_id": episode.episode_id, "script": episode.script.as_json(), "known": known.as_json(),
            "bank": str(bank.folder.absolute()),
        }  # fmt: skip
        yield Child(episode.episode_id, Made(fields))


def identity(fields: dict[str, Json]) -> Json:
    """Return what makes an episode the same episode."""
    return fields["episode_id"]
