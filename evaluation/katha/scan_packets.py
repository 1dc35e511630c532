"""Stage: the leakage scan of every image-only packet of a storyboard. A leak stops the item's pictures."""

from collections.abc import Iterator

from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...prompts.loader import fenced
from ..judging.answers import pictures_of, record_of
from ..judging.packets import Packet, fixed_texts, label_packet, question_packets, scan_packet
from ..judging.settings import ScanSettings, in_all_sets

SPEC = StageSpec(
    name="scan_packets",
    version=2,
    shape="map",
    reads=("record", "shown", "frames"),
    writes=("scan",),
    settings=ScanSettings,
    prompts=in_all_sets("dimension", "label_image", "question_image"),
)

_MARKS = {"instruction": "@@instruction@@", "question": "@@question@@"}
# A prompt may show an input between marks that depend on it.
_CUTS = [form for mark in _MARKS.values() for form in (fenced(mark), mark)]


def run(item: Item, tools: Tools) -> Outcome:
    """Return how many packets were scanned, and the leaks."""
    settings = tools.own(ScanSettings)
    if not item["frames"]:
        return Made({"scan": {"packets": 0, "leaks": []}})
    record, method = record_of(item), item["shown"]["method"]
    pictures = pictures_of(item["frames"], tools.store)
    questions = question_packets(record, "image", pictures, tools.seed, settings.prompts)
    label = label_packet(record, "image", pictures, tools.seed, settings.prompts)
    packets = [*questions, *([label] if label else [])]
    leaks = []
    for number, packet in enumerate(packets):
        # The pictures are the same in all packets: their bytes, where there are any, are looked at once.
        with_pictures = number == 0 and tools.store is not None
        parts = [part for part in packet.parts() if with_pictures or isinstance(part, str)]
        found = scan_packet(record, packet.asked, parts, fixed=tuple(_fixed(packet)), names=(method,))
        leaks += [
            {"item": packet.item, "kind": one.kind, "source": one.source, "found": one.found} for one in found
        ]
    return Made({"scan": {"packets": len(packets), "leaks": leaks}})


def _fixed(packet: Packet) -> Iterator[str]:
    """Yield what the packet's prompt says whatever is asked."""
    inputs = {name: _MARKS.get(name, value) for name, value in packet.inputs.items()}
    rendered = [part for message in packet.prompt.messages(**inputs) for part in message.parts]
    yield from fixed_texts([text for text in rendered if isinstance(text, str)], _CUTS)
