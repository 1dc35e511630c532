"""Outputs whose unit is named: pages, keyframes and shots, of which judges see the middles of equal parts."""

import io
import json
import unicodedata
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.errors import InputError
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.events.load_videos import prepare_video
from fabula.evaluation.judging.settings import (
    ImageSettings,
    foreign_chunks,
    keep_pictures,
    kept_picture,
    prepare_storyboard,
)
from fabula.evaluation.katha.load_items import variant_stories
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.katha.requests import EvaluateOptions, estimate_evaluation, evaluate_katha
from fabula.evaluation.katha.scoring import affected_judgements
from fabula.evaluation.outputs.layout import title_key
from fabula.evaluation.outputs.named import read_manifest
from fabula.evaluation.outputs.storyboards import (
    OutputsManifest,
    Storyboards,
    check_outputs,
    find_story_folders,
)
from fabula.evaluation.outputs.videos import frame_count
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.media.images import MediaProblem
from fabula.media.video import middle_indices, pictures_in
from fabula.schemas.canonical import sha256_bytes
from fabula.schemas.katha import StoryRecord
from fabula.testing.drawn import write_outputs, write_storyboard, write_video
from fabula.testing.drawn_storyboards import (
    draw_outputs,
    draw_panel,
    drawn_release,
    judged_release,
    numbers_in,
)
from fabula.testing.drawn_videos import write_frames
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_samples import sample_bundles, with_variant_questions
from fabula.testing.model_server import Asked, ModelServer


def write_shot(path: Path, story: int, panels: Sequence[int], side: int = 96) -> None:
    """Write a video whose frames show these panels of a story, one after another."""
    import io

    frames = [np.asarray(Image.open(io.BytesIO(draw_panel(story, panel, side)))) for panel in panels]
    write_frames(path, frames)


def write_films(
    folder: Path, records: Sequence[StoryRecord], unit: str = "shot", frames: int | None = None
) -> Path:
    """Write a video a scene; only its middle frame, or its three middles of thirds, shows that scene."""
    folder.mkdir(parents=True)
    about = {"unit": unit, **({} if frames is None else {"frames": frames})}
    (folder / "outputs.json").write_text(json.dumps(about))
    for number, record in enumerate(records):
        (folder / record.story_id).mkdir()
        for scene in range(1, len(record.scenes) + 1):
            # Nine frames: the middle is frame 4, the middles of thirds are frames 1, 4 and 7.
            shown = [511] * 9
            for index in middle_indices(9, frames or 1):
                shown[index] = scene
            write_shot(folder / record.story_id / f"shot_{scene:02}.mp4", number, shown)
    return folder


@pytest.mark.parametrize(
    ("frames", "count", "expected"),
    [(9, 1, (4,)), (10, 1, (4,)), (9, 3, (1, 4, 7)), (10, 2, (2, 7)), (1, 1, (0,)), (4, 4, (0, 1, 2, 3))],
)
def test_middle_indices_when_worked_by_hand_are_the_middles_of_equal_parts(frames, count, expected):
    # 10 frames in halves of 5: the middles are 2 and 7. 9 in thirds of 3: 1, 4 and 7.
    assert middle_indices(frames, count) == expected


def test_outputs_when_their_unit_is_shot_are_videos_with_the_frames_that_are_asked_for(tmp_path, records):
    report = check_outputs(write_films(tmp_path / "film", records, frames=3), records)
    assert report.ok
    assert (report.unit, report.frames) == ("shot", 3)
    assert {len(board.files) for board in report.valid} == {5}
    assert [file.scene for file in report.valid[0].files] == [1, 2, 3, 4, 5]
    assert report.details()["unit"] == "shot" and report.details()["frames_each"] == 3


