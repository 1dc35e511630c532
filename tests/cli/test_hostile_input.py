"""Every file that a command reads, damaged at random: a stated exit code, no traceback, the same input."""

import json
import random
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.testing.drawn import write_video
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.endurance import rounds
from fabula.testing.memory_banks import write_bank
from fabula.testing.official_packages import write_package
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_studies import Simulation, write_simulated_study
from fabula.testing.written_episodes import write_episodes

pytestmark = [pytest.mark.slow, pytest.mark.endurance]
Fabula = Callable[..., subprocess.CompletedProcess[str]]
STATED = {0, 1, 2, 3, 4, 5}
"""Exit codes that say what happened; 70 is a bug of ours, a negative one a crash."""
WORDS = (
    "\x00",
    "\ud800",
    "\u2028",
    "\u200b",
    "𠮷",
    "A" * 70_000,
    "../../etc/passwd",
    "=1+1",
    "<script>",
    "'; --",
)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 10**400, 1e308, float("nan"), float("-inf"), "", [], {}, [[]], {"": 0}, *WORDS,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A command and what it reads.

    Attributes:
        material: folder of what it reads.
        command: IN stands for that folder, OUT for a new one, SOUND for what is never damaged.
        files: those that are damaged.
    """

    material: str
    command: str
    files: str = "**/*"


CASES = (
    Case("stories", "build stories IN/stories.jsonl"),
    Case("stories", "build stories IN/tale.txt", "*.txt"),
    Case("stories", "build stories IN/stories.csv", "*.csv"),
    Case("stories", "build shots IN/stories.jsonl", "*l"),
    Case("run", "validate IN"),
    Case("run", "stats IN"),
    Case("run", "run status IN"),
    Case("run", "run show IN kb25k_0001"),
    Case("run", "run retry IN --failed"),
    Case("run", 'edit IN kb25k_0001 \'$.scenes[1].action\' --new \'"waits"\' --who ana --why \'it is so\''),
    Case("run", "release pack IN --version 0.1.0 --license CC-BY-4.0 --out OUT"),
    Case("release", "release verify IN"),
    Case("release", "release verify IN --quick"),
    Case("release", "release diff SOUND IN"),
    Case("release", "validate IN"),
    Case("release", "stats IN"),
    Case("release", "export stories IN --out OUT"),
    Case("package", "import stories IN --out OUT"),
    Case("boards", "outputs check IN/drawn --release IN/release", "drawn/**/*"),
    Case("archive", "score IN/run --release IN/release --resamples 20", "run/**/*"),
    Case("archive", "report IN/run --release IN/release --out OUT/page.html", "run/**/*"),
    Case("archive", "compare IN/run SOUND/run --release IN/release --resamples 20", "run/**/*"),
    Case("archive", "import archive IN/run SOUND/run --out OUT", "run/**/*"),
    Case("shots", "import vistory IN/data --out OUT", "data/**/*"),
    Case("shots", "outputs check IN/model --release IN/data", "**/*"),
    Case("shots", "baseline copy-paste --release IN/data --out OUT", "data/**/*"),
    Case("episodes", "import entitybench IN/data --out OUT"),
    Case("episodes", "validate IN/data"),
    Case("episodes", "stats IN/data --html OUT/page.html"),
    Case("suite", "build events IN/suite.json", "*.json"),
    Case("suite", "stats IN/suite.json", "*.json"),
    Case("suite", "outputs check IN/videos --suite IN/suite.json"),
    Case("suite", "import storyeval-results IN/results.json --suite IN/suite.json --out OUT", "*.json"),
    Case("results", "import entitybench-results IN --out OUT", "*.json"),
    Case("release", "export plans IN --out OUT"),
    Case("episodes", "memory build IN/data --text-only --workers 0 --out OUT"),
    Case("bank", "memory packets IN/memory --scripts IN/data --workers 0 --out OUT"),
    Case("plan", "experiment run IN/study.toml --dry-run", "*.toml"),
    Case("plan", "experiment run IN/study.toml --dry-run", "release/*"),
    Case("study", "experiment status IN", "[!r]*/**/*"),
    Case("study", "experiment tables IN --table leaderboard"),
    Case("tables", "correlate IN/a.csv IN/b.csv --on method"),
)  # fmt: skip


def write_stories(folder: Path) -> None:
    told = "A fox {} saw a crow. She was hungry, for it was winter. The crow sang. The cheese fell. She ate."
    rows = [
        {"id": f"kb25k_{n:04}", "title": f"Tale {n}", "language": "en", "text": told.format(n)}
        for n in range(3)
    ]
    (folder / "stories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "tale.txt").write_text(rows[0]["text"], "utf-8")
    cells = "".join(",".join(row.values()) + "\n" for row in rows)
    (folder / "stories.csv").write_text("id,title,language,text\n" + cells, "utf-8")


def write_suite(folder: Path) -> None:
    events = {"dog.mp4": ["A dog runs", "The dog sits"], "cat.mp4": ["A cat jumps", "The cat sleeps"]}
    suite = {
        name: {"prompt": ", then ".join(told), "event_list": told, "class": ["animal"]}
        for name, told in events.items()
    }
    results = {name: "1, 0" for name in suite}
    (folder / "suite.json").write_text(json.dumps(suite, indent=4), "utf-8")
    (folder / "results.json").write_text(json.dumps(results, indent=4), "utf-8")
    (folder / "videos").mkdir()
    for name in suite:
        write_video(folder / "videos" / name, 12)


def write_results(folder: Path) -> None:
    pair = {"entity_name": "Ana", "entity_type": "character", "gap": 2, "similarity": 0.5}
    near = {"shot": "1:1", "sim_to_centroid": 0.9, "clip_text_sim": 0.3}
    entity = {"mean_sim_to_centroid": 0.9, "vlm_anchor_shot": "1:1", "per_shot_sim_to_centroid": [near]}
    counted = {"value": 0.5, "n_evaluated": 2, "n_failed": 0, "n_skipped": 1}
    result = {
        "episode_id": "film__run1", "tier": "easy", "num_shots": 3,
        "vbench_means": {"dynamic_degree": counted}, "metrics": {"cs_face": counted},
        "per_entity_scores": {"face_Ana": entity}, "gap_decay_data": [pair],
    }  # fmt: skip
    (folder / "film__run1.json").write_text(json.dumps(result, indent=2), "utf-8")
    told = {"method_name": "ours", "model_checkpoints": {"CLIP": {"path": "/a/b", "type": "directory"}}}
    (folder / "run_manifest.json").write_text(json.dumps(told), "utf-8")


def write_tables(folder: Path) -> None:
    for name in ("a", "b"):
        rows = "".join(f"m{n},{n / 7},{n * n % 5}\n" for n in range(9))
        (folder / f"{name}.csv").write_text(f"method,score,other\n{rows}", "utf-8")


STUDY = """
[study]
name = "small"
release = "release"
plans = ["scene", "transition-aware"]
judges = ["openai:tested"]

