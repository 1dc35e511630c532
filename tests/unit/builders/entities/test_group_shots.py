"""The shots of a video as one item."""

from fabula.builders.entities.group_shots import run
from fabula.engine.stage import Item, Made, NoSettings, Tools

TOOLS = Tools(NoSettings(), "2026-01-01T00:00:00Z")
VIDEO = {"video_id": "film", "frames": 90}


def member(number: int) -> Item:
    shot = {"shot_id": f"film__shot{number:04}", "number": number, "video": VIDEO}
    return Item(shot["shot_id"], {"shot": shot, "quality": {"sharpness": number}, "embedded": [number]})


def test_group_when_shots_come_in_any_order_holds_them_by_number_without_the_video() -> None:
    outcome = run([member(3), member(1)], TOOLS)
    assert isinstance(outcome, Made)
    assert outcome.fields["video"] == VIDEO
    assert outcome.fields["shots"] == [
        {"shot": {"shot_id": f"film__shot{number:04}", "number": number},
         "quality": {"sharpness": number}, "tracklets": [number]}
        for number in (1, 3)
    ]  # fmt: skip
