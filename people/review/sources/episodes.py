"""Appearances and pairs that a judge of episodes saw, as people see them: the same crops and descriptions.

How they are drawn is said in :mod:`fabula.people.instances`.
"""

from collections.abc import Sequence

from ....errors import InputError, UserError
from ....evaluation.archive.archive import JUDGEMENTS
from ....evaluation.entities.entities import CRITERIA
from ....schemas.canonical import Json, sha256_file
from ...instances import Instance, accounting, instances_of, sample
from ..items import Drawn, Part
from .source import Drawing, Material, Source

COUNT = 200
"""Instances of a study (EntityBench, B.1)."""
_GATES = {True: "admitted", False: "refused"}


def draw_appearances(material: Material) -> Drawing:
    """Draw single appearances, in equal thirds by type, half of them admitted by the gate."""
    return _draw(material, "fidelity")


def draw_pairs(material: Material) -> Drawing:
    """Draw pairs of appearances of one entity, in equal thirds by type."""
    return _draw(material, "pair")


def _draw(material: Material, kind: str) -> Drawing:
    options = material.options
    folders = (material.path, *options.also)
    available = [
        each for each in instances_of(folders) if not options.methods or each.method in options.methods
    ]
    count = COUNT if options.count is None else options.count
    drawn = sample(available, kind, count, options.seed)
    if not drawn:
        what = f"there is no {'appearance' if kind == 'fidelity' else 'pair'} that a judge answered"
        fix = "give the run folder of an evaluation with --pillars 2 or 3 and a judge"
        raise InputError([UserError(str(material.path), what=what, fix=fix)])
    strata = accounting(available, drawn, {kind: count})
    source: dict[str, Json] = {
        "kind": material.what, "path": material.path.resolve().name,
        "judgements_sha256": [sha256_file(folder / JUDGEMENTS) for folder in folders], "strata": strata,
    }  # fmt: skip
    return Drawing(tuple(map(_item, drawn)), source, _short(strata))


def _short(strata: Sequence[Json]) -> tuple[str, ...]:
    return tuple(
        f"{part['type']}{'' if part['admitted'] is None else ', ' + _GATES[part['admitted']]}:"
        f" {part['drawn']} of {part['wanted']} wanted"
        for part in strata
        if part["drawn"] < part["wanted"]
    )


def _item(instance: Instance) -> Drawn:
    """Return an instance as an item: a list of parts for each criterion of its type, so that it is asked."""
    kind, type_, admitted = instance.stratum
    gate = "" if admitted is None else f"/{_GATES[admitted]}"
    return Drawn(
        instance.item, instance.item.partition("/")[0],
        {"type": type_, "name": instance.name, "description": instance.description}, instance.sides,
        {name: (Part(id=name, text=""),) for name in CRITERIA[type_]},
        methods=(instance.method,), stratum=f"{kind}/{type_}{gate}",
    )  # fmt: skip


_WANTED = "the run folder of an evaluation of episodes with its pictures (fabula evaluate episodes)"
_OPTIONS = ("methods", "count", "also")
APPEARANCES = Source(
    "appearances of entities", {"evaluation": ("episodes",)}, _WANTED, _OPTIONS, draw_appearances
)
PAIRS = Source("pairs of appearances", {"evaluation": ("episodes",)}, _WANTED, _OPTIONS, draw_pairs)
