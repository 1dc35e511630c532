"""Every command that takes a folder, given every kind of folder that it does not take, says what that is."""

import inspect
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabula.cli.command import COMMANDS
from fabula.cli.folders import KINDS, TAKES, recognise
from fabula.cli.main import app
from fabula.releases.loading import load
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.endurance import rounds
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.official_packages import write_package
from fabula.testing.simulated_images import Simulated, write_images
from fabula.testing.written_episodes import write_episodes

CREATED = ("--created-at", "2026-01-01T00:00:00Z")
ABOUT = ("--version", "0.1.0", "--license", "CC-BY-4.0", "--allow-drafts")
STORY = {
    "id": "hat", "title": "The Hat", "language": "en", "source_collection": "own",
    "text": "Mira walked along the river. An old ferryman saw her. Mira waved. The ferryman laughed.",
    "rights_status": "public_domain_or_rights_compatible",
}  # fmt: skip
SEED = {
    "prompt": "A dog runs to a ball and then bites it.",
    "event_list": ["a dog runs to a ball", "a dog bites a ball"],
}

COMPASS = (
    "--coverage", "drawn-marks", "--copies", "pixels", "--renderer", "image:drawn:faithful", "--judge",
    "openai:gpt-4.1-mini", "--out", "{new}",
)  # fmt: skip
COMPASS_TUNE = ("baseline", "compass", "tune", *COMPASS)
COMPASS_APPLY = ("baseline", "compass", "apply", "--frozen", "{file}", *COMPASS)
STORYBOARDS = ("export", "storyboards", "--license", "MIT", "--out", "{new}")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "edit run": ("edit", "{}", "x", "$.title", "--new", '"x"', "--who", "a", "--why", "b"),
    "extend run": ("extend", "{}", "{stories}"),
    "extend sources": ("extend", "{run katha}", "{}"),
    "publish folder": ("publish", "{}", "--repo", "user/name"),
    "stats path": ("stats", "{}"),
    "validate path": ("validate", "{}"),
    "audit draft": ("audit", "{}"),
    "audit gold": ("audit", "{run katha}", "--gold", "{}"),
    "calibrate run": ("calibrate", "{}", "--human", "{stories}"),
    "score run": ("score", "{}"),
    "compare first": ("compare", "{}", "{archive}"),
    "compare second": ("compare", "{archive}", "{}"),
    "report run": ("report", "{}", "--out", "{new}.html"),
    "build katha sources": ("build", "katha", "{}", "--out", "{new}"),
    "build shots sources": ("build", "shots", "{}", "--out", "{new}"),
    "build events seeds": ("build", "events", "{}", "--out", "{new}"),
    "build entities videos": ("build", "entities", "{}", "--out", "{new}"),
    "release diff old": ("release", "diff", "{}", "{release katha}"),
    "release diff new": ("release", "diff", "{release katha}", "{}"),
    "release pack run": ("release", "pack", "{}", *ABOUT, "--out", "{new}"),
    "release pack since": (
        "release",
        "pack",
        "{run katha}",
        "--since",
        "{}",
        "--version",
        "auto",
        "--out",
        "{new}",
    ),
    "release verify path": ("release", "verify", "{}"),
    "release verify hidden": ("release", "verify", "{release katha}", "--hidden", "{}"),
    "run status run": ("run", "status", "{}"),
    "run spend run": ("run", "spend", "{}"),
    "run show run": ("run", "show", "{}", "x"),
    "run retry run": ("run", "retry", "{}"),
    "run merge shards": ("run", "merge", "{}", "--out", "{new}"),
    "outputs check folders": ("outputs", "check", "{}", "--release", "{release katha}"),
    "outputs check release": ("outputs", "check", "{outputs}", "--release", "{}"),
    "outputs keyframes videos": (
        "outputs",
        "keyframes",
        "{}",
        "--release",
        "{release shots}",
        "--out",
        "{new}",
    ),
    "outputs keyframes release": ("outputs", "keyframes", "{outputs}", "--release", "{}", "--out", "{new}"),
    "import katha source": ("import", "katha", "{}", "--out", "{new}"),
    "import vistory source": ("import", "vistory", "{}", "--out", "{new}"),
    "import entitybench source": ("import", "entitybench", "{}", "--out", "{new}"),
    "import references folder": ("import", "references", "{}", "--to", "{run import-shots}"),
    "import references out": ("import", "references", "{outputs}", "--to", "{}"),
    "import archive folders": ("import", "archive", "{}", "--out", "{new}"),
    "evaluate katha release": (
        "evaluate",
        "katha",
        "--release",
        "{}",
        "--outputs",
        "{outputs}",
        "--out",
        "{new}",
    ),
    "evaluate katha outputs": (
        "evaluate",
        "katha",
        "--release",
        "{release katha}",
        "--outputs",
        "{}",
        "--out",
        "{new}",
    ),
    "evaluate events release": (
        "evaluate",
        "events",
        "--release",
        "{}",
        "--outputs",
        "{outputs}",
        "--out",
        "{new}",
    ),
    "evaluate events suite": (
        "evaluate",
        "events",
        "--suite",
        "{}",
        "--outputs",
        "{outputs}",
        "--out",
        "{new}",
    ),
    "evaluate events outputs": (
        "evaluate",
        "events",
        "--release",
        "{release events}",
        "--outputs",
        "{}",
        "--out",
        "{new}",
    ),
    "evaluate images release": (
        "evaluate",
        "images",
        "--release",
        "{}",
        "--outputs",
        "{outputs}",
        "--out",
        "{new}",
    ),
    "evaluate images outputs": (
        "evaluate",
        "images",
        "--release",
        "{release shots}",
        "--outputs",
        "{}",
        "--out",
        "{new}",
    ),
    "export vistory folder": ("export", "vistory", "{}", "--out", "{new}"),
    "export shots folder": ("export", "shots", "{}", "--out", "{new}"),
    "export lite folder": ("export", "lite", "{}", "--count", "1", "--out", "{new}"),
    "export entitybench folder": ("export", "entitybench", "{}", "--out", "{new}"),
    "export entities folder": ("export", "entities", "{}", "--out", "{new}"),
    "export katha folder": ("export", "katha", "{}", "--out", "{new}"),
    "export plans folder": ("export", "plans", "{}", "--out", "{new}"),
    "export storyboards folder": (*STORYBOARDS, "{}", "--outputs", "{outputs}"),
    "export storyboards outputs": (*STORYBOARDS, "{release katha}", "--outputs", "{}"),
    "export archive folder": ("export", "archive", "{}", "--out", "{new}"),
    "export inspect folder": ("export", "inspect", "{}", "--out", "{new}.eval"),
    "baseline copy-paste release": ("baseline", "copy-paste", "--release", "{}", "--out", "{new}"),
    "baseline compass tune release": (*COMPASS_TUNE, "--outputs", "{outputs}", "--release", "{}"),
    "baseline compass tune outputs": (*COMPASS_TUNE, "--release", "{release katha}", "--outputs", "{}"),
    "baseline compass apply release": (*COMPASS_APPLY, "--outputs", "{outputs}", "--release", "{}"),
    "baseline compass apply outputs": (*COMPASS_APPLY, "--release", "{release katha}", "--outputs", "{}"),
    "experiment run study": ("experiment", "run", "{}", "--out", "{new}"),
    "experiment status folder": ("experiment", "status", "{}"),
    "experiment tables folder": ("experiment", "tables", "{}"),
    "experiment plant outputs": (
        "experiment",
        "plant",
        "{}",
        "--release",
        "{release katha}",
        "--out",
        "{new}",
    ),
    "experiment plant release": ("experiment", "plant", "{outputs}", "--release", "{}", "--out", "{new}"),
    "memory build source": ("memory", "build", "{}", "--text-only", "--out", "{new}"),
    "memory packets run": ("memory", "packets", "{}", "--out", "{new}"),
    "memory generate run": (
        "memory",
        "generate",
        "{}",
        "--model",
        "video:drawn:faithful",
        "--out",
        "{new}",
    ),
    "memory export run": ("memory", "export", "{}", "--for", "image-video", "--out", "{new}"),
    "score release": ("score", "{archive}", "--release", "{}"),
    "report release": ("report", "{archive}", "--release", "{}", "--out", "{new}.html"),
}
"""Parameter -> a command whose other arguments are sound; ``{}`` stands for the folder."""


