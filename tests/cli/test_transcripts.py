"""What people type and what becomes of it: every command in short, and the transcripts in ``transcripts``.

A transcript is a case: what lies in the folder before, and steps. A step is a command with its exit code and
texts that it shows, or does not show where they begin with ``not:``; or it is files that are written then.
All run in this process. No command shows a traceback; what ``--json`` prints is one JSON document.
"""

import inspect
import json
import os
import random
import resource
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, get_args

import pytest

from fabula.cli.command import COMMANDS, Command
from fabula.cli.folders import KINDS, TAKES, recognise
from fabula.errors import ExitCode
from fabula.releases.loading import load
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.endurance import rounds
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.official_packages import write_package
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_images import Simulated, write_images
from fabula.testing.simulated_judgements import Truth
from fabula.testing.written_episodes import write_episodes

from .conftest import invoke

HERE = Path(__file__).with_name("transcripts")
READ = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(HERE.glob("*.toml"))}
CODES = {int(code) for code in ExitCode} - {ExitCode.BUG, ExitCode.INTERRUPTED}
CREATED = "--workers 0 --created-at 2026-01-01T00:00:00Z"
ABOUT = "--version 0.1.0 --license CC-BY-4.0 --allow-drafts"
STORY = {
    "id": "hat", "title": "The Hat", "language": "en", "source_collection": "own",
    "text": "Mira walked along the river. An old ferryman saw her. Mira waved. The ferryman laughed.",
    "rights_status": "public_domain_or_rights_compatible",
}  # fmt: skip
SEED = {
    "prompt": "A dog runs to a ball and then bites it.",
    "event_list": ["a dog runs to a ball", "a dog bites a ball"],
}


