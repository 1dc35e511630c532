"""Stage: contrastive variants: one scene changed in its meaning, everything else byte for byte the same."""

from pydantic import Field

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from .parts import given_list
from .planner import PlannerSettings, planner_of


class Settings(PlannerSettings):
    """Settings of the stage."""

    variants: int = Field(
        default=2, ge=0, le=10, description="Variants per story; a story with fewer is rejected."
    )


SPEC = StageSpec(
    name="write_contrastives",
    version=2,
    shape="map",
    reads=("story", "given", "analysis", "scenes", "transitions", "narrative_type", "moral_label"),
    writes=("variants", "variants_by"),
    reject_codes={"not_contrastable": "The text allows fewer contrastive variants than asked for."},
    settings=Settings,
    asks=("katha/write_contrastives",),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the variants and who drafted them; a hand-written list replaces the drafted one."""
    settings = tools.settings
    assert isinstance(settings, Settings)
    given = given_list(item["given"], "variants")
    if given is not None:
        return Made({"variants": given, "variants_by": None})
    if settings.variants == 0:
        return Made({"variants": [], "variants_by": None})
    labels = (item["narrative_type"], item["moral_label"])
    drafted = await planner_of(tools).variants(
        item["story"], item["analysis"], item["scenes"], labels, settings.variants
    )
    if len(drafted.value) < settings.variants:
        types = ", ".join(variant["change_type"] for variant in drafted.value) or "none"
        reason = f"{len(drafted.value)} of {settings.variants} variants possible ({types})"
        return Rejected("not_contrastable", reason)
    return Made({"variants": drafted.value, "variants_by": drafted.maker})
