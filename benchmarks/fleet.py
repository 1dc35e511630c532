"""A plan for many machines, simulated: millions of judge calls by shards, under the limits that runs use.

    python benchmarks/fleet.py [--machines 1,8,32] [--calls 7752240] [--requests-per-minute 10000]

Time is compressed: an event loop whose clock jumps to the next moment at which something happens. The limits
are Fabula's own classes (``models/limits.py``), an equal part of them for each machine, and whole stories go
to machines by hash. The processor time of a call is measured (``benchmarks/judging.py``); latency, limits and
tokens of a call are given. What comes out: hours, how busy each resource was, and what the plan waits for.
"""

import argparse
import asyncio
import math
import random
import selectors
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fabula.models.limits import AdaptiveLimit, RateLimit

HOUR = 3600.0


class Jumping(selectors.DefaultSelector):
    """A selector that does not wait: it moves the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return what is ready; where nothing is, let the time pass."""
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class Compressed(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time."""

    def __init__(self) -> None:
        self.passing = Jumping()
        super().__init__(self.passing)

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self.passing.now


class LoopClock:
    """The clock of the loop, for the limits."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True)
class Plan:
    """What is to be done, and with what.

    Attributes:
        calls: judge calls in all (Eq. 67).
        stories: what they are about; shards are made of whole stories.
        judges: models; each has limits of its own.
        machines: shards, one to a machine.
        slots: calls under way per judge and machine.
        requests: a judge's requests per minute, all machines together; 0 for no limit.
        tokens: a judge's tokens per minute, likewise.
        size: tokens of a call, in and out.
        latency: median seconds of an answer; the spread is log-normal with sigma 0.5.
        work: seconds of one processor core that a call costs the machine which asks.
    """

    calls: int
    stories: int
    judges: int
    machines: int
    slots: int
    requests: float
    tokens: float
    size: int
    latency: float
    work: float


@dataclass
class Machine:
    """A machine while it asks: its core is free from a certain moment on."""

    free: float = 0.0
    busy: float = 0.0
    end: float = 0.0
    served: float = 0.0


def shards(plan: Plan) -> list[int]:
    """Return how many stories each machine has."""
    counts = Counter(
        int(sha256(f"story_{number}".encode()).hexdigest(), 16) % plan.machines
        for number in range(plan.stories)
    )
    return [counts[machine] for machine in range(plan.machines)]


async def ask(plan: Plan, machine: Machine, lane: tuple[RateLimit, AdaptiveLimit], left: list[int]) -> None:
    """Ask calls of one judge, one after the other, until none is left."""
    limit, slots = lane
    loop = asyncio.get_running_loop()
    draw = random.Random(left[0])
    while left[0]:
        left[0] -= 1
        await slots.acquire()
        if limit.active:
            await limit.reserve(plan.size)
        limited = loop.time()
        machine.free = max(machine.free, limited) + plan.work
        machine.busy += plan.work
        latency = math.exp(draw.gauss(math.log(plan.latency), 0.5))
        queued = machine.free - limited
        await asyncio.sleep(queued + latency)
        slots.release()
        machine.served += latency
    machine.end = loop.time()


async def run(plan: Plan) -> list[Machine]:
    """Let all machines work through their shards."""
    clock, machines, work = LoopClock(), [Machine() for _ in range(plan.machines)], []
    for machine, stories in zip(machines, shards(plan), strict=True):
        for _ in range(plan.judges):
            share = plan.machines
            limit = RateLimit(plan.requests / share or None, plan.tokens / share or None, clock)
            left = [round(plan.calls * stories / plan.stories / plan.judges)]
            lane = (limit, AdaptiveLimit(plan.slots))
            work += [ask(plan, machine, lane, left) for _ in range(plan.slots)]
    await asyncio.gather(*work)
    return machines


def row(plan: Plan, machines: list[Machine]) -> str:
    """Return a line of the table."""
    end = max(machine.end for machine in machines)
    mean = sum(machine.end for machine in machines) / len(machines)
    minutes = end / 60
    shares = {
        "requests per minute": plan.calls / plan.judges / minutes / plan.requests if plan.requests else 0.0,
        "tokens per minute": plan.calls / plan.judges * plan.size / minutes / plan.tokens
        if plan.tokens
        else 0.0,
        "core of the driver": max(machine.busy for machine in machines) / end,
        "calls under way": sum(machine.served for machine in machines)
        / (plan.slots * plan.judges * len(machines) * end),
    }
    first = max(shares, key=lambda name: shares[name])
    cells = " | ".join(f"{share:.2f}" for share in shares.values())
    return f"| {plan.machines} | {end / HOUR:.2f} | {end / mean:.2f} | {cells} | {first} |"


def main() -> None:
    """Simulate each number of machines in turn and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", default="1,8,32", help="numbers of machines, separated by commas")
    parser.add_argument(
        "--calls", type=int, default=7_752_240, help="28,712 x 3 conditions x 6 judges x 3 x 5"
    )
    parser.add_argument("--stories", type=int, default=5_000)
    parser.add_argument("--judges", type=int, default=6)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--requests-per-minute", type=float, default=10_000)
    parser.add_argument("--tokens-per-minute", type=float, default=30_000_000)
    parser.add_argument("--tokens", type=int, default=4_500)
    parser.add_argument("--latency", type=float, default=2.5)
    parser.add_argument("--work", type=float, default=0.01588)
    given = parser.parse_args()
    print("| machines | hours | slowest to mean | requests/min | tokens/min | core | under way | waits for |")
    print("|---:|---:|---:|---:|---:|---:|---:|---|")
    for machines in map(int, given.machines.split(",")):
        plan = Plan(
            given.calls, given.stories, given.judges, machines, given.slots, given.requests_per_minute,
            given.tokens_per_minute, given.tokens, given.latency, given.work,
        )  # fmt: skip
        loop = Compressed()
        try:
            print(row(plan, loop.run_until_complete(run(plan))), flush=True)
        finally:
            loop.close()


if __name__ == "__main__":
    main()
