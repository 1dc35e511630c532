"""KathaBench-25K: stories in five scenes, and questions that storyboards must answer."""

from functools import partial
from pathlib import Path

from .benchmark import Benchmark, Home, Licence, Orders, PerCall, Printed

ENSEMBLE = ("Gemini 2.5 Flash", "Qwen2.5-VL-7B", "Qwen2.5-VL-3B", "SmolVLM2-2.2B", "SmolVLM2-500M")
_PATTERNS = (
    r"gemini-2\.5-flash", r"qwen2\.5-vl-7b(-instruct)?", r"qwen2\.5-vl-3b(-instruct)?",
    r"smolvlm2-2\.2b(-instruct)?", r"smolvlm2-500m(-video-instruct)?",
)  # fmt: skip
_HOW = "an ensemble of five judges, held-out stories, questions under three conditions"
HELD_OUT = ("public_test",)
"""The stories that are judged: the printed rows are of held-out ones."""


def _release(data: Path, made: Path, model: str | None) -> Path:  # noqa: ARG001 - as every benchmark has it
    from ...releases.katha.package_import import import_package

    return import_package(data, made).folder


def storyboard_orders(splits: tuple[str, ...], folder: Path, out: Path, form: str | None) -> Orders:  # noqa: ARG001 - as all have it
    """Write the plans of a release of stories: a line for each storyboard, with the file of each picture."""
    from ...evaluation.katha.plans import plans, write_plans
    from ...releases.loading import load

    release = load(folder)
    counts = write_plans(release, out, splits)
    records = [record for record in release.records if not splits or record.split in splits]
    expected = tuple(
        scene["file"]
        for plan in plans(release, records)
        if not plan["variant_id"]
        for scene in plan["scenes"]
    )
    return Orders(out, {**counts, "pictures of stories": len(expected)}, expected)


KATHABENCH = Benchmark(
    name="kathabench",
    title="KathaBench-25K",
    about="Can a viewer recover from a storyboard alone what happens between the scenes of its story?",
    paper="KathaTrace: Diagnosing Semantic Trajectory Collapse in Generated Visual Narratives. "
    "https://arxiv.org/abs/2607.01312",
    homepage="",
    licence=Licence(
        "CC-BY-4.0", "The annotations (section A.15); source editions and pictures are not covered."
    ),
    home=Home("hub", "iamjamuna/KathaBench-25K", holds="annotations.jsonl"),
    noun="katha",
    protocol="katha",
    judges=ENSEMBLE,
    judge="google:gemini-2.5-flash",
    paper_prompts="kathatrace",
    per_call=PerCall(pictures=5, tokens=500, reply=80),
    layout="STORY/01.png to STORY/05.png; with several seeds STORY/seed_42/01.png",
    counted=("generations_requested", "generations_valid", "storyboards"),
    size={"stories": 5000, "scenes": 25000, "questions": 28712, "storyboards": 500},
    prepare=_release,
    orders=partial(storyboard_orders, HELD_OUT),
    options={"split": HELD_OUT},
    printed=tuple(
        Printed(key, ", ".join(ENSEMBLE), _HOW, dict.fromkeys(unmeasured, ""), _PATTERNS)
        for key, unmeasured in (("kathabench", ("visual", "human")), ("kathabench-extended", ("visual",)))
    ),
    untried=(
        "the download: the paper names this data set, and no file of it was at hand; a generated package in "
        "the form of the paper's tables stood in",
        "the prompts that the paper prints; those of moral targets and pairs are not published",
        "any real judge",
    ),
)  # fmt: skip
"""The benchmark."""
