"""Small runs, releases and evaluations as the commands made them once, kept to be replayed by later code.

    python -m fabula.testing.golden_runs tests/golden/replays [NAME ...]

Each is an archive ``NAME.tar.xz`` of a folder with the inputs, the run with its journal, what was packed from
it, what commands said of it, and ``replay.json``: the commands, to be given in that folder, and the versions
of the libraries that made it. A model, where one was asked, listened at :data:`PORT`; nobody does later. What
is kept is made anew on purpose only, since it stands for what users have on their disks.
"""

import json
import os
import platform
import shlex
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path
from unittest.mock import patch

import yaml
from packaging.utils import canonicalize_name

from .. import version
from ..schemas.canonical import jsonl_lines, pretty_bytes, write_atomic
from .model_server import ModelServer
from .model_server.serving import Handler
from .sample_history import CREATED, SALT, command
from .table_detector import SETTINGS

PORT = 18731
"""Where the models of the kept runs listened: below the ports that a system hands out."""
STORIES = 12
"""How many of the sample stories are built; one of them is hidden."""
MODEL = f"http://127.0.0.1:{PORT}/v1#stand-in"
REPLAY = "replay.json"
METHODS = {"model-a": 96, "model-b": 128}
"""Methods that draw storyboards -> the side of their pictures, by which their judge knows them."""
HAT = (
    "On a windy morning Mira walked along the river with her new hat. A gust tore the hat from her head. She"
    " ran after it to the bank. An old ferryman saw the hat on the water. The ferryman laughed and caught it"
    " with his pole. At night Mira and the ferryman ate soup in his hut."
)
SEEDS = (
    {"prompt": "A dog rolls over, begs for a treat, and then catches it.", "author": "ana"},
    {"prompt": "A man opens a door, and then walks out.", "origin": "retrieval"},
)


@dataclass(frozen=True)
class Golden:
    """What is kept under one name."""

    # writes the inputs into a folder and returns the model that is asked, None for none
    prepare: Callable[[Path], Handler | None]
    run: tuple[str, ...]  # the command that makes the run
    # the command that packs its release; None for an evaluation
    pack: tuple[str, ...] | None = ()
    # file below ``said`` -> a command about it all, whose standard output the file keeps
    says: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _katha_rules(folder: Path) -> None:
    samples = resources.files("fabula.builders.katha") / "samples"
    for name, count in (("stories.jsonl", STORIES), ("gold.jsonl", 2)):
        rows = (samples / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(rows[:count]))
    (folder / "salt").write_text(SALT + "\n", "ascii")


def _katha_model(folder: Path) -> Handler:
    from .katha_model import KathaModel

    rows = (resources.files("fabula.builders.katha") / "samples" / "stories.jsonl").read_bytes().splitlines()
    without = json.loads(rows[1]) | {"moral_label": None, "narrative_type": None}
    write_atomic(folder / "stories.jsonl", jsonl_lines([json.loads(rows[0]), without]))
    return KathaModel(critical=1.0)


def _shots_rules(folder: Path) -> None:
    rights = {"rights_status": "public_domain_or_rights_compatible", "source_collection": "own"}
    row = {"id": "hat", "title": "The Hat", "language": "en", "text": HAT, **rights}
    write_atomic(folder / "stories.jsonl", jsonl_lines([row]))


def _shots_model(folder: Path) -> Handler:
    from .shots_model import answer

    _shots_rules(folder)
    return answer


def _events(folder: Path) -> Handler:
    from .stand_in_models import answer_suite

    write_atomic(folder / "seeds.jsonl", jsonl_lines(SEEDS))
    return answer_suite


def _entities(folder: Path) -> Handler:
    import numpy as np

    from .drawn import draw_panel
    from .drawn_episode import FRAMES, SIZE, write_episode
    from .drawn_videos import write_frames
    from .entities_model import answer

    shots = ["AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1"]
    video, _ = write_episode(folder, shots)
    # Drawn panels take little room; where people are stands in the file of detections.
    panels = [np.asarray(draw_panel(number, SIZE)) for number in range(2, len(shots) + 2)]
    panels[::2] = [255 - panel for panel in panels[::2]]
    write_frames(video, (panel for panel in panels for _ in range(FRAMES)))
    return answer


def _judged_stories(folder: Path) -> Handler:
    from .drawn_storyboards import draw_outputs, drawn_release
    from .judge_model import JudgeModel
    from .sample_evaluation import Judge

    release = drawn_release(folder / "judged", 7)
    for name, side in METHODS.items():
        draw_outputs(folder / name, release.records, side=side)
    shares = {"model-a": 0.8, "model-b": 0.3}
    return Judge(
        {
            METHODS[name]: JudgeModel(release.records, {"text": 0.7, "image": share, "text_image": share})
            for name, share in shares.items()
        }
    )


