"""Stage: the judges' answers under the generated pictures alone: the primary diagnostic condition."""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .answers import ask_judges, pictures_of, record_of
from .packets import label_packet, question_packets
from .presets import in_all_sets
from .settings import LabelledSettings

SPEC = StageSpec(
    name="judge_images",
    version=3,
    shape="map",
    reads=("record", "frames", "scan"),
    writes=("image_answers",),
    settings=LabelledSettings,
    asks=in_all_sets("dimension", "label_image", "question_image"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row per question, judge and vote, none where nothing may be shown."""
    settings = tools.settings
    assert isinstance(settings, LabelledSettings)
    if not item["frames"] or item["scan"]["leaks"]:
        return Made({"image_answers": []})
    record, pictures = record_of(item), pictures_of(item["frames"], tools.store)
    packets = list(question_packets(record, "image", pictures, tools.seed, settings.prompts))
    label = label_packet(record, "image", pictures, tools.seed, settings.prompts) if settings.labels else None
    rows = await ask_judges([*packets, *([label] if label else [])], tools)
    return Made({"image_answers": rows})
