"""Text inside generated pictures is reported, and whether it gives the story away."""

from PIL.Image import Image

from fabula.evaluation.judging.packets import RenderedText, rendered_in
from fabula.evaluation.outputs.storyboards import check_outputs


class Reader:
    """Reads given lines, one call after the other."""

    def __init__(self, *lines: tuple[str, ...]) -> None:
        self._lines = iter(lines)

    def read(self, image: Image) -> tuple[str, ...]:
        assert image.mode == "RGB"
        return next(self._lines, ())


def test_rendered_in_when_lines_are_read_says_which_give_the_story_away(outputs, records):
    report = check_outputs(outputs, records[:1], known=records)
    text = records[0].scenes[0].scene_text
    found = rendered_in(
        report, {record.story_id: record for record in records}, Reader((), ("CHAPTER 9", text.upper()))
    )
    assert found == [
        RenderedText("kb25k_0001", None, 2, "CHAPTER 9", None),
        RenderedText("kb25k_0001", None, 2, text.upper(), "$.source_text"),
    ]
    assert str(found[1]).endswith("(as $.source_text of the record)")
    assert found[0].as_json()["panel"] == 2
