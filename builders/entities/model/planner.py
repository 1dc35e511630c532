"""The planner that asks a model; see :class:`fabula.builders.entities.planner.Planner`."""

from collections.abc import Sequence

from ....engine.stage import Tools
from ....schemas.canonical import Json
from ...replies import Drafted
from ..drafts import Entity
from ..planner import Episode, Film
from ..registries import LocalRegistry
from . import film as films
from . import telling, verifying


class EntityModelPlanner:
    """Drafts by asking the model that the stage's settings name.

    Args:
        tools: the stage's tools; their settings name the model, their asker answers.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def registries(self, film: Film) -> Drafted[Json]:
        """Return the registry of each chunk."""
        return await films.list_chunks(self._tools, film)

    async def identities(self, film: Film, registries: Sequence[LocalRegistry]) -> Drafted[Json]:
        """Return the entities of the film, looked for in its frames."""
        return await films.merge_chunks(self._tools, film, registries)

    async def script(
        self, film: Film, registries: Sequence[LocalRegistry], entities: Sequence[Entity]
    ) -> Drafted[Json]:
        """Return scenes, cut flags and plain actions."""
        return await telling.tell_film(self._tools, film, registries, entities)

    async def overview(self, episode: Episode) -> Drafted[Json]:
        """Return the story in two to four sentences."""
        return await telling.tell_story(self._tools, episode)

    async def descriptions(self, episode: Episode) -> Drafted[Json]:
        """Return what each entity looks like."""
        return await telling.describe(self._tools, episode)

    async def actions(self, episode: Episode) -> Drafted[Json]:
        """Return the script with its actions told in full."""
        return await telling.tell_in_full(self._tools, episode)

    async def verify(self, episode: Episode) -> Drafted[Json]:
        """Return script and registry with what was wrong put right."""
        return await verifying.verify(self._tools, episode)
