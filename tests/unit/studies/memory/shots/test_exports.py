"""Packets as generators read them: the bundled forms, one that a user writes, and what is refused."""

import json
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from fabula.errors import ConfigError, TargetError
from fabula.schemas.plain_files import json_lines
from fabula.studies.memory.shots.exports import PlacedPacket, export_packets, read_packets
from fabula.studies.memory.shots.pipeline import PacketOptions, make_packets
from fabula.testing.memory_banks import write_bank
from fabula.testing.written_episodes import write_episodes

FORM = """
about = "Mine."
image = "pictures/{{ episode.id }}-{{ shot.name }}-{{ image.place }}.jpg"
result = "{{ episode.id }}_{{ shot.name }}.mp4"
[values]
mood = "calm"
[shot]
said = "{{ shot.action }} ({{ values.mood }})"
[[file]]
path = "{{ episode.id }}/{{ shot.name }}.json"
per = "shot"
content = '''{"text": {{ shot.said | tojson }}, "out": {{ shot.result | tojson }}}'''
"""


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlacedPacket, ...]:
    folder = tmp_path_factory.mktemp("packets")
    write_episodes(folder / "set")
    write_bank(folder / "set", folder / "memory")
    options = PacketOptions(workers=0, created_at="2026-01-01T00:00:00Z")
    make_packets(folder / "memory", folder / "run", options, folder / "set")
    return read_packets(folder / "run")


def test_image_video_when_exported_has_a_line_for_each_shot_with_files_that_are_there(
    packets: tuple[PlacedPacket, ...], tmp_path: Path
) -> None:
    done = export_packets(packets, "image-video", tmp_path / "out", {"seconds": 8})
    assert done.as_json() == {
        "out": str(tmp_path / "out"), "files": ["requests.jsonl"], "images": 16, "shots": 7, "frames": 4,
    }  # fmt: skip
    lines = list(json_lines(tmp_path / "out/requests.jsonl"))
    assert lines[1]["images"] == [
        "ep_a/001_002/01_portrait.png", "ep_a/001_002/02_portrait.png", "ep_a/001_002/03_keyframe.png",
    ]  # fmt: skip
    assert [line["first_frame_from"] for line in lines][:4] == [
        None,
        "ep_a/001_001.mp4",
        None,
        "ep_a/002_001.mp4",
    ]
    assert lines[0]["memory_frame_from"] is None and lines[0]["seconds"] == 8
    assert lines[0]["prompt"] == packets[0].packet.prompt and lines[0]["out"] == "ep_a/001_001.mp4"
    for line in lines:
        for name in line["images"]:
            assert (tmp_path / "out" / name).is_file()
    portrait = packets[0].picture("01_portrait.png")
    assert (tmp_path / "out/ep_a/001_001/01_portrait.png").read_bytes() == portrait


def test_storymem_when_exported_has_a_story_of_one_shot_its_memory_and_a_script_that_parses(
    packets: tuple[PlacedPacket, ...], tmp_path: Path
) -> None:
    export_packets(packets, "storymem", tmp_path / "out", {})
    folder = tmp_path / "out/ep_a/001_002"
    assert sorted(path.name for path in folder.iterdir()) == [
        *(f"00_00_keyframe0{number}.jpg" for number in range(3)), "story.json",
    ]  # fmt: skip
    story = json.loads((folder / "story.json").read_text("utf-8"))
    assert story["scenes"] == [
        {"scene_num": 1, "video_prompts": [packets[1].packet.prompt], "cut": [False]}
    ]  # fmt: skip
    with Image.open(folder / "00_00_keyframe00.jpg") as image:
        assert image.format == "JPEG" and image.size == (256, 256)
    script = tmp_path / "out/run.sh"
    assert script.read_text("utf-8").startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", str(script)], check=True)
    # A stand-in for the pipeline that notes what it is given and leaves a video and a last frame.
    (tmp_path / "pipeline.sh").write_text(
        'while [ "$1" != --output_dir ]; do shift; done\n'
        'echo v > "$2/01_01.mp4"\necho f > "$2/last_frame.jpg"\n'
    )
    text = script.read_text("utf-8").replace("python pipeline.py", f"sh {tmp_path / 'pipeline.sh'}")
    script.write_text(text, "utf-8")
    subprocess.run(["sh", "run.sh"], check=True, cwd=tmp_path / "out")
    assert (tmp_path / "out/ep_a/002_003.mp4").is_file() and (
        tmp_path / "out/ep_a/002_003/last_frame.jpg"
    ).is_file()


def test_form_of_a_users_own_when_given_writes_what_it_says(
    packets: tuple[PlacedPacket, ...], tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(FORM)
    done = export_packets(packets, str(tmp_path / "mine.toml"), tmp_path / "out", {"mood": "wild"})
    assert len(done.files) == 7
    assert json.loads((tmp_path / "out/ep_b/001_001.json").read_text()) == {
        "text": "Ben sits alone in The Garden. (wild)", "out": "ep_b_001_001.mp4",
    }  # fmt: skip
    assert (tmp_path / "out/pictures/ep_a-001_001-0.jpg").is_file()
    with pytest.raises(TargetError, match="not empty"):
        export_packets(packets, str(tmp_path / "mine.toml"), tmp_path / "out", {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("about", "abuot"), "abuot"),
        (("| tojson }}, ", "}}, "), "gives no JSON"),
        (("{{ shot.said | tojson }}", '"{{ shot.sayed }}"'), "sayed"),
        (('"pictures/', '"../pictures/'), "is no path below the new folder"),
        (("{{ episode.id }}/{{ shot.name }}.json", "same.json"), "is written twice"),
        (("[values]", "[values"), "cannot be read"),
    ],
)
def test_form_when_it_is_wrong_is_refused_and_nothing_is_written(
    packets: tuple[PlacedPacket, ...], tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    (tmp_path / "mine.toml").write_text(FORM.replace(*change))
    with pytest.raises(ConfigError, match=words):
        export_packets(packets, str(tmp_path / "mine.toml"), tmp_path / "out", {})
    assert not (tmp_path / "out").exists()
