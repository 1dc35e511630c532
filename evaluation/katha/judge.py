"""Stages: the judges' answers to the questions about a story, under each condition of evidence.

``judge_text`` shows the source story alone, the ceiling of what is recoverable; its answers are the same for
every method, and the same request is answered once. ``judge_images`` shows the generated pictures alone, the
primary diagnostic condition. ``judge_both`` shows story and pictures together, the control for ambiguity.
``judge_contrasts`` asks which of two nearly equal stories the pictures show, the source or a contrast (C.8).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.chat import Image
from ..judging.answers import ask_judges, pictures_of, record_of, variants_of
from ..judging.packets import Evidence, Packet, contrast_packets, label_packet, question_packets
from ..judging.settings import LabelledSettings, WordedSettings, in_all_sets


@dataclass(frozen=True)
class Judging:
    """A stage in which judges are asked; it writes one field, a row per question, judge and vote."""

    SPEC: StageSpec  # its declaration
    # item, its pictures, seed and settings -> what is asked
    packets: Callable[[Item, Sequence[Image], int, WordedSettings], list[Packet]]

    async def run(self, item: Item, tools: Tools) -> Outcome:
        """Return one row per question, judge and vote; none where pictures may not be shown."""
        (answers,) = self.SPEC.writes
        pictures: Sequence[Image] = ()
        if "frames" in self.SPEC.reads:
            if not item["frames"] or item["scan"]["leaks"]:
                return Made({answers: []})
            pictures = pictures_of(item["frames"], tools.store)
        assert isinstance(tools.settings, WordedSettings)
        packets = self.packets(item, pictures, tools.seed, tools.settings)
        return Made({answers: await ask_judges(packets, tools)})


def _asked(
    condition: Evidence, item: Item, pictures: Sequence[Image], seed: int, settings: WordedSettings
) -> list[Packet]:
    assert isinstance(settings, LabelledSettings)
    record = record_of(item)
    packets = list(question_packets(record, condition, pictures, seed, settings.prompts))
    label = label_packet(record, condition, pictures, seed, settings.prompts) if settings.labels else None
    return [*packets, *([label] if label else [])]


def _contrasted(item: Item, pictures: Sequence[Image], seed: int, settings: WordedSettings) -> list[Packet]:
    return list(contrast_packets(record_of(item), variants_of(item), pictures, seed, settings.prompts))


def _under(condition: Evidence, name: str, *reads: str) -> Judging:
    spec = StageSpec(
        name=name, version=3, shape="map", reads=("record", *reads), writes=(f"{condition}_answers",),
        settings=LabelledSettings,
        asks=in_all_sets("dimension", f"label_{condition}", f"question_{condition}"),
    )  # fmt: skip
    return Judging(spec, partial(_asked, condition))


JUDGE_TEXT = _under("text", "judge_text")
JUDGE_IMAGES = _under("image", "judge_images", "frames", "scan")
JUDGE_BOTH = _under("text_image", "judge_both", "frames", "scan")
JUDGE_CONTRASTS = Judging(
    StageSpec(
        name="judge_contrasts", version=3, shape="map", reads=("record", "variants", "frames", "scan"),
        writes=("contrast_answers",), settings=WordedSettings, asks=in_all_sets("contrast_image"),
    ),
    _contrasted,
)  # fmt: skip
