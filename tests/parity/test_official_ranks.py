"""Ranks of ViStoryBench's public summary, driven on drawn tables, against ours."""

import csv
import importlib.util
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from fabula.evaluation.metrics.alignment import average
from fabula.evaluation.shots.official_ranks import CATEGORIES, official_ranks
from fabula.schemas.values import Score

pytestmark = pytest.mark.parity

CASES = 300
COLUMNS = {
    "cids_self": "metrics.cids.metrics.cids_self_mean", "cids_cross": "metrics.cids.metrics.cids_cross_mean",
    "csd_self": "metrics.csd.metrics.self_csd", "csd_cross": "metrics.csd.metrics.cross_csd",
    "shot": "metrics.prompt_align.metrics.camera", "scene": "metrics.prompt_align.metrics.scene",
    "interaction": "metrics.prompt_align.metrics.character_action",
    "action": "metrics.cids.metrics.single_character_action",
    "aesthetic": "metrics.aesthetic.metrics.aesthetic_score",
    "inception": "metrics.diversity.metrics.inception_score",
}  # fmt: skip
NAMES = {
    "character": "Character Consistency(CRef)_rank", "style": "Style Consistency(SRef)_rank",
    "prompt": "Prompt Alignment_rank", "quality": "Generative Quality_rank", "diversity": "Diversity_rank",
}  # fmt: skip


@pytest.fixture
def summary(reference: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = reference / "official" / "vistorybench" / "utils" / "summarize_leaderboard.py"
    spec = importlib.util.spec_from_file_location("summarize_leaderboard", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def drawn(number: int) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Runs with missing scores and equal ones, and which method each is a run of."""
    random = Random(number)
    runs, variants = {}, {}
    for method in range(random.randint(1, 6)):
        for mode in range(random.choice([1, 1, 2, 3])):
            run = f"m{method}-{mode}"
            variants[run] = f"m{method}"
            digits = random.choice([0, 1, 1, 3])
            runs[run] = {
                name: round(random.random() * 4, digits) for name in COLUMNS if random.random() > 0.12
            }
    return runs, variants


def means_of(runs: dict[str, dict[str, float]], module: ModuleType) -> tuple[dict[str, float], bool]:
    """Mean rank of each run, and whether two runs of one method are level, so that the code takes any."""
    keys = {run: module.RunKey(run.partition("-")[0], run) for run in runs}
    merged = {keys[run]: {COLUMNS[name]: value for name, value in row.items()} for run, row in runs.items()}
    ranks = [
        module.compute_category_rank(merged, subs, True)[1] for subs in module.CATEGORY_SUBMETRICS.values()
    ]
    means = {run: sum(rank[key] for rank in ranks) for run, key in keys.items()}
    best: dict[str, list[float]] = {}
    for run, mean in means.items():
        best.setdefault(run.partition("-")[0], []).append(mean)
    return means, any(values.count(min(values)) > 1 for values in best.values())


def test_ranks_when_drawn_tables_are_summed_up_are_those_of_the_public_code(
    summary: ModuleType, tmp_path: Path
) -> None:
    compared = 0
    for number in range(CASES):
        runs, variants = drawn(number)
        if means_of(runs, summary)[1]:
            continue
        rows = [
            {"method": variants[run], "model": run, "mode": "", "timestamp": ""}
            | {COLUMNS[name]: str(row[name]) if name in row else "" for name in COLUMNS}
            for run, row in runs.items()
        ]
        with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, ["method", "model", "mode", "timestamp", *COLUMNS.values()])
            writer.writeheader()
            writer.writerows(rows)
        merged = summary.aggregate_split_rows(summary.read_csv_rows(tmp_path / "rows.csv"))
        theirs = {
            row["model"]: row for row in summary.compute_leaderboard_rows(merged, set(variants.values()))
        }
        ours = official_ranks(runs, variants)
        assert {row.method for row in ours} == theirs.keys()
        for row in ours:
            official = theirs[row.method]
            assert (row.run, row.overall) == (official["mode"], official["overall_rank"]), number
            places = {name: 1 if rank is None else rank for name, rank in row.ranks.items()}
            assert {name: official[column] for name, column in NAMES.items()} == places, number
            compared += 1
    assert compared > 500
    assert list(CATEGORIES) == list(summary.CATEGORY_SUBMETRICS) or len(CATEGORIES) == 5


def test_average_when_drawn_is_the_five_terms_of_the_public_table(summary: ModuleType) -> None:
    random = Random(7)
    for _ in range(200):
        values = {name: random.random() * 4 for name in ("scene", "shot", "interaction", "action")}
        theirs = summary._compute_pa_avg_from_row({COLUMNS[name]: value for name, value in values.items()})
        ours = average([Score(value=value, status="ok") for value in values.values()], "code")
        assert ours.value == pytest.approx(theirs, abs=1e-6)
