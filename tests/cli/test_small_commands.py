"""init, doctor, schemas, prompts, version, help, and what happens when we are at fault."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import fabula
from fabula.cli.checkup import checkup
from fabula.cli.common import guarded
from fabula.cli.main import GROUPS, app
from fabula.errors import ConfigError

PYPROJECT = Path(fabula.__file__).parent / "pyproject.toml"
README = PYPROJECT.with_name("README.md")


@pytest.mark.skipif(not README.is_file(), reason="an installed wheel has no README.md")
def test_readme_walk_when_followed_ends_in_a_sound_release(
    fabula_command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    walk = README.read_text("utf-8").partition("fabula init mine && cd mine")[2].partition("```")[0]
    commands = [shlex.split(line, comments=True)[1:] for line in walk.splitlines()[1:]]
    assert [command[0] for command in commands] == ["build", "run", "validate", "release", "release"]
    assert "--allow-drafts" in commands[3]
    assert fabula_command("init", "mine").returncode == 0
    monkeypatch.chdir(tmp_path / "mine")
    for command in commands:
        done = fabula_command(*command)
        assert done.returncode == 0, done.stderr + done.stdout
    loaded = fabula.load("dist/mine-0.1.0")
    assert [scene.scene_index for record in loaded.records for scene in record.scenes] == [1, 2, 3, 4, 5]


def test_build_when_records_are_incomplete_says_what_they_lack(fabula_command, tmp_path: Path) -> None:
    fabula_command("init", tmp_path)
    story = json.loads((tmp_path / "stories.jsonl").read_text("utf-8"))
    del story["moral_label"]
    (tmp_path / "stories.jsonl").write_text(json.dumps(story) + "\n", encoding="utf-8")
    built = fabula_command("build", "katha", tmp_path / "stories.jsonl", "--out", tmp_path / "run")
    assert built.returncode == 0, built.stderr
    assert "1 of 1 records are incomplete" in built.stdout
    assert "$.moral_label" in built.stdout
    pack = ("release", "pack", tmp_path / "run", "--version", "0.1.0", "--license", "CC-BY-4.0")
    refused = fabula_command(*pack, "--out", tmp_path / "refused", drafts=False)
    assert refused.returncode == 1
    assert "moral_label" in refused.stderr and "--allow-drafts" in refused.stderr
    packed = fabula_command(*pack, "--out", tmp_path / "release")
    assert packed.returncode == 0, packed.stderr
    assert [record.moral_label for record in fabula.load(tmp_path / "release").records] == [None]


def test_init_when_asked_for_samples_writes_all_of_them(fabula_command, tmp_path: Path) -> None:
    done = fabula_command("init", tmp_path / "new", "--samples")
    assert done.returncode == 0
    # fabula.toml counts in the folder that a command is given in.
    assert (
        f"next: cd {tmp_path / 'new'} && fabula build katha stories.jsonl --records records.jsonl"
        in done.stdout
    )
    assert len((tmp_path / "new" / "stories.jsonl").read_text("utf-8").splitlines()) == 24
    assert len((tmp_path / "new" / "records.jsonl").read_text("utf-8").splitlines()) == 24


def test_init_when_file_exists_leaves_it_alone(fabula_command, tmp_path: Path) -> None:
    (tmp_path / "fabula.toml").write_text("mine")
    done = fabula_command("init", tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "fabula.toml").read_text() == "mine"
    assert not (tmp_path / "stories.jsonl").exists()


def test_doctor_when_a_key_is_set_never_shows_it(fabula_command) -> None:
    done = fabula_command("doctor", env={"OPENAI_API_KEY": "sk-planted-secret"})
    assert done.returncode == 0, done.stdout
    assert "OPENAI_API_KEY" in done.stdout
    assert "planted" not in done.stdout + done.stderr
    assert "key openai" in done.stdout and "in the environment" in done.stdout
    findings = json.loads(fabula_command("doctor", "--json").stdout)
    assert {"python", "cv2", "disk", "cache", "pydantic"} <= {finding["name"] for finding in findings}


def test_doctor_when_keys_stand_in_a_file_says_so_and_names_the_services_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("GEMINI_API_KEY=planted-secret\n")
    monkeypatch.chdir(tmp_path)
    keys = {finding.name: finding for finding in checkup(tmp_path) if finding.name.startswith("key ")}
    assert keys["key google"].status == "ok"
    assert keys["key google"].detail == "GEMINI_API_KEY set, in the file .env"
    assert {keys["key openai"].status, keys["key anthropic"].status} == {"absent"}


def test_doctor_when_the_key_file_cannot_be_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe")
    monkeypatch.chdir(tmp_path)
    assert {f.status for f in checkup(tmp_path) if f.name.startswith("key ")} == {"warning"}


def test_schemas_when_exported_are_the_packaged_ones(fabula_command, tmp_path: Path) -> None:
    done = fabula_command("schemas", "export", "--out", tmp_path / "s")
    assert done.returncode == 0
    assert (tmp_path / "s" / "katha_record.schema.json").is_file()
    listed = json.loads(fabula_command("schemas", "list", "--json").stdout)
    assert {path.name.removesuffix(".schema.json") for path in (tmp_path / "s").iterdir()} == set(listed)


def test_prompts_when_listed_show_version_and_hash(fabula_command) -> None:
    rows = json.loads(fabula_command("prompts", "list", "--json").stdout)
    assert rows
    assert all(len(row["sha256"]) == 64 for row in rows)


def test_help_when_asked_of_every_command_shows_an_example() -> None:
    group = typer.main.get_command(app)
    runner = CliRunner()
    commands = [
        (name, sub)
        for name, command in group.commands.items()
        for sub in getattr(command, "commands", {None: 0})
    ]
    for name, sub in commands:
        shown = runner.invoke(app, [part for part in (name, sub, "--help") if part])
        assert shown.exit_code == 0
        assert "fabula " + name in shown.output, name


def test_help_when_it_lists_commands_shows_whole_sentences() -> None:
    group = typer.main.get_command(app)
    nouns = [name for name, command in group.commands.items() if hasattr(command, "commands")]
    for name in ["", *nouns]:
        shown = CliRunner().invoke(app, [part for part in (name, "--help") if part], env={"COLUMNS": "80"})
        heading = "Commands:" if name else f"{next(iter(GROUPS))}:"
        listed = shown.output.partition(heading)[2].partition("Examples:")[0]
        assert listed.strip(), name
        assert "..." not in listed, listed


def test_usage_error_when_option_is_unknown_exits_two(fabula_command) -> None:
    assert fabula_command("validate", "--nonsense").returncode == 2


def test_guard_when_command_has_a_bug_keeps_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    @guarded
    def buggy() -> int:
        raise ZeroDivisionError("ours")

    with pytest.raises(typer.Exit) as stop:
        buggy()
    assert stop.value.exit_code == 70
    assert "Traceback" in capsys.readouterr().err


def test_guard_when_user_error_and_json_prints_it_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    @guarded
    def wrong(as_json: bool) -> int:
        raise ConfigError("--set", expected="a", found="b", fix="c")

    with pytest.raises(typer.Exit) as stop:
        wrong(as_json=True)
    assert stop.value.exit_code == 2
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "ConfigError"


@pytest.mark.skipif(not PYPROJECT.is_file(), reason="an installed wheel has no pyproject.toml")
def test_doctor_when_nothing_is_installed_names_what_pyproject_lists_for_each_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]

    def named(extra: str) -> set[str]:
        names = {re.split(r"[<>=\[ ]", line)[0] for line in extras[extra]}
        others = re.findall(
            r"\[(.*)\]", " ".join(line for line in extras[extra] if line.startswith("fabula["))
        )
        inner = {name for listed in others for other in listed.split(",") for name in named(other)}
        return (names - {"fabula"}) | inner

    monkeypatch.setattr("fabula.cli.checkup._version", lambda name: None)
    found = {finding.name: finding.detail for finding in checkup(tmp_path)}
    for extra in extras:
        told = found[f"extra {extra}"].removeprefix("not installed: ").partition("; pip install")[0]
        assert set(told.split(", ")) == named(extra), extra
    assert {"extra entities", "extra all"} <= found.keys()