def _judged_shots(folder: Path) -> Handler:
    from .drawn_shots import draw_shot_outputs, draw_shot_set
    from .stand_in_models import AlignmentModel

    draw_shot_set(folder / "judged", 2, 3)
    for name in ("model-a", "model-b"):
        draw_shot_outputs(folder / name, 2, 3)
    (folder / "model-b/02/shots/shot_03.png").unlink()
    return AlignmentModel({"scene": 4, "shot": 3})


def _judged_videos(folder: Path) -> Handler:
    from .drawn import write_video
    from .stand_in_models import EventModel

    prompts = {"cup": "A cup falls, and breaks.", "dog": "A dog runs, and sleeps."}
    suite = {
        f"{name}.mp4": {
            "prompt": prompt, "event_list": [f"Event {number} of: {prompt}" for number in (1, 2)],
            "class": ["object", "2_events"],
        }
        for name, prompt in prompts.items()
    }  # fmt: skip
    (folder / "suite.json").write_text(json.dumps(suite, indent=4) + "\n")
    for method in ("model-a", "model-b"):
        (folder / method).mkdir()
        for width, name in enumerate(prompts):
            write_video(folder / method / f"{name}.mp4", 12, size=(48 + 16 * width, 48))
    return EventModel({prompts["cup"]: (1, 0)})


_PREPARE: Mapping[str, Callable[[Path], Handler | None]] = {
    "katha-rules": _katha_rules,
    "katha-model": _katha_model,
    "shots-rules": _shots_rules,
    "shots-model": _shots_model,
    "events-model": _events,
    "entities-model": _entities,
    "evaluate-katha": _judged_stories,
    "evaluate-images": _judged_shots,
    "evaluate-events": _judged_videos,
}


def _golden() -> Iterator[tuple[str, Golden]]:
    """Yield what ``golden_runs.yaml`` says."""
    told = yaml.safe_load((resources.files(__package__) / "golden_runs.yaml").read_text("utf-8"))
    names = {"model": MODEL, "models": " ".join(f"--set {setting}" for setting in SETTINGS)}
    names |= {"made": told["made"].format(created=CREATED), "both": told["both"].format(model=MODEL)}
    for name, kept in told["golden"].items():
        pack = None if kept["pack"] is None else tuple(shlex.split(f"{told['pack']} {kept['pack']}"))
        says = {file: tuple(said.split()) for file, said in kept["says"].items()}
        yield name, Golden(_PREPARE[name], tuple(kept["run"].format_map(names).split()), pack, says)


GOLDEN: Mapping[str, Golden] = dict(_golden())
"""Name -> what is kept."""


def make(name: str, target: Path) -> Path:
    """Make what is kept under a name, and return its archive."""
    golden, versions = GOLDEN[name], dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="fabula-golden-") as scratch, noted_versions(versions):
        folder = Path(scratch) / name
        (folder / "said").mkdir(parents=True)
        with patch.dict(os.environ, {"XDG_CACHE_HOME": f"{scratch}/cache"}), chdir(folder):
            model = golden.prepare(folder)
            commands = {"run": golden.run}
            with nullcontext() if model is None else ModelServer(model, port=PORT):
                command(*golden.run)
            command(*golden.run)  # as it is from now on: what is made was made before
            if golden.pack is not None:
                commands["pack"] = golden.pack
                command(*commands["pack"])
            for file, said in golden.says.items():
                (folder / "said" / file).write_text(command(*said), "utf-8")
        for page in (folder / "said").rglob("*.html"):
            page.unlink()
        document = {"commands": commands, "says": golden.says, "versions": versions}
        write_atomic(folder / REPLAY, [pretty_bytes(document)])
        archive = target / f"{name}.tar.xz"
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(folder, ".", filter=_by_nobody)
    return archive


def _by_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


@contextmanager
def noted_versions(versions: dict[str, str]) -> Iterator[None]:
    """Note the versions of Python, Fabula and the libraries that are asked for in the meantime."""
    versions |= {"python": platform.python_version(), "fabula": version.__version__}
    installed = metadata.distribution

    def note(name: str) -> metadata.Distribution:
        found = installed(name)
        versions[name] = found.version
        return found

    with patch.object(metadata, "distribution", note):
        yield


@contextmanager
def with_versions(versions: Mapping[str, str]) -> Iterator[None]:
    """Let the versions of Python, Fabula and the libraries in the meantime be those that are given."""
    known = {canonicalize_name(name): version for name, version in versions.items()}

    def stated(installed: metadata.Distribution) -> str:
        return known.get(canonicalize_name(installed.name), installed.metadata["Version"])

    with (
        patch.object(metadata.Distribution, "version", property(stated)),
        patch("platform.python_version", lambda: versions["python"]),
        patch("fabula.version.__version__", versions["fabula"]),
    ):
        yield


def main(target: str, *names: str) -> None:
    """Make what is kept under some names, or all of it, anew."""
    for name in names or GOLDEN:
        make(name, Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