def test_pictures_when_a_video_is_prepared_are_its_middle_frames(tmp_path):
    write_shot(tmp_path / "01.mp4", 2, [511] * 4 + [7] + [511] * 4)
    (middle,) = prepare_storyboard([tmp_path / "01.mp4"], ImageSettings(format="png"))
    assert numbers_in(middle.data) == (2, 7)
    write_shot(tmp_path / "02.mp4", 2, [511, 1, 511, 511, 2, 511, 511, 3, 511])
    three = prepare_storyboard([tmp_path / "02.mp4"], ImageSettings(format="png"), frames=3)
    assert [numbers_in(one.data)[1] for one in three] == [1, 2, 3]
    assert [picture.format for picture in pictures_in(tmp_path / "02.mp4", 3)] == ["VIDEO"] * 3


def test_outputs_when_a_video_is_broken_or_too_short_are_invalid(tmp_path, records):
    folder = write_films(tmp_path / "film", records, frames=3)
    first, second, third = (record.story_id for record in records)
    (folder / first / "shot_02.mp4").write_bytes(b"no video")
    write_shot(folder / second / "shot_03.mp4", 1, [1, 1])  # three frames are wanted
    report = check_outputs(folder, records)
    assert {board.unit: board.codes for board in report.outputs} == {
        first: ("unreadable-video",), second: ("unreadable-video",), third: (),
    }  # fmt: skip
    told = [issue.message for issue in report.issues]
    assert any("[too_few_frames] expected at least 3 frames, found 2" in message for message in told)
    # Without decoding, as evaluations look first, what cannot be opened is found as well.
    assert [board.codes for board in check_outputs(folder, records, decode=False).invalid] == [
        ("unreadable-video",), ("unreadable-video",),
    ]  # fmt: skip


def test_manifest_when_the_unit_is_unknown_or_frames_are_too_many_says_so(outputs, records):
    for about, told in (({"unit": "film"}, "unit"), ({"frames": 99}, "frames"), ({"frames": 0}, "frames")):
        (outputs / "outputs.json").write_text(json.dumps(about))
        with pytest.raises(InputError, match=told):
            check_outputs(outputs, records)


@pytest.mark.slow
@pytest.mark.parametrize("frames", [1, 3])
def test_evaluation_when_outputs_are_videos_shows_judges_their_frames_in_order(tmp_path, frames):
    release = drawn_release(tmp_path / "release", 3)
    films = write_films(tmp_path / "film", release.records, frames=frames)
    with ModelServer(JudgeModel(release.records)) as server:
        judge = f"{server.openai_url}#one"
        options = EvaluateOptions(
            judges=(judge,), models={judge: {"attempts": 2, "patience": 5}}, workers=0, questions_only=True,
            created_at="2026-01-01T00:00:00Z",
        )  # fmt: skip
        # The judge refuses pictures that are not those of one story in order: all others show panel 511.
        evaluate_katha(release.path, films, tmp_path / "run", options)
    archive = read_archive(tmp_path / "run")
    assert {one.outcome for one in archive.judgements} == {"answered"}
    about = archive.manifest.subject["methods"]["film"]
    assert (about["unit"], about["frames_each"]) == ("shot", frames)
    assert about["panels"] == 5 * frames * len(release.records)
    lines = [json.loads(line) for line in (tmp_path / "run" / "frames.jsonl").read_text().splitlines()]
    assert all(line["scenes"] == [scene for scene in range(1, 6) for _ in range(frames)] for line in lines)
    report = katha_report(tmp_path / "run", release.path, definitions=Definitions(resamples=0))
    assert report.facts["Units"] == f"shot, {frames} frame{'' if frames == 1 else 's'} of each"


# Frames of generated videos, as judges get them.


@pytest.mark.parametrize(
    ("frames", "count"),
    # floor(K / 4) between 4 and 32; the lengths from 16 to 313 are those of Table 5.
    [(1, 4), (16, 4), (19, 4), (20, 5), (49, 12), (80, 20), (93, 23), (120, 30), (127, 31), (128, 32),
     (313, 32)],
)  # fmt: skip
def test_frame_count_when_worked_by_hand_agrees(frames: int, count: int) -> None:
    assert frame_count(frames) == count


