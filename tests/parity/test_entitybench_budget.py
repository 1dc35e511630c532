"""What an evaluation of the published 140 episodes takes, counted from them and by the public evaluator."""

from pathlib import Path

import pytest

from fabula.evaluation.entities.judging import LocationSettings, objects_named
from fabula.evaluation.entities.looking.settings import Grounding
from fabula.evaluation.entities.requests import budget_of, for_methods
from fabula.releases.entities.tree import read_entity_set


@pytest.mark.parametrize(("definition", "places", "frames"), [("paper", 1789, 22_419), ("code", 389, 12_455)])
def test_budget_when_the_set_is_the_published_one_has_the_known_counts(
    reference: Path, definition: Grounding, places: int, frames: int
) -> None:
    whole, _ = read_entity_set(reference / "entitybench", rules=False)
    locations = LocationSettings(definition=definition, judges=("openai:some-judge",))
    budget = budget_of(whole, (1, 2, 3), definition, locations)
    assert (budget.episodes, budget.shots, budget.crops) == (140, 2491, 11_437)
    assert budget.calls == {"fidelity": 11_437, "action": 2491, "pair": 6063, "location": places}
    assert budget.frames == frames
    assert budget.queries == frames // 2491 * 11_437
    assert for_methods(budget, 2, {}).calls["pair"] == 2 * 6063
    assert budget_of(whole, (1,), definition, locations).calls == {}


def test_objects_when_the_actions_are_the_published_ones_are_named_in_1965_shots(reference: Path) -> None:
    whole, _ = read_entity_set(reference / "entitybench", rules=False)
    named = 0
    for episode in whole.episodes:
        for shot in episode.script.shots():
            entities = [{"type": "object", "name": name} for name in shot.scheduled.objects]
            named += bool(objects_named(shot.action, entities))
    assert named == 1965
