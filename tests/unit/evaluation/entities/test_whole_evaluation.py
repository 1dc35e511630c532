"""Two drawn episodes by two methods, looked at and judged from end to end: what comes out is known before."""

import importlib.metadata
import json
import platform
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.engine.manifest import commit
from fabula.engine.status import RunReport
from fabula.errors import ConfigError, InputError
from fabula.evaluation.archive.archive import Archive, read_archive
from fabula.evaluation.entities.metrics.catalogue import METRICS
from fabula.evaluation.entities.requests import (
    EVALUATING,
    EpisodeOptions,
    episode_budget,
    episodes_request,
)
from fabula.kinds.evaluations import compare, make_report, merge_archives
from fabula.people.episodes import judged
from fabula.schemas import plugins
from fabula.schemas.canonical import Json
from fabula.schemas.plain_files import json_lines
from fabula.testing import episode_judge
from fabula.testing.asked_prompts import fenced_texts, prompt_of, user_text
from fabula.testing.drawn_entities import SETTINGS, Fault, write_outputs
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode
from fabula.version import __version__

pytest.importorskip("av")

pytestmark = pytest.mark.slow
CREATED = "2026-01-01T00:00:00Z"
EPISODES = (written_episode(), written_episode("ep_b", SECOND))
FAULTS: dict[str, dict[str, Fault]] = {
    "ep_a/2:2": {"Ana": "changed"}, "ep_a/2:3": {"the red cup": "faded"},
}  # fmt: skip
LOOKING = ("take_frames", "ground_entities", "encode_appearances", "draw_grids")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of two episodes; a flawless method, and one without a shot, with a wrong person and object."""
    folder = tmp_path_factory.mktemp("drawn")
    write_episodes(folder / "set", EPISODES)
    write_outputs(folder / "good", EPISODES, frames=8)
    write_outputs(folder / "poor", EPISODES, FAULTS, frames=8)
    (folder / "poor/ep_a/002_001.mkv").unlink()
    return folder


@pytest.fixture
def data(drawn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has the set and the methods, for runs."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    for name in ("set", "good", "poor"):
        (tmp_path / name).symlink_to(drawn / name)
    return tmp_path


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(episode_judge.answer) as server:
        yield server


def options_for(server: ModelServer, judge: str = "openai:one", **more: Any) -> EpisodeOptions:
    price = {"base_url": server.openai_url, "concurrency": 1, "prices": {"input": 1.0, "output": 2.0}}
    return EpisodeOptions(
        **{
            "judges": [judge], "models": {judge: price}, "settings": SETTINGS, "device": "cpu", "workers": 0,
            "created_at": CREATED, "pillars": "2,3", **more,
        }
    )  # fmt: skip


def evaluated(data: Path, server: ModelServer, *methods: str, out: str = "run", **more: Any) -> RunReport:
    folders = [data / method for method in methods or ("good", "poor")]
    return EVALUATING.evaluate(data / "set", folders, data / out, options_for(server, **more))


def lines(folder: Path) -> dict[str, Json]:
    rows = json_lines(folder / "episodes.jsonl")
    return {f"{row['method']}/{row['episode_id']}": row for row in rows}


def replies(archive: Archive, kind: str, method: str, unit: str) -> dict[str, Any]:
    return {
        one.item: one.parsed
        for one in archive.judgements
        if (one.kind, one.method, one.unit) == (kind, method, unit)
    }


def test_evaluation_when_videos_are_drawn_equals_the_table_worked_by_hand(data, server):
    report = evaluated(data, server)
    assert report.totals["made"] == 4
    found, archive = lines(data / "run"), read_archive(data / "run")
    # Presence: all of the flawless method; the other lacks a shot, and its cup is drawn in another colour.
    statuses = {
        name: Counter(
            entity["status"]
            for shot in row["shots"]
            for entity in (shot["grounded"] or {"entities": {}})["entities"].values()
        )
        for name, row in found.items()
    }
    assert statuses == {
        "good/ep_a": {"present": 15}, "good/ep_b": {"present": 5},
        "poor/ep_a": {"present": 11, "weak": 1}, "poor/ep_b": {"present": 5},
    }  # fmt: skip
    assert [shot["frames"]["invalid"] for shot in found["poor/ep_a"]["shots"]] == [
        None, None, "missing", None, None,
    ]  # fmt: skip
    # Fidelity: 9 of 10 where something is drawn as described, 2 where not; missing shots are not asked about.
    right = {"1:1/character:Ana", "1:1/location:The Kitchen", "1:1/object:the red cup", "1:2/character:Ana",
             "1:2/character:Ben", "1:2/location:The Kitchen", "2:2/location:The Garden", "2:3/character:Ana",
             "2:3/character:Ben", "2:3/location:The Garden"}  # fmt: skip
    wrong = {"2:2/character:Ana", "2:3/object:the red cup"}
    fidelity = replies(archive, "fidelity", "poor", "ep_a")
    assert {item: parsed["overall"] for item, parsed in fidelity.items()} == {
        **dict.fromkeys(right, 9), **dict.fromkeys(wrong, 2),
    }  # fmt: skip
    actions = replies(archive, "action", "poor", "ep_a")
    assert {item: parsed["depicted"] for item, parsed in actions.items()} == {
        "1:1": True, "1:2": True, "2:2": False, "2:3": False,
    }  # fmt: skip
    assert [parsed["object_interaction"] for parsed in actions.values()] == [9, None, None, 2]
    # Gate: the changed Ana is held back, the doubtful cup never enters; the other cup has nothing beside it.
    gate = found["poor/ep_a"]["gate"]
    assert {key: (entry["pool"], entry["gated"]) for key, entry in gate.items()} == {
        "character:Ana": (["1:1", "1:2", "2:3"], ["2:2"]),
        "character:Ben": (["1:2", "2:3"], []),
        "location:The Kitchen": (["1:1", "1:2"], []),
        "location:The Garden": (["2:2", "2:3"], []),
        "object:the red cup": (["1:1"], []),
        "object:the old ladder": ([], []),
    }
    pairs = {
        (method, unit): Counter(item.partition("/")[0] for item in replies(archive, "pair", method, unit))
        for method in ("good", "poor")
        for unit in ("ep_a", "ep_b")
    }
    second = {"character:Ben": 1, "location:The Garden": 1}
    assert pairs == {
        ("good", "ep_a"): {"character:Ana": 3, "character:Ben": 2, "object:the red cup": 1,
                           "location:The Kitchen": 1, "location:The Garden": 2},
        ("poor", "ep_a"): {"character:Ana": 2, "character:Ben": 1, "location:The Kitchen": 1,
                           "location:The Garden": 1},
        ("good", "ep_b"): second, ("poor", "ep_b"): second,
    }  # fmt: skip
    assert all(parsed["same"] for parsed in replies(archive, "pair", "poor", "ep_a").values())
    method = archive.manifest.subject["methods"]["poor"]
    assert (method["shots_requested"], method["shots_valid"], method["episodes_complete"]) == (7, 6, 1)
    protocol = archive.manifest.protocol
    table_11 = {
        "take_frames.frames": 5, "ground_entities.box_threshold": None,
        "ground_entities.text_threshold": None,
        "ground_entities.present_from": 0.2, "gate_appearances.least": 0.5, "ground_entities.padding": 0.1,
        "ground_entities.crop_side": 224, "draw_grids.cells": [2, 3], "judge_locations.shots": 8,
        "judge_locations.frames": 2,
    }  # fmt: skip
    assert table_11.items() <= protocol["definitions"].items(), "this detector has no threshold of boxes"
    assert protocol["models"].keys() == {"appearances", "detector", "text"}
    assert protocol["metrics"] == {each.name: each.version for each in METRICS if each.pillar in (2, 3)}
    assert str(data) not in (data / "run/episodes.jsonl").read_text()


def ran(report: RunReport) -> dict[str, int]:
    return {stage.name: stage.ran for stage in report.stages if stage.name in LOOKING}


def test_judge_when_another_one_is_named_uses_what_was_looked_at_and_keeps_the_first_apart(data, server):
    evaluated(data, server, "good")
    first, asked = read_archive(data / "run"), server.count
    with pytest.warns(UserWarning, match="kept in"):
        report = evaluated(data, server, "good", judge="openai:two")
    assert ran(report) == dict.fromkeys(LOOKING, 0)
    assert server.count == 2 * asked
    now = read_archive(data / "run")
    assert {one.judge.spec for one in now.judgements} == {"openai:two"}
    assert len(now.judgements) == len(first.judgements)
    assert read_archive(data / "run/earlier-1").judgements == first.judgements


def test_evaluations_when_they_differ_in_torch_alone_are_refused_under_b5(data, server, monkeypatch):
    installed = importlib.metadata.version
    evaluated(data, server, "good", pillars="2")
    evaluated(data, server, "poor", out="same", pillars="2")
    versions = {"torch": "9.9.9"}
    monkeypatch.setattr(plugins, "version", lambda name: versions.get(name) or installed(name))
    evaluated(data, server, "poor", out="other", pillars="2")
    evaluated(data, server, "good", out="same", pillars="2")  # a part by either
    told = [json.loads((data / name / "evaluation.json").read_text()) for name in ("run", "other")]
    first, other = (each["environment"] for each in told)
    was = first["networks"]["ground_entities"]
    assert (was["device"], was["dtype"]) == ("cpu", "float32")
    assert set(was["libraries"]) >= {"torch", "transformers"}
    assert first["source"] == {
        "fabula": __version__, "commit": commit(), "python": platform.python_version()
    }  # fmt: skip
    assert other["networks"]["ground_entities"]["libraries"] == {**was["libraries"], "torch": "9.9.9"}
    assert compare(data / "run", data / "other").comparisons
    with pytest.raises(InputError) as refused:
        compare(data / "run", data / "other", {"manifest": "b5"})
    assert {problem.where.rpartition(".")[2] for problem in refused.value.problems} == {"torch"}
    with pytest.raises(InputError, match=rf'"{was["libraries"]["torch"]}, 9\.9\.9"'):
        compare(data / "run", data / "same", {"manifest": "b5"})
    assert compare(data / "run", data / "other", {"manifest": "b5"}, ("networks",)).comparisons


def odd(asked: Asked) -> Any:
    """Answer as the stand-in does, but for Ana's fidelity and the verdicts on pairs of her crops."""
    reply, prompt, texts = episode_judge.answer(asked), prompt_of(asked), fenced_texts(user_text(asked))
    if prompt == "episodes/judge_character" and texts[0] == "Ana":
        return reply | {"hair": None, "face": "fine", "build": [7], "overall": 95}
    if prompt == "episodes/judge_character":
        return {"reason": "no"}
    if prompt == "episodes/compare_characters":
        return reply | {"same": "yes", "similarity": None}
    return reply


