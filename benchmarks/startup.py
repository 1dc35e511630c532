"""Measure the start of the command line: ``fabula --help`` beside bare peers.

python benchmarks/startup.py
"""

import statistics
import sys

from measure import measure

PROGRAMS = {
    "python -c pass": ("-c", "pass"),
    "import typer": ("-c", "import typer"),
    "import fabula": ("-c", "import fabula"),
    "fabula --help": ("-m", "fabula.cli.main", "--help"),
    "import datasets": ("-c", "import datasets"),
}
REPEATS = 11


def main() -> None:
    """Print the median of several starts of each program."""
    print("| program | seconds (median of 11) |\n|---|---|")
    for name, args in PROGRAMS.items():
        seconds = statistics.median(measure(sys.executable, *args).seconds for _ in range(REPEATS))
        print(f"| `{name}` | {seconds:.3f} |", flush=True)


if __name__ == "__main__":
    main()
