"""Measure reading and scoring one StoryEval result file: replies parsed, completion rates with intervals.

    python benchmarks/completion.py [--results FILE --suite FILE]

Without files a made one of about the published size (423 prompts, three replies each, 4 MB) is used.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from fabula.evaluation.events.judging import Results, import_results
from fabula.evaluation.events.score import score_archive
from fabula.evaluation.events.votes import Definitions
from fabula.releases.events.form import load_suite

PROMPTS, VOTES, WORDS = 423, 3, 480


def made_files(folder: Path) -> tuple[Path, Path]:
    """Write a suite and a result file of the published size; return their paths."""
    chance = random.Random(42)
    suite, results = {}, {}
    for number in range(PROMPTS):
        events = chance.choice((2, 3, 3, 4))
        entry = {
            "prompt": f"Story {number}.",
            "event_list": [f"Event {event}" for event in range(events)],
            "class": [chance.choice(("human", "animal", "object")), f"{events}_events"],
        }
        suite[f"Story_{number}.mp4"] = entry
        votes = {}
        for vote in range(VOTES):
            flags = [chance.randint(0, 1) for _ in range(events)]
            reasons = " ".join(chance.choices(("event", "frame", "shown", "never"), k=WORDS // 2))
            votes[f"output{vote}"] = {
                "completion_list": flags,
                "completion_score": sum(flags) / events,
                "description": reasons,
                "scoring_output": f"{reasons}\n\nFinally [COMPLETE_LIST]: {', '.join(map(str, flags))}",
                "seed": vote,
            }
        results[f"Story_{number}.mp4"] = {**entry, **votes}
    paths = folder / "suite.json", folder / "made_judge_final.json"
    for path, document in zip(paths, (suite, results), strict=True):
        path.write_text(json.dumps(document, indent=4))
    return paths


def main() -> None:
    """Measure three times and print the best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--suite", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fabula-bench-") as folder:
        suite_path, results = made_files(Path(folder))
        if given.results and given.suite:
            suite_path, results = given.suite, given.results
        size = results.stat().st_size / 1e6
        suite, times = load_suite(suite_path), []
        score_archive(
            import_results([Results(results)], suite).archive, suite, Definitions()
        )  # imports numpy
        for _ in range(3):
            started = time.perf_counter()
            imported = import_results([Results(results)], suite)
            parsed = time.perf_counter()
            score_archive(imported.archive, suite, Definitions())
            times.append((parsed - started, time.perf_counter() - parsed))
    read, scored = min(times, key=sum)
    print("| file | replies | read, s | score with intervals, s | together, s |\n|---|---|---|---|---|")
    print(f"| {size:.1f} MB | {imported.replies} | {read:.3f} | {scored:.3f} | {read + scored:.3f} |")


if __name__ == "__main__":
    main()
