"""StoryEval: 423 prompts of two to four events, one video each."""

from pathlib import Path

from .benchmark import Benchmark, Home, Licence, Orders, PerCall, Printed, known_files, write_orders

SUITE = "prompts/all_prompts.json"


def _suite(data: Path, made: Path, model: str | None) -> Path:  # noqa: ARG001 - as every benchmark has it
    """Return the suite: it is judged by as it was published."""
    return data / SUITE


def _orders(suite: Path, out: Path, form: str | None) -> Orders:  # noqa: ARG001 - as every benchmark has it
    from ...releases.events.form import load_suite

    lines = [
        {"unit": unit, "prompt": prompt.prompt, "file": unit}
        for unit, prompt in load_suite(suite).prompts.items()
    ]
    written = write_orders(out, lines)
    return Orders(written, {"videos": len(lines)}, tuple(str(line["file"]) for line in lines))


STORYEVAL = Benchmark(
    name="storyeval",
    title="StoryEval",
    about="Which of the two to four events of a prompt does a generated video complete?",
    paper="Is Your World Simulator a Good Story Presenter? https://arxiv.org/abs/2412.16211",
    homepage="https://ypwang61.github.io/project/StoryEval",
    licence=Licence("Apache-2.0", "The whole repository: LICENSE at the pinned commit."),
    home=Home("repository", "https://github.com/ypwang61/StoryEval", "d095e63", known_files("storyeval")),
    noun="events",
    protocol="storyeval@d095e63",
    prompts="storyeval",
    judges=("GPT-4o, three votes", "LLaVA-OneVision-Chat-72B, two votes"),
    judge="openai:gpt-4o",
    per_call=PerCall(pictures=32, tokens=400, reply=500),
    layout="NAME.mp4, NAME as in the suite; with several seeds seed_N/NAME.mp4",
    counted=("requested", "valid", "videos"),
    libraries={"av": "video"},
    size={"prompts": 423, "videos": 423, "events a prompt at most": 4},
    prepare=_suite,
    orders=_orders,
    printed=(
        Printed(
            "storyeval-gpt4o",
            "GPT-4o",
            "three votes, unanimous; no answer counts 0",
            judged_by=(r"gpt-?4o(-\d{4}-\d\d-\d\d)?",),
        ),
        Printed(
            "storyeval-llava",
            "LLaVA-OneVision-Chat-72B",
            "two votes, unanimous; no answer counts 0",
            judged_by=(r"llava(-onevision-qwen2-72b-ov-chat(-hf)?)?",),
        ),
    ),
    untried=(
        "the download from the repository: its files were read from a copy at the pinned commit",
        "videos of the printed methods: not published; the replies about six of them reproduce their rows",
        "any real judge",
    ),
)
"""The benchmark."""
