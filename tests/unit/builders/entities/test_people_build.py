"""From videos to people through the engine: detections from a file, and a model behind the real SDK."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.drafting import without_models
from fabula.engine.estimate import plan_calls
from fabula.engine.execute import execute
from fabula.schemas.canonical import Json
from fabula.testing.asked_prompts import user_text
from fabula.testing.drawn_episode import write_detections
from fabula.testing.drawn_videos import Take, write_takes
from fabula.testing.known_film import HEIGHT, SHOT_FRAMES, WIDTH, KnownFilm
from fabula.testing.model_server import Answer, Asked, ModelServer, Refused
from fabula.testing.stage_pipelines import LINES, people_request

pytestmark = pytest.mark.slow

FILM = KnownFilm(16, seed=9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("av")
    place = tmp_path_factory.mktemp("people")
    takes = [Take(SHOT_FRAMES, 10 * shot.number) for shot in FILM.shots]
    write_takes(place / "film.mp4", takes, (WIDTH, HEIGHT))
    write_detections(place / "film.jsonl", FILM.detections())
    yield place


def build(
    folder: Path, out: Path, handler: Callable[[Asked], Any] | None = None, *sets: str
) -> tuple[dict[str, Any], list[Asked]]:
    # So small a limit leaves work for a model.
    given = [
        f"detect_people.detections={json.dumps(str(folder / 'film.jsonl'))}",
        "cluster_people.face_limit=0.02", "cluster_people.body_limit=0.02", *sets,
    ]  # fmt: skip
    if handler is None:
        execute(people_request(out, [folder / "film.mp4"], given))
        return json.loads((out / LINES).read_text()), []
    with ModelServer(handler) as server:
        execute(people_request(out, [folder / "film.mp4"], given, base_url=server.openai_url))
        return json.loads((out / LINES).read_text()), [one.asked for one in server.log]


def cast_in(asked: Asked) -> list[Json]:
    fence = re.search(r"<<<([0-9a-f]+)\n(.*?)\n\1>>>", user_text(asked), re.DOTALL)
    assert fence is not None
    return json.loads(fence[2])


def test_people_when_no_model_is_named_are_those_of_clustering(folder: Path, tmp_path: Path) -> None:
    found, asked = build(folder, tmp_path / "run")
    assert asked == []
    assert found["cast"]
    assert found["clustering"]["people"] == len(found["cast"])
    assert found["consolidation"] == {"rounds": 0, "made": [], "refused": []}


def test_people_when_a_model_proposes_are_merged_as_far_as_they_can_be(folder: Path, tmp_path: Path) -> None:
    before, _ = build(folder, tmp_path / "plain")
    seen: list[list[Json]] = []

    def handler(asked: Asked) -> Json:
        cast = cast_in(asked)
        seen.append(cast)
        first = cast[0]
        apart = next(one for one in cast if not set(one["shots"]) & set(first["shots"]))
        together = next(one for one in cast[1:] if set(one["shots"]) & set(first["shots"]))
        named = [first["person"], apart["person"], together["person"], "p999"]
        again = {"persons": [apart["person"], cast[-1]["person"]], "reason": "the same hat"}
        return {"same": [{"persons": named, "reason": "the same face"}, again]}

    found, asked = build(folder, tmp_path / "run", handler)
    (cast,) = seen
    assert [one["person"] for one in cast] == [one["person_id"] for one in before["cast"]]
    assert len(found["cast"]) == len(before["cast"]) - 1
    (merge,) = found["consolidation"]["made"]
    assert merge["one"] == cast[0]["person"]
    assert merge["reason"] == "the same face"
    assert merge["by"].startswith("openai:tested via entities/consolidate_people@")
    why = [one["refused"] for one in found["consolidation"]["refused"]]
    assert len(why) == 3
    assert "shot" in why[0] or "adjacent" in why[0]
    assert why[1] == "nobody has this id"
    assert why[2] == "named before in the same reply"
    merged = found["cast"][0]
    parts = [one for one in before["cast"] if one["person_id"] in (merge["one"], merge["other"])]
    assert sorted(merged["tracklets"]) == sorted(name for one in parts for name in one["tracklets"])
    assert asked[0].images
    assert len(list((tmp_path / "run").rglob("*.jpg"))) > 0


def test_people_when_only_estimated_are_asked_for_nowhere(folder: Path, tmp_path: Path) -> None:
    given = [
        f"detect_people.detections={json.dumps(str(folder / 'film.jsonl'))}",
        "consolidate_people.at_once=6", "consolidate_people.anchors=2",
        "cluster_people.face_limit=0.02", "cluster_people.body_limit=0.02",
    ]  # fmt: skip
    with ModelServer(lambda _: {"same": []}) as server:
        request = people_request(tmp_path / "run", [folder / "film.mp4"], given, base_url=server.openai_url)
        plan = plan_calls(request, without_models(request.config))
        assert server.count == 0
        execute(request)
        assert plan.calls == server.count > 1


def test_people_when_the_model_refuses_fail_and_say_so(folder: Path, tmp_path: Path) -> None:
    from fabula.errors import BelowThreshold

    handler: Callable[[Asked], Answer | Refused] = lambda _: Refused()  # noqa: E731
    with pytest.raises(BelowThreshold):
        build(folder, tmp_path / "run", handler)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert "refused" in json.dumps(report)
