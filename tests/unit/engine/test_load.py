"""Many questions at once: each is answered once and paid for once, and the limit of cost holds."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fabula.engine.calls import answered, model_uses
from fabula.engine.execute import Options, execute
from fabula.engine.journal import NAME as JOURNAL
from fabula.errors import BudgetStop
from fabula.testing.endurance import rounds
from fabula.testing.model_server import Dropped, FaultPlan, ModelServer, RateLimited, ServerError
from fabula.testing.toy_models import model_request, reply_to

ITEMS = rounds(10_000, share=30)
FAULTS = {RateLimited(retry_after=0.01): 0.01, ServerError(503): 0.01, Dropped(): 0.01}


@pytest.mark.endurance
@pytest.mark.waits
def test_run_when_many_questions_are_open_at_once_loses_none_and_keeps_the_limit(tmp_path: Path) -> None:
    source = tmp_path / "lines.txt"
    order = random.Random(42).sample(range(ITEMS), ITEMS)
    source.write_text("".join(f"i{number:05} word{number}\n" for number in order))
    with ModelServer(reply_to, latency=0.005, faults=FaultPlan(seed=42, rates=FAULTS)) as server:
        request = model_request(
            tmp_path / "run",
            (source, f"{server.openai_url}#toy"),
            settings={"concurrency": 128, "attempts": 20},
        )
        stops = 0
        limit = 0.0006
        while True:
            try:
                report = execute(replace(request, options=Options(workers=0, max_cost=limit)))
                break
            except BudgetStop:
                assert sum(use.cost for use in model_uses(request.folder / JOURNAL)) <= limit
                stops, limit = stops + 1, limit * 4
        assert stops > 0
        replies = [exchange for exchange in server.log if not exchange.faults]
    assert report.totals["made"] == ITEMS
    made = [json.loads(line) for line in (request.folder / "lines.jsonl").read_text("utf-8").splitlines()]
    assert len({row["id"] for row in made}) == ITEMS
    assert len(list(answered(request.folder / JOURNAL))) == ITEMS
    assert max(Counter(exchange.asked.key for exchange in replies).values()) == 1, "nothing is paid twice"
