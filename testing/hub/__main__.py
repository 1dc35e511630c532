"""``python -m fabula.testing.hub``: a Hub to try publishing on, gone when it is stopped."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from .server import TOKEN, HubServer


def main() -> int:
    """Serve until SIGTERM or SIGINT; print what a client needs."""
    options = argparse.ArgumentParser(
        prog="python -m fabula.testing.hub",
        description="A Hub on the loopback interface, in memory. Its one user is called `user`.",
    )
    options.add_argument("--port", type=int, default=0, help="by default a free one")
    options.add_argument("--log", type=Path, help="append every request to this file, as JSON lines")
    given = options.parse_args()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        with HubServer(port=given.port, log_path=given.log) as hub:
            sys.stdout.write(f"export HF_ENDPOINT={hub.url} HF_TOKEN={TOKEN}\n")
            sys.stdout.flush()
            stop.wait()
    except OSError as error:
        sys.stderr.write(f"the Hub cannot start: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