def call(words: Sequence[object]) -> tuple[int, str, str]:
    """Run a command in this process: exit code, standard output and standard error."""
    done = invoke(*words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    assert "Traceback" not in done.output, done.output
    if "--json" in words:
        json.loads(done.stdout)
    return done.exit_code, done.stdout, done.stderr


def filled(command: str, names: Mapping[str, object]) -> list[str]:
    """Return the words of a command, with names in braces filled in."""
    for name, value in names.items():
        command = command.replace("{" + name + "}", str(value))
    return shlex.split(command)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind of folder, and files that commands take."""
    top = tmp_path_factory.mktemp("kinds")
    found = {kind: top / kind.replace(" ", "-") for kind in KINDS}

    def make(command: str, *ends: int) -> None:
        done = call(filled(command, {path.name: path for path in found.values()} | {"top": top}))
        assert done[0] in (0, *ends), (command, done)

    (top / "stories.jsonl").write_text(json.dumps(STORY) + "\n", "utf-8")
    (top / "seeds.jsonl").write_text(json.dumps(SEED) + "\n", "utf-8")
    write_run(found["run katha"], sample_bundles(12))
    draw_shot_set(found["package shots"])
    write_episodes(found["package entities"])
    make(f"release pack {{run-katha}} {ABOUT} --out {{release-katha}}")
    found["hidden"] = Path(f"{found['release katha']}-hidden")
    make(f"build shots {{top}}/stories.jsonl --out {{run-shots}} {CREATED}")
    make(f"build events {{top}}/seeds.jsonl --out {{run-events}} {CREATED}")
    make(f"release pack {{run-events}} {ABOUT} --language en --out {{release-events}}")
    for package, kind in (("vistory", "shots"), ("entitybench", "entities")):
        make(f"import {package} {{package-{kind}}} --out {{run-import-{kind}}} {CREATED[12:]}", 1)
        make(f"release pack {{run-import-{kind}}} {ABOUT} --language en --out {{release-{kind}}}", 1)
    write_images(found["archive"], Simulated({"a": 0.5, "b": 0.4}))
    (found["study"] / "tables").mkdir(parents=True)
    (found["study"] / "study.json").write_text("{}", "utf-8")
    judged = ("run evaluate-katha", "run evaluate-events", "run evaluate-images")
    runs = [kind for kind in KINDS if kind.startswith("run ") and not found[kind].exists()]
    for kind in runs:
        shutil.copytree(found["archive"], found[kind])
        manifest = json.loads((found["run shots"] / "run.json").read_text("utf-8"))
        if kind not in judged:
            (found[kind] / "evaluation.json").unlink()
            (found[kind] / "judgements.jsonl").unlink()
        (found[kind] / "run.json").write_text(json.dumps({**manifest, "kind": kind[4:]}), "utf-8")
    write_package(found["package katha"])
    draw_outputs(found["outputs"], load(found["release katha"]).records[:2])
    draw_shot_outputs(top / "pictures")
    found["empty"].mkdir()
    found["file"].write_text("nothing that is known\n", "utf-8")
    found["folder"].mkdir()
    (found["folder"] / "notes.csv").write_text("a,b\n", "utf-8")
    return {**found, "stories": top / "stories.jsonl"}


# Every command.

WRITING = ("init", "leaderboard init")
"""Commands whose folder is made."""


def needed(command: Command) -> Iterator[str]:
    """Yield words for all that a command must be given: a path where nothing is, a text, a number."""
    for parameter in inspect.signature(command.with_options()).parameters.values():
        if parameter.default is parameter.empty:
            kind, info = get_args(parameter.annotation)
            yield from (info.param_decls or ())[:1]
            given = "new" if parameter.name == "out" else "nowhere"
            yield given if kind is Path or Path in get_args(kind) else "1"


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_every_command_has_help_with_an_example_an_exit_code_of_the_table_and_json(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = command.name.split()
    code, shown, _ = call([*words, "--help"])
    assert code == 0 and f"  fabula {command.name}" in shown.partition("Examples:")[2]
    assert call([*words, "--nonsense"])[0] == ExitCode.USAGE
    code, shown, _ = call([*words, *needed(command), "--json"])
    read = "nowhere" in needed(command) and command.name not in WRITING
    assert code == ExitCode.USAGE if read else code in CODES, "an input that is not there is wrong usage"
    assert code in (0, 1, 3) or "error" in json.loads(shown)


# Transcripts.


@dataclass(frozen=True, kw_only=True)
class Case:
    """A transcript.

    Attributes:
        when: what is special.
        steps: commands with exit code and texts, or files with their text, in their order.
        on: name -> kind of folder that lies there before.
        stories: changes of a sound story, one each, in ``stories.jsonl``; its other fields stay.
        reads: a file or "stdout", with a place in its JSON such as ``totals.made`` -> what is there then.
        absent: what must not be there at the end.
        needs: libraries without which the case is not run.
    """

    when: str
    steps: Sequence[Any]
    on: Mapping[str, str] = field(default_factory=dict)
    stories: Sequence[Mapping[str, Any]] = ({},)
    reads: Mapping[str, Any] = field(default_factory=dict)
    absent: Sequence[str] = ()
    needs: Sequence[str] = ()


CASES = {
    f"{stem}: {given['when']}": (Case(**given), document.get("names", {}))
    for stem, document in READ.items()
    for given in document.get("case", ())
}


def write_files(files: Mapping[str, Any]) -> None:
    """Write texts; a table has a text with its encoding, and how often it is repeated."""
    for name, given in files.items():
        table = given if isinstance(given, Mapping) else {"text": given}
        content = str(table["text"]).encode(table.get("encoding", "utf-8")) * table.get("times", 1)
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)


def check_cure(said: str, error: str) -> None:
    """Check that an error says what to do, and that what comes next can be pasted into a shell."""
    if error.startswith("error:"):
        assert "\n  fix: " in error or "; `fabula " in error, error
    for line in (said + error).splitlines():
        if line.startswith("next: "):
            words = shlex.split(line[6:])
            words = words[words.index("&&") + 1 :] if "&&" in words else words
            assert words[0] == "fabula" and call([*words[1:], "--help"])[0] == 0, line


def value_at(document: Any, place: str) -> Any:
    for part in filter(None, place.split(".")):
        document = document[int(part) if isinstance(document, list) else part]
    return document


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if case.needs else []) for name, (case, _) in CASES.items()],
)
def test_transcript(name, request, tmp_path, monkeypatch):
    case, names = CASES[name]
    if missing := [library for library in case.needs if find_spec(library) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # read as the library is imported
    write_files({"stories.jsonl": "".join(json.dumps(STORY | change) + "\n" for change in case.stories)})
    for target, kind in case.on.items():
        shutil.copytree(request.getfixturevalue("folders")[kind], target)
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    said = ""
    for step in case.steps:
        if isinstance(step, Mapping):
            write_files(step)
            continue
        command, wanted, *texts = step
        code, said, error = call(filled(command, names))
        whole = said + error
        assert code == wanted, f"{command}: {code}\n{whole}"
        check_cure(said, error)
        for text in texts:
            assert (text.removeprefix("not:") in whole) != text.startswith("not:"), f"{text}\n{whole}"
    for place, value in case.reads.items():
        file, _, inner = place.partition(" ")
        text = said if file == "stdout" else Path(file).read_text("utf-8")
        assert (value_at(json.loads(text), inner) if inner else text) == value, place
    assert [path for path in case.absent if Path(path).exists()] == []
    assert all(path.exists() for path in before), "nothing that was there is lost"


def test_transcripts_when_counted_have_150_mistakes_with_their_exit_code() -> None:
    steps = [step for case, _ in CASES.values() for step in case.steps if not isinstance(step, Mapping)]
    assert sum(wanted != 0 for _, wanted, *_ in steps) >= 150


# Every command that takes a folder, given every kind that it does not take, says what that is.


ARGUMENTS: dict[str, str] = {
    parameter: command.replace("{compass}", READ["folders"]["names"]["compass"])
    for parameter, command in READ["folders"]["takes"].items()
}
DEAR = ("memory build source", "release verify hidden")
CHECKED = ("release verify path", "release verify hidden", "outputs check folders")
"""What these take may be damaged beyond recognition: what is wrong in it is found, one by one."""


def names_of(folders: Mapping[str, Path], folder: Path, new: Path) -> dict[str, Path]:
    return {"": folder, "new": new, **{name.replace(" ", "-"): path for name, path in folders.items()}}


def test_kinds_when_made_are_recognised(folders: dict[str, Path]) -> None:
    assert {kind: recognise(folders[kind]) for kind in KINDS} == {kind: kind for kind in KINDS}


def test_tables_when_compared_with_the_commands_name_real_ones() -> None:
    takes = {
        command.name: tuple(inspect.signature(command.with_options()).parameters) for command in COMMANDS
    }
    assert set(TAKES) - {f"{command} {name}" for command, names in takes.items() for name in names} == set()
    assert set(ARGUMENTS) == set(TAKES)
    fits = {fit.partition(" --")[0].partition(" RELEASE")[0] for what in KINDS.values() for fit in what.fits}
    assert fits <= takes.keys()


@pytest.mark.endurance
@pytest.mark.parametrize(
    "parameter",
    [pytest.param(each, marks=[pytest.mark.slow] if each in DEAR else []) for each in ARGUMENTS],
)
def test_command_when_given_what_it_does_not_take_says_what_that_is_and_what_fits(
    folders: dict[str, Path], tmp_path: Path, parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FABULA_TESTED_API_KEY", "x")
    wrong = []
    strange = [kind for kind in KINDS if kind not in TAKES[parameter]]
    count, first = rounds(len(strange)), list(ARGUMENTS).index(parameter)
    for number in range(count):  # others for each parameter, so that every kind has its turn in the short run
        kind = strange[(first + number) % len(strange)]
        what = KINDS[kind]
        names = names_of(folders, folders[kind], tmp_path / f"new-{kind.replace(' ', '-')}")
        code, *said = call(filled(ARGUMENTS[parameter], names))
        text = "".join(said)
        sentence = f"{folders[kind]} is {what.words}; `fabula {parameter.rpartition(' ')[0]}` takes"
        named = not what.fits or "Commands for it: `fabula" in text
        if kind == "missing":  # what is there by a name that is like it is told, and no list of what fits
            sentence, named = "there", "fix: " in text
        codes = (1, 2) if parameter in CHECKED else (2,)
        if code not in codes or sentence not in text or not named:
            wrong.append((kind, code, text[:300]))
    assert wrong == []


# The same commands, given a folder in which a file is a pipe, a device, huge or far too deep.

MEMORY = 3 << 30
"""Bytes of data that a command may have: a device or a file without end would take more."""
HOSTILE: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "sparse": lambda path: (path.touch(), os.truncate(path, 5 << 30)),
    "deep": lambda path: path.write_bytes(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
}
DATA = (".json", ".jsonl", ".parquet", ".toml", ".md", ".csv", ".sqlite", ".yaml", ".txt", ".png", "")
SLOW = ("publish", "release verify", "release diff", "release pack", "build")
"""Commands whose readers have such tests of their own, or that read no folder of data."""
ARCHIVE = ("score", "report", "compare", "calibrate")


def hostile_cases(folders: dict[str, Path]) -> Iterator[tuple[str, str, Path, str]]:
    """Yield parameter, kind of folder, file in it and what becomes of the file: every case there is."""
    for parameter in ARGUMENTS:
        for kind in TAKES[parameter]:
            if kind in ("file", "folder") or parameter.startswith(SLOW):
                continue
            folder = folders["judged" if kind == "archive" and parameter.startswith(ARCHIVE) else kind]
            for path in sorted(folder.rglob("*")):
                if path.is_file() and path.suffix in DATA:
                    yield from ((parameter, str(folder), path.relative_to(folder), how) for how in HOSTILE)


def call_apart(starter: Any, words: list[str], here: Path) -> tuple[int | str, str]:
    """Run a command in a process of its own, with little memory and not for ever."""
    with TemporaryFile() as out:
        started = starter.start(words, stdout=out, stderr=out, cwd=here)
        code: int | str = "hung"
        try:
            with suppress(ProcessLookupError):  # it has ended already
                resource.prlimit(started.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
            with suppress(subprocess.TimeoutExpired):
                code = started.wait(300)
        finally:
            started.kill()
            started.wait()
        out.seek(0)
        return code, out.read().decode("utf-8")


@pytest.mark.endurance
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of another process")
def test_command_when_a_file_in_a_folder_is_none_or_has_no_end_says_so_at_once(folders, tmp_path, starter):
    judged = write_simulated(tmp_path / "judged", 6, (("alpha", Truth()), ("beta", Truth()))).run
    kinds = {**folders, "judged": judged}
    wrong, every = [], list(hostile_cases(kinds))
    for number, (parameter, kind, name, how) in enumerate(
        random.Random(1).sample(every, min(rounds(200), len(every)))
    ):
        folder = shutil.copytree(kind, tmp_path / f"{number}")
        (folder / name).unlink()
        HOSTILE[how](folder / name)
        names = names_of(kinds, folder, tmp_path / f"new-{number}")
        code, text = call_apart(starter, filled(ARGUMENTS[parameter], names), tmp_path)
        if code not in (0, 1, 2, 3, 5) or "Traceback" in text:
            wrong.append((parameter, kind, name, how, code, text[-1500:]))
        shutil.rmtree(folder)
    assert wrong == []
