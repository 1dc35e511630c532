"""An evaluation of pictures in shards, merged: the files of one run, and nothing is looked at again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabula.engine.machines.merging import Merge
from fabula.kinds.verbs import merge_runs
from fabula.models.vision import store
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import AlignmentModel

PRICES = {"input": 1.0, "output": 10.0}


def files_of(run: Path) -> dict[str, bytes]:
    """Every file of a run but its journal and its lock."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and not path.name.startswith(("journal.sqlite", ".lock"))
    }


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModelServer, dict[str, Any]]]:
    """A server, and options with it as the judge."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    with ModelServer(AlignmentModel()) as server:
        models = {"openai:tested": {"base_url": server.openai_url, "attempts": 2, "prices": PRICES}}
        yield server, {"judges": ("openai:tested",), "models": models, "metrics": "cids,csd,alignment"}


def evaluate_shards(evaluate: Callable[..., Any], of: int, *outputs: Path, **options: Any) -> list[str]:
    """Evaluate in so many shards; return their folders' names."""
    parts = [f"part{number}" for number in range(1, of + 1)]
    for number, part in enumerate(parts, 1):
        evaluate(*outputs, out=part, shard=f"{number}/{of}", **options)
    return parts


def test_images_when_evaluated_in_shards_merge_into_the_bytes_of_one_run(
    evaluate: Callable[..., Any], model_x: Path, tmp_path: Path, judged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, options = judged
    evaluate(model_x, out="whole", **options)
    asked = server.count
    parts = evaluate_shards(evaluate, 3, model_x, **options)
    assert server.count == 2 * asked, "each question once by all shards together"

    def look(*_: Any, **__: Any) -> Any:
        raise AssertionError("a picture was looked at again")

    monkeypatch.setattr(store.VectorStore, "_rows", look)
    merged = merge_runs([tmp_path / part for part in parts], tmp_path / "merged", Merge(workers=0))
    assert server.count == 2 * asked
    assert files_of(tmp_path / "merged") == files_of(tmp_path / "whole")
    assert merged.spent == pytest.approx(sum(use.cost for use in merged.report.models)) and merged.spent > 0


def test_shards_when_they_ask_alike_keep_one_reply_and_book_both(
    evaluate: Callable[..., Any], model_x: Path, copies: Path, tmp_path: Path, judged: Any
) -> None:
    server, options = judged
    parts = evaluate_shards(evaluate, 2, model_x, copies, **options)
    merged = merge_runs([tmp_path / part for part in parts], tmp_path / "merged", Merge(workers=0))
    (use,) = merged.report.models
    assert use.attempts == server.count > use.calls, "some pictures are in both shards"
    assert use.cost == pytest.approx(merged.spent)
