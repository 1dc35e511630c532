"""Each value of a judge's reply counts by itself; what is asked is what the definitions say."""

import asyncio
from collections.abc import Iterator

import pytest

from fabula.engine.pipeline import load_stage
from fabula.engine.rehearsal import questions_of
from fabula.engine.stage import Ask, Failed, Item, Made, Tools
from fabula.evaluation.entities import gate_appearances, group_episodes
from fabula.evaluation.entities.judging import judge_actions, judge_fidelity, judge_locations, judge_pairs
from fabula.evaluation.entities.judging.settings import EpisodeJudgeSettings, GateSettings, LocationSettings
from fabula.evaluation.metrics.vectors import packed
from fabula.models.chat import Image
from fabula.schemas.canonical import Json

np = pytest.importorskip("numpy")
NOW = "2026-01-01T00:00:00Z"
JUDGE = "openai:some-judge"


@pytest.mark.parametrize("value", [None, "nine", "8", [8], {"score": 8}, 0, 11, 95, True, float("nan")])
def test_fidelity_when_one_value_cannot_be_used_loses_that_value_alone(value: Json) -> None:
    reply = {"reason": "r", "face": value, "hair": 7, "clothing": 8, "build": 9, "overall": 8}
    parsed = judge_fidelity.reader_of("character")(reply)
    assert parsed["criteria"] == {"face": None, "hair": 7, "clothing": 8, "build": 9}
    assert parsed["overall"] == 8
    assert list(parsed["unread"]) == ["face"]


def test_location_set_when_outliers_are_odd_keeps_the_numbers_that_can_be() -> None:
    reply = {
        "descriptions": ["a", 1],
        "consistency": 4,
        "consistent": False,
        "outliers": [2, 2, 9, "3", True],
    }
    parsed = judge_locations.set_reader(4)(reply)
    assert (parsed["consistent"], parsed["consistency"], parsed["outliers"]) == (False, 4, [2])
    assert parsed["descriptions"] == ["a"]


def test_action_when_no_object_is_named_has_no_value_for_them() -> None:
    reply = dict.fromkeys(("subject_identity", "subject_action", "object_interaction", "motion_quality"), 6)
    reply |= {"overall": 6, "depicted": True}
    assert judge_actions.reader_of(with_objects=False)(reply)["object_interaction"] is None
    assert "unread" not in judge_actions.reader_of(with_objects=False)(reply)
    assert judge_actions.reader_of(with_objects=True)(reply)["object_interaction"] == 6


# -- what is asked


def entity(kind: str, name: str) -> Json:
    return {
        "key": f"{kind}:{name}", "name": name, "type": kind, "description": f"{name} as written",
        "registered": True,
    }  # fmt: skip


ANA, CUP, HALL = entity("character", "Ana"), entity("object", "cup"), entity("location", "hall")


def file_of(text: str) -> str:
    return f"{text.encode().hex():0>64}.png"


def seen(status: str, name: str = "x") -> Json:
    canonical = None if status == "absent" else {"file": file_of(name)}
    return {"status": status, "boxes": {}, "canonical": canonical}


def shot(index: int, vector: float, status: str = "present", overall: int | None = 8) -> Json:
    """A shot with Ana, the cup and the hall: all found alike, Ana with a fidelity and at an angle."""
    key, entities = f"1:{index + 1}", [ANA, CUP, HALL]
    angle = packed(np.array([[np.cos(vector), np.sin(vector)]]))
    row = {
        "kind": "fidelity", "item": f"{key}/character:Ana", "condition": "image", "judge": {"spec": JUDGE},
        "vote": 0, "parsed": None if overall is None else {"overall": overall, "criteria": {}},
    }  # fmt: skip
    return {
        "shot": {"key": key, "index": index, "action": "Ana lifts the cup.", "entities": entities},
        "frames": {"scene": [3, 1, 2], "pictures": {str(n): file_of(f"{key}f{n}") for n in (1, 2, 3)}},
        "quality": None,
        "grounded": {"entities": {each["key"]: seen(status, key + each["key"]) for each in entities}},
        "vectors": {"model": "m", "crops": {each["key"]: angle for each in entities}},
        "grid": {"file": file_of("grid" + key), "legend": [{"name": "cup", "color": "red"}]},
        "fidelity": [row],
        "actions": [],
    }  # fmt: skip


def asked(module: object, fields: Json, **settings: object) -> list[Ask[Json]]:
    kind = LocationSettings if module is judge_locations else EpisodeJudgeSettings
    stage = load_stage(module.__name__)  # type: ignore[attr-defined]
    tools = Tools(kind.model_validate({"judges": [JUDGE], **settings}), NOW)
    return asyncio.run(questions_of(stage, Item("m/e", fields), tools))


def gate_of(shots: list[Json]) -> Json:
    outcome = gate_appearances.run(Item("m/e", {"shots": shots}), Tools(GateSettings(), NOW))
    assert isinstance(outcome, Made)
    return outcome.fields["gate"]


