"""``fabula run show``: what each stage read, got and wrote for one item, and the edits to it."""

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..schemas.canonical import Json, canonical_text
from .calls import calls_of
from .codec import decode
from .edits import WHOLE, edits_of
from .journal import Journal
from .pipeline import Pipeline, Stage
from .survey import Passage, Survey, surveyed

_SHOWN = 160  # characters of a value on a line for people


@dataclass(frozen=True, slots=True)
class StageView:
    """What one stage did with one item.

    Attributes:
        name: the stage.
        version: its version now.
        status: ``made``, ``rejected``, ``failed``, ``stale``, ``pending``, or ``not reached``.
        code: code of a rejection or failure.
        reason: its reason; for a stale or pending result, why it is.
        evidence: what helps to understand a failure.
        reads: the fields that the stage read.
        writes: the fields that it made.
        calls: what it asked models, and what they answered, raw.
    """

    name: str
    version: int
    status: str
    code: str | None
    reason: str | None
    evidence: str | None
    reads: Mapping[str, Json]
    writes: Mapping[str, Json]
    calls: tuple[Mapping[str, Json], ...] = ()


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item of a run, stage by stage, with the edits that were made to it."""

    id: str
    stages: tuple[StageView, ...]
    edits: tuple[Mapping[str, Json], ...]

    def field(self, name: str) -> Json:
        """Return a field of the item as the last stage that made it left it.

        Raises:
            KeyError: no stage has made it.
        """
        for stage in reversed(self.stages):
            if name in stage.writes:
                return stage.writes[name]
        raise KeyError(name)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the item as lines for people; long values are cut."""
        lines = [f"item {self.id}"]
        for stage in self.stages:
            code = f" ({stage.code})" if stage.code else ""
            reason = f": {stage.reason}" if stage.reason else ""
            lines.append(f"{stage.name}@{stage.version}: {stage.status}{code}{reason}")
            lines.extend(f"  read  {name} = {_short(value)}" for name, value in stage.reads.items())
            lines.extend(f"  asked {line}" for call in stage.calls for line in _call_lines(call))
            lines.extend(f"  wrote {name} = {_short(value)}" for name, value in stage.writes.items())
            if stage.evidence:
                lines.extend(f"  | {line}" for line in stage.evidence.rstrip().splitlines())
        for edit in self.edits:
            who, path, new = edit["who"], edit["path"], edit["new"]
            gone = path == WHOLE and new is None
            what = f"withdrawn by {who}" if gone else f"edit by {who} at {path}: {_short(new)}"
            lines.append(f"{what} ({edit['why']})")
        return lines


def show_item(folder: Path, pipeline: Pipeline, item_id: str) -> ItemView:
    """Return what each stage read, got and wrote for one item. Reads only.

    Raises:
        RunError: the folder is not a run of this pipeline, or the run has no such item.
        InputError: its edits file is damaged.
    """
    with surveyed(folder, pipeline, watch=item_id) as survey:
        if not survey.passages:
            raise _unknown(Path(folder), survey, item_id)
        stages = tuple(_view(survey.journal, stage, survey.passages) for stage in survey.loaded.stages)
    return ItemView(item_id, stages, tuple(edit.as_json() for edit in edits_of(folder, item_id)))


def _view(journal: Journal, stage: Stage, passages: Mapping[str, Passage]) -> StageView:
    passage = passages.get(stage.name)
    if passage is None:
        return StageView(stage.name, stage.spec.version, "not reached", None, None, None, {}, {})
    head = passage.head
    writes = {} if head is None or head.status != "made" else decode(journal.blobs([head.seq])[head.seq])
    documents = {
        seq: decode(blob) for seq, blob in journal.blobs(seq for seq, _ in passage.reads.values()).items()
    }
    return StageView(
        name=stage.name,
        version=stage.spec.version,
        status=passage.status,
        code=None if head is None else head.code,
        reason="; ".join(passage.reasons) or (None if head is None else head.reason),
        evidence=None if head is None else journal.evidence(head.seq),
        reads={name: documents[seq][name] for name, (seq, _) in passage.reads.items()},
        writes=writes,
        calls=() if head is None else tuple(call.as_json() for call in calls_of(journal, head.key)),
    )


def _unknown(folder: Path, survey: Survey, item_id: str) -> RunError:
    known = sorted({*survey.items.live, *survey.items.stops})
    close = difflib.get_close_matches(item_id, known, n=3) or known[:3]
    return RunError(
        str(folder), what=f"the run has no item {item_id}",
        fix=f"use an id such as {', '.join(close)}" if close else "build first: the run has no items",
    )  # fmt: skip


def _call_lines(call: Mapping[str, Any]) -> list[str]:
    """Return a call in two lines for people: the last message asked, and the reply."""
    parts = call["asked"]["messages"][-1]["parts"]
    asked = " ".join(part.get("text", "[picture]") for part in parts)
    reply, cost = call["reply"], call["cost"]
    paid = "price not known" if cost is None else f"{cost:.5f} USD"
    return [
        f"{call['model']}: {_short(asked)}",
        f"  got {reply['outcome']} ({paid}, attempts: {call['attempts']}): {_short(reply['text'])}",
    ]


def _short(value: Json) -> str:
    text = canonical_text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
