"""Layouts of outputs that people bring: all are read, or told with a map that can be corrected."""

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.evaluation.outputs.entities import CheckOptions, check_episodes
from fabula.evaluation.outputs.entities import wanted_videos as wanted_episodes
from fabula.evaluation.outputs.layout import Names, Wanted, suggest
from fabula.evaluation.outputs.named import Form, walk
from fabula.evaluation.outputs.shots import check_shots, wanted_shots
from fabula.evaluation.outputs.storyboards import check_outputs, wanted_storyboards
from fabula.evaluation.outputs.videos import check_videos, wanted_videos
from fabula.releases.entities.tree import read_entity_set
from fabula.releases.shots.tree import read_shot_set
from fabula.schemas.events import EventPrompt, Suite
from fabula.schemas.katha import StoryRecord
from fabula.testing.drawn import picture_bytes, write_video
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.written_episodes import write_episodes, written_episode

PROMPTS = ("A_cat_naps_and_then_runs", "A_dog_digs_and_then_sleeps")
KEYS = ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3))
SHOTS, SCENES, EPISODE = range(1, 4), range(1, 6), [{"s": scene, "n": shot} for scene, shot in KEYS]


def numbered(pattern: str, numbers: Iterable[int]) -> list[str]:
    return [pattern.format(n=number) for number in numbers]


def of_episode(pattern: str) -> list[str]:
    return [pattern.format(**key) for key in EPISODE]


READ: dict[str, tuple[str, list[str]]] = {
    "two digits": ("katha", numbered("kb25k_0001/{n:02d}.png", SCENES)),
    "not padded": ("katha", numbered("kb25k_0001/{n}.jpg", SCENES)),
    "a story padded otherwise": ("katha", numbered("KB25K-1/scene_{n}.webp", SCENES)),
    "img and AVIF": ("katha", numbered("kb25k_0001/img{n:03d}.avif", SCENES)),
    "words behind": ("katha", numbered("kb25k_0001/frame-{n}-final.jpeg", SCENES)),
    "flat stories": ("katha", numbered("kb25k_0001_{n:02d}.png", SCENES)),
    # KathaTrace's public demo: assets/Aesop's Fables/TITLE/Scene1.png
    "titles, as KathaTrace": ("katha", numbered("{{title}}/Scene{n}.png", SCENES)),
    "shot and number": ("shots", numbered("01/shot_{n:02d}.png", SHOTS)),
    "nothing padded": ("shots", numbered("1/{n}.jpg", SHOTS)),
    "story and shot": ("shots", numbered("story_01/shot-{n}.png", SHOTS)),
    "flat numbers": ("shots", numbered("01_{n:02d}.png", SHOTS)),
    "flat words": ("shots", numbered("story_01_shot_{n}.webp", SHOTS)),
    # ViStoryBench, dataset_loader/read_outputs.py at 514cc31: MODE/LANGUAGE/TIMESTAMP/STORY/shots
    "ViStoryBench": ("shots", numbered("base/en/20250101_120000/01/shots/shot_{n:02d}.png", SHOTS)),
    "clips": ("shots", numbered("01/shot_{n}.mp4", SHOTS)),
    # EntityBench, eval/evaluate_benchmark.py at 3776439: EPISODE/{scene:03d}_{shot:03d}*.mp4
    "EntityBench": ("entities", of_episode("ep_a/{s:03d}_{n:03d}.mp4")),
    "scene and shot": ("entities", of_episode("ep_a/scene{s}_shot{n}.mov")),
    "flat episodes": ("entities", of_episode("ep_a_{s}_{n}.mkv")),
    "short words": ("entities", of_episode("EP-A/s{s}_sh{n}_take2.webm")),
    "names of the suite": ("events", [f"{name}.mp4" for name in PROMPTS]),
    "spaces and kinds": ("events", [f"{name.replace('_', ' ')}.webm" for name in PROMPTS]),
    # VBench, prompts/README.md: MODEL/$prompt-$index.mp4, the prompt in its own words, index from 0
    "VBench": ("events", [f"{name.replace('_', ' ')}.-{index}.mp4" for name in PROMPTS for index in (0, 1)]),
    "a folder per prompt": ("events", [f"{name}/{index}.mkv" for name in PROMPTS for index in (0, 1)]),
}


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_video(tmp_path_factory.mktemp("video") / "one.mp4", 8).read_bytes()