[renderers.drawn]
model = "image:drawn:storyboard"

[plants]
method = "scene+drawn"
"""


@pytest.fixture(scope="module")
def material(
    fabula_command: Fabula, sample_run: Path, sample_release: Path, tmp_path_factory
) -> dict[str, Path]:
    """A sound folder of each sort."""
    top = tmp_path_factory.mktemp("sound")
    folders = {case.material: top / case.material for case in CASES}
    for name, folder in folders.items():
        if name not in ("run", "release", "package"):
            folder.mkdir()
    write_stories(folders["stories"])
    shutil.copytree(sample_run, folders["run"])
    shutil.copytree(sample_release, folders["release"])
    write_package(folders["package"])
    shutil.copytree(sample_release, folders["boards"] / "release")
    draw_outputs(folders["boards"] / "drawn", fabula.load(sample_release).records[:1])
    write_simulated(folders["archive"], 24, [("a", Truth()), ("b", Truth())])
    draw_shot_set(folders["shots"] / "data", 1)
    draw_shot_outputs(folders["shots"] / "model", 1)
    write_episodes(folders["episodes"] / "data")
    write_suite(folders["suite"])
    write_results(folders["results"])
    write_tables(folders["tables"])
    write_episodes(folders["bank"] / "data")
    write_bank(folders["bank"] / "data", folders["bank"] / "memory")
    shutil.copytree(sample_release, folders["plan"] / "release")
    (folders["plan"] / "study.toml").write_text(STUDY, "utf-8")
    cells = {("direct", "one"): Truth(), ("scene", "one"): Truth()}
    write_simulated_study(folders["study"], Simulation(cells, 8, seed=3))
    return folders


def damaged(data: bytes, random: random.Random) -> bytes:
    """The bytes with one thing wrong that happens to files, or that somebody does to them."""
    at = random.randrange(len(data) + 1)
    ways: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: data[:at],
        lambda: data[at:],
        lambda: (
            data[:at] + bytes(random.randrange(256) for _ in range(random.randrange(1, 64))) + data[at + 16 :]
        ),
        lambda: data[:at] + b"\0" * random.randrange(1, 5000) + data[at:],
        lambda: data + data[at:],
        lambda: b"\xef\xbb\xbf" + data,
        lambda: data.decode("utf-8", "replace").encode("utf-16"),
        lambda: data.replace(b"\n", b"\r"),
        lambda: b"[" * 200_000,
        lambda: data[:at] + b'{"a":' * 50_000,
        lambda: re.sub(
            rb"[0-9]+", lambda found: random.choice([b"-1", b"1e999", b"9" * 400, b"NaN"]), data, count=3
        ),
    ]
    if data[:1] in (b"{", b"["):
        ways += [lambda: changed_json(data, random)] * 10
    return random.choice(ways)()


def changed_json(data: bytes, random: random.Random) -> bytes:
    """The JSON, or one of its lines, with one value replaced, one key gone or one key too many."""
    lines = data.decode("utf-8").splitlines()
    whole = len(lines) < 2 or lines[0] in "{["
    number = 0 if whole else random.randrange(len(lines))
    value = json.loads(data if whole else lines[number])
    holder, key = random.choice(list(holders(value)) or [([value], 0)])
    match random.randrange(4):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[random.choice(WORDS)] = holder[key]
        case 2 if isinstance(holder, list):
            holder.append(holder[key])
        case _:
            holder[key] = random.choice(VALUES)
    text = json.dumps(value)
    lines = [text] if whole else [*lines[:number], text, *lines[number + 1 :]]
    return "\n".join([*lines, ""]).encode("utf-8")


def holders(value: Any) -> Any:
    """Every place in a JSON value: what holds it, and its key or number."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(items):
        yield value, key
        yield from holders(child)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


