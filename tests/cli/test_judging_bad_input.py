"""Bad input to judging and scoring: said with its place, counted, and never scored in silence."""

import io
import json
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.evaluation.archive.archive import EVALUATION, JUDGEMENTS, read_archive
from fabula.releases.events.suites import suite_bytes
from fabula.releases.loading import Release
from fabula.schemas.canonical import sha256_bytes
from fabula.schemas.layout import ANNOTATIONS
from fabula.testing.drawn import write_video
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release
from fabula.testing.event_model import EventModel
from fabula.testing.judge_model import JudgeModel
from fabula.testing.model_server import Asked, BadRequestFault, ModelServer

TABLE = {"text": 0.9, "image": 0.5, "text_image": 0.95}
FIRST, SECOND, THIRD, FOURTH, FIFTH = (f"kb25k_{number:04}" for number in range(1, 6))
Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def cli() -> Cli:
    """The command in this process: exit code, standard output and standard error."""

    def run(*args: object) -> Any:
        return CliRunner().invoke(app, [str(arg) for arg in args])

    return run


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return drawn_release(tmp_path_factory.mktemp("released") / "release")


@pytest.fixture
def boards(tmp_path: Path, release: Release) -> Path:
    return draw_outputs(tmp_path / "drawn", release.records)


@pytest.fixture
def judge_boards(cli: Cli, release: Release, tmp_path: Path) -> Cli:
    """Judge storyboards by the models of a server."""

    def run(server: ModelServer, outputs: Path, *options: object, names: tuple[str, ...] = ("one",)) -> Any:
        judges = [part for name in names for part in ("--judge", f"{server.openai_url}#{name}")]
        return cli(
            "evaluate", "katha", "--release", release.path, "--outputs", outputs, *judges,
            "--out", tmp_path / "run", "--workers", 0, *options,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def judged(cli: Cli, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """One evaluation of two stories, for the tests that only read it."""
    place = tmp_path_factory.mktemp("judged")
    boards = draw_outputs(place / "drawn", release.records)
    with ModelServer(JudgeModel(release.records, TABLE)) as server:
        done = cli(
            "evaluate", "katha", "--release", release.path, "--outputs", boards,
            "--judge", f"{server.openai_url}#one", "--story", FIRST, "--story", SECOND,
            "--out", place / "run", "--workers", 0,
        )  # fmt: skip
    assert done.exit_code == 0, done.output
    yield SimpleNamespace(
        boards=boards, run=place / "run", lines=(place / "run" / JUDGEMENTS).read_text("utf-8").splitlines()
    )


@pytest.fixture
def archive(judged: SimpleNamespace, tmp_path: Path) -> Callable[[list[str]], Path]:
    """Write an evaluation folder with these lines."""

    def write(lines: list[str]) -> Path:
        folder = tmp_path / "archive"
        folder.mkdir()
        (folder / EVALUATION).write_bytes((judged.run / EVALUATION).read_bytes())
        (folder / JUDGEMENTS).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder

    return write


def huge_png() -> bytes:
    """A PNG that says that it has 60,000 x 60,000 pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(7501 * 100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def saved(path: Path, image: Image.Image, format: str, **options: Any) -> None:
    file = io.BytesIO()
    image.save(file, format, **options)
    path.write_bytes(file.getvalue())


def test_storyboards_when_broken_are_named_counted_and_never_judged(
    cli: Cli, judge_boards: Cli, release: Release, boards: Path, tmp_path: Path
) -> None:
    (boards / FIRST / "04.png").unlink()
    (boards / SECOND / "02.png").write_bytes(b"")
    (boards / THIRD / "03.png").write_bytes(huge_png())
    for number in range(1, 6):
        (boards / FOURTH / f"{number:02}.png").rename(boards / FOURTH / f"{number - 1:02}.png")
    checked = cli("outputs", "check", boards, "--release", release.path)
    assert checked.exit_code == 1
    for said in (
        "missing: 4",
        "[empty]",
        "[too_many_pixels]",
        "[numbered-from-zero]",
        "4 of 5 generations invalid",
    ):
        assert said in checked.stdout
    with ModelServer(JudgeModel(release.records)) as server:
        done = judge_boards(server, boards)
        shown = {image.sha256 for one in server.log for image in map(_picture, one.asked.images)}
    assert done.exit_code == 0, done.output
    assert "drawn: 1 of 5 storyboards valid" in done.stdout
    for said in ("1 missing-panel", "1 numbered-from-zero", "2 unreadable-picture"):
        assert f"drawn: {said}; evaluation.json lists which" in done.stderr
    assert len(shown) == 5, "only the pictures of the sound storyboard are shown to anybody"
    scored = cli("score", tmp_path / "run", "--resamples", 0)
    assert scored.exit_code == 0, scored.output
    assert "stories 1 of 5 valid, generations 4 of 5 invalid" in scored.stdout
    assert "24 of invalid generations, 0 unjudged" in scored.stdout


def _picture(image: Any) -> SimpleNamespace:
    return SimpleNamespace(sha256=sha256_bytes(image.data))


def test_storyboards_when_pictures_are_odd_are_judged_as_upright_rgb_without_metadata(
    judge_boards: Cli, release: Release, boards: Path, tmp_path: Path
) -> None:
    folder = boards / FIRST
    plain = [Image.open(folder / f"{number:02}.png").convert("RGB") for number in range(1, 6)]
    turned = Image.Exif()
    turned[0x0112] = 6
    saved(folder / "01.png", Image.new("I;16", (96, 64), 40_000), "PNG")
    saved(folder / "02.jpg", plain[1].convert("CMYK"), "JPEG")
    saved(folder / "03.png", plain[2].convert("P"), "PNG")
    saved(folder / "04.png", plain[3], "PNG", save_all=True, append_images=[plain[4]])
    saved(folder / "05.jpg", plain[4].resize((96, 48)), "JPEG", exif=turned)
    for name in ("02.png", "05.png"):
        (folder / name).unlink()
    saved(boards / SECOND / "01.png", plain[0], "GIF")
    odd: list[Asked] = []

    def answer(asked: Asked) -> Any:
        odd.append(asked)
        return {"answer": "unclear", "evidence_status": "unclear", "confidence": "low"}

    with ModelServer(answer) as server:
        done = judge_boards(server, boards, "--story", FIRST, "--story", SECOND, "--questions-only")
    assert done.exit_code == 0, done.output
    assert "drawn: 2 of 2 storyboards valid" in done.stdout
    sent = {image.data for asked in odd for image in asked.images}
    opened = [Image.open(io.BytesIO(data)) for data in sent]
    assert {(one.format, one.mode) for one in opened} == {("JPEG", "RGB")}
    assert (48, 96) in {one.size for one in opened}, "the picture that EXIF calls turned stands upright"
    assert not any(one.getexif() for one in opened)
    lines = [json.loads(line) for line in (tmp_path / "run" / "frames.jsonl").read_text("utf-8").splitlines()]
    notes = {note for line in lines for frame in line["frames"] for note in frame["notes"]}
    for said in ("16-bit", "cmyk", "animated", "misnamed", "rotated"):
        assert any(said in note for note in notes), notes


@pytest.mark.parametrize("kind", ["prose", "language", "extra", "outside", "failing"])
def test_judges_when_one_is_of_no_use_are_told_apart_and_the_others_keep_their_scores(
    cli: Cli,
    judge_boards: Cli,
    judged: SimpleNamespace,
    release: Release,
    boards: Path,
    tmp_path: Path,
    kind: str,
) -> None:
    judge = JudgeModel(release.records, TABLE)

    def answer(asked: Asked) -> Any:
        reply = judge(asked)
        if asked.model == "one":
            return reply
        return {
            "prose": "Everything can be seen well.",
            "language": {**reply, "answer": "Лисица хотела пить"},
            "extra": {**reply, "explanation": "because"},
            "outside": {**reply, "confidence": "very high"},
            "failing": BadRequestFault(message="no pictures, please"),
        }[kind]

    with ModelServer(answer) as server:
        chosen = ("--story", FIRST, "--story", SECOND)
        done = judge_boards(server, boards, *chosen, names=("bad", "one"))
        assert done.exit_code == 0, done.output
        count = server.count
    archived = read_archive(tmp_path / "run").judgements
    assert count == len(archived), "nobody is asked twice"
    bad = Counter(one.outcome for one in archived if one.judge.model == "bad")
    missing = bad.total() - bad["answered"]
    wanted = "failed" if kind == "failing" else "malformed"
    assert bad[wanted] == missing > 0
    assert (
        f"compatible:bad: {bad['answered']} of {bad.total()} replies are answers ({missing} {wanted})"
        in done.stderr
    )
    assert "compatible:one:" not in done.stderr
    if kind == "failing":
        assert {one.reason for one in archived if one.outcome == "failed"} == {
            "bad_request: status 400: no pictures, please"
        }
    scored = cli("score", tmp_path / "run", "--resamples", 0, "--json")
    assert scored.exit_code == 0, scored.output
    document = json.loads(scored.stdout)
    told = [one for one in document["coverage"] if one["judge"] == "compatible:bad"]
    assert sum(one["outcomes"][wanted] for one in told) == missing
    lines = cli("score", tmp_path / "run", "--resamples", 0).stdout
    assert ("compatible:bad answered nothing: " in lines) == (bad["answered"] == 0)
    alone = json.loads(cli("score", judged.run, "--resamples", 0, "--json").stdout)
    with_bad, without = (one["methods"]["drawn"]["judges"]["compatible:one"] for one in (document, alone))
    assert with_bad["raw"] == without["raw"]
    assert without["raw"]["gap"]["value"] is not None


def test_evaluation_when_stopped_before_its_end_is_scored_as_unfinished_and_a_killed_one_says_how(
    cli: Cli,
    judge_boards: Cli,
    release: Release,
    boards: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with ModelServer(JudgeModel(release.records)) as server:
        prices = "prices = {input = 10.0, output = 10.0}"
        Path("fabula.toml").write_text(f'[models."{server.openai_url}#one"]\n{prices}\n', encoding="utf-8")
        assert judge_boards(server, boards, "--max-cost", 0.05).exit_code == 4
    for command in ("score", "report"):
        done = cli(command, tmp_path / "run")
        assert done.exit_code == 0
        assert "he evaluation is not finished" in done.stdout
    for name in ("judgements.jsonl", "evaluation.json"):
        (tmp_path / "run" / name).unlink()
    for command in ("score", "report"):
        done = cli(command, tmp_path / "run")
        assert done.exit_code == 1
        assert "the run is not finished: give the command that began it again" in done.stderr
    done = cli("export", "archive", tmp_path / "run", "--so-far", "--out", tmp_path / "copy")
    assert done.exit_code == 0 and "incomplete: " in done.stdout


def test_archive_when_one_item_has_two_answers_is_refused_and_a_repeated_line_counts_once(
    cli: Cli, judged: SimpleNamespace, release: Release, archive: Callable[[list[str]], Path]
) -> None:
    place = next(number for number, line in enumerate(judged.lines) if '"kind":"question"' in line)
    other = json.loads(judged.lines[place])
    other["parsed"]["answer"] = "something else"
    folder = archive([*judged.lines, json.dumps(other)])
    for command in (("score", folder), ("compare", folder, judged.run), ("report", folder)):
        done = cli(*command, "--release", release.path)
        assert done.exit_code == 1
        assert f"{JUDGEMENTS}:{len(judged.lines) + 1}: expected one answer to question" in done.stderr
        assert f"{JUDGEMENTS}:{place + 1}, found" in done.stderr
        assert "something else" in done.stderr
    (folder / JUDGEMENTS).write_text("\n".join([*judged.lines, judged.lines[place]]) + "\n", encoding="utf-8")
    wanted, found = (
        cli("score", one, "--resamples", 0, "--json", "--release", release.path)
        for one in (judged.run, folder)
    )
    assert found.stdout == wanted.stdout


def test_release_when_its_hash_is_not_that_of_the_archive_is_refused_by_every_reader(
    cli: Cli, judged: SimpleNamespace, tmp_path: Path
) -> None:
    other = drawn_release(tmp_path / "other").path
    records = [json.loads(line) for line in (other / ANNOTATIONS).read_text("utf-8").splitlines()]
    records[0]["story_title"] = "Another title"
    (other / ANNOTATIONS).write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    people = tmp_path / "people.jsonl"
    people.write_text("{}\n", encoding="utf-8")
    before = sorted(judged.run.iterdir())
    for command in (
        ("score", judged.run),
        ("compare", judged.run, judged.run),
        ("report", judged.run),
        ("calibrate", judged.run, "--human", people),
    ):
        done = cli(*command, "--release", other)
        assert done.exit_code == 1, done.output
        assert "this is not the release that was judged: its SHA-256" in done.stderr
        assert done.stdout == ""
    assert sorted(judged.run.iterdir()) == before


def test_outputs_when_judges_did_not_see_them_are_not_shown_beside_their_verdicts(
    cli: Cli, judged: SimpleNamespace, release: Release, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    for folder, said in (
        (draw_outputs(tmp_path / "drawn", release.records, side=48), "expected the outputs that were judged"),
        (draw_outputs(tmp_path / "another", release.records), "expected outputs of one of drawn"),
    ):
        done = cli("report", judged.run, "--outputs", folder, "--out", page)
        assert done.exit_code == 1, done.output
        assert said in done.stderr
    assert not page.exists()
    assert cli("report", judged.run, "--outputs", judged.boards, "--out", page).exit_code == 0
    assert page.exists()


def test_outputs_when_the_folder_is_a_wrong_one_is_said_before_anything_is_asked(
    cli: Cli, release: Release, boards: Path
) -> None:
    asked = ("evaluate", "katha", "--release", release.path, "--judge", "openai:x", "--dry-run", "--outputs")
    assert "pictures are there" not in cli(*asked, boards).stdout
    done = cli(*asked, boards.parent)
    assert done.exit_code == 1, done.output
    assert "this folder holds the outputs of 1 method\n  fix: give one of: drawn" in done.output


def test_people_when_raters_are_missing_or_items_unknown_are_all_named_and_nothing_is_computed(
    cli: Cli, judged: SimpleNamespace, release: Release, tmp_path: Path
) -> None:
    question = release.records[0].questions[0]
    line = {
        "kind": "answer", "rater": "a", "item": question.question_id, "condition": "text",
        "answer": question.gold_answer,
    }  # fmt: skip
    rows = [
        {**line, "rater": ""},
        {**line, "item": "nobody_q01"},
        {**line, "condition": "image", "method": "unheard-of"},
        {key: value for key, value in line.items() if key != "rater"},
        line,
    ]
    people = tmp_path / "people.jsonl"
    people.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = cli("calibrate", judged.run, "--human", people)
    assert done.exit_code == 1
    assert done.stdout == ""
    for number, said in ((1, "rater"), (2, "'nobody_q01'"), (3, "'unheard-of'"), (4, "rater")):
        assert any(f":{number} " in row and said in row for row in done.stderr.splitlines()), number
    assert ":5 " not in done.stderr
    people.write_text(json.dumps(line) + "\n", encoding="utf-8")
    few = cli("calibrate", judged.run, "--human", people)
    assert few.exit_code == 0, few.output
    assert "too few people: 1 of 1 items" in few.stdout


def test_videos_when_broken_are_counted_by_code_and_a_long_one_is_judged(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "model-x"
    folder.mkdir()
    _write_videos(folder)
    names = ("good", "cut", "fast", "sound", "one", "long", "gone", "empty")
    suite = tmp_path / "suite.json"
    entries = {
        f"{name}.mp4": {
            "prompt": f"A {name} thing falls, and breaks.",
            "event_list": ["It falls", "It breaks"],
            "class": ["object", "2_events"],
        }
        for name in names
    }
    suite.write_bytes(suite_bytes(entries) + b"\n")
    with ModelServer(EventModel()) as server:
        done = cli(
            "evaluate", "events", "--suite", suite, "--outputs", folder,
            "--judge", f"{server.openai_url}#one", "--votes", 1, "--out", tmp_path / "run", "--workers", 0,
        )  # fmt: skip
        assert server.count == 4
        assert max(len(one.asked.images) for one in server.log) == 32
    assert done.exit_code == 0, done.output
    assert "model-x: 2 of 8 videos judged" in done.stdout
    codes = {"truncated": 2, "no_video": 1, "too_few_frames": 1, "missing": 1, "empty": 1}
    for code, count in codes.items():
        assert f"model-x: {count} {code}; evaluation.json lists which" in done.stderr
    lines = [json.loads(line) for line in (tmp_path / "run" / "frames.jsonl").read_text("utf-8").splitlines()]
    long = next(line for line in lines if line["unit"] == "long.mp4")
    assert (long["duration"], long["frames"][-1]["index"], len(long["frames"])) == ("10800", 5399, 32)
    assert not any(str(tmp_path) in (line.get("reason") or "") for line in lines), "no path of this machine"
    scored = cli("score", tmp_path / "run", "--resamples", 0)
    assert scored.exit_code == 0, scored.output
    assert "of 8 prompts, 2 answered, 6 without a video" in scored.stdout


def _write_videos(folder: Path) -> None:
    av = pytest.importorskip("av")
    write_video(folder / "good.mp4", 20)
    write_video(folder / "one.mp4", 1)
    write_video(folder / "cut.mp4", 200)
    write_video(folder / "fast.mp4", 200, options={"movflags": "faststart"})
    for name in ("cut.mp4", "fast.mp4"):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])
    (folder / "empty.mp4").write_bytes(b"")
    _write_long(folder / "long.mp4")
    with av.open(str(folder / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=16_000)
        for number in range(10):
            frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
            frame.planes[0].update(bytes(4096))
            frame.sample_rate, frame.pts = 16_000, number * 1024
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def _write_long(path: Path) -> None:
    """Write three hours, one frame in two seconds."""
    from fractions import Fraction

    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=Fraction(1, 2))
        stream.width = stream.height = 16
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(2)
        for number in range(5400):
            frame = av.VideoFrame.from_image(Image.new("RGB", (16, 16), (number % 250,) * 3))
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
