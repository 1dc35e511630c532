"""ViStoryBench: bilingual shot scripts with characters; the whole set, and its Lite subset."""

from dataclasses import replace
from pathlib import Path

from .benchmark import Benchmark, Home, Licence, Orders, PerCall, Printed

COLUMNS = {
    "pa_scene": "scene", "pa_shot": "shot", "pa_ci": "interaction", "pa_ia": "action", "pa_avg": "alignment",
    "aesthetics": "aesthetic", "copy_paste": "copy_paste_rate",
}  # fmt: skip
"""Column of Table S4 -> our measure, where it has another name."""


def _qwen(setting: str) -> dict[str, str]:
    """Return the columns of Table S5, of the whole set or of Lite."""
    names = {"scene": "scene", "shot": "shot", "ci": "interaction", "ia": "action", "avg": "alignment"}
    return {f"{setting}_{theirs}": ours for theirs, ours in names.items()}


def _set(data: Path, made: Path, model: str | None) -> Path:  # noqa: ARG001 - as every benchmark has it
    from ...releases.shots.imports import import_set

    import_set(data, made)
    return made


def _lite(data: Path, made: Path, model: str | None) -> Path:  # noqa: ARG001 - as every benchmark has it
    """Make the subset; of data that lacks some of its stories, of those that are there."""
    from ...errors import InputError
    from ...releases.shots.imports import write_subset
    from ...releases.shots.tree import read_shot_set
    from ...schemas.shots import LITE

    whole, _ = read_shot_set(data)
    there = [story for story in LITE if story in whole.by_id]
    if not there:
        what, fix = "it has no story of the Lite subset", "give the whole data set"
        raise InputError.one(str(data), what=what, fix=fix)
    write_subset(whole, there, made)
    return made


def _orders(folder: Path, out: Path, form: str | None) -> Orders:
    from ...releases.shots.imports import export_inputs, export_requests
    from ...releases.shots.tree import read_shot_set

    shot_set, _ = read_shot_set(folder)
    counts = {"shots": sum(len(story.script.shots) for story in shot_set.stories)}
    if form is None:
        counts["reference images"] = export_requests(shot_set, out)["references"]
    else:
        counts["reference images"] = export_inputs(shot_set, out, form).references
    expected = tuple(
        f"{story.story_id}/shot_{shot.index:02d}.png"
        for story in shot_set.stories
        for shot in story.script.shots
    )
    return Orders(out, counts, expected)


_LITE = Printed(
    "vistorybench-lite", "Gemini-3 Pro", "all metrics of the public code; alignment rated once", COLUMNS,
    (r"gemini-3-pro(-preview)?(-\d\d-\d{4})?",),
)  # fmt: skip
"""The table that has every metric. Its caption names this judge, section H of the supplement GPT-4.1."""
_UNTRIED = (
    "the download: no file of the data set was at hand; a generated set in the official layout stood in",
    "the real weights of the metrics, which were tried with tiny ones of the same classes",
    "any real judge",
)
VISTORYBENCH = Benchmark(
    name="vistorybench",
    title="ViStoryBench",
    about="Do the pictures of a story keep its characters and style, and show what its script says?",
    paper="ViStoryBench: Comprehensive Benchmark Suite for Story Visualization. https://arxiv.org/abs/2505.24862",
    homepage="https://vistorybench.github.io",
    licence=Licence(
        "",
        "The code is Apache-2.0. No licence of the data is known to us; the paper says that some images "
        "come from films, series and animations, under fair use for non-commercial research (supplement, "
        "section A).",
        asks=True,
    ),
    home=Home("hub", "ViStoryBench/ViStoryBench", holds="*/story.json"),
    noun="images",
    protocol="vistorybench@514cc31",
    prompts="vistorybench",
    metrics=("cids", "csd", "occm", "copy-paste", "aesthetic", "inception", "alignment"),
    options={"metrics": ("cids", "csd", "occm", "copy-paste", "aesthetic", "inception", "alignment")},
    judges=("Gemini-3 Pro", "GPT-4.1", "Qwen3-VL-8B-Instruct"),
    judge="openai:gpt-4.1",
    per_call=PerCall(pictures=1, tokens=500, reply=150),
    layout="STORY/shot_01.png, STORY as in the set; or METHOD/MODE/LANGUAGE/TIME/STORY/shots/",
    counted=("stories_requested", "stories_complete", "stories"),
    libraries={"torch": "metrics", "transformers": "metrics"},
    size={"stories": 80, "shots": 1317, "characters": 344, "reference images": 509},
    prepare=_set,
    orders=_orders,
    forms=("animdirector", "seedstory", "storyadapter", "storydiffusion", "storygen", "uno", "vlogger"),
    printed=(
        replace(_LITE, differs="the printed rows are of the 20 stories of Lite, this one of the whole set"),
        Printed(
            "vistorybench-qwen-full", "Qwen3-VL-8B-Instruct", "the code's rating of prompt alignment, once",
            _qwen("full"), ("qwen3-vl-8b-instruct",),
        ),
    ),
    untried=_UNTRIED,
)  # fmt: skip
"""All 80 stories."""
VISTORYBENCH_LITE = replace(
    VISTORYBENCH,
    name="vistorybench-lite",
    title="ViStoryBench-Lite",
    size={"stories": 20},
    prepare=_lite,
    printed=(
        _LITE,
        Printed(
            "vistorybench-qwen-lite", "Qwen3-VL-8B-Instruct", "the code's rating of prompt alignment, once",
            _qwen("lite"), ("qwen3-vl-8b-instruct",),
        ),
    ),
)  # fmt: skip
"""Its 20 stories whose numbers are printed for most methods."""
