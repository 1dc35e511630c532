"""What ordering requests that begin alike saves, by the scripted server's own count of what it had read.

    python benchmarks/caching.py
    python benchmarks/caching.py --stories 200 --questions 12 --panels 5 --latency 0.2

Each story is asked about its storyboard several times, as judges do, through the real SDKs; tokens and prices
are those that the server counts and the list prices of the model. Once all go out as they come, once one of
each storyboard goes ahead.
"""

import argparse
import asyncio
import os
import time

from fabula.models.chat import ChatRequest, Image, Message
from fabula.models.client import ModelClient
from fabula.models.keys import Redactor
from fabula.models.options import ModelOptions
from fabula.models.prices import book, most_tokens, price_of
from fabula.models.registry import open_model
from fabula.models.spec import parse_spec
from fabula.testing.model_server import ModelServer

SPECS = ("openai:gpt-4.1-mini", "google:gemini-2.5-flash", "anthropic:claude-haiku-4-5")
KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY")


def main() -> None:
    """Measure and print."""
    args = _arguments()
    os.environ.update(dict.fromkeys(KEYS, "benchmark-key-0123456789abcdef"))
    print("| model | order | calls that found something | tokens read from the cache | USD | s |")
    print("|---|---|---|---|---|---|")
    for spec in SPECS:
        for ordered in (False, True):
            print(asyncio.run(_row(spec, args, ordered=ordered)), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stories", type=int, default=40)
    parser.add_argument("--questions", type=int, default=12, help="about each storyboard")
    parser.add_argument("--panels", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of the server for each answer")
    parser.add_argument("--concurrency", type=int, default=32)
    return parser.parse_args()


async def _row(spec: str, args: argparse.Namespace, *, ordered: bool) -> str:
    with ModelServer(caching=True, latency=args.latency) as server:
        urls = {"openai": server.openai_url, "google": server.google_url, "anthropic": server.anthropic_url}
        parsed = parse_spec(spec)
        options = ModelOptions(
            base_url=urls[parsed.provider], prompt_cache=ordered, concurrency=args.concurrency
        )
        client = ModelClient(open_model(parsed, options, Redactor()), options)
        asked = [
            _request(spec, story, number, args.panels)
            for story in range(args.stories)
            for number in range(args.questions)
        ]
        began = time.perf_counter()
        called = await asyncio.gather(*map(client.call, asked))
        spent = time.perf_counter() - began
        await client.close()
        price, cache = price_of(parsed, options), server.cache
        assert price is not None
        usd = sum(book(price, call.reply.usage, most_tokens(asked[0], options)).cost for call in called)
    share = f"{cache.read} of {cache.input} ({cache.read / cache.input:.0%})"
    order = "one ahead" if ordered else "as they come"
    return f"| `{spec}` | {order} | {cache.hits} of {cache.requests} | {share} | {usd:.4f} | {spent:.1f} |"


def _request(spec: str, story: int, number: int, panels: int) -> ChatRequest:
    system = Message("system", ("You judge what a storyboard shows. " * 20,))
    pictures = tuple(
        Image(b"\x89PNG\r\n\x1a\n" + f"{story} {panel}".encode(), "image/png") for panel in range(panels)
    )
    return ChatRequest(
        spec, (system, Message("user", (*pictures, f"Question {number}: who acts, and why?"))), max_tokens=200
    )


if __name__ == "__main__":
    main()