@pytest.fixture
def lay(tmp_path: Path, video: bytes) -> Callable[[Iterable[str]], Path]:
    """Write files of the right content into a folder, each picture another one."""

    def write(names: Iterable[str]) -> Path:
        for number, name in enumerate(names):
            path = tmp_path / "model-x" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            form = {".jpg": "JPEG"}.get(path.suffix, path.suffix[1:].upper())
            image = Image.new("RGB", (64, 64), (number * 9, 80, 200))
            image.paste((250, 250, 9), (4, 4, 20, 20 + number))
            is_picture = form in ("PNG", "JPEG", "WEBP", "AVIF")
            path.write_bytes(picture_bytes(image, form) if is_picture else video)
        return tmp_path / "model-x"

    return write


def suite() -> Suite:
    entry = {"prompt": "x", "event_list": ["a", "b"], "class": ["human"]}
    return Suite({f"{name}.mp4": EventPrompt.model_validate(entry) for name in PROMPTS})


def looked_at(kind: str, folder: Path, data: Path, record: StoryRecord) -> tuple[bool, int, Wanted]:
    """Return whether outputs are found without an error, how many files are used, and what was wanted."""
    if kind == "katha":
        boards = check_outputs(folder, [record])
        return boards.ok, sum(len(board.files) for board in boards.valid), wanted_storyboards([record])
    if kind == "shots":
        shot_set = read_shot_set(draw_shot_set(data, 1, 3, 1))[0]
        shots = check_shots(folder, shot_set)
        return shots.ok, shots.accounting()["shots_valid"], wanted_shots(shot_set)
    if kind == "entities":
        whole = read_entity_set(write_episodes(data, [written_episode()]), rules=False)[0]
        episodes = check_episodes(folder, whole, options=CheckOptions(decode=False))
        return episodes.ok, episodes.accounting()["shots_valid"], wanted_episodes(whole)
    videos = check_videos(folder, suite())
    return videos.ok, videos.accounting()["videos_valid"], wanted_videos(suite())


@pytest.mark.parametrize("name", READ)
def test_outputs_in_a_usual_layout_are_read_whole(name, lay, tmp_path, records):
    kind, files = READ[name]
    folder = lay(file.replace("{title}", records[0].title) for file in files)
    ok, used, wanted = looked_at(kind, folder, tmp_path / "data", records[0])
    assert (ok, used) == (True, len(files))
    rows = suggest(folder, wanted)
    assert {row["why"] for row in rows} == {"read"}
    assert len({(row["unit"], row["part"], row["seed"]) for row in rows}) == len(files)


