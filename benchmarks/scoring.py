"""Measure scoring: 28,712 questions, 3 conditions, 6 judges, 10,000 bootstrap resamples; and a tenth of it.

    python benchmarks/scoring.py --questions 2871,28712

The judgements are simulated (``testing/simulated_judgements.py``). Every story has six questions; pairs and
moral targets are judged too, and counted beside the judgements of questions.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from measure import fabula, measure

MAKE = """
import sys
from pathlib import Path
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth

truth = Truth(errors=(0.05, 0.1, 0.1, 0.15, 0.2, 0.25))
made = write_simulated(Path(sys.argv[1]), int(sys.argv[2]), [("method", truth)])
print(len(made.replies.columns["question"]), sum(map(len, made.replies.columns.values())))
"""


def main() -> None:
    """Measure each size in turn and print one table."""
    import sys

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", default="2871,28712", help="numbers of questions, separated by commas")
    print("| questions | judgements of questions | all judgements | resamples | seconds | peak MiB |")
    print("|---:|---:|---:|---:|---:|---:|")
    for questions in map(int, parser.parse_args().questions.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="fabula-bench-"))
        try:
            asked, every = measure(sys.executable, "-c", MAKE, folder, questions).output.split()
            for resamples in (0, 10_000):
                options = ("--release", folder / "release", "--resamples", resamples, "--json")
                scored = fabula("score", folder / "run", *options)
                seconds, memory = f"{scored.seconds:.1f}", f"{scored.mebibytes:.0f}"
                print(f"| {questions} | {asked} | {every} | {resamples} | {seconds} | {memory} |", flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
