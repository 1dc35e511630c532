"""Options of scoring that say nothing about the kind of evaluation at hand are refused, not passed over."""

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
import typer
from typer.testing import CliRunner, Result

from fabula.cli.build import incomplete_lines
from fabula.cli.command import COMMANDS, Command
from fabula.cli.main import app
from fabula.cli.stats import Counted
from fabula.errors import ConfigError, FabulaError
from fabula.evaluation.archive.archive import write_manifest
from fabula.evaluation.events.score import definitions_of as event_definitions
from fabula.evaluation.events.votes import Definitions as EventDefinitions
from fabula.evaluation.katha.scoring import definitions_of as katha_definitions
from fabula.evaluation.protocol import Chosen
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.report.formats import written
from fabula.kinds.evaluations import compare, make_report, score
from fabula.schemas.judgement import EvaluationManifest
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.memory_banks import write_bank
from fabula.testing.written_episodes import write_episodes

GIVEN = {"split": ("train",), "matcher": "exact", "voting": "average", "weights": None, "suite": None}


@pytest.fixture
def evaluation(tmp_path: Path) -> Callable[[str], Path]:
    def make(kind: str) -> Path:
        document = {"kind": kind, "protocol": {}, "subject": {}, "environment": {}}
        write_manifest(tmp_path, EvaluationManifest.model_validate(document))
        return tmp_path

    return make


def test_options_when_they_are_for_storyboards_are_refused_for_videos_by_name(evaluation):
    folder = evaluation("events")
    for verb in (score, lambda folder, given: compare(folder, folder, given)):
        with pytest.raises(ConfigError) as refused:
            verb(folder, GIVEN)
        assert refused.value.where == "--split, --matcher"
        assert "only for an evaluation of storyboards (stories); this is one of videos (events)" in str(
            refused.value
        )
        assert "--help` lists the options of each kind" in refused.value.fix


def test_options_when_they_are_for_videos_are_refused_for_storyboards(evaluation):
    with pytest.raises(ConfigError, match=r"--voting: only for an evaluation of videos \(events\)"):
        score(evaluation("katha"), GIVEN)


def test_options_of_a_page_when_they_are_for_shots_are_refused_for_others(evaluation):
    shown = {"define": ("cids=code",), "megabytes": 3.0, "stories": (), "methods": ("x",)}
    message = r"--define, --pictures-mb, --method: only for an evaluation of shots \(images\); this is one"
    for kind in ("katha", "events"):
        with pytest.raises(ConfigError, match=message):
            make_report(evaluation(kind), options=shown)


@pytest.mark.parametrize("kind", ["katha", "events"])
def test_options_when_none_or_shared_ones_are_given_are_taken(kind, evaluation):
    shared = {"matcher": None, "split": (), "voting": None, "release": Path("x"), "seed": 1}
    with pytest.raises(FabulaError, match=r"judgements\.jsonl|not a release"):
        score(evaluation(kind), shared)


def test_definitions_when_nothing_is_given_are_the_defaults() -> None:
    assert katha_definitions(Chosen({"seed": 42, "resamples": 10_000})) == Definitions()
    assert event_definitions(Chosen({"interval": "by-size", "define": ()})) == EventDefinitions()
    assert event_definitions(Chosen({"nonresponse": "incorrect"})).nonresponse == "zero"


# Every option is written once, and says what it means.


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_options_when_made_each_say_what_they_mean_and_are_named_once(command: Command) -> None:
    parameters = inspect.signature(command.with_options()).parameters.values()
    infos = [get_args(parameter.annotation)[1] for parameter in parameters]
    for info in infos:
        assert info.help[0].isupper() or not info.help[0].isalpha(), info.help
        assert info.help.endswith("."), info.help
        assert ":mod:" not in info.help and ":class:" not in info.help, "what only Sphinx reads"
    assert not [info for info in infos if "list[" in str(getattr(info, "metavar", ""))]
    flags = [flag for info in infos for flag in getattr(info, "param_decls", None) or ()]
    assert len(flags) == len(set(flags))
    assert "--json" in flags


