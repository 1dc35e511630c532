"""Runs the stages of the KathaBench builder on single stories, without the engine."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.builders.katha.building import PIPELINE, STAGES
from fabula.builders.rows import Settings as LoadSettings
from fabula.engine.pipeline import load_object
from fabula.engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools

SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"
CREATED = "2026-01-01T00:00:00Z"
GATHERS = ("load_stories", "find_duplicates", "choose_stories", "find_retellings", "assign_splits")
MAPS = tuple(name for name in STAGES if name not in GATHERS)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")


def stage(name: str) -> Any:
    place = next(one for one in PIPELINE.stages if name == re.split("[.:]", one)[-1].lower())
    stage = load_object(place)
    return getattr(stage, "STEP", stage)


def tools_for(spec: StageSpec, settings: Mapping[str, Any] | None = None, **more: Any) -> Tools:
    return Tools(settings=spec.settings(**(settings or {})), created_at=CREATED, **more)


def run_stage(
    name: str, fields: Mapping[str, Any], settings: Mapping[str, Any] | None = None, **more: Any
) -> Outcome:
    module = stage(name)
    item = Item(str(fields["story"]["id"]), {key: fields[key] for key in module.SPEC.reads})
    outcome = module.run(item, tools_for(module.SPEC, settings, **more))
    return asyncio.run(outcome) if isinstance(outcome, Coroutine) else outcome


def load(paths: list[tuple[str, Path]], **settings: Any) -> dict[str, dict[str, Any]]:
    module = stage("load_stories")
    sources = [{"role": role, "name": path.name, "sha256": "0" * 64} for role, path in paths]
    tools = Tools(
        settings=LoadSettings(**settings), created_at=CREATED, paths=tuple(path for _, path in paths)
    )
    return {
        child.id: dict(child.outcome.fields)
        for child in module.run(Item("sources", {"sources": sources}), tools)
    }


def draft(fields: dict[str, Any], **settings: Mapping[str, Any]) -> dict[str, Any] | Rejected:
    """Take one loaded story through all map stages; return its fields, or the rejection."""
    fields = {"duplicate_of": None, "split": "train", "joins": None, "surplus": None, **fields}
    for name in MAPS:
        outcome = run_stage(name, fields, settings.get(name))
        if isinstance(outcome, Rejected):
            assert outcome.code in stage(name).SPEC.reject_codes
            return outcome
        assert isinstance(outcome, Made), outcome
        assert set(outcome.fields) == set(stage(name).SPEC.writes)
        fields.update(outcome.fields)
    return fields


class Katha:
    """What the tests of the builder use."""

    samples = SAMPLES
    stage = staticmethod(stage)
    tools_for = staticmethod(tools_for)
    run_stage = staticmethod(run_stage)
    load = staticmethod(load)
    draft = staticmethod(draft)

    @staticmethod
    def story(text: str, **changes: Any) -> dict[str, Any]:
        """Return the fields that loading gives for one story."""
        row = {
            "id": "tale_1",
            "title": "A Tale",
            "language": "en",
            "text": text,
            "source_collection": "aesop",
            "source_reference": None,
            "rights_status": "public_domain_or_rights_compatible",
            **changes,
        }
        from fabula.schemas.text import normalize_text
        from fabula.schemas.values import Story

        story = Story(**{**row, "normalized_text": normalize_text(text)})
        return {
            "story": story.as_json(),
            "source": None,
            "given": None,
            "answers": [],
            "edits": [],
            "withdrawn": None,
            "added_at": None,
        }


@pytest.fixture(scope="session")
def katha() -> type[Katha]:
    return Katha


@pytest.fixture(scope="session")
def samples() -> dict[str, dict[str, Any]]:
    """The sample stories as loaded, without hand-written records."""
    return load([("stories", SAMPLES / "stories.jsonl")])


@pytest.fixture(scope="session")
def drafted(samples: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The sample stories after all map stages."""
    found = {key: draft(fields) for key, fields in samples.items()}
    assert not [value for value in found.values() if isinstance(value, Rejected)]
    return found  # type: ignore[return-value]


@pytest.fixture(scope="session")
def tale(samples: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A sample story after all map stages: rules drafted it, but for its hand-written variants."""
    sources = [("stories", SAMPLES / "stories.jsonl"), ("records", SAMPLES / "gold.jsonl")]
    given = load(sources)["kb25k_0001"]["given"]
    made = draft({**samples["kb25k_0001"], "given": {key: given[key] for key in ("author", "variants")}})
    assert not isinstance(made, Rejected)
    return made


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Write stories as JSONL, each a change of a sound row."""
    base = {
        "id": "one",
        "title": "A Tale",
        "language": "en",
        "text": "A fox ran. A crow flew.",
        "source_collection": "aesop",
        "rights_status": "public_domain_or_rights_compatible",
    }

    def write(*changes: dict[str, Any], name: str = "stories.jsonl") -> Path:
        rows = [
            {key: value for key, value in {**base, **change}.items() if value is not ...}
            for change in changes
        ]
        path = tmp_path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    return write
