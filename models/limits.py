"""What paces the calls to a model: a clock, requests and tokens per minute, and calls under way.

The clock is injected, so that tests need not wait. Calls under way are halved when the service says
too many, and raised slowly.
"""

import asyncio
import hashlib
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..schemas.plain_files import network_disk
from .keys import Redactor, find_key
from .options import ModelOptions
from .spec import ModelSpec


class Clock(Protocol):
    """A monotonic clock; setting the machine's time does not move it."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(seconds)


STEP = 0.1
"""Longest sleep in seconds before looking again, as a settlement may have made room; also how late a call
may be without the next one being late too."""


class RateLimit:
    """Spaces calls evenly, so that no minute holds more than allowed and nothing bursts. For one event loop.

    Each call occupies the time that the limits grant for it; the next one starts when that time is over.
    What a call turns out not to have used is given back to those after it.

    ``requests_per_minute``: None for no limit. ``tokens_per_minute``: None for no limit; input and output
    together. ``clock``: what time goes by.

    Attributes:
        per_request: seconds that a request occupies; 0 for no limit.
        per_token: the same for a token.
        clock: what time goes by.
    """

    def __init__(
        self, requests_per_minute: float | None, tokens_per_minute: float | None, clock: Clock
    ) -> None:
        self.per_request = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self.per_token = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self.clock = clock
        self._next_request = self._next_tokens = clock.monotonic()
        self._started = False
        self._turn = asyncio.Lock()

    @classmethod
    def of(cls, options: "ModelOptions", clock: Clock) -> "RateLimit":
        """Return the limits in a model's settings, as far as they are this host's share."""
        limits = (options.requests_per_minute, options.tokens_per_minute)
        requests, tokens = (None if limit is None else limit * options.limit_share for limit in limits)
        return cls(requests, tokens, clock)

    @property
    def active(self) -> bool:
        return bool(self.per_request or self.per_token)

    async def reserve(self, tokens: int) -> None:
        """Wait until a call of so many tokens may start, and occupy its share."""
        async with self._turn:
            while True:
                now = self.clock.monotonic()
                wait = max(self._next_request, self._next_tokens) - now
                if wait <= 0:
                    break
                await self.clock.sleep(min(wait, STEP))
            # Waking up a little late must not lower the rate; an idle time must not be saved up for a burst.
            floor = now - STEP if self._started else now
            self._started = True
            self._next_request = max(self._next_request, floor) + self.per_request
            self._next_tokens = max(self._next_tokens, floor) + tokens * self.per_token

    def settle(self, reserved: int, used: int) -> None:
        """Correct a reservation by what the call used; more than reserved delays the next call."""
        delta = (used - reserved) * self.per_token
        base = max(self._next_tokens, self.clock.monotonic()) if delta > 0 else self._next_tokens
        self._next_tokens = base + delta

    def pause(self, seconds: float) -> None:
        """Do nothing: whoever asks the model waits himself, and nobody else is limited by this."""

    def close(self) -> None:
        """Do nothing: there is no file."""


RAISE_AFTER = 5
"""Successes in a row after which one more call is allowed."""


class AdaptiveLimit:
    """Slots for calls; first come, first served. For one event loop.

    ``most``: the limit at the start, never exceeded.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = most
        self._used = 0
        self._successes = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._changed = 0

    @property
    def limit(self) -> int:
        """How many calls are allowed now."""
        return self._limit

    @property
    def used(self) -> int:
        """How many slots are taken."""
        return self._used

    @property
    def generation(self) -> int:
        """Number of reductions so far; note it when a call starts, and hand it to :meth:`lower`."""
        return self._changed

    async def acquire(self) -> None:
        """Take a slot, waiting for one if need be. Cancelled while waiting, no slot is taken."""
        if self._used < self._limit and not self._waiting:
            self._used += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the slot was handed over in the same moment
            elif turn in self._waiting:  # a slot given back in the same moment takes it out of the line
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Give a slot back."""
        self._used -= 1
        self._admit()

    def raise_after_success(self) -> None:
        """Count a success; after a few in a row, allow one more call."""
        if self._limit == self._most:
            return
        self._successes += 1
        if self._successes >= RAISE_AFTER:
            self._successes = 0
            self._limit += 1
            self._admit()

    def lower(self, generation: int) -> None:
        """Halve the limit, once for all calls that were under way together."""
        self._successes = 0
        if generation == self._changed:
            self._changed += 1
            self._limit = max(1, self._limit // 2)

    def _admit(self) -> None:
        while self._waiting and self._used < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._used += 1
                turn.set_result(None)


# -- Requests and tokens per minute that all processes of one host share, by a file in the user's cache
#
# The file holds for each key and model when its next call may start. Nobody reserves more than the call that
# starts, so a process that dies leaves nothing behind but that. Times are of the machine's clock; where that
# goes back, everything in the file goes back with it. Keys of services stand there as hashes.

FILE = "limits.sqlite"
BUSY = 0.05
"""Seconds until a process looks again while another one is at the file."""
PATIENCE = 10.0
"""Seconds of that after which the file counts as held for ever, such as by a process that was halted."""
OLD = 7 * 86400.0
"""Seconds after which a key that nobody has used is forgotten."""
_BUSY_ERRORS = ("SQLITE_BUSY", "SQLITE_LOCKED")
_TABLE = """CREATE TABLE IF NOT EXISTS limits (
    name TEXT PRIMARY KEY, requests REAL, tokens REAL, hold REAL, stamp REAL
)"""


@dataclass(slots=True)
class _Times:
    """When the next call may start, in seconds since 1970: by requests, by tokens, and by pauses."""

    requests: float
    tokens: float
    hold: float


class SharedLimit:
    """Spaces calls as :class:`.limits.RateLimit` does, for all processes that use the same file and name.

    Where the file cannot be used, it goes on with limits for this process alone, and says so.

    ``path``: the file; made if missing, with its folder. ``name``: of what is limited; secrets in it must be
    hashed. ``own``: the limits that hold. ``tell``: told once why the file is not used. ``wall``: the
    machine's clock, in seconds since 1970.
    """

    def __init__(
        self, path: Path, name: str, own: RateLimit, tell: Callable[[str], None],
        wall: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._path, self._name, self._own = path, name, own
        self._tell, self._wall = tell, wall
        self._db: sqlite3.Connection | None = None
        self._is_used = own.active
        self._owed = self._pause = 0.0
        self._turn = asyncio.Lock()

    @property
    def active(self) -> bool:
        return self._own.active

    async def reserve(self, tokens: int) -> None:
        """Wait until a call of so many tokens may start, and occupy its share."""
        async with self._turn:
            busy = 0.0
            while self._is_used:
                wait = self._visit(tokens)
                if wait is None:
                    wait = BUSY
                    busy += BUSY
                    if busy > PATIENCE:
                        self._give_up(f"another process has held it for {PATIENCE:g} s")
                elif wait <= 0:
                    return
                else:
                    busy = 0.0
                await self._own.clock.sleep(min(wait, STEP))
        await self._own.reserve(tokens)

    def settle(self, reserved: int, used: int) -> None:
        """Correct a reservation by what the call used; more than reserved delays the next call."""
        if self._is_used:
            self._owed += (used - reserved) * self._own.per_token
            self._visit(None)
        else:
            self._own.settle(reserved, used)

    def pause(self, seconds: float) -> None:
        """Let no call of any process start for so long: the service asked for it."""
        if self._is_used:
            self._pause = max(self._pause, seconds)
            self._visit(None)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _visit(self, tokens: int | None) -> float | None:
        """Write down what is owed, and take a call if it may start; return the seconds to wait.

        None is returned while another process is at the file; what is owed is kept for the next time.
        """
        try:
            db = self._opened()
            db.execute("BEGIN IMMEDIATE")
            try:
                wait = self._taken(db, tokens)
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if not str(getattr(error, "sqlite_errorname", "")).startswith(_BUSY_ERRORS):
                self._give_up(str(error))
            return None
        except OSError as error:
            self._give_up(error.strerror or str(error))
            return None
        self._owed = self._pause = 0.0
        return wait

    def _taken(self, db: sqlite3.Connection, tokens: int | None) -> float:
        """Return the seconds until a call may start; 0 or less where it was taken."""
        now, own = self._wall(), self._own
        row = db.execute(
            "SELECT requests, tokens, hold, stamp FROM limits WHERE name = ?", (self._name,)
        ).fetchone()
        times, stamp = (_Times(now, now, 0.0), now) if row is None else (_Times(*row[:3]), row[3])
        back = max(0.0, stamp - now)  # so far the clock has gone back since somebody wrote
        times = _Times(times.requests - back, times.tokens - back, times.hold - back)
        if self._pause:
            times.hold = max(times.hold, now + self._pause)
        if self._owed:
            times.tokens = (max(times.tokens, now) if self._owed > 0 else times.tokens) + self._owed
        wait = max(times.requests, times.tokens, times.hold) - now
        if tokens is not None and wait <= 0:
            # As for one process: waking up late must not lower the rate, and idle time is not saved up.
            times.requests = max(times.requests, now - STEP) + own.per_request
            times.tokens = max(times.tokens, now - STEP) + tokens * own.per_token
        elif not (self._pause or self._owed or back):
            return wait
        db.execute(
            "INSERT OR REPLACE INTO limits VALUES (?, ?, ?, ?, ?)",
            (self._name, times.requests, times.tokens, times.hold, now),
        )
        return wait

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            kind = network_disk(self._path.parent)
            if kind is not None:
                raise OSError(
                    f"its folder is on a network disk ({kind}), where files cannot be locked reliably"
                )
            db = sqlite3.connect(self._path, timeout=BUSY / 10, isolation_level=None)
            try:
                (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchone()
                if mode != "wal":
                    raise OSError("its disk has no shared memory, as network disks do not")
                db.execute("PRAGMA synchronous=NORMAL")
                db.execute(_TABLE)
                db.execute("DELETE FROM limits WHERE stamp < ?", (self._wall() - OLD,))
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db

    def _give_up(self, why: str) -> None:
        self._is_used = False
        self.close()
        self._tell(
            f"the limits of models are kept by this process alone, as {self._path} cannot be used: {why};"
            " other runs with the same key may exceed the limit together with it"
        )


def shared_limit(
    spec: ModelSpec, options: ModelOptions, redactor: Redactor, tell: Callable[[str], None]
) -> SharedLimit | RateLimit:
    """Return the limits of a model that all runs of this user on this host share."""
    own = RateLimit.of(options, SystemClock())
    if not own.active:
        return own
    from platformdirs import user_cache_path

    about = (spec.text, options.base_url or "", find_key(spec, options, redactor))
    name = hashlib.sha256("\0".join(("limits", *about)).encode()).hexdigest()
    return SharedLimit(user_cache_path("fabula") / FILE, name, own, tell)
