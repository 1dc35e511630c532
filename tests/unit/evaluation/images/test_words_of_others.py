"""Shots rated with a set of texts in the form of the public code's: what is sent, read and asked again."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fabula.engine.report import RunReport
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.archive.replies import last_attempts
from fabula.evaluation.shots.official import PUBLISHED
from fabula.prompts.sets import SetManifest, SetText, write_set
from fabula.schemas.canonical import sha256_bytes
from fabula.testing.model_server import Asked, ModelServer

TEXTS = {name: f"Rate the {name}." for name in PUBLISHED.needed} | {"character": "Who: {name}"}


def test_shots_when_asked_in_other_words_are_rated_again_and_warmer_without_a_score(
    evaluate: Callable[..., RunReport], model_x: Path, tmp_path: Path
) -> None:
    about = {
        name: SetText(
            file=f"texts/{name}.txt", sha256=sha256_bytes(text.encode()), template=name == "character"
        )
        for name, text in TEXTS.items()
    }
    write_set(tmp_path / "mine", SetManifest(name="mine", commit="1", texts=about), TEXTS, None)
    times: Counter[str] = Counter()

    def answer(asked: Asked) -> str:
        times[asked.text] += 1
        return "No number." if "Rate the scene." in asked.text and times[asked.text] == 1 else "Score: 3"

    with ModelServer(answer) as server:
        evaluate(
            model_x, metrics="alignment", judges=[f"{server.openai_url}#judge"], limit=1,
            prompts=str(tmp_path / "mine"), settings=("run.attempts=2",),
        )  # fmt: skip
        log = server.log
    archive = read_archive(tmp_path / "run")
    assert {(one.parsed or {}).get("rating") for one in last_attempts(archive.judgements)} == {3}
    scenes = [one.asked for one in log if "Rate the scene." in one.asked.text]
    assert {(asked.attempt, asked.params["temperature"]) for asked in scenes} == {(1, 0.0), (1, 0.1)}
    details = {
        part["image_url"].get("detail")
        for one in log for part in one.asked.body["messages"][-1]["content"] if part["type"] == "image_url"
    }  # fmt: skip
    assert details == {None, "low"}
    assert {bool(one.asked.system) for one in log if "Who: " in one.asked.text} == {True}
