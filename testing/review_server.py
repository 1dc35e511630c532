"""A study that is served on the loopback interface: in a thread, or as a process that can be killed.

``with serve_study(folder) as server: page.goto(server.invite()[0])``
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..pages.page import WAIT
from ..people.review.folder import Study, invite, link_of, open_study
from ..people.review.serve.routes import application
from ..people.review.serve.running import Address, adjudication_routes, clock, configured, serve
from ..people.review.serve.server import Server
from ..people.review.standing import VoteJournal
from ..schemas.canonical import Json

PATIENCE = 30.0
"""Seconds after which a server that has not started is given up."""


class StudyServer:
    """A study while it is served in a thread.

    Args:
        study: the study.
        port: where; 0 takes a free one.
        now: gives the time.
        wait: seconds after which a connection that keeps the server waiting is closed.

    Attributes:
        url: its address.
        server: the study while it is served.
    """

    def __init__(
        self, study: Study, port: int = 0, now: Callable[[], str] = clock, wait: float = WAIT
    ) -> None:
        import uvicorn

        self.study = study
        self.journal = VoteJournal(study.folder)
        self.server = Server(study, self.journal, now)
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._running = uvicorn.Server(
            configured(application(self.server, adjudication_routes), Address(), wait)
        )
        self._thread = threading.Thread(target=self._run, name="review-server", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._running.run(sockets=[self._listener])

    def invite(self, count: int = 1, role: str = "reviewer") -> list[str]:
        """Return the personal links of new people."""
        people = invite(self.study, self.journal, clock(), count, role=role)
        self.server.catch_up()
        return [link_of(self.study, person.reviewer, self.url) for person in people]

    def votes(self) -> list[dict[str, Json]]:
        """Return the bodies of all votes, oldest first."""
        return [dict(event.body) for event in self.journal.events() if event.kind == "voted"]

    def stop(self) -> None:
        """Stop as when asked to: what is under way ends first."""
        self._running.should_exit = True
        self._end()

    def kill(self) -> None:
        """Cut all connections; nothing that is under way gets its answer."""
        self._running.should_exit = self._running.force_exit = True
        self._end()

    def _end(self) -> None:
        self._thread.join(PATIENCE)
        with suppress(OSError):
            self._listener.close()
        self.journal.close()


@contextmanager
def serve_study(folder: Path) -> Iterator[StudyServer]:
    """Serve a study in a thread while the block lasts."""
    server = StudyServer(open_study(folder))
    try:
        yield server
    finally:
        if server._thread.is_alive():
            server.stop()


class StudyProcess:
    """A study that a process of its own serves; ``url`` is its address once it has started."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        command = [sys.executable, "-m", __name__, str(folder), str(port)]
        self._child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self._child.stdout.readline().strip() if self._child.stdout else ""
        if not self.url:
            self.kill()
            raise RuntimeError("the server of the study did not start")
        self.port = int(self.url.rpartition(":")[2])

    def stop(self) -> int:
        """Ask it to stop; return its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """End it at once, whatever it is doing; return its exit code."""
        return self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        with suppress(ProcessLookupError):
            os.kill(self._child.pid, number)
        code = self._child.wait(PATIENCE)
        if self._child.stdout:
            self._child.stdout.close()
        return code


def main() -> None:
    """Serve the study of the first argument at the port of the second; tell the address on a line."""

    def started(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()

    serve(open_study(Path(sys.argv[1])), Address(port=int(sys.argv[2])), started=started)


if __name__ == "__main__":
    main()