READ_ONLY = {"build", "import", "export", "outputs", "baseline", "correlate", "score", "compare", "release"}


def command_of(case: Case, folder: Path, sound: Path, out: Path) -> list[str]:
    places = {"IN": str(folder), "OUT": str(out), "SOUND": str(sound)}
    drafting = ["--planner", "rules"] if case.command.startswith(("build stories", "build shots")) else []
    made = ["--workers", "0", "--out", str(out)] if case.command.startswith("build") else []
    given = [
        re.sub("IN|OUT|SOUND", lambda found: places[found[0]], part) for part in shlex.split(case.command)
    ]
    return [*given, *drafting, *made]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command)
def test_command_when_its_input_is_sound_does_its_work(fabula_command, material, tmp_path, case):
    folder = Path(shutil.copytree(material[case.material], tmp_path / "in"))
    done = fabula_command(*command_of(case, folder, material[case.material], tmp_path / "out"))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert any(path.is_file() for path in folder.glob(case.files))


@pytest.mark.parametrize("number", range(rounds(10 * len(CASES))))
def test_command_when_a_file_of_its_input_is_damaged_says_so_and_leaves_it(
    fabula_command: Fabula, material: dict[str, Path], tmp_path: Path, number: int
) -> None:
    chance = random.Random(f"hostile {number}")
    case = CASES[number % len(CASES)]
    folder = Path(shutil.copytree(material[case.material], tmp_path / "in"))
    files = sorted(path for path in folder.glob(case.files) if path.is_file())
    path = chance.choice(files)
    path.write_bytes(damaged(path.read_bytes(), chance))
    before = contents(folder)
    args = command_of(case, folder, material[case.material], tmp_path / "out")
    done = fabula_command(*args)
    said = f"{' '.join(args)}\ndamaged: {path}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert done.returncode in STATED, said
    assert "Traceback" not in done.stderr + done.stdout, said
    if done.returncode == 2:
        assert done.stderr.strip(), said
    if args[0] in READ_ONLY:
        assert contents(folder) == before, said
