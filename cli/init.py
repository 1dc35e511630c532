"""``fabula init``: a folder to start from."""

import shlex
from pathlib import Path

from ..errors import TargetError
from ..schemas.canonical import writing
from .command import command
from .common import answer

SETTINGS = """\
# Settings of Fabula. Every line is optional; those behind a # show the defaults.
# One setting can also be given on the command line: --set draft_scenes.scenes=6

[assemble_records]
license = "CC-BY-4.0"    # not a default: the licence of what you publish, by its SPDX id. Choose yours.

[run]
# workers = 2            # worker processes; all cores if not set
# item_timeout = 120.0   # seconds that one stage may take for one story
# threshold = 0.95       # share of stories that must not fail (exit code 5 below it, or if all are rejected)

# [draft_scenes]
# scenes = 5             # scenes per story, at least 2
# planner = "rules"      # or "model", with model = "openai:gpt-4.1-mini"; for all stages at once: --model

# How a model is reached and asked; keys come from the environment or a .env file, never from here.
# [models."openai:gpt-4.1-mini"]
# concurrency = 32       # most calls at a time
# call_timeout = 180.0   # seconds for one whole call
# prices = { input = 0.4, output = 1.6 }   # USD per million tokens, where they are not known or others

# The stand-in for a model that comes with Fabula, to try everything without a key. Start it with
#     python -m fabula.testing.model_server --port 8123 &
# and name it after --model or --judge: http://127.0.0.1:8123/v1#stand-in
# With --knows RELEASE its answers about storyboards give a report numbers to look at; they mean nothing.
[models."http://127.0.0.1:8123/v1#stand-in"]
prices = { input = 0, output = 0 }
"""

STORY = {
    "id": "kb25k_0001",
    "language": "en",
    "moral_label": "gratitude",
    "narrative_type": "causal_transition",
    "rights_status": "public_domain_or_rights_compatible",
    "source_collection": "aesop",
    "source_reference": "Perry 150",
    "text": (
        "A lion was sleeping in the shade when a mouse ran over his paw. The lion woke, angry, and "
        "caught the mouse to eat her. Trembling with fear, the mouse begged for her life and "
        "promised to help him one day. The lion laughed at the thought, but he let her go. Some "
        "days later hunters caught the lion in a net and tied him to a tree. He roared in despair "
        "because he could not break the ropes. The mouse heard him and ran to the tree. She gnawed "
        "the ropes until they broke. At last the lion was free, and he thanked the mouse, ashamed "
        "that he had laughed at her."
    ),
    "title": "The Lion and the Mouse",
}

SAMPLES = {
    "stories.jsonl": "stories.jsonl", "records.jsonl": "gold.jsonl",
    "later_stories.jsonl": "later_stories.jsonl", "later_records.jsonl": "later_gold.jsonl",
}  # fmt: skip
"""File that is written -> the file of samples that it is."""


def _stories(samples: bool) -> dict[str, list[bytes]]:
    """Return the story files to write: one example, or the samples that come with the package."""
    from importlib.resources import files

    from ..schemas.canonical import jsonl_lines

    if not samples:
        return {"stories.jsonl": list(jsonl_lines([STORY]))}
    folder = files("fabula.builders.katha") / "samples"
    return {name: [(folder / kept).read_bytes()] for name, kept in SAMPLES.items()}


@command("init")
def init(folder: Path = Path(), *, samples: bool = False, as_json: bool = False) -> int:
    """Write a commented fabula.toml and an example stories.jsonl. Never overwrites a file.

    Options:
        folder: Folder to make the files in.
        samples: Write 24 sample fables, three more for later, and their complete records instead.

    Examples:
        fabula init my-benchmark
        fabula init my-benchmark --samples
    """
    from ..schemas.canonical import write_atomic

    contents = {"fabula.toml": [SETTINGS.encode()], **_stories(samples)}
    for name in contents:
        if (folder / name).exists():
            raise TargetError(
                str(folder / name),
                what="the file is there already",
                fix="choose another folder, or move the file away",
            )
    with writing(folder, "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, chunks in contents.items():
            write_atomic(folder / name, chunks)
    paths = [str(folder / name) for name in contents]
    # Settings count in the folder that the command is given in.
    inside = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    records = " --records records.jsonl" if samples else ""
    build = f"next: {inside}fabula build stories stories.jsonl{records} --out runs/first"
    return answer(paths, (*paths, build), as_json=as_json)