SORTED: dict[str, tuple[int, list[str], dict[str, str | None], list[str]]] = {
    "the id goes before what is called alike": (
        1, ["EP-1/", "ep_1/"], {"ep_1": "ep_1"}, ["EP-1 called like ep_1, which has another folder"]),
    "of two that are alike none is taken": (
        1, ["EP-1/", "ep 01/"], {},
        ["EP-1 called like ep_1, and so is ep 01", "ep 01 called like ep_1, and so is EP-1"]),
    "what lies flat counts where there is no folder": (1, ["ep_1_2.png", "1 - 3.png"], {"ep_1": None}, []),
    "what lies flat beside a folder does not": (
        1, ["ep_1/", "ep_1_2.png"], {"ep_1": "ep_1"}, ["ep_1_2.png ep_1 has a folder"]),
    "a file is a unit where units may be files": (2, ["ep_1.png"], {"ep_1": None}, []),
    "else it is not": (1, ["ep_1.png", "a\nb/", ".x"], {}, ["a\\nb expected", "ep_1.png expected"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SORTED)
def test_walk_takes_each_entry_for_one_unit_or_says_why_not(name, tmp_path):
    numbers, entries, taken, said = SORTED[name]
    for entry in entries:
        (tmp_path / entry).mkdir() if entry.endswith("/") else (tmp_path / entry).touch()
    form = Form("episode", (".png",), "episodes", numbers)
    found = walk(tmp_path, Names({"ep_1": (), "ep_2": ()}), form)
    assert {unit: place.folder and place.folder.name for unit, place in found.of.items()} == taken
    told = sorted(f"{issue.where} {issue.message}" for issue in found.issues)
    assert len(told) == len(said) and all(map(str.startswith, told, said)), told


def command(*args: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["outputs", "check", *map(str, args)])
    return done.exit_code, done.output


TOLD: dict[str, tuple[str, list[str], dict[str, tuple[str, str]]]] = {
    # UNO, inference_custom.py: two numbers in a name, of which nothing says which is the shot
    "two numbers": (
        "shots", ["01/1_0.png", "01/2_0.png", "01/3_0.png"],
        {"01/1_0.png": ("01", "01"), "01/2_0.png": ("01", "02"), "01/3_0.png": ("01", "03")},
    ),
    "letters": (
        "shots", ["01/a.png", "01/b.png", "01/c.png"],
        {"01/a.png": ("01", "01"), "01/b.png": ("01", "02"), "01/c.png": ("01", "03")},
    ),
    "numbers for prompts": (
        "events", ["0000.mp4", "0001.mp4"],
        {"0000.mp4": (f"{PROMPTS[0]}.mp4", ""), "0001.mp4": (f"{PROMPTS[1]}.mp4", "")},
    ),
    "a running number over scenes": (
        "entities", [f"ep_a/clip{number}.mp4" for number in range(1, 6)],
        {f"ep_a/clip{number}.mp4": ("ep_a", f"{s:03d}_{n:03d}") for number, (s, n) in enumerate(KEYS, 1)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_outputs_that_cannot_be_told_are_named_and_a_map_makes_the_layout(name, lay, tmp_path, records):
    kind, files, guesses = TOLD[name]
    folder = lay(files)
    ok, used, _ = looked_at(kind, folder, tmp_path / "data", records[0])
    assert (ok, used) == (False, 0)
    given = ["--release", tmp_path / "data", *(("--cuts-by", "histogram") if kind == "episodes" else ())]
    if kind == "events":
        (tmp_path / "suite.json").write_text(json.dumps({k: v.as_json() for k, v in suite().prompts.items()}))
        given = ["--suite", tmp_path / "suite.json"]
    code, told = command(folder, *given)
    assert code == 1 and "cannot be told: --suggest map.csv writes what each file may be" in told
    code, told = command(folder, *given, "--suggest", tmp_path / "map.csv")
    assert (code, f"0 read, {len(files)} guessed, 0 unknown" in told) == (0, True), told
    with (tmp_path / "map.csv").open(encoding="utf-8", newline="") as handle:
        assert {row["file"]: (row["unit"], row["part"]) for row in csv.DictReader(handle)} == guesses
    code, told = command(folder, *given, "--map", tmp_path / "map.csv", "--out", tmp_path / "tidy")
    assert code == 0, told
    assert looked_at(kind, tmp_path / "tidy", tmp_path / "again", records[0])[:2] == (True, len(files))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("01/a.png,01,07,,", "no story '01' with '07'; known are 01, 02, 03"),
        ("01/none.png,01,01,,", "no file '01/none.png'"),
        ("../a.png,01,01,,", "no file '../a.png'"),
        ("01/a.png,01,01,,\n01/b.png,01,1,,", "01/01.png is 01/a.png already"),
        ("01/a.png,,,,", "no row names a unit"),
    ],
)
def test_a_map_that_cannot_be_right_is_refused_and_writes_nothing(row, said, lay, tmp_path):
    folder = lay(["01/a.png", "01/b.png"])
    data = draw_shot_set(tmp_path / "data", 1, 3, 1)
    (tmp_path / "map.csv").write_text(f"file,unit,part,seed,why\n{row}\n")
    code, told = command(folder, "--release", data, "--map", tmp_path / "map.csv", "--out", tmp_path / "tidy")
    assert code != 0 and said in " ".join(told.split())
    assert not (tmp_path / "tidy").exists()


def test_missing_is_the_same_word_level_and_exit_code_for_every_kind(lay, tmp_path, records):
    for kind, name, said in (
        ("katha", "two digits", "scene 2 is missing"), ("shots", "shot and number", "shot 2 is missing"),
        ("entities", "EntityBench", "shot 1:2 is missing"),
        ("events", "names of the suite", f"video {PROMPTS[1]}.mp4 is missing"),
    ):  # fmt: skip
        folder = lay(file for at, file in enumerate(READ[name][1]) if at != 1)
        place = tmp_path / kind
        folder.rename(place)
        data = tmp_path / f"data-{kind}"
        if kind == "katha":
            report = check_outputs(place, [records[0]])
        elif kind == "shots":
            report = check_shots(place, read_shot_set(draw_shot_set(data, 1, 3, 1))[0])
        elif kind == "entities":
            whole = read_entity_set(write_episodes(data, [written_episode()]), rules=False)[0]
            report = check_episodes(place, whole, options=CheckOptions(decode=False))
        else:
            report = check_videos(place, suite())
        assert [(issue.code, issue.level, issue.message) for issue in report.issues] == [
            ("missing", "error", said)
        ]
        assert not report.ok
