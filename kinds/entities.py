"""EntityBench: episodes with registries of entities and schedules of shots, from raw video."""

from typing import TYPE_CHECKING

from .kind import Kind, Marks

if TYPE_CHECKING:
    from ..builders.drafting import Drafting
    from ..releases.form import ReleaseForm
    from ..validators.rules import RuleSet


def _rules() -> "RuleSet":
    from ..releases.entities.tree import RULES

    return RULES


def _release() -> "ReleaseForm":
    from ..releases.entities.form import FORM

    return FORM


def _drafting() -> "Drafting":
    from ..builders.entities.building import DRAFTING

    return DRAFTING


MARKS = Marks(("data/scripts/*.json", "scripts/*.json"), worded=("*.json", b'"entity_schedule"'))
KIND = Kind("entities", _release, _drafting, imported=("import-entities",), rules=_rules, marks=MARKS)
