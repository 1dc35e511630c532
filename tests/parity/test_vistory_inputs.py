"""Inputs of seven generators: what the public scripts of ViStoryBench write, and what we write."""

import csv
import importlib.util
import json
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from fabula.evaluation.metrics.alignment import average
from fabula.evaluation.shots.scores import CATEGORIES, official_ranks
from fabula.evaluation.stats.tables import correlate_tables, read_table
from fabula.releases.shots.imports import export_inputs
from fabula.releases.shots.tree import RequestOptions, read_shot_set
from fabula.schemas.values import Score
from fabula.testing.drawn_shots import draw_shot_set

from .conftest import load_module

Files = dict[str, Any]
SCRIPTS = "data_process/dataset_process"


@pytest.fixture
def public(reference: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Return what loads a public module; libraries that these parts do not use are stubs."""
    root = reference / "official/vistorybench"
    for name in ("pandas", "natsort"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["natsort"].natsorted = sorted  # type: ignore[attr-defined]

    def load(name: str) -> Any:
        place = root / ("vistorybench/dataset_loader" if name == "dataset_load" else SCRIPTS) / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    yield load


def read(folder: Path, drop: str) -> Files:
    """Return the content of every file below a folder; paths in it begin where the data set begins."""
    found: Files = {}
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        if path.suffix in (".json", ".txt", ".jsonl", ".py"):
            text = content.decode().replace(drop, "")
            if path.suffix == ".py":
                space: Files = {}
                exec(text, space)
                found[name] = {key: value for key, value in space.items() if key != "__builtins__"}
            elif path.suffix == ".jsonl":
                lines = [json.loads(line) for line in text.splitlines()]
                found[name] = sorted(lines, key=lambda line: str(line.get("story_name")))
            else:
                found[name] = json.loads(text)
        else:
            found[name] = content
    return found


def run_script(public: Callable[[str], Any], name: str, root: Path, out: Path, language: str) -> Path:
    """Do what the public script does when it is run, for one language; return the folder with its files."""
    loader, script = public("dataset_load"), public(f"adapt2{name}")
    dataset = loader.StoryDataset(str(root))
    script.dataset, script.dataset_name = dataset, "ViStory"  # as the script's main block has them
    stories = dataset.get_story_name_list()
    data = dataset.load_stories(stories, language)
    if name in ("animdirector", "storygen"):
        converter = script.StoryConverter(str(root), str(out), name, "ViStory", language)
        converter.output_results_base = "outputs"
        converter.convert(stories, data)
        return out / name / f"ViStory_{language}"
    more = (dataset,) if name == "vlogger" else ()
    converter = script.StoryConverter(str(root), str(out), *more)
    converter.convert(stories, data)
    if name == "seedstory":
        converter.merge_json(stories)
    return out


NAMES = ("animdirector", "seedstory", "storyadapter", "storydiffusion", "storygen", "uno", "vlogger")


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # the public modules have invalid escapes
@pytest.mark.parametrize("language", ["en", "ch"])
@pytest.mark.parametrize("name", NAMES)
def test_inputs_when_written_by_the_public_script_and_by_us_are_the_same_field_by_field(
    public: Callable[[str], Any], tmp_path: Path, name: str, language: str
) -> None:
    root = draw_shot_set(tmp_path / "data", 2) / "ViStory"
    theirs = read(run_script(public, name, root, tmp_path / "theirs", language), f"{root}/")
    shot_set, _ = read_shot_set(root)
    values: dict[str, str | int | float] = {}
    if name == "storydiffusion":
        values["negative_prompt"] = theirs["examples.py"]["examples"][0][7]
    made = export_inputs(shot_set, tmp_path / "ours", name, RequestOptions(language=language), values)
    ours = {path: content for path, content in read(tmp_path / "ours", "\0").items() if path in made.files}
    pictures = {path: content for path, content in theirs.items() if isinstance(content, bytes)}
    written = {path: content for path, content in theirs.items() if path not in pictures}
    if name == "animdirector":  # the public script lists places as a set, in an order that is not fixed
        written, ours = _sorted_places(written), _sorted_places(ours)
    assert ours == written
    for path, content in pictures.items():
        assert (tmp_path / "ours" / path).read_bytes() == content
    assert bool(pictures) == (name == "vlogger")


def _sorted_places(files: Files) -> Files:
    document = files["stories.json"]
    for story in document.values():
        for field in ("segment", "final_answer"):
            head, _, rest = story["segment2prompt"][field].partition("\nSettings:\n")
            places, _, scenes = rest.partition("\nScenes:\n")
            story["segment2prompt"][field] = [head, sorted(places.split("\n")), scenes]
    return files


# Ranks of ViStoryBench's public summary, driven on drawn tables, against ours.

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
RANKED = {
    "character": "Character Consistency(CRef)_rank", "style": "Style Consistency(SRef)_rank",
    "prompt": "Prompt Alignment_rank", "quality": "Generative Quality_rank", "diversity": "Diversity_rank",
}  # fmt: skip


@pytest.fixture
def summary(reference: Path) -> ModuleType:
    path = reference / "official/vistorybench/utils/summarize_leaderboard.py"
    return load_module(path, "summarize_leaderboard")


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


@pytest.mark.parity
@pytest.mark.slow
def test_ranks_when_drawn_tables_are_summed_up_are_those_of_the_public_code(summary, tmp_path):
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
            assert {name: official[column] for name, column in RANKED.items()} == places, number
            compared += 1
    assert compared > 500
    assert list(CATEGORIES) == list(summary.CATEGORY_SUBMETRICS) or len(CATEGORIES) == 5


@pytest.mark.parity
def test_average_when_drawn_is_the_five_terms_of_the_public_table(summary: ModuleType) -> None:
    random = Random(7)
    for _ in range(200):
        values = {name: random.random() * 4 for name in ("scene", "shot", "interaction", "action")}
        theirs = summary._compute_pa_avg_from_row({COLUMNS[name]: value for name, value in values.items()})
        ours = average([Score(value=value, status="ok") for value in values.values()], "code")
        assert ours.value == pytest.approx(theirs, abs=1e-6)


# -- ViStoryBench's published tables: what they give, beside what its text states of them

ALIAS = {"MMSStoryAgent": "MMStoryAgent"}  # the table of the user study misspells one method

STUDY = {
    ("character_consistency", "cids_self"): ((0.440, 0.459), (0.589, 0.520)),
    ("character_consistency", "cids_cross"): ((0.562, 0.618), (0.510, 0.516)),
    ("environment_consistency", "csd_self"): ((0.573, 0.579), (0.713, 0.564)),
    ("environment_consistency", "csd_cross"): ((0.258, 0.431), (0.526, 0.653)),
    ("aesthetics", "aesthetics"): ((0.752, 0.620), (0.607, 0.464)),
}
"""Column of the user study (Table S7), column of Table S4 -> Pearson and Spearman of what is printed: of all
methods, and without StoryGen, as section G has it."""
JUDGES = {
    "pa_avg:lite_avg": (0.979, 0.973), "pa_scene:lite_scene": (0.986, 0.978),
    "pa_shot:lite_shot": (0.794, 0.718), "pa_ci:lite_ci": (0.975, 0.967), "pa_ia:lite_ia": (0.942, 0.934),
}  # fmt: skip
"""Columns of Tables S4 (Gemini-3 Pro) and S5 (Qwen3-VL) -> Pearson and Spearman of what is printed."""


@pytest.mark.parametrize(("exclude", "shared"), [((), 26), (("StoryGen*",), 23)])
def test_metrics_when_correlated_with_the_user_study_agree_less_than_the_page_says(
    reference: Path, exclude: tuple[str, ...], shared: int
) -> None:
    """The metrics page states 0.80 (Pearson) for self-similarity of characters; the tables give 0.589."""
    study = read_table(reference / "tables" / "vistory_user_study.tsv")
    lite = read_table(reference / "tables" / "vistory_lite_metrics.tsv")
    found = correlate_tables(study, lite, ["method", "model"], list(STUDY), ALIAS, exclude)
    assert (found.shared, found.only_first, len(found.only_second)) == (shared, (), 9)
    assert len(found.excluded) == 26 - shared
    for pairing in found.pairings:
        pearson, spearman, _ = pairing.correlations
        values = (round(pearson.value or 0, 3), round(spearman.value or 0, 3))
        assert values == STUDY[pairing.first, pairing.second][bool(exclude)]


def test_judges_when_correlated_agree_as_closely_as_the_text_says(reference: Path) -> None:
    """Section H.7 states 0.93 and 0.89 for GPT-4.1 and Qwen3-VL; Table S4 prints another judge's ratings."""
    lite = read_table(reference / "tables" / "vistory_lite_metrics.tsv")
    qwen = read_table(reference / "tables" / "vistory_qwen_prompt_alignment.tsv")
    pairs = [(name.split(":")[0], name.split(":")[1]) for name in JUDGES]
    found = correlate_tables(lite, qwen, ["method", "model"], pairs, ALIAS)
    assert found.shared == 34
    for pairing in found.pairings:
        pearson, spearman, _ = pairing.correlations
        values = (round(pearson.value or 0, 3), round(spearman.value or 0, 3))
        assert values == JUDGES[f"{pairing.first}:{pairing.second}"]


def test_alignment_average_when_made_from_the_printed_sub_scores_is_the_printed_one(reference: Path) -> None:
    """Table S4's average weighs the four sub-scores equally; the public utility counts one of them twice."""
    rows = read_table(reference / "tables" / "vistory_lite_metrics.tsv").rows
    agree = 0
    for row in rows:
        printed = [float(row[f"pa_{name}"]) for name in ("scene", "shot", "ci", "ia")]
        ours = average([Score.ratio(value, 1, "") for value in printed]).value
        assert ours == pytest.approx(sum(printed) / 4)
        agree += abs(float(row["pa_avg"]) - (ours or 0)) <= 0.0101  # four roundings and one
    assert (agree, len(rows)) == (35, 35)
