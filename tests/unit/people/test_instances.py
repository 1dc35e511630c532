"""Sampling of what a judge of episodes saw, and reading what people say of it."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from fabula.errors import InputError, TargetError
from fabula.evaluation.entities.entities import CRITERIA
from fabula.people.instances import Instance, Stratum, accounting, sample, write_instances
from fabula.people.judged_episodes import Judged
from fabula.people.read import Known, read_human
from fabula.people.tasks import read_key
from fabula.schemas.entities import TYPES


def instances(count: int, folder: Path) -> list[Instance]:
    """So many of each stratum, method and tier."""
    return [
        Instance(
            Stratum("fidelity", kind, passes), method, tier,
            f"{tier}/fidelity/1:{number}/{kind}:{passes}", kind, "a thing", ((folder / "crop.png",),),
        )
        for kind in TYPES for passes in (True, False) for method in ("x", "y") for tier in ("easy", "hard")
        for number in range(count)
    ]  # fmt: skip


def test_sample_when_strata_are_full_is_in_thirds_and_halves_over_methods_and_tiers(tmp_path: Path) -> None:
    every = instances(20, tmp_path)
    drawn = sample(every, "fidelity", 200, 7)
    assert sorted(Counter(each.stratum.type for each in drawn).values()) == [66, 67, 67]
    assert Counter(each.stratum.admitted for each in drawn) == {True: 100, False: 100}
    for part in accounting(every, drawn, {"fidelity": 200}):
        assert part["drawn"] == part["wanted"] and len(part["cells"]) == 4
        assert max(part["cells"].values()) - min(part["cells"].values()) <= 1
    assert drawn == sample(list(reversed(every)), "fidelity", 200, 7)
    assert drawn != sample(every, "fidelity", 200, 8)


def test_sample_when_a_stratum_lacks_some_takes_none_elsewhere_and_counts_it(tmp_path: Path) -> None:
    lacking = Stratum("fidelity", "object", False)
    every = [each for each in instances(20, tmp_path) if each.stratum != lacking]
    drawn = sample(every, "fidelity", 60, 7)
    told = {
        (part["type"], part["admitted"]): (part["wanted"], part["available"], part["drawn"])
        for part in accounting(every, drawn, {"fidelity": 60})
    }
    assert told["object", False] == (10, 0, 0) and told["object", True] == (10, 80, 10)
    assert len(drawn) == 50


def test_tasks_when_written_show_no_method_and_the_key_brings_answers_back(tmp_path: Path) -> None:
    (tmp_path / "crop.png").write_bytes(b"a picture")
    drawn = sample(instances(1, tmp_path), "fidelity", 6, 7)
    write_instances(drawn, tmp_path / "out", tmp_path / "key.json", 7)
    rows = list(csv.DictReader((tmp_path / "out/tasks.csv").read_text("utf-8").splitlines()))
    assert len(rows) == len(list((tmp_path / "out/pictures").iterdir())) == 6
    first = rows[0]
    assert first["verdict"] == "present" and first["first"] == "pictures/task_0001_a1.png"
    assert first["scores"].split("|") == [*CRITERIA[first["type"]], "overall"]  # type: ignore[index]
    key = read_key(tmp_path / "key.json")
    assert {(item, method) for item, method in key.values()} == {(each.item, each.method) for each in drawn}
    asked = {each.item: Judged("fidelity", each.stratum.type, {}).asked for each in drawn}
    known = Known(methods=frozenset("xy"), asked=asked, kinds=frozenset(("rating",)))
    line = {"kind": "rating", "rater": "p1", "item": "task_0001", "criterion": "present", "value": 1}
    answers = tmp_path / "people.jsonl"
    answers.write_text(json.dumps(line), "utf-8")
    (row,) = read_human(answers, known, key)
    assert (row.item, row.method) == key["task_0001"]
    for wrong in ({"value": 2}, {"criterion": "beauty"}, {"item": "task_9"}, {"method": "x"}):
        answers.write_text(json.dumps(line | wrong), "utf-8")
        with pytest.raises(InputError) as caught:
            read_human(answers, known, key)
        assert next(iter(wrong)) in str(caught.value)
    with pytest.raises(TargetError, match="is there already"):
        write_instances(drawn, tmp_path / "again", tmp_path / "key.json", 7)


def test_tasks_when_pictures_are_missing_are_not_written(tmp_path: Path) -> None:
    drawn = sample(instances(1, tmp_path), "fidelity", 6, 7)
    with pytest.raises(InputError, match="a picture that the judge saw is missing"):
        write_instances(drawn, tmp_path / "out", tmp_path / "key.json", 7)
    assert not (tmp_path / "out").exists() and not (tmp_path / "key.json").exists()
