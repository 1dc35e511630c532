"""Each value of a judge's reply counts by itself; what is asked is what the definitions say."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabula.engine.estimate import questions_of
from fabula.engine.pipeline import load_stage
from fabula.engine.stage import Ask, BadReply, Failed, Item, Made, Tools
from fabula.errors import ConfigError
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.entities import judging
from fabula.evaluation.entities.archived import ACTION_CRITERIA, CRITERIA
from fabula.evaluation.entities.episodes import group_episodes
from fabula.evaluation.entities.requests import EVALUATING, EpisodeOptions
from fabula.evaluation.metrics.vectors import packed
from fabula.models.chat import Image
from fabula.prompts.loader import SetManifest, SetText, write_set
from fabula.schemas.canonical import Json, sha256_bytes
from fabula.testing.drawn_entities import SETTINGS, write_outputs
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.written_episodes import write_episodes, written_episode

np = pytest.importorskip("numpy")
NOW = "2026-01-01T00:00:00Z"
JUDGE = "openai:some-judge"


@pytest.mark.parametrize("value", [None, "nine", "8", [8], {"score": 8}, 0, 11, 95, True, float("nan")])
def test_fidelity_when_one_value_cannot_be_used_loses_that_value_alone(value: Json) -> None:
    reply = {"reason": "r", "face": value, "hair": 7, "clothing": 8, "build": 9, "overall": 8}
    parsed = judging.fidelity_shape("character").read(reply)
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
    parsed = judging.set_shape(4).read(reply)
    assert (parsed["consistent"], parsed["consistency"], parsed["outliers"]) == (False, 4, [2])
    assert parsed["descriptions"] == ["a"]


def test_action_when_no_object_is_named_has_no_value_for_them() -> None:
    reply = dict.fromkeys(("subject_identity", "subject_action", "object_interaction", "motion_quality"), 6)
    reply |= {"overall": 6, "depicted": True}
    assert judging.action_shape(with_objects=False).read(reply)["object_interaction"] is None
    assert "unread" not in judging.action_shape(with_objects=False).read(reply)
    assert judging.action_shape(with_objects=True).read(reply)["object_interaction"] == 6


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


def asked(name: str, fields: Json, **settings: object) -> list[Ask[Json]]:
    kind = judging.LocationSettings if name == "JUDGE_LOCATIONS" else judging.EpisodeJudgeSettings
    stage = load_stage(f"fabula.evaluation.entities.judging:{name}")
    tools = Tools(kind.model_validate({"judges": [JUDGE], **settings}), NOW)
    return asyncio.run(questions_of(stage, Item("m/e", fields), tools))


def gate_of(shots: list[Json]) -> Json:
    outcome = judging.gate_appearances(Item("m/e", {"shots": shots}), Tools(judging.GateSettings(), NOW))
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
    questions = asked("JUDGE_FIDELITY", {"shot": base["shot"], "grounded": base["grounded"]})
    assert [question.prompt.partition("@")[0] for question in questions] == [
        "episodes/judge_character", "episodes/judge_object",
    ]  # fmt: skip
    assert ["not certain" in str(question.request.messages[-1].parts[-1]) for question in questions] == [
        False, True,
    ]  # fmt: skip
    assert asked("JUDGE_FIDELITY", {"shot": base["shot"], "grounded": None}) == []


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
    questions = asked("JUDGE_PAIRS", {"shots": shots, "gate": gate_of(shots)})
    assert [question.prompt.partition("@")[0] for question in questions] == [
        *["episodes/compare_characters"] * 2, *["episodes/compare_objects"] * 2,
    ]  # fmt: skip
    for question in questions:
        assert list(files(question)) == sorted(files(question))
    moved = gate_of(shots)
    moved["character:Ana"]["anchor"] = "1:1"
    again = asked("JUDGE_PAIRS", {"shots": shots, "gate": moved})
    keys = [{question.request.key() for question in each[:2]} for each in (questions, again)]
    assert len(keys[0] & keys[1]) == 1, "the pair of 1:1 and 1:2 is the same question whichever is the anchor"


def test_locations_when_asked_show_the_sharpest_frames_in_pairs_or_as_a_set() -> None:
    shots = [shot(0, 0.0), shot(1, 0.1), shot(2, 0.4)]
    fields = {"shots": shots, "gate": gate_of(shots)}
    first, second = asked("JUDGE_LOCATIONS", fields)
    frames = {key: [file_of(f"{key}f3"), file_of(f"{key}f1")] for key in ("1:1", "1:2", "1:3")}
    assert list(files(first)) == [*frames["1:1"], *frames["1:2"]]
    assert list(files(second)) == [*frames["1:2"], *frames["1:3"]]
    (whole,) = asked("JUDGE_LOCATIONS", fields, definition="code")
    assert list(files(whole)) == [file for files in frames.values() for file in files]
    (few,) = asked("JUDGE_LOCATIONS", fields, definition="code", shots=2, frames=1)
    assert list(files(few)) == [frames["1:1"][0], frames["1:3"][0]]


def test_group_when_a_shot_failed_lets_the_episode_fail_instead_of_scoring_it() -> None:
    story = {"episode": {"shots": [{"key": "1:1"}, {"key": "1:2"}]}, "outputs": {}}
    members = [Item(f"m/e/{index}", {**shot(index, 0.0), "story": story}) for index in (1, 0)]
    made = group_episodes(members, Tools(judging.GateSettings(), NOW))
    assert isinstance(made, Made)
    assert [each["shot"]["key"] for each in made.fields["shots"]] == ["1:1", "1:2"]
    lost = group_episodes(members[:1], Tools(judging.GateSettings(), NOW))
    assert isinstance(lost, Failed) and lost.code == "shots_failed"


# Episodes judged with a set of texts in the form of the public code's: what is sent, read and recorded.

CRITERIA_JSON = json.dumps({kind: dict.fromkeys(names, "How so?") for kind, names in CRITERIA.items()})
TEXTS = {
    "criteria": CRITERIA_JSON, "pair_criteria": CRITERIA_JSON,
    "action_criteria": json.dumps(dict.fromkeys(ACTION_CRITERIA, "Does it?")), "no_labels": "(nobody)",
    "fidelity": "{type} {name} {description}\n{criteria}\n{{{fields}, \"fidelity\": N}}",
    "action": "{count} {action} {labels}\n{criteria}\n{{{fields}, \"overall\": N, \"action_depicted\": N}}",
    "pair": "{type} {name} {description}\n{criteria}\n{{{fields}, \"similarity\": N, \"is_same\": N}}",
    "location": "{shots} {name} {description}\n{images}\n{{\"layout\": N, \"consistency\": N}}",
    "location_sampled": "{shots} {count} {sampled} {name} {description}\n{images}",
    "location_image": "Picture {number} of {shot}",
}  # fmt: skip
PLAIN = ("criteria", "pair_criteria", "action_criteria", "no_labels")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    about = {
        name: SetText(
            file=f"texts/{name}.txt", sha256=sha256_bytes(text.encode()), template=name not in PLAIN
        )
        for name, text in TEXTS.items()
    }
    write_set(tmp_path / "mine", SetManifest(name="mine", commit="1", texts=about), TEXTS, None)
    assert set(TEXTS) == set(judging.PUBLISHED.needed)
    return tmp_path / "mine"


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    pytest.importorskip("av")
    write_episodes(tmp_path / "set", [written_episode()])
    write_outputs(tmp_path / "x", [written_episode()], frames=6)

    def answer(asked: Asked) -> str:
        return json.dumps({name: "8" for name in re.findall(r'"(\w+)": N', asked.text)})

    def run(**options: object) -> ModelServer:
        with ModelServer(answer) as server:
            given = EpisodeOptions(
                judges=["openai:one"], models={"openai:one": {"base_url": server.openai_url}}, pillars="2,3",
                settings=SETTINGS, device="cpu", workers=0, created_at="2026-01-01T00:00:00Z",
                **options,  # type: ignore[arg-type]
            )  # fmt: skip
            EVALUATING.evaluate(tmp_path / "set", [tmp_path / "x"], tmp_path / "run", given)
            return server

    return run


@pytest.mark.slow
def test_episodes_when_asked_in_other_words_are_read_and_the_words_stay_out_of_the_archive(
    evaluate: Callable[..., ModelServer], folder: Path, tmp_path: Path
) -> None:
    server = evaluate(prompts=str(folder), locations="code")
    archive = read_archive(tmp_path / "run")
    outcomes = Counter((one.kind, one.outcome) for one in archive.judgements)
    assert {kind for kind, _ in outcomes} == {"fidelity", "action", "pair", "location"}
    assert {outcome for _, outcome in outcomes} == {"answered"}
    parsed = [one.parsed or {} for one in archive.judgements if one.kind == "fidelity"]
    assert {reply["overall"] for reply in parsed} == {8}
    assert {one.prompt.partition("#")[0] for one in archive.judgements} == {
        f"mine/{name}@1" for name in ("fidelity", "action", "pair", "location")
    }
    assert all(one.asked.system == "" and len(one.asked.messages) == 1 for one in server.log)
    kept = "".join((tmp_path / "run" / name).read_text() for name in ("evaluation.json", "judgements.jsonl"))
    assert "How so?" not in kept and "Picture {number}" not in kept


def test_locations_when_compared_in_pairs_have_no_official_words(evaluate, folder):
    with pytest.raises(ConfigError, match="add --locations code"):
        evaluate(prompts=str(folder))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('Sure: {"a": {"b": 1}} {"c": 2}', {"a": {"b": 1}}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("{}", None),
        ("no", None),
        ("{broken", None),
    ],
)
def test_object_when_looked_for_is_the_first_of_the_reply(text: str, found: Json) -> None:
    if found is None:
        with pytest.raises(BadReply):
            judging.first_object(text)
    else:
        assert judging.first_object(text) == found


def test_values_when_read_as_the_public_code_does_may_stand_in_quotes() -> None:
    reading = judging.PublicReading('{"a": "7", "b": 2.5, "c": "high", "d": 11, "yes": "no", "none": null}')
    assert [reading.score(name) for name in "abcde"] == [7, 2.5, None, None, None]
    assert [reading.verdict(name) for name in ("yes", "none", "absent")] == [True, False, False]
