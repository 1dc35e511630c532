"""Sampling of what a judge of episodes saw, and reading what people say of it."""

import json
from collections import Counter
from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.people.episodes import Judged
from fabula.people.read import Known, read_human, read_key
from fabula.people.review.sources.episodes import Instance, Stratum, accounting, sample
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


def test_answers_when_people_saw_tasks_by_number_are_brought_back_by_their_key(tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text('{"task_1": ["easy/fidelity/1:0/object:x", "x"]}')
    key = read_key(tmp_path / "key.json")
    ((item, method),) = key.values()
    asked = {item: Judged("fidelity", "object", {}).asked}
    known = Known(methods=frozenset("xy"), asked=asked, kinds=frozenset(("rating",)))
    line = {"kind": "rating", "rater": "p1", "item": "task_1", "criterion": "present", "value": 1}
    answers = tmp_path / "people.jsonl"
    answers.write_text(json.dumps(line), "utf-8")
    (row,) = read_human(answers, known, key)
    assert (row.item, row.method) == (item, method)
    for wrong in ({"value": 2}, {"criterion": "beauty"}, {"item": "task_9"}, {"method": "x"}):
        answers.write_text(json.dumps(line | wrong), "utf-8")
        with pytest.raises(InputError) as caught:
            read_human(answers, known, key)
        assert next(iter(wrong)) in str(caught.value)
    for text in ("[]", "{", '{"a": 1}', '{"a": ["b"]}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match="not the key of a study"):
            read_key(tmp_path / "bad.json")
