"""The ten stories of the KathaTrace demo: no questions were published, so a model drafts them."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from .benchmark import Home, Licence, PerCall, known_files
from .kathabench import KATHABENCH, storyboard_orders

STORIES = "demo_pipeline/stories/demo_stories.jsonl"
COLLECTIONS = {"Aesop": "aesop", "Panchatantra": "panchatantra", "Kathasaritsagara": "kathasaritasagara"}
"""Source as the file has it -> collection as records have it."""


def _release(data: Path, made: Path, model: str | None) -> Path:
    """Draft records of the stories with a model, and pack them as drafts that nobody has read."""
    import json

    from ...builders.katha.building import BuildOptions
    from ...errors import ConfigError
    from ...releases.options import PackOptions
    from ...schemas.canonical import jsonl_lines, write_atomic
    from ...schemas.plain_files import read_plain
    from ..verbs import build, pack

    if model is None:
        what = "the demo has no questions, so a model has to draft them"
        raise ConfigError("--model", what=what, fix="name one, such as --model openai:gpt-4.1-mini")
    run = made.with_name(f"{made.name}-drafts")
    rows = [json.loads(line) for line in read_plain(data / STORIES).splitlines() if line.strip()]
    run.mkdir(parents=True, exist_ok=True)
    write_atomic(run / "stories.jsonl", jsonl_lines(
        {
            "id": row["id"].replace("-", "_"), "title": row["title"], "language": "en", "text": row["story"],
            "source_collection": COLLECTIONS[row["source"]],
            "rights_status": "public_domain_or_rights_compatible",
        }
        for row in rows
    ))  # fmt: skip
    build("stories", run / "stories.jsonl", run / "run", BuildOptions(model=model))
    options = PackOptions(version="0.1.0", usual_license="Apache-2.0", allow_drafts=True, allow_stand_in=True)
    pack(run / "run", made, options)
    return made


KATHATRACE_DEMO = replace(
    KATHABENCH,
    name="kathatrace-demo",
    title="KathaTrace demo",
    about="The ten stories of the KathaTrace demo, to try all at little cost: nothing to compare with.",
    licence=Licence("Apache-2.0", "LICENSE of the copy that we read; none was seen at the pinned commit."),
    home=Home(
        "repository", "https://github.com/JamunaSMurthy/kathatrace-demo",
        "b84f60737d00785a2d7f18f9cece766762d1b8b1", known_files("kathatrace-demo"),
    ),
    judges=(),
    judge="openai:gpt-4.1-mini",
    size={"stories": 10, "storyboards": 10},
    per_call=PerCall(pictures=5, tokens=500, reply=80),
    prepare=_release,
    orders=partial(storyboard_orders, ()),
    options={},
    printed=(),
    drafts=True,
    untried=(
        "the download from the repository: the file was read from a copy",
        "drafting with a real model",
        "any real judge",
    ),
)  # fmt: skip
"""The benchmark."""