def test_prepare_video_when_sound_gives_frames_as_eq_2_says(tmp_path: Path) -> None:
    video = prepare_video(write_video(tmp_path / "one.mp4", 25), ImageSettings(max_side=32))
    # 25 frames: floor(25 / 4) = 6; i * 24 // 5
    assert video.indices == (0, 4, 9, 14, 19, 24)
    assert video.times == tuple(Fraction(index, 8) for index in video.indices)
    assert video.info.frames == 25
    assert {(one.width, one.height) for one in video.pictures} == {(32, 24)}
    assert len({one.sha256 for one in video.pictures}) == 6


@pytest.mark.parametrize("frames", [1, 3])
def test_prepare_video_when_shorter_than_four_frames_names_the_problem(tmp_path: Path, frames: int) -> None:
    with pytest.raises(MediaProblem) as raised:
        prepare_video(write_video(tmp_path / "short.mp4", frames), ImageSettings())
    assert raised.value.code == "too_few_frames"


# Pictures for judges: decoded and encoded once, kept under the hash of their bytes.


def test_prepare_storyboard_when_settings_differ_follows_them(tmp_path: Path) -> None:
    files = write_storyboard(tmp_path)
    for settings, size, kind in (
        (ImageSettings(), (64, 48), "image/jpeg"),
        (ImageSettings(max_side=32, format="png"), (32, 24), "image/png"),
        (ImageSettings(max_side=None), (64, 48), "image/jpeg"),
    ):
        prepared = prepare_storyboard(files, settings)
        assert len(prepared) == 5
        for one in prepared:
            assert ((one.width, one.height), one.media_type) == (size, kind)
            assert Image.open(io.BytesIO(one.data)).size == size
            assert one.sha256 == sha256_bytes(one.data)
            assert foreign_chunks(one.data) == ()
        assert prepared == prepare_storyboard(files, settings)


def test_prepare_storyboard_when_files_are_unusable_lists_all_of_them(tmp_path: Path) -> None:
    files = write_storyboard(tmp_path)
    files[1].write_bytes(b"")
    files[3].unlink()
    with pytest.raises(InputError) as raised:
        prepare_storyboard(files, ImageSettings())
    assert [getattr(problem, "code", None) for problem in raised.value.problems] == ["empty", "missing"]


def test_kept_picture_when_kept_comes_back_the_same(tmp_path: Path) -> None:
    prepared = prepare_storyboard(write_storyboard(tmp_path / "story"), ImageSettings())
    store = tmp_path / "images"
    names = keep_pictures(prepared, store)
    assert keep_pictures(prepared, store) == names
    assert sorted(path.name for path in store.iterdir()) == sorted(set(names))
    for name, one in zip(names, prepared, strict=True):
        assert kept_picture(store, name) == one.part


def test_kept_picture_when_changed_or_lost_refuses(tmp_path: Path) -> None:
    prepared = prepare_storyboard(write_storyboard(tmp_path / "story"), ImageSettings())
    names = keep_pictures(prepared, tmp_path)
    (tmp_path / names[0]).write_bytes(b"other")
    (tmp_path / names[1]).unlink()
    for name in names[:2]:
        with pytest.raises(InputError, match="the file that its name says"):
            kept_picture(tmp_path, name)


# -- Which folder holds which story: by outputs.json, by id, by title; and where there is none

Records = tuple[StoryRecord, ...]


def titled(records: Records, *titles: str) -> Records:
    return tuple(one.model_copy(update={"title": title}) for one, title in zip(records, titles, strict=False))


def places(folder: Path, records: Records) -> dict[str, str]:
    found = find_story_folders(folder, read_manifest(folder, OutputsManifest).folders, records).of
    placed = {story_id: place.folder for story_id, place in found.items() if place.folder is not None}
    return {story_id: place.relative_to(folder.resolve()).as_posix() for story_id, place in placed.items()}


