"""EntityBench: episodes with registries of entities and schedules of shots, from raw video."""

from typing import TYPE_CHECKING

from .kind import Kind

if TYPE_CHECKING:
    from ..builders.drafting import Drafting


def _drafting() -> "Drafting":
    from ..builders.entities.building import DRAFTING

    return DRAFTING


KIND = Kind("entities", _drafting, imported=("import-entities",))
