"""``python -m fabula.testing.model_server``: serve the stand-in, a script or a handler until stopped."""

import argparse
import asyncio
import importlib
import importlib.util
import signal
import sys
import traceback
from pathlib import Path

from ...errors import ConfigError, ExitCode, UserError
from .. import stand_in
from .scripts import read_plan, scripted
from .server import ModelServer
from .serving import Handler


def load_handler(text: str) -> Handler:
    """Return the function that ``module:function`` or ``file.py:function`` names."""
    place, _, name = text.rpartition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
            if spec is None or spec.loader is None:
                raise ImportError(f"{place} cannot be loaded")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        handler: Handler = getattr(module, name)
    except (ImportError, AttributeError, OSError, ValueError) as error:
        wanted = "module:function or file.py:function"
        raise ConfigError("--handler", expected=wanted, found=f"{text} ({error})", fix="name one") from None
    return handler


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    options = argparse.ArgumentParser(
        prog="python -m fabula.testing.model_server",
        description="A model service on this machine, to try Fabula without a key and to test with. Without "
        "--script and --handler a stand-in answers every prompt of Fabula: right in form, without meaning.",
        epilog="example: python -m fabula.testing.model_server --port 8123 &",
    )
    source = options.add_mutually_exclusive_group()
    source.add_argument("--script", type=Path, help="YAML or .jsonl file of answers")
    source.add_argument("--handler", help="module:function or file.py:function that answers")
    source.add_argument(
        "--knows", type=Path, metavar="RELEASE",
        help="the stand-in knows the stories of this release, and answers most questions about storyboards "
        "rightly, by chance: a report has numbers to look at, which mean nothing",
    )  # fmt: skip
    options.add_argument("--port", type=int, default=0, help="port to listen on; a free one if not given")
    options.add_argument("--log", type=Path, help="append everything asked to this file, as JSON lines")
    options.add_argument("--faults", type=Path, help="YAML or JSON file of a fault plan")
    options.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    return options


def make_server(given: argparse.Namespace) -> ModelServer:
    """Return the server that the options ask for; it keeps no log in memory."""
    handler: Handler = scripted(given.script) if given.script else stand_in.answer
    handler = stand_in.knowing(given.knows) if given.knows else handler
    return ModelServer(
        load_handler(given.handler) if given.handler else handler,
        faults=read_plan(given.faults) if given.faults else None,
        latency=given.latency,
        port=given.port,
        log_path=given.log,
        keep_log=False,
    )


async def serve(server: ModelServer) -> None:
    """Serve until SIGTERM or SIGINT; print the URLs once they work."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)

    def started() -> None:
        urls = (
            ("openai", server.openai_url),
            ("google", server.google_url),
            ("anthropic", server.anthropic_url),
        )
        sys.stdout.write("".join(f"{name:<10} {url}\n" for name, url in urls))
        if getattr(server.handler, "__module__", "") == stand_in.__name__:
            sys.stdout.write(
                "This is a stand-in, not a model: its answers are right in form and mean nothing.\n"
                f"next: fabula models check {server.openai_url}#{stand_in.NAME}\n"
            )
        sys.stdout.flush()

    await server.serve(started)


def main() -> int:
    """Run the command; 1 if the handler raised."""
    try:
        server = make_server(parser().parse_args())
        asyncio.run(serve(server))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"the server cannot start: {error}\n")
        return ExitCode.USAGE
    text = f"{server.count} questions, {len(server.rejected)} not understood, {server.busiest} at once\n"
    sys.stderr.write(text)
    for failure in server.errors[:1]:
        sys.stderr.write("the handler raised:\n" + "".join(traceback.format_exception(failure)))
    return ExitCode.FINDINGS if server.errors else ExitCode.OK


if __name__ == "__main__":
    raise SystemExit(main())
