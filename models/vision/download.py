"""Files with weights that are not on the Hub: fetched in silence, and resumed where they broke off."""

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

CONNECT, SILENT = 5.0, 60.0
"""Seconds until a connection stands, and without a byte."""

_lost: dict[str, str] = {}


def fetch_address(address: str, path: Path) -> None:
    """Write the file at an address to a path; what an earlier attempt left in ``<path>.part`` is resumed.

    A host that could not be reached is not tried again in this process.
    """
    import httpx2

    host = urlsplit(address).netloc
    if host in _lost:
        raise ConnectionError(_lost[host])
    path.parent.mkdir(parents=True, exist_ok=True)
    part, note = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")
    begun = _begun(part, note, address)
    headers = {"Accept-Encoding": "identity"}
    if begun:
        headers |= {"Range": f"bytes={part.stat().st_size}-", "If-Range": begun}
    timeout = httpx2.Timeout(SILENT, connect=CONNECT)
    try:
        with httpx2.stream("GET", address, headers=headers, follow_redirects=True, timeout=timeout) as reply:
            if reply.status_code not in (200, 206):
                raise FileNotFoundError(f"{address} answers {reply.status_code}")
            resumed = reply.status_code == 206 and bool(begun)
            if not resumed:
                note.write_text(json.dumps({"address": address, "etag": reply.headers.get("etag", "")}))
            with part.open("ab" if resumed else "wb") as out:
                for chunk in reply.iter_bytes():
                    out.write(chunk)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
        _lost[host] = f"{host} cannot be reached ({type(error).__name__})"
        raise ConnectionError(_lost[host]) from error
    except httpx2.HTTPError as error:
        raise ConnectionError(f"{address} broke off ({type(error).__name__}); repeat to go on") from error
    note.unlink(missing_ok=True)
    part.replace(path)


def _begun(part: Path, note: Path, address: str) -> str:
    """Return the tag of the file that an earlier attempt began with; empty where it cannot be resumed."""
    try:
        begun = json.loads(note.read_text("utf-8"))
        etag = begun["etag"] if begun["address"] == address and part.stat().st_size else ""
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return str(etag) if not str(etag).startswith("W/") else ""


def torch_copy(name: str) -> Path:
    """Return where torch keeps a file that it fetched itself."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("TORCH_HOME", f"{cache}/torch")
    return Path(home).expanduser() / "hub" / "checkpoints" / name


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep libraries from telling what they fetch and load."""
    with ExitStack() as undone:
        for name in ("huggingface_hub", "transformers", "diffusers", "httpx", "httpx2"):
            logger = logging.getLogger(name)
            undone.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        shown = import_module("huggingface_hub.utils")
        if not shown.are_progress_bars_disabled():
            shown.disable_progress_bars()
            undone.callback(shown.enable_progress_bars)
        for library in ("transformers", "diffusers"):
            if library not in sys.modules:
                continue
            bars = import_module(f"{library}.utils.logging")
            if bars.is_progress_bar_enabled():
                bars.disable_progress_bar()
                undone.callback(bars.enable_progress_bar)
        yield