GROUPED = {
    "score": {
        "Options": {"--resamples", "--seed", "--interval", "--correction", "--least-coverage"},
        "Only for storyboards (stories)": {"--split", "--weights", "--matcher", "--support", "--common"},
        "Only for videos (events)": {"--suite", "--voting"},
        "Only for shots (images)": {"--define", "--alias"},
        "Only for videos of episodes (episodes)": {"--coverage", "--actions", "--unseen", "--gap"},
    },
    "report": {
        "Only for storyboards (stories)": {"--against", "--reference", "--human"},
        "Only for shots (images) and videos of episodes (episodes)": {"--story", "--method", "--pictures-mb"},
        "Only for shots (images)": {"--define", "--unranked"},
    },
    "calibrate": {
        "Only for storyboards (stories), videos (events) and videos of episodes (episodes)": {
            "--key",
            "--save",
        },
        "Only for shots (images)": {"--define"},
    },
    "outputs check": {
        "Only for storyboards (stories)": {"--split", "--ocr"},
        "Only for shots (images)": {"--mode", "--language", "--timestamp", "--first-shot"},
    },
    "release pack": {"Only for releases of episodes": {"--video-rights"}},
    "review init": {
        "Only for videos (events)": {"--label"},
        "Only for storyboards (stories) and items of a file": {"--condition"},
    },
    "stats": {"Only for episodes": {"--html", "--split"}},
    "evaluate stories": {"How it runs": {"--max-cost"}, "What is printed": {"--json", "--help"}},
}


