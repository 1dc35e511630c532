"""Publish to a Hub on the loopback interface, beside what ``HfApi.upload_folder`` does with the same folder.

    python benchmarks/publish.py --stories 5000 --images 2000

The Hub runs in a process of its own. Both send the same files; commits and requests are counted by the Hub.
Then the version is fetched into an empty cache, and again from the cache.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import fabula

os.environ["HF_HUB_DISABLE_XET"] = "1"

from huggingface_hub import HfApi
from huggingface_hub.utils import disable_progress_bars

from fabula.kinds.verbs import pack, verify
from fabula.releases.hub.fetch import FetchOptions, fetch
from fabula.releases.hub.publish import PublishOptions, plan_publishing, publish
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import checksums, file_entries
from fabula.schemas.canonical import pretty_bytes
from fabula.schemas.paths import RELEASE, SUMS
from fabula.testing.made_stories import write_stories

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def make_release(folder: Path, stories: int, images: int, kilobytes: int) -> Path:
    """Build and pack a release, and put pictures into it as a release with pictures would have them."""
    source = write_stories(folder / "stories.jsonl", stories)
    run, release = folder / "run", folder / "made-0.1.0"
    fabula("build", "katha", source, "--out", run, "--created-at", "2026-01-01T00:00:00Z", "--json")
    pack(run, release, PackOptions("0.1.0", name="made", allow_drafts=True))
    draw = random.Random(42)
    (release / "images").mkdir()
    for number in range(images):
        (release / "images" / f"{number:05}.png").write_bytes(_PNG + draw.randbytes(kilobytes * 1024))
    document = json.loads((release / RELEASE).read_bytes())
    document["files"] = file_entries(release)
    (release / RELEASE).write_bytes(pretty_bytes(document))
    (release / SUMS).write_bytes(checksums(release))
    return release


@contextmanager
def hub(folder: Path) -> Iterator[tuple[str, Path]]:
    """Run a Hub in a process of its own; give its address and its log."""
    log = folder / f"hub-{time.monotonic_ns()}.jsonl"
    command = [sys.executable, "-m", "fabula.testing.hub", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        settings = dict(part.split("=", 1) for part in server.stdout.readline().split()[1:])
        os.environ |= settings
        try:
            yield settings["HF_ENDPOINT"], log
        finally:
            server.terminate()


def row(what: str, seconds: float, log: Path, seen: list[int]) -> None:
    """Print one row of what was asked since the last one."""
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()][seen[0] :]
    seen[0] += len(lines)
    routes = Counter(line["route"] for line in lines)
    sent = sum(line["received"] for line in lines) / 1e6
    uploads = routes["lfs-upload"] + routes["lfs-verify"]
    counts = f"{routes['commit']} | {routes['tag']} | {len(lines)} | {uploads}"
    print(f"| {what} | {counts} | {sent:.1f} | {seconds:.2f} |", flush=True)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def upload_folder(endpoint: str, release: Path) -> None:
    """Publish as the client's own function does: repository, folder, tag."""
    api = HfApi(endpoint=endpoint, token=os.environ["HF_TOKEN"])
    api.create_repo("user/peer", repo_type="dataset", exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = api.upload_folder(repo_id="user/peer", folder_path=release, repo_type="dataset")
    api.create_tag("user/peer", tag="0.1.0", revision=done.oid, repo_type="dataset", exist_ok=True)


def compare(folder: Path, release: Path) -> None:
    """Measure both, new and with nothing to do, then fetching."""
    with hub(folder) as (endpoint, log):
        row("`HfApi.upload_folder`, tag", timed(lambda: upload_folder(endpoint, release)), log, [0])
    checking = timed(lambda: verify(release, quick=True))
    print(f"| `release verify --quick`, part of publishing | | | | | | {checking:.2f} |")
    with hub(folder) as (endpoint, log):
        seen = [0]
        options = PublishOptions("user/made", endpoint=endpoint)
        source = FetchOptions(endpoint=endpoint, cache=folder / "cache")
        steps: tuple[tuple[str, Callable[[], object]], ...] = (
            ("`publish --dry-run`", lambda: plan_publishing(release, options)),
            ("`publish`", lambda: publish(release, options)),
            ("`publish`, nothing to do", lambda: publish(release, options)),
            ("`fetch`", lambda: fetch("user/made@0.1.0", None, source)),
            ("`fetch`, cached", lambda: fetch("user/made@0.1.0", None, source)),
        )
        for what, work in steps:
            row(what, timed(work), log, seen)


def main() -> None:
    """Make a release, publish it both ways, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=5000)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--kilobytes", type=int, default=30, help="size of an image")
    given = parser.parse_args()
    disable_progress_bars()
    folder = Path(tempfile.mkdtemp(prefix="fabula-bench-"))
    try:
        release = make_release(folder, given.stories, given.images, given.kilobytes)
        print(f"{given.stories} stories, {given.images} images of {given.kilobytes} KiB\n")
        print("| what | commits | tags | requests | of these uploads | MB sent | seconds |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        compare(folder, release)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