def files(question: Ask[Json]) -> Iterator[str]:
    for part in question.request.messages[-1].parts:
        if isinstance(part, Image):
            yield part.data.decode()


def test_fidelity_when_an_entity_is_weak_says_so_and_when_absent_asks_nothing() -> None:
    base = shot(0, 0.0)
    base["grounded"]["entities"] = {
        ANA["key"]: seen("present"), CUP["key"]: seen("weak"), HALL["key"]: seen("absent"),
    }  # fmt: skip
    questions = asked(judge_fidelity, {"shot": base["shot"], "grounded": base["grounded"]})
    assert [question.prompt.partition("@")[0] for question in questions] == [
        "episodes/judge_character", "episodes/judge_object",
    ]  # fmt: skip
    assert ["not certain" in str(question.request.messages[-1].parts[-1]) for question in questions] == [
        False, True,
    ]  # fmt: skip
    assert asked(judge_fidelity, {"shot": base["shot"], "grounded": None}) == []


def test_gate_when_fidelity_is_low_or_missing_tells_the_three_apart_and_takes_the_middle_one() -> None:
    # Angles of Ana: 0.0, 0.1, 0.4 pass; the fourth has fidelity 0.4, the fifth is weak.
    # The mean direction of 0, 0.1 and 0.4 is about 0.166: the shot at 0.1 is nearest.
    shots = [
        shot(0, 0.0),
        shot(1, 0.1),
        shot(2, 0.4, overall=None),
        shot(3, 0.0, overall=4),
        shot(4, 0, "weak"),
    ]
    ana = gate_of(shots)["character:Ana"]
    assert (ana["pool"], ana["gated"], ana["unscored"]) == (["1:1", "1:2", "1:3"], ["1:4"], ["1:3"])
    assert ana["anchor"] == "1:2" == max(ana["similarities"], key=ana["similarities"].__getitem__)
    total = np.array([1 + np.cos(0.1) + np.cos(0.4), np.sin(0.1) + np.sin(0.4)])
    middle = np.arctan2(total[1], total[0])
    assert ana["similarities"]["1:3"] == pytest.approx(np.cos(0.4 - middle), abs=1e-6)
    for each in shots:
        each["vectors"] = None
    assert gate_of(shots) is None


def test_pairs_when_asked_are_the_anchor_with_each_other_in_no_telling_order() -> None:
    shots = [shot(0, 0.0), shot(1, 0.1), shot(2, 0.4)]
    questions = asked(judge_pairs, {"shots": shots, "gate": gate_of(shots)})
    assert [question.prompt.partition("@")[0] for question in questions] == [
        *["episodes/compare_characters"] * 2, *["episodes/compare_objects"] * 2,
    ]  # fmt: skip
    for question in questions:
        assert list(files(question)) == sorted(files(question))
    moved = gate_of(shots)
    moved["character:Ana"]["anchor"] = "1:1"
    again = asked(judge_pairs, {"shots": shots, "gate": moved})
    keys = [{question.request.key() for question in each[:2]} for each in (questions, again)]
    assert len(keys[0] & keys[1]) == 1, "the pair of 1:1 and 1:2 is the same question whichever is the anchor"


def test_locations_when_asked_show_the_sharpest_frames_in_pairs_or_as_a_set() -> None:
    shots = [shot(0, 0.0), shot(1, 0.1), shot(2, 0.4)]
    fields = {"shots": shots, "gate": gate_of(shots)}
    first, second = asked(judge_locations, fields)
    frames = {key: [file_of(f"{key}f3"), file_of(f"{key}f1")] for key in ("1:1", "1:2", "1:3")}
    assert list(files(first)) == [*frames["1:1"], *frames["1:2"]]
    assert list(files(second)) == [*frames["1:2"], *frames["1:3"]]
    (whole,) = asked(judge_locations, fields, definition="code")
    assert list(files(whole)) == [file for files in frames.values() for file in files]
    (few,) = asked(judge_locations, fields, definition="code", shots=2, frames=1)
    assert list(files(few)) == [frames["1:1"][0], frames["1:3"][0]]


def test_group_when_a_shot_failed_lets_the_episode_fail_instead_of_scoring_it() -> None:
    story = {"episode": {"shots": [{"key": "1:1"}, {"key": "1:2"}]}, "outputs": {}}
    members = [Item(f"m/e/{index}", {**shot(index, 0.0), "story": story}) for index in (1, 0)]
    made = group_episodes.run(members, Tools(GateSettings(), NOW))
    assert isinstance(made, Made)
    assert [each["shot"]["key"] for each in made.fields["shots"]] == ["1:1", "1:2"]
    lost = group_episodes.run(members[:1], Tools(GateSettings(), NOW))
    assert isinstance(lost, Failed) and lost.code == "shots_failed"
