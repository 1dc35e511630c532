"""Guards that every test gets: no network but loopback, no long sleeps, a clean environment and home."""

import gc
import importlib.util
import os
import re
import signal
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from difflib import unified_diff
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

LOOPBACK = ("127.", "::1", "localhost")
LONGEST_SLEEP = 0.3
REFERENCE = "FABULA_REFERENCE"
NOT_REACHED = "not reached: the time for slow tests was over"
STARTED_WITH = dict(os.environ)
OPEN = Image.open
HERE = Path(__file__).parent
FIRST = (
    "cli/test_page_commands.py", "cli/test_tutorials.py", "unit/releases/test_forgeries.py",
    "unit/studies/compass/test_whole.py", "unit/releases/hub/test_publishing.py",
    "browser/test_report_page.py", "browser/test_review_pages.py", "unit/engine/test_kill.py",
)  # fmt: skip
"""The dearest files: each is one worker's, and begins while others are left for the other workers."""
ORDER = {HERE / name: rank for rank, name in enumerate(FIRST)}
MARK, WHOLE = "pytest.mark.slow", re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow\b", re.M)
UNTIL = "FABULA_SLOW_UNTIL"
"""The second since the epoch from which slow tests are not begun any more; the gate sets it."""


def beside(name: str) -> Any:
    """Return a module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pytest_configure(config: pytest.Config) -> None:
    tier, budgets = config.getoption("markexpr"), beside("budgets")
    if tier in budgets.TIERS and not config.getoption("collectonly"):
        config.pluginmanager.register(budgets.Budgets(tier, not hasattr(config, "workerinput")), "budgets")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file whose tests the chosen tier leaves out."""
    tier = config.getoption("markexpr")
    if tier not in ("slow", "not slow") or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return (MARK not in text if tier == "slow" else WHOLE.search(text) is not None) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    assert all(path.is_file() for path in ORDER), "FIRST names a file that is not there"
    for path in {item.path for item in items if item.get_closest_marker("slow")}:
        assert MARK in path.read_text(encoding="utf-8"), f"{path}: write {MARK} in the file of the test"
    items.sort(key=lambda item: ORDER.get(item.path, len(ORDER)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    until = os.environ.get(UNTIL)
    if until and item.get_closest_marker("slow") and time.time() > float(until):
        pytest.skip(NOT_REACHED)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays: test modules and libraries, as long as the process does."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def opens_pictures_as_pillow_does() -> Iterator[None]:
    """Fail where a test leaves another function in its place; ultralytics does so as it is imported."""
    yield
    replaced, Image.open = Image.open, OPEN
    assert replaced is OPEN, f"PIL.Image.open was replaced by that of {replaced.__module__}"


@pytest.fixture
def needs_installed() -> Callable[..., None]:
    """Skip a test where a library is missing; it is not imported, which may replace Pillow's open."""

    def check(*libraries: str) -> None:
        for library in libraries:
            if importlib.util.find_spec(library) is None:
                pytest.skip(f"{library} is not installed: the extra metrics is missing")

    return check


@pytest.fixture(scope="session")
def difference() -> Callable[[str, str], str]:
    """Return by lines what a text changes of another one, so that a case is pinned as what it changes."""

    def between(base: str, other: str) -> str:
        changes = list(unified_diff(base.splitlines(), other.splitlines(), n=0, lineterm=""))[2:]
        return "\n".join("..." if line.startswith("@@") else line for line in changes)

    return between


@pytest.fixture(scope="session")
def in_lines() -> Callable[[Any], str]:
    """Return a value as text, each of its fields a line with its place, so that cases can be compared."""
    from fabula.schemas.canonical import canonical_text

    def leaves(value: Any, place: str) -> Iterator[str]:
        if hasattr(value, "__dataclass_fields__"):
            value = {name: getattr(value, name) for name in value.__dataclass_fields__}
        value = value.as_json() if hasattr(value, "as_json") else value
        if isinstance(value, dict):
            for key, part in value.items():
                yield from leaves(part, f"{place}.{key}")
        elif isinstance(value, list | tuple) and value and not isinstance(value[0], str | int | float):
            for number, part in enumerate(value):
                yield from leaves(part, f"{place}[{number}]")
        else:
            text = value if isinstance(value, str) else canonical_text(value)
            yield from f"{place}: {text}".splitlines()

    return lambda value: "\n".join(leaves(value, "$"))


@pytest.fixture
def refusals(tmp_path: Path) -> Callable[..., str]:
    """Return what a function refuses cases with: each case, and below it the sort of error and its words."""
    from fabula.errors import FabulaError

    def told(do: Callable[[Any], object], cases: Iterable[Any]) -> str:
        lines = []
        for case in cases:
            with pytest.raises((FabulaError, ValueError)) as caught:
                do(case)
            words = f"{type(caught.value).__name__}: {caught.value}".replace(str(tmp_path), "")
            lines.append(f"{case!r:.100}\n    " + words.replace("\n", "\n    "))
        return "\n".join(lines)

    return told


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that do not exist yet."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in count())


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, homes: Iterator[Path], warm: Any) -> None:
    for name in {*os.environ, *STARTED_WITH}:  # some libraries set these as they are imported
        if name.startswith(warm.READ_AT_START) and os.environ.get(name) != STARTED_WITH.get(name):
            os.environ.pop(name, None)
            os.environ |= {name: STARTED_WITH[name]} if name in STARTED_WITH else {}
    home = next(homes)
    home.mkdir()
    for name in [
        name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith("HF_")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("HF_HOME", str(home / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")


@pytest.fixture(scope="session", autouse=True)
def reads_certificates_once() -> Iterator[None]:
    """Let clients share what HTTPS needs, which no test uses: each would read all authorities anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def hears_hangups() -> None:
    """Let tests and what they start hear SIGHUP, though the suite itself was started with nohup."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and not str(address[0]).startswith(LOOPBACK):
            raise AssertionError(f"a test tried to reach {address}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(autouse=True)
def no_long_sleep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("waits"):
        return
    real = time.sleep

    def sleep(seconds: float) -> None:
        if seconds > LONGEST_SLEEP:
            raise AssertionError(f"a test slept {seconds} s; inject a clock, or mark the test waits")
        real(seconds)

    monkeypatch.setattr(time, "sleep", sleep)


@pytest.fixture(scope="session")
def warm() -> Any:
    return beside("warm")


@pytest.fixture(scope="session")
def starter(warm: Any) -> Iterator[Any]:
    """Starts the real command in processes that need not read the libraries first; see ``warm.py``."""
    with warm.starter(STARTED_WITH) as made:
        yield made


@pytest.fixture(scope="session")
def typed(warm: Any, starter: Any) -> Iterator[str]:
    """The ``PATH`` of shells whose ``fabula`` and ``python`` start fast where that makes no difference."""
    commands = warm.Typed(starter)
    yield f"{commands.folder}{os.pathsep}{os.environ['PATH']}"
    commands.close()


@pytest.fixture(autouse=True)
def reads_releases_warm(request: pytest.FixtureRequest, warm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read releases with the libraries of users in forks of a process that has them; not where ``fresh``."""
    if request.node.get_closest_marker("fresh"):
        return
    from fabula.models import programs

    real = programs.run_program

    def run(command: Any, environment: Any, **given: Any) -> Any:
        if warm.reads_release(command):
            starter = request.getfixturevalue("starter")
            if starter.fits(environment):
                return warm.read_in(starter.reader, command, environment, given)
        return real(command, environment, **given)

    monkeypatch.setattr(programs, "run_program", run)


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The folder of published data, for parity tests: skipped when unset, failed when set but missing."""
    value = os.environ.get(REFERENCE)
    if not value:
        pytest.skip(f"{REFERENCE} is not set: no published data to compare with")
    folder = Path(value)
    assert folder.is_dir(), f"{REFERENCE} names {value}, which is not a folder"
    yield folder


def pytest_terminal_summary(terminalreporter: Any) -> None:
    passed = terminalreporter.stats.get("passed", [])
    count = sum("parity" in report.keywords for report in passed)
    terminalreporter.write_line(f"parity tests passed: {count}")
    skipped = terminalreporter.stats.get("skipped", [])
    left = Counter(report.nodeid.split("::")[0] for report in skipped if NOT_REACHED in str(report.longrepr))
    if left:
        terminalreporter.write_line(f"slow tests not reached in the given time: {left.total()}")
    for name, number in left.items():
        terminalreporter.write_line(f"  {name}: {number}")