def codes(report: Storyboards) -> dict[str, str]:
    return {issue.where: issue.code for issue in report.issues if issue.code != "missing"}


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("The Fox and the Grapes", "the fox and the grapes"),
        ("The Fox and the Grapes", "The_Fox_and_the_Grapes"),
        ("The Fox and the Grapes", "the-fox-and-the-grapes"),
        ("The Fox, and: the Grapes!", "The Fox and the Grapes"),
        ("Aesop\u2019s Fox", "Aesop's Fox"),
        ("Aesop's Fox", "Aesops-Fox"),
        ("Aesop's Fox", "Aesop-s-Fox"),
        ("Das Rätsel", unicodedata.normalize("NFD", "Das Rätsel")),
        ("Das Rätsel", "Das-Ratsel"),
        ("Straße", "STRASSE"),
        ("桃太郎", "桃太郎"),
        ("ﬁne fox", "Fine Fox"),
        ("𠮷野家の話", "𠮷野家の話"),
        ("İstanbul", "istanbul"),
    ],
)
def test_a_folder_when_called_like_a_title_is_taken(tmp_path, records, title, name):
    if not title_key(title):
        pytest.skip("no letters")
    (tmp_path / name).mkdir()
    found = places(tmp_path, titled(records[:2], title, "Another"))
    assert list(found) == ["kb25k_0001"], (title_key(title), title_key(name))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("The Fox", "The Foxes"),
        ("The Fox", "Fox"),
        ("Das Rätsel", "Das Rutsel"),
        ("???", "!!!"),
        ("The Fox & the Grapes", "The Fox and the Grapes"),
        ("Story 1", "Story 11"),
        ("桃太郎", "金太郎"),
    ],
)
def test_a_folder_when_called_nearly_like_a_title_is_not_taken(tmp_path, records, title, name):
    (tmp_path / name).mkdir()
    assert places(tmp_path, titled(records[:1], title)) == {}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"methd": "x"}, "unknown key 'methd'\n  fix: did you mean 'method'?"),
        ({"weather": "x"}, "unknown key 'weather'\n  fix: remove it; the known keys are"),
        ({"seeds": "x"}, "$.seeds: a list is wanted here"),
    ],
)
def test_manifest_when_a_key_is_not_known_names_the_one_that_was_meant(tmp_path, document, said):
    (tmp_path / "outputs.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(InputError) as caught:
        read_manifest(tmp_path, OutputsManifest)
    assert said in str(caught.value)


def test_a_title_when_two_stories_bear_it_is_not_guessed(tmp_path: Path, records: Records) -> None:
    twins = titled(records, "The Fox", "the FOX!", "The Cat")
    write_outputs(tmp_path / "m", ["The Fox", "kb25k_0003"])
    report = check_outputs(tmp_path / "m", twins[:1], known=twins)
    assert codes(report)["The Fox"] == "ambiguous-title"
    (issue,) = [one for one in report.issues if one.code == "ambiguous-title"]
    assert "2 stories bear this name (kb25k_0001, kb25k_0002): not guessed" in issue.message
    assert not report.valid


def test_an_id_when_a_title_says_otherwise_wins(tmp_path: Path, records: Records) -> None:
    named = titled(records, "kb25k_0002", "The Cat", "The Hen")
    write_outputs(tmp_path / "m", ["kb25k_0002", "The Cat"])
    assert places(tmp_path / "m", named) == {"kb25k_0002": "kb25k_0002"}
    assert codes(check_outputs(tmp_path / "m", named))["The Cat"] == "unknown-story"


def test_outputs_json_when_it_maps_stories_goes_before_names(tmp_path: Path, records: Records) -> None:
    folders = {"kb25k_0001": "b/one", "kb25k_0002": "b/two"}
    folder = write_outputs(tmp_path / "m", ["b/one", "b/two", "kb25k_0003", "kb25k_0001"])
    (folder / "outputs.json").write_text(json.dumps({"folders": folders, "method": "x"}))
    report = check_outputs(folder, records)
    assert places(folder, records) == {**folders, "kb25k_0003": "kb25k_0003"}
    assert codes(report) == {"kb25k_0001": "unknown-story"} and len(report.valid) == 3


HOSTILE: dict[str, tuple[Any, str]] = {
    "absolute": ({"folders": {"kb25k_0001": "/etc"}}, "'/etc' is not a folder below this one"),
    **{name: ({"folders": {"kb25k_0001": folder}}, "is not a folder below this one") for name, folder in
       {"parent": "../elsewhere", "hidden parent": "a/../../elsewhere", "itself": ".", "empty": "",
        "backslash": "..\\elsewhere", "null byte": "a\0b"}.items()},
    "link out": ({"folders": {"kb25k_0001": "link"}}, "'link' is a link that leads out of this folder"),
    "file": ({"folders": {"kb25k_0001": "file.txt"}}, "there is no folder 'file.txt'"),
    "missing": ({"folders": {"kb25k_0001": "nowhere"}}, "there is no folder 'nowhere'"),
    "too long": ({"folders": {"kb25k_0001": "x" * 5000}}, "there is no folder"),
    "twice": (
        {"folders": {"kb25k_0001": "a", "kb25k_0002": "./a"}},
        "is also the folder of kb25k_0001",
    ),
    "unknown id": ({"folders": {"kb25k_9999": "a"}}, "kb25k_9999 is not a story of the release"),
    "number": ({"folders": {"kb25k_0001": 7}}, "$.folders.kb25k_0001: a text is wanted here"),
    "list": ({"folders": ["a"]}, "$.folders: an object is wanted here"),
    "no JSON": ("{folders", "a JSON object"),
    "key twice": ('{"folders": {"kb25k_0001": "a", "kb25k_0001": "b"}}', "the key 'kb25k_0001' twice"),
    "deep": ("[" * 100_000, "a JSON object"),
    "no UTF-8": (b"\xff\xfe{", "a JSON object"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "said"), HOSTILE.values(), ids=HOSTILE)
def test_outputs_json_when_hostile_gets_an_error_that_says_what_is_wrong(tmp_path, records, content, said):
    folder, elsewhere = tmp_path / "m", tmp_path / "elsewhere"
    write_storyboard(elsewhere)
    write_storyboard(folder / "a")
    (folder / "link").symlink_to(elsewhere)
    (folder / "file.txt").write_text("")
    data = content if isinstance(content, str | bytes) else json.dumps(content)
    (folder / "outputs.json").write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(InputError) as caught:
        check_outputs(folder, records)
    assert said in str(caught.value) and "outputs.json" in str(caught.value)


SEEN: dict[str, tuple[Callable[[Path, Records], Any], str, str]] = {
    "methods": (
        lambda folder, records: [
            write_outputs(folder / name, [one.story_id for one in records]) for name in ("a", "b", "c")
        ],
        "this folder holds the outputs of 3 methods",
        "give one of: a, b, c",
    ),
    "one method": (
        lambda folder, records: write_outputs(folder / "a", [records[0].title]),
        "this folder holds the outputs of 1 method",
        "give one of: a",
    ),
    "one story": (
        lambda folder, _: write_storyboard(folder),
        "this folder holds the pictures of one storyboard",
        "give the folder above it",
    ),
    "other names": (
        lambda folder, _: write_outputs(folder, ["Once upon", "a time"]),
        "no folder is called like a story that is judged: Once upon, a time",
        '{"folders": {"kb25k_0001": "Once upon"}}',
    ),
    "nothing": (
        lambda folder, _: folder.mkdir(),
        "no folder of a story is in this folder",
        "give the folder of one method",
    ),
}


@pytest.mark.parametrize(("make", "message", "cure"), SEEN.values(), ids=SEEN)
def test_evaluation_when_no_storyboard_is_there_asks_nobody_and_says_what_it_saw(
    tmp_path: Path, make: Callable[[Path, Records], Any], message: str, cure: str
) -> None:
    release = drawn_release(tmp_path / "release")
    records = tuple(sorted(release.records, key=lambda one: one.story_id))
    make(tmp_path / "outputs", records)
    report = check_outputs(tmp_path / "outputs", records, known=release)
    (issue,) = [one for one in report.issues if one.code == "nothing-found"]
    assert (issue.message, issue.level) == (message, "error") and cure in issue.cure
    with ModelServer(JudgeModel(release.records)) as server:
        options = EvaluateOptions(judges=(f"{server.openai_url}#one",), workers=0)
        for run in (evaluate_katha, estimate_evaluation):
            with pytest.raises(InputError) as caught:
                run(release.path, tmp_path / "outputs", tmp_path / "run", options)
            assert message in str(caught.value) and cure in str(caught.value)
        assert server.count == 0
    assert caught.value.exit_code == 1


def test_evaluation_when_one_of_two_methods_has_storyboards_goes_on(tmp_path: Path) -> None:
    release = drawn_release(tmp_path / "release")
    story = release.records[0]
    board = tmp_path / "good" / story.title
    board.mkdir(parents=True)
    for panel in range(1, len(story.scenes) + 1):
        (board / f"Scene{panel}.png").write_bytes(draw_panel(0, panel))
    (tmp_path / "empty").mkdir()
    with ModelServer(JudgeModel(release.records)) as server:
        options = EvaluateOptions(judges=(f"{server.openai_url}#one",), workers=0, limit=1)
        evaluate_katha(release.path, [tmp_path / "good", tmp_path / "empty"], tmp_path / "run", options)
        assert server.count > 0


@pytest.mark.slow
def test_evaluation_when_variants_have_questions_asks_them_of_their_texts_and_of_the_sources_pictures(
    tmp_path: Path,
) -> None:
    bundles = [with_variant_questions(bundle) for bundle in sample_bundles(1)]
    release = judged_release(tmp_path / "release", bundles)
    (record,) = release.records
    draw_outputs(tmp_path / "drawn", release.records)
    told = [*release.records, *variant_stories(release, release.records)]
    judge, sent = JudgeModel(told, dimensions={"image/variant": 0.0}), []

    def answer(asked: Asked) -> Any:
        sent.append(asked.text)
        return judge(asked)

    with ModelServer(answer) as server:
        options = EvaluateOptions(judges=(f"{server.openai_url}#one",), workers=0)
        plan = estimate_evaluation(release.path, tmp_path / "drawn", tmp_path / "run", options)
        evaluate_katha(release.path, tmp_path / "drawn", tmp_path / "run", options)
        assert plan.calls == server.count == 3 * (6 + 1) + 2 + 3 * 2
    lines = [line for line in read_archive(tmp_path / "run").judgements if line.kind == "variant_question"]
    assert {(line.unit, line.condition) for line in lines} == {
        (record.story_id, condition) for condition in ("text", "image", "text_image")
    }
    variant = release.variants[0]
    text_only = [text for text in sent if variant.contrastive_story_text in text and "part 4" in text]
    assert len(text_only) == 2, "from its text, and from its text with pictures"
    scores = score_folder(tmp_path / "run", None, Definitions(resamples=0)).methods["drawn"]
    assert (scores.pairs["variant_gap"].value, scores.gaps["question"]["filtered"].gap.value) == (1, 0)
    affected = affected_judgements(tmp_path / "run", release.path, release.path)
    assert affected.totals()["redo"] == affected.totals()["gone"] == 0 and not affected.new
    bundles[0]["variants"][0]["questions"][0]["question"] = "What becomes of them?"
    newer = judged_release(tmp_path / "newer", bundles)
    assert affected_judgements(tmp_path / "run", release.path, newer.path).totals()["redo"] == 3