def call(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, done.stdout + done.stderr


def made(*arguments: object) -> None:
    code, text = call(*arguments)
    assert code == 0, (arguments, text)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind."""
    top = tmp_path_factory.mktemp("kinds")
    found = {kind: top / kind.replace(" ", "-") for kind in KINDS}
    (top / "stories.jsonl").write_text(json.dumps(STORY) + "\n", "utf-8")
    (top / "seeds.jsonl").write_text(json.dumps(SEED) + "\n", "utf-8")
    write_run(found["run katha"], sample_bundles(12))
    made("release", "pack", found["run katha"], *ABOUT, "--out", found["release katha"])
    found["hidden"] = Path(f"{found['release katha']}-hidden")
    made("build", "shots", top / "stories.jsonl", "--out", found["run shots"], "--workers", "0", *CREATED)
    made("build", "events", top / "seeds.jsonl", "--out", found["run events"], "--workers", "0", *CREATED)
    made("release", "pack", found["run events"], *ABOUT, "--language", "en", "--out", found["release events"])
    draw_shot_set(found["package shots"])
    call("import", "vistory", found["package shots"], "--out", found["run import-shots"], *CREATED)
    call(
        "release",
        "pack",
        found["run import-shots"],
        *ABOUT,
        "--language",
        "en",
        "--out",
        found["release shots"],
    )
    write_episodes(found["package entities"])
    call("import", "entitybench", found["package entities"], "--out", found["run import-entities"], *CREATED)
    call(
        "release",
        "pack",
        found["run import-entities"],
        *ABOUT,
        "--language",
        "en",
        "--out",
        found["release entities"],
    )
    write_images(found["archive"], Simulated({"a": 0.5, "b": 0.4}))
    (found["study"] / "tables").mkdir(parents=True)
    (found["study"] / "study.json").write_text("{}", "utf-8")
    judged = ("run evaluate-katha", "run evaluate-events", "run evaluate-images")
    runs = (kind for kind in KINDS if kind.startswith("run ") and not found[kind].exists())
    own = tuple(kind for kind in runs if kind not in judged)
    for kind in (*judged, *own):
        shutil.copytree(found["archive"], found[kind])
        manifest = json.loads((found["run shots"] / "run.json").read_text("utf-8"))
        if kind in own:
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


def commands() -> Iterator[tuple[str, tuple[str, ...]]]:
    for command in COMMANDS:
        yield command.name, tuple(inspect.signature(command.with_options()).parameters)


def test_kinds_when_made_are_recognised(folders: dict[str, Path]) -> None:
    assert {kind: recognise(folders[kind]) for kind in KINDS} == {kind: kind for kind in KINDS}


def test_tables_when_compared_with_the_commands_name_real_ones() -> None:
    known = {f"{command} {name}" for command, names in commands() for name in names}
    assert set(TAKES) - known == set()
    assert set(ARGUMENTS) == set(TAKES)
    fits = {fit.partition(" --")[0].partition(" RELEASE")[0] for what in KINDS.values() for fit in what.fits}
    assert fits <= {command for command, _ in commands()}


def filled(part: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        part = part.replace("{" + name + "}", value)
    return part


@pytest.mark.endurance
@pytest.mark.parametrize("parameter", ARGUMENTS)
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
        names = {"": str(folders[kind]), "new": str(tmp_path / f"new-{kind.replace(' ', '-')}")}
        names |= {name: str(path) for name, path in folders.items()}
        code, text = call(*(filled(part, names) for part in ARGUMENTS[parameter]))
        sentence = f"{folders[kind]} is {what.words}; `fabula {parameter.rpartition(' ')[0]}` takes"
        named = not what.fits or "Commands for it: `fabula" in text
        if code not in (1, 2) or sentence not in text or "Traceback" in text or not named:
            wrong.append((kind, code, text[:300]))
    assert wrong == []
