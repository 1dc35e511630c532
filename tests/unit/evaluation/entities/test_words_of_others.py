"""Episodes judged with a set of texts in the form of the public code's: what is sent, read and recorded."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.engine.stage import BadReply
from fabula.errors import ConfigError
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.entities.entities import ACTION_CRITERIA, CRITERIA
from fabula.evaluation.entities.judging.official import PUBLISHED, PublicReading, first_object
from fabula.evaluation.entities.requests import EVALUATING, EpisodeOptions
from fabula.prompts.sets import SetManifest, SetText, write_set
from fabula.schemas.canonical import Json, sha256_bytes
from fabula.testing.drawn_entities import SETTINGS, write_outputs
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.written_episodes import write_episodes, written_episode

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
    assert set(TEXTS) == set(PUBLISHED.needed)
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


def test_locations_when_compared_in_pairs_have_no_official_words(
    evaluate: Callable[..., ModelServer], folder: Path
) -> None:
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
            first_object(text)
    else:
        assert first_object(text) == found


def test_values_when_read_as_the_public_code_does_may_stand_in_quotes() -> None:
    reading = PublicReading('{"a": "7", "b": 2.5, "c": "high", "d": 11, "yes": "no", "none": null}')
    assert [reading.score(name) for name in "abcde"] == [7, 2.5, None, None, None]
    assert [reading.verdict(name) for name in ("yes", "none", "absent")] == [True, False, False]