@pytest.mark.parametrize("name", GROUPED)
def test_help_when_options_are_of_some_kinds_only_shows_them_under_these(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"}).output
    groups = {
        heading: {line.split()[0] for line in text.splitlines() if line.startswith("  --")}
        for heading, text in re.findall(r"^([A-Z][^\n]*):\n((?:  .*\n)+)", shown, re.MULTILINE)
    }
    for heading, options in GROUPED[name].items():
        assert options <= groups[heading], heading
        assert not any(options & others for other, others in groups.items() if other != heading)


# Cost limits and shares of limits as the command line takes them.


def said(*args: str) -> str:
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code == 2
    return " ".join(result.output.split())


def test_study_when_a_stage_is_limited_is_refused(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text("")
    told = said("experiment", "run", str(study), "--max-cost", "judge_text=1")
    assert "'--max-cost': a number is wanted here" in told


# What records lack: every field is named, and counted over the whole of each record.

EVERY = ("transition_type", "consequence", "expected_change", "causality")  # the last may be null


def lacking_bundles():
    """Three sample bundles; two lack four fields of every transition, one of them an action, too."""
    bundles = sample_bundles(3)
    for bundle in bundles[:2]:
        for transition in bundle["record"]["transitions"]:
            transition.update(dict.fromkeys(EVERY))
    bundles[0]["record"]["transitions"][2]["action"] = None
    bundles[0]["record"]["transitions"][3]["action"] = " "
    for bundle in bundles:
        rehash(bundle)
    return bundles


def test_incomplete_lines_when_records_lack_many_fields_count_each_in_every_record(tmp_path):
    run = write_run(tmp_path / "run", lacking_bundles())
    first, *fields = list(incomplete_lines(run))
    assert first.startswith("2 of 3 records are incomplete")
    assert fields[:-2] == [  # most first; of equal ones, in the order of the record, whatever the hash seed
        "  $.transitions[*].transition_type: missing in 2 stories",
        "  $.transitions[*].consequence: missing in 2 stories",
        "  $.transitions[*].expected_change: missing in 2 stories",
        "  $.transitions[*].action: missing in 1 story",
    ]
    assert f"fabula validate {run} --all" in fields[-1]


# Counts of ``fabula stats`` as tables.

DOCUMENT = {
    "kind": "events",
    "totals": {"stories": 1200, "scenes": 5},
    "public": {"stories": 1, "scenes": 5},
    "splits": {"train": 1, "test": 0},
    "types": {"moral": {"count": 3, "share": 0.75, "target_share": 0.5}, "none": {"count": 1, "share": 0.25}},
    "review": {"status": {"drafted": {"count": 4}}, "by_producer": {"author": {"drafted": 4}}},
    "languages": {},
    "characters": {"names": ["一", "b"]},
}


def test_counts_when_shown_as_text_stand_in_tables_with_columns_in_line() -> None:
    assert list(Counted(DOCUMENT).lines()) == [
        "Counts", "         Value", "  kind  events", "",
        "Totals, public", "          Stories  Scenes", "  totals    1,200       5",
        "  public        1       5", "",
        "Splits", "                             Value", "  train                          1",
        "  public_test + hidden_test      0", "",
        "Types", "         Count   Share  Target share", "  moral      3  75.0 %        50.0 %",
        "  none       1  25.0 %             –", "",
        "Review: status", "           Count", "  drafted      4", "",
        "Review: by producer", "          Drafted", "  author        4", "",
        "Characters", "         Value", "  names  一, b",
    ]  # fmt: skip


def test_counts_when_written_as_csv_keep_every_number_and_its_names() -> None:
    rows = [
        row.split(",")[:4] for row in written(Counted(DOCUMENT).tables(for_people=False), "csv").splitlines()
    ]
    assert ["types", "moral", "target_share", "0.5"] in rows
    assert ["review.by_producer", "author", "drafted", "4"] in rows
    assert sum(len(row) > 3 for row in rows) == 1 + 1 + 4 + 2 + 5 + 1 + 1 + 1


# -- ``fabula memory packets``, ``generate`` and ``export`` as people and scripts use them

pytest.importorskip("av")
SAME = ("--workers", "0", "--created-at", "2026-01-01T00:00:00Z")


def fabula(*words: str) -> Result:
    group = typer.Typer(name="memory", no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    for command in COMMANDS:
        if command.name.startswith("memory "):
            command.add_to(group)
    return CliRunner().invoke(group, list(words))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    write_episodes(folder / "set")
    return write_bank(folder / "set", folder / "run")


@pytest.mark.slow
def test_commands_when_run_one_after_the_other_make_packets_videos_and_inputs(memory, tmp_path):
    scripts = ("--scripts", str(memory.parent / "set"))
    done = fabula("packets", str(memory), *scripts, "--out", str(tmp_path / "packets"), *SAME)
    assert done.exit_code == 0, done.output
    assert "7 packets with 20 scheduled entities, none lost; 0 have no description" in done.output
    assert f"layouts: {tmp_path / 'packets/layouts.html'}" in done.output
    made = ("generate", str(tmp_path / "packets"), "--model", "video:drawn:faithful", "--seconds", "1", *SAME)
    done = fabula(*made, "--dry-run", "--json")
    assert json.loads(done.stdout)["calls"] == 7 and not (tmp_path / "mine").exists()
    done = fabula(*made, "--out", str(tmp_path / "mine"), "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["outcomes"], answer["shots"], answer["run"]) == (
        {"made": 7},
        7,
        str(tmp_path / "mine.run"),
    )
    assert (tmp_path / "mine/ep_a/001_002.mp4").is_file()
    done = fabula(
        "export",
        str(tmp_path / "packets"),
        "--for",
        "image-video",
        "--value",
        "seconds=8",
        "--out",
        str(tmp_path / "inputs"),
    )
    assert done.exit_code == 0 and "16 pictures for 7 shots" in done.output


@pytest.mark.slow
def test_packets_when_no_folder_is_named_lie_in_that_of_the_bank(memory: Path) -> None:
    scripts = ("--scripts", str(memory.parent / "set"))
    done = fabula("packets", str(memory), *scripts, "--json", "--memory", "text", *SAME)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["shots"], answer["entities"], answer["unregistered"]) == (7, 20, 0)
    packet = json.loads((memory / "packets-run/packets/ep_a/001_001/packet.json").read_text())
    assert (packet["memory"], packet["images"], packet["keyframes"]) == ("text", [], False)
    done = fabula("generate", str(memory), "--model", "video:drawn:faithful", "--dry-run")
    assert done.exit_code == 0 and "7 calls" in done.output
