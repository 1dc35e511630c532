"""Text rendered inside generated pictures: reported, because it tells a judge what pixels should show.

Unlike a leak in the packet, this is a property of the method's output; it stops nothing.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ...media.images import open_picture
from ...media.ocr import TextReader
from ...schemas.canonical import Json
from ...schemas.katha import StoryRecord
from ...schemas.text import normalize_answer
from .outputs import OutputsReport
from .secrets import secrets_of


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A line of text in a picture.

    Attributes:
        story_id: of which story.
        seed: seed of the generation, if there are several.
        panel: which picture, from 1.
        text: the line, as it was read.
        source: JSON path of the text of the record that the line gives away; None where it is no such.
    """

    story_id: str
    seed: int | None
    panel: int
    text: str
    source: str | None

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        seed = "" if self.seed is None else f"/seed_{self.seed}"
        told = f" (as {self.source} of the record)" if self.source else ""
        return f"{self.story_id}{seed} panel {self.panel}: {self.text!r}{told}"


def rendered_in(
    report: OutputsReport, records: Mapping[str, StoryRecord], reader: TextReader
) -> list[RenderedText]:
    """Read the text in every valid storyboard of a method, in order.

    Args:
        report: the checked outputs.
        records: story id -> record.
        reader: what reads.
    """
    found = []
    for storyboard in report.storyboards:
        secrets = secrets_of(records[storyboard.story_id])
        for panel, file in enumerate(storyboard.files, 1):
            for text in reader.read(open_picture(file).image):
                normal = normalize_answer(text)
                source = next((secret.path for secret in secrets if secret.shown_in(normal)), None)
                found.append(RenderedText(storyboard.story_id, storyboard.seed, panel, text, source))
    return found