def test_replies_when_odd_cost_their_own_value_and_never_the_run(data: Path) -> None:
    with ModelServer(odd) as server:
        report = evaluated(data, server, "good")
    assert report.totals["made"] == 2
    archive = read_archive(data / "run")
    ana = replies(archive, "fidelity", "good", "ep_a")["1:1/character:Ana"]
    assert (ana["overall"], ana["criteria"]) == (
        None, {"face": None, "hair": None, "clothing": 9, "build": None},
    )  # fmt: skip
    assert set(ana["unread"]) == {"overall", "face", "hair", "build"}
    ben = next(one for one in archive.judgements if one.item == "1:2/character:Ben")
    assert (ben.outcome, ben.parsed) == ("malformed", None)
    gate = lines(data / "run")["good/ep_a"]["gate"]["character:Ben"]
    assert gate["pool"] == gate["unscored"] == ["1:2", "2:1", "2:3"]
    pair = next(iter(replies(archive, "pair", "good", "ep_a").values()))
    assert (pair["same"], pair["similarity"], pair["criteria"]["face"]) == (None, None, 9)


def test_archives_when_of_two_methods_merge_into_what_both_together_give(data, server):
    evaluated(data, server, out="both")
    for method in ("good", "poor"):
        evaluated(data, server, method, out=method + "-run")
    merge_archives([data / "good-run", data / "poor-run"], data / "merged")
    merged, both = read_archive(data / "merged"), read_archive(data / "both")
    assert merged.judgements == both.judgements
    assert merged.manifest.protocol == both.manifest.protocol
    assert merged.manifest.subject == both.manifest.subject
    assert lines(data / "merged") == lines(data / "both")


