"""The documents of a released prompt suite: card, licence notice, Croissant metadata, ``release.json``."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..schemas.canonical import Json
from .card import render
from .croissant import describe
from .documents import head, inputs_of
from .front_matter import configurations, front_matter_text, language_codes, size_category
from .layout import (
    CHANGES,
    CROISSANT,
    FORMAT,
    LICENSE,
    PROMPTS,
    RELEASE,
    SOURCE_MANIFEST,
    STATISTICS,
    SUITE,
    SUMS,
)
from .run_folder import FinishedRun
from .shapes import SUITES
from .suite_facts import SuiteFacts

TASKS = ("text-to-video",)
TAGS = ("video-generation", "event-completion", "benchmark", "evaluation", "croissant")
RIGHTS_SCOPE = (
    "This manifest documents what the prompts were made from, so that they can be traced. It gives no right "
    "to any video that a prompt captions."
)
_FILES = (
    (SUITE, "the suite in the official form: file name of the video, prompt, events, classes"),
    (PROMPTS, "the same with its history: where each prompt is from, who made what"),
    ("data/TABLE/test.parquet", "the flat tables"),
    (STATISTICS, "counts and distributions"),
    (SOURCE_MANIFEST, "what the prompts were made from"),
    (CROISSANT, "machine-readable description (Croissant 1.1 with responsible-AI fields)"),
    (RELEASE, "version, content hashes, tool versions, what was left out"),
    (LICENSE, "licence notice"),
    (SUMS, "a checksum of every other file"),
)
_CHANGES = (CHANGES, "what changed since the version before, by prompt and path")


def suite_card(facts: SuiteFacts) -> str:
    """Return the dataset card of a suite, front matter included."""
    front = {
        "pretty_name": facts.options.title,
        "license": facts.licence.hub_id,
        "language": language_codes(facts.languages),
        "size_categories": [size_category(facts.totals["prompts"])],
        "task_categories": list(TASKS),
        "tags": list(TAGS),
        "configs": list(configurations(facts.rows, SUITES)),
    }
    return render(
        "suite_card.j2",
        front_matter=front_matter_text(front),
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        counts=facts.totals,
        statistics=facts.statistics,
        graded=facts.graded,
        files=[*_FILES, *([_CHANGES] if facts.since is not None else [])],
        tables=SUITES.tables,
        left_out=sorted(Counter(entry.why for entry in facts.left_out).items()),
        languages=facts.languages,
    )


def suite_licence(facts: SuiteFacts) -> str:
    """Return the licence notice of a suite."""
    return render(
        "suite_license.j2",
        about=facts.options.as_json(),
        version=facts.options.version,
        licence=facts.licence,
        attribution=str(facts.licence.spdx_id).startswith("CC-BY"),
    )


def suite_croissant(
    facts: SuiteFacts, sizes: Mapping[str, int], hashes: Mapping[str, str]
) -> dict[str, Json]:
    """Return the Croissant metadata of a suite."""
    own: dict[str, Json] = {
        "keywords": ["video generation", "event completion", "benchmark"],
        **{f"rai:{name}": value for name, value in _responsible(facts).items()},
    }
    return describe(facts, SUITES, own, sizes, hashes)


def _responsible(facts: SuiteFacts) -> dict[str, Any]:
    import yaml

    machines = [maker for maker in facts.makers if maker.startswith("rules@") or " via " in maker]
    text = render(
        "suite_responsible_ai.j2",
        left_out=len(facts.left_out),
        origins=sorted(facts.statistics["origins"]),
        created_at=facts.created_at,
        producers=facts.makers,
        machines=machines,
        people=len(machines) < len(facts.makers),
    )
    return dict(yaml.safe_load(text))


def suite_manifest(run: FinishedRun) -> dict[str, Json]:
    """Return the content of ``source_manifest.json``."""
    return {"format": FORMAT, "rights_scope": RIGHTS_SCOPE, "inputs": inputs_of(run)}


def suite_document(
    facts: SuiteFacts, run: FinishedRun, records: Mapping[str, str], files: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the content of ``release.json``.

    Args:
        facts: what is known about the suite.
        run: the run that it was packed from.
        records: file name of a video -> SHA-256 of its record's canonical JSON.
        files: path -> size and SHA-256 of every file but ``release.json`` and ``SHA256SUMS``.
    """
    previous = {} if facts.since is None else {"previous": facts.since.previous}
    return {
        **head(facts, run, "public"),
        **previous,
        "counts": facts.totals,
        "left_out": {"prompts": [entry.as_json() for entry in facts.left_out], "files": []},
        "records": {PROMPTS: records},
        "files": files,
    }
