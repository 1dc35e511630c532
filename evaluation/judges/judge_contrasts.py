"""Stage: which of two nearly equal stories do the pictures show, the source or its contrast? (C.8)."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .answers import ask_judges, pictures_of, record_of, variants_of
from .packets import contrast_packets
from .presets import in_all_sets
from .settings import WordedSettings

SPEC = StageSpec(
    name="judge_contrasts",
    version=3,
    shape="map",
    reads=("record", "variants", "frames", "scan"),
    writes=("contrast_answers",),
    settings=WordedSettings,
    asks=in_all_sets("contrast_image"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row per contrastive pair, judge and vote, none where nothing may be shown."""
    settings = tools.settings
    assert isinstance(settings, WordedSettings)
    if not item["frames"] or item["scan"]["leaks"]:
        return Made({"contrast_answers": []})
    pictures = pictures_of(item["frames"], tools.store)
    packets = contrast_packets(record_of(item), variants_of(item), pictures, tools.seed, settings.prompts)
    return Made({"contrast_answers": await ask_judges(list(packets), tools)})