def test_cost_when_asked_for_first_is_what_a_flawless_method_takes(data: Path, server: ModelServer) -> None:
    options = options_for(server, judge="openai:one")
    request = episodes_request(data / "set", [data / "good"], data / "run", options)
    budget, plan = episode_budget(request), EVALUATING.estimate(request)
    assert budget.as_json() == {
        "episodes": 2, "shots": 7, "frames": 63, "queries": 180, "crops": 20,
        "calls": {"fidelity": 20, "action": 7, "pair": 7, "location": 4}, "errors": {},
    }  # fmt: skip
    assert {stage.stage: stage.calls for stage in plan.stages} == {
        "judge_fidelity": 20, "judge_actions": 7, "judge_pairs": 7, "judge_locations": 4,
    }  # fmt: skip
    assert plan.cost is not None and plan.cost > 0
    assert server.count == 0
    EVALUATING.run(request)
    assert len(read_archive(data / "run").judgements) == plan.calls
    poor = episodes_request(data / "set", [data / "poor"], data / "run2", options)
    assert EVALUATING.estimate(poor).calls < plan.calls, "of a shot that is missing nothing is asked"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judges": []}, "pillar 2 and 3 is judged by a model"),
        ({"pillars": "2,4"}, "a pillar is 1"),
        ({"pillars": ""}, "a pillar is 1"),
        ({"episodes": ["ep_c"]}, "no episode ep_c"),
        ({"settings": (*SETTINGS, "ground_entities.detector=no-such")}, "no-such"),
    ],
)
def test_evaluation_when_something_is_wrong_says_so_before_the_first_frame(data, server, options, message):
    with pytest.raises(ConfigError, match=message):
        evaluated(data, server, "good", **options)
    assert server.count == 0
    assert not (data / "run/store").exists()


