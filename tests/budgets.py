"""Budgets of the tests, in processor seconds: of each fast test, and of all tests of a tier together.

A test is charged what its process, and the children that it waited for, use while it runs, with the
fixtures made for it alone; what tests share is charged apart. One that is over its budget is run again,
since the first that needs a library imports it; the better of the two counts, and the outcome is that of the
first. A tier is charged what all processes use from beginning to end. Budgets are those of the machine on
which they were set: a fixed piece of work is timed, and where it takes longer, they are larger. That does
not tell all of a machine (one test took 0.46 and, beside other jobs, 0.80), so a test that is over its budget
by less than half is named at the end and fails nothing.

A test that fails is run again, too. Many wait for processes, servers and pages, and one race among ten
thousand tests would turn a sound change away: one that then passes is named at the end, with why it failed,
to be mended.
"""

import json
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

FAST = 0.5
"""Processor seconds of a fast test."""
TIERS = {"not slow": 700.0, "slow": 1600.0}
"""Tier -> its processor seconds; who adds a dear test makes another cheaper, or raises this on purpose."""
NOISE = 1.5
"""How often its budget a fast test may use before it fails."""
USUAL = 0.025
"""Processor seconds of :func:`work` where the budgets were set, on a quiet core of a virtual machine."""


def used() -> float:
    """Return the processor seconds of this process and of the children that it waited for, so far."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def work() -> float:
    """Return the processor seconds of a fixed piece of work, the best of three."""
    rows = [{"name": f"row {number}", "values": list(range(number % 50))} for number in range(1500)]
    taken = []
    for _ in range(3):
        began = time.process_time()
        for _ in range(6):
            json.loads(json.dumps(rows, sort_keys=True))
        taken.append(time.process_time() - began)
    return min(taken)


def _why(report: pytest.TestReport) -> str:
    """Return why a test failed, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.partition("\n")[0] if crash else report.longreprtext.strip().rpartition("\n")[2]


class Budgets:
    """A plug-in that holds tests to their budgets.

    Args:
        tier: as ``-m`` has it.
        whole: whether this process sees all tests; a worker sees its own.
        used: the processor seconds so far.
        work: those of the fixed piece of work.
    """

    def __init__(
        self, tier: str, whole: bool, used: Callable[[], float] = used, work: Callable[[], float] = work
    ) -> None:
        self._tier, self._whole, self._used, self._work = tier, whole, used, work
        self._slowness = 1.0
        self._look()
        self._shared = self._called = 0.0
        self._in_shared = False
        self._notes = dict[str, str]()

    def _look(self) -> None:
        """Time the machine again: others may have begun to use it."""
        self._slowness = max(self._slowness, self._work() / USUAL)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Charge apart what is made for several tests."""
        if fixturedef.scope == "function" or self._in_shared:
            return (yield)  # type: ignore[return-value]
        began, self._in_shared = self._used(), True
        try:
            return (yield)  # type: ignore[return-value]
        finally:
            self._in_shared = False
            self._shared += self._used() - began

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        """Charge nobody for the end of what was shared."""
        self._called = self._used()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test; one that fails, and a fast one that is over its budget, twice."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        seconds, reports = self._run(item, nextitem)
        if failures := [report for report in reports if report.failed]:
            again = self._run(item, nextitem)[1]
            if not any(report.failed for report in again):
                reports = again
                told = f"it failed, and passed when it was run again: {_why(failures[0])}"
                reports[-1].user_properties.append(("told", told))
        elif self._is_over(item, seconds) and all(report.passed for report in reports):
            seconds = min(seconds, self._run(item, nextitem)[0])
            if self._is_over(item, seconds):
                self._look()
            report = next(report for report in reports if report.when == "call")
            if self._is_over(item, seconds / NOISE):
                report.outcome, report.longrepr = "failed", self._told(seconds)
            elif self._is_over(item, seconds):
                report.user_properties.append(("told", self._told(seconds)))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what is told of a test that passed; workers send it."""
        for told in (told for name, told in report.user_properties if name == "told"):
            self._notes[report.nodeid] = str(told)

    def _run(self, item: pytest.Item, nextitem: pytest.Item | None) -> tuple[float, list[pytest.TestReport]]:
        began, self._shared = self._used(), 0.0
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        return self._called - began - self._shared, reports

    def _is_over(self, item: pytest.Item, seconds: float) -> bool:
        return seconds > FAST * self._slowness and not item.get_closest_marker("slow")

    def _told(self, seconds: float) -> str:
        return (
            f"it used {seconds:.2f} processor seconds, twice; "
            f"a fast test has {FAST * self._slowness:.2f} here: "
            "mark it slow or make it faster"
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail where the tier is over its budget; the workers have ended."""
        self._total = self._used()
        if self._whole and self._total > TIERS[self._tier] * self._slowness:
            self._look()
        self._over = self._whole and self._total > TIERS[self._tier] * self._slowness
        if self._over and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what the tier used, and of how much."""
        budget = f"{TIERS[self._tier]:.0f}, times {self._slowness:.1f} for this machine"
        terminalreporter.write_line(f"processor seconds of all processes: {self._total:.0f} of {budget}")
        for name, told in sorted(self._notes.items()):
            terminalreporter.write_line(f"{name}: {told}")
        if self._over:
            terminalreporter.write_line("over the budget: make a test cheaper, or see tests/budgets.py")
