"""What a small open model makes of every prompt, held to its schema.

    FABULA_KEEP_REQUESTS=requests.jsonl make test-slow PYTEST_ARGS="-k understood_at_once"
    python benchmarks/small_model.py requests.jsonl hf:SmolLM2-135M-Instruct.Q4_1.gguf >rows.jsonl

The first command keeps one request of each prompt, of commands that run on samples. The second asks them and
writes a row for each; `--table` prints rows as docs/small_model.csv has them. Prompts with pictures are asked
only of models that see.
"""

import argparse
import asyncio
import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

from fabula.models.chat import CallFault, ChatRequest, Message, Reply, ReplySchema
from fabula.models.keys import Redactor
from fabula.models.options import options_for
from fabula.models.registry import open_model
from fabula.models.replies import Malformed, parse_reply
from fabula.models.spec import parse_spec
from fabula.prompts.loader import load_prompt

MOST = 300
"""Most tokens of a reply: a model that comes to no end is not waited for."""
BATCH = 8


def depth(schema: object) -> int:
    """Return how many objects and lists lie in each other at most."""
    if not isinstance(schema, dict):
        return 0
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items")]
    own = schema.get("type") in ("object", "array")
    return own + max(map(depth, inner), default=0)


def read_requests(path: Path) -> list[dict[str, Any]]:
    """Return one request of each prompt, the shortest first, so that those of a batch are alike."""
    first: dict[str, dict[str, Any]] = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["prompt"]:
            first.setdefault(row["prompt"], row)
    return sorted(first.values(), key=lambda row: len(row["system"]) + len(row["user"]))


def made(reply: Reply | CallFault, schema: ReplySchema | None) -> str:
    """Return what a reply is, in words."""
    if isinstance(reply, CallFault):
        return f"{reply.kind}: {reply.message}"
    if reply.outcome == "truncated":
        return f"cut off at {reply.usage.output_tokens if reply.usage else MOST}"
    if reply.outcome != "ok":
        return reply.outcome
    try:
        parse_reply(reply.text, schema)
    except Malformed as malformed:
        return f"out of form: {malformed.problem}"
    return "in form"


async def ask_all(spec: str, asked: list[dict[str, Any]], dtype: str) -> None:
    """Ask in batches, and write a row for each."""
    options = options_for(parse_spec(spec), {spec: {"concurrency": BATCH, "dtype": dtype}})
    model = open_model(parse_spec(spec), options, Redactor())
    texts = [row for row in asked if not row["pictures"]]
    for row in asked:
        if row["pictures"]:
            note({**row, "made": f"not asked: {row['pictures']} pictures"}, None, 0.0)
    for start in range(0, len(texts), BATCH):
        batch, began = texts[start : start + BATCH], time.monotonic()
        requests = []
        for row in batch:
            schema = row["schema"] and ReplySchema(row["prompt"].replace("/", "_"), row["schema"])
            said = (Message("system", (row["system"],)), Message("user", (row["user"],)))
            most = min(MOST, row["max_tokens"] or MOST)
            requests.append(ChatRequest(spec, said, schema, temperature=0.0, max_tokens=most))
        replies = await asyncio.gather(*map(model.complete, requests), return_exceptions=True)
        for row, request, reply in zip(batch, requests, replies, strict=True):
            note({**row, "made": made(reply, request.schema)}, reply, time.monotonic() - began)
    await model.close()


def note(row: dict[str, Any], reply: Reply | CallFault | None, seconds: float) -> None:
    """Write a row."""
    usage = reply.usage if isinstance(reply, Reply) else None
    line = {
        "prompt": row["prompt"], "version": load_prompt(row["prompt"]).card.version,
        "tokens": usage and usage.input_tokens, "depth": depth(row["schema"]), "made": row["made"],
        "reply_tokens": usage and usage.output_tokens, "batch_seconds": round(seconds, 1),
        "text": reply.text if isinstance(reply, Reply) else None,
    }  # fmt: skip
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def table(path: Path) -> None:
    """Print rows as a table."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(("prompt", "tokens", "depth", "what came", "tokens of the reply"))
    for row in sorted(rows, key=lambda row: row["prompt"]):
        lines.writerow(
            (row["prompt"], row["tokens"], row["depth"] or "text", row["made"], row["reply_tokens"])
        )


def main() -> None:
    """Ask, or print the table of what was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("requests", type=Path, help="requests, one a line; with --table: rows")
    parser.add_argument("model", nargs="?", help="spec of the model")
    parser.add_argument("--dtype", default="auto", help="precision of the weights")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        table(given.requests)
    else:
        asyncio.run(ask_all(given.model, read_requests(given.requests), given.dtype))


if __name__ == "__main__":
    main()