def test_people_when_they_say_what_the_judge_said_agree_with_it_from_tasks_to_kappa(data, server):
    evaluated(data, server)
    said = judged(read_archive(data / "run"))
    asked = sorted(  # what the judge has a verdict of
        (item, method)
        for (method, item), answer in said.items()
        if None not in [answer.values[name] for name in answer.asked]
    )
    key = {f"task_{number}": pair for number, pair in enumerate(asked)}
    (data / "key.json").write_text(json.dumps(key), "utf-8")
    rows = []
    for task, (item, method) in key.items():
        answer = said[method, item]
        for name, (_, most) in answer.asked.items():
            value = answer.values[name]
            assert value is not None
            row = {"kind": "rating", "item": task, "criterion": name, "value": round(most * value)}
            rows += [{**row, "rater": rater} for rater in ("simulated 1", "simulated 2", "simulated 3")]
    human = data / "people.jsonl"
    human.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    calibrate = ("calibrate", data / "run", "--human", human, "--key", data / "key.json", "--resamples", "20")
    agreed = json.loads(command(*calibrate, "--save", "--json"))["judges"]["fidelity"]["all"]
    present = agreed["present"]
    assert present["judge"]["value"] == pytest.approx(1.0) and present["least"] == pytest.approx(1.0)
    count = sum("/fidelity/" in item for item, _ in key.values())
    assert 0 < count < len(key)
    assert present["judge"]["counts"] == {"answered": count, "used": count, "tied": 0, "without_judge": 0}
    assert agreed["overall"]["judge"]["value"] == pytest.approx(1.0)
    assert "all, present: kappa 1.000" in command(*calibrate)
    assert "people_pair" in command(*calibrate, "--format", "csv")
    page = make_report(data / "run")
    assert [table.name for table in page.people] == ["people_fidelity", "people_pair"]
    assert page.people_note.startswith("3 people: ")
    assert page.people[0].rows[0].scores["judge"].value == pytest.approx(1.0)


def command(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output
