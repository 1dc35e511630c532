"""Presets: each is a study that can be made, and has the numbers of its paper."""

from collections import Counter

import pytest

from fabula.errors import ConfigError
from fabula.kinds.studies import source_of
from fabula.people.review.design import Plan, Unit, design
from fabula.people.review.plan import load_preset, preset_names
from fabula.people.review.protocol import FIXED, Protocol
from fabula.people.review.task import load_task, task_names

NAMES = {
    "vistory", "storyeval", "entitybench", "entitybench-pairs", "kathatrace-study", "kathatrace-perception",
    "kathabench-review",
}  # fmt: skip


def test_presets_when_listed_are_these() -> None:
    assert set(preset_names()) == NAMES
    with pytest.raises(ConfigError, match="expected one of entitybench"):
        load_preset("../secret")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_preset_when_read_is_valid(name: str) -> None:
    preset = load_preset(name)
    assert preset.task in task_names()
    plan = preset.planned({})
    assert plan.raters >= 3 and preset.planned({"seed": 7}).seed == 7
    preset.ruled({})
    task = load_task(preset.task)
    assert set(preset.chosen({}).given) <= set(source_of(task).options)
    assert preset.protocol.keys() <= Protocol.model_fields.keys() - FIXED
    assert preset.source.count(".") > 1 and "ours" in preset.source
    assert task.card.apart <= plan.apart


def test_the_vistory_preset_when_dealt_gives_ten_ratings_of_every_story_in_tasks_of_eight() -> None:
    units = [
        Unit(f"{story}-{method}", f"{story}", (f"m{method}",)) for story in range(20) for method in range(6)
    ]
    seats = design(units, [], load_preset("vistory").planned({}))
    assert len(seats) == 20
    votes = Counter(place.item for seat in seats for place in seat.places)
    assert set(votes.values()) == {10} and len(votes) == 120
    blocks = [Counter(place.block for place in seat.places) for seat in seats]
    assert max(max(block.values()) for block in blocks) == 8
    assert max(map(len, blocks)) == 8  # 60 ratings of each person, in tasks of 8 at most


def test_the_entitybench_preset_when_dealt_shows_everything_to_three_people() -> None:
    preset = load_preset("entitybench")
    assert preset.chosen({}).count == 200
    units = [Unit(f"i{number}", f"e{number % 20}", ("m",)) for number in range(200)]
    seats = design(units, [], preset.planned({}))
    assert [len(seat.places) for seat in seats] == [200, 200, 200]


def test_the_kathatrace_preset_when_dealt_keeps_conditions_of_a_story_apart() -> None:
    plan = load_preset("kathatrace-study").planned({"checks": 0})
    units = [
        Unit(f"{story}-{condition}", f"s{story}", () if condition == "text" else ("m",), condition)
        for story in range(12)
        for condition in ("text", "image", "text_image")
    ]
    seats = design(units, [], plan)
    votes = Counter(place.item for seat in seats for place in seat.places if not place.repeat)
    assert set(votes.values()) == {3}
    for seat in seats:
        stories = [place.item.partition("-")[0] for place in seat.places if not place.repeat]
        assert len(set(stories)) == len(stories)


def test_numbers_of_the_papers_when_stated_are_there() -> None:
    assert (load_preset("storyeval").chosen({}).per_prompt, load_preset("storyeval").training) == (2, 20)
    assert load_preset("kathabench-review").planned({}) == Plan(raters=3, least=3, block=10)
    perception = load_preset("kathatrace-perception")
    assert perception.ruled({}).attention_failures == 0 and perception.planned({}).repeats == 2
