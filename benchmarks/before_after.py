"""Compare two checkouts of Fabula, step by step and in turn: start, build, pack, verify, score.

    python benchmarks/before_after.py --before ../old/.venv/bin/python --stories 2000 --rounds 5

Both make the same records of the same stories. In every round each checkout does each step once, and which
goes first changes with the round, so that a machine that slows down slows both. The table gives medians, and
the median of the ratios of a round with their range.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import measure

STORIES = """
import sys
from pathlib import Path
from fabula.testing.made_stories import write_stories
write_stories(Path(sys.argv[1]), int(sys.argv[2]))
"""
JUDGED = """
import sys
from pathlib import Path
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth
write_simulated(Path(sys.argv[1]), int(sys.argv[2]), [("one", Truth(errors=(0.1, 0.2)))])
"""
QUESTIONS = 2871


def steps(folder: Path, given: Path) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the steps of one round with their arguments, in order; later ones use what earlier ones made."""
    run, release, stories = folder / "run", folder / "release", given / "stories.jsonl"
    packed = ("--version", "0.1.0", "--license", "CC0-1.0", "--out", release)
    commands: dict[str, tuple[object, ...]] = {
        "fabula --help": ("--help",),
        "build": ("build", "katha", stories, "--out", run, "--created-at", "2026-01-01T00:00:00Z"),
        "build, nothing to do": ("build", "katha", stories, "--out", run),
        "validate": ("validate", run),
        "pack": ("release", "pack", run, *packed),
        "verify": ("release", "verify", release),
        "score": ("score", given / "run", "--release", given / "release"),
    }
    yield "import fabula", ("-c", "import fabula")
    for name, arguments in commands.items():
        more = () if name == "fabula --help" else ("--json",)
        yield name, ("-m", "fabula.cli.main", *arguments, *more)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True, help="the Python of the other checkout's environment")
    parser.add_argument(
        "--after", default=sys.executable, help="that of this one; by default the one that runs"
    )
    parser.add_argument("--stories", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    pythons = {"before": given.before, "after": given.after}
    taken: dict[str, dict[str, list[float]]] = {}
    shared = Path(tempfile.mkdtemp(prefix="fabula-given-"))
    try:
        measure(given.after, "-c", STORIES, shared / "stories.jsonl", given.stories)
        measure(given.after, "-c", JUDGED, shared, QUESTIONS)
        for number in range(given.rounds):
            for side in ("before", "after") if number % 2 else ("after", "before"):
                folder = Path(tempfile.mkdtemp(prefix="fabula-round-"))
                for name, arguments in steps(folder, shared):
                    took = measure(pythons[side], *arguments).seconds
                    taken.setdefault(name, {"before": [], "after": []})[side].append(took)
                shutil.rmtree(folder)
    finally:
        shutil.rmtree(shared)
    print(f"| step ({given.stories} stories, {given.rounds} rounds) | before, s | after, s | ratio | range |")
    print("|---|---:|---:|---:|---:|")
    for name, sides in taken.items():
        ratios = [after / before for before, after in zip(sides["before"], sides["after"], strict=True)]
        before, after = (statistics.median(sides[side]) for side in ("before", "after"))
        span = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"| {name} | {before:.2f} | {after:.2f} | {statistics.median(ratios):.2f} | {span} |")


if __name__ == "__main__":
    main()
