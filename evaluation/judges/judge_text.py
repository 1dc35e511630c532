"""Stage: the judges' answers under the source story alone: the ceiling of what is recoverable.

They are the same for every method: the same request is answered once.
"""

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from .answers import ask_judges, record_of
from .packets import label_packet, question_packets
from .presets import in_all_sets
from .settings import LabelledSettings

SPEC = StageSpec(
    name="judge_text",
    version=3,
    shape="map",
    reads=("record",),
    writes=("text_answers",),
    settings=LabelledSettings,
    asks=in_all_sets("dimension", "label_text", "question_text"),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return one row per question, judge and vote."""
    settings = tools.settings
    assert isinstance(settings, LabelledSettings)
    record = record_of(item)
    packets = list(question_packets(record, "text", (), tools.seed, settings.prompts))
    label = label_packet(record, "text", (), tools.seed, settings.prompts) if settings.labels else None
    rows = await ask_judges([*packets, *([label] if label else [])], tools)
    return Made({"text_answers": rows})
