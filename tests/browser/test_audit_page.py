"""The page of an audit, with measures, people and cases of every group, in a browser."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.people.audits.auditing import PAGE, AuditOptions, audit
from fabula.people.audits.form import write_form
from fabula.people.audits.records import read_records
from fabula.testing.katha_samples import sample_bundles

Inspected = Callable[[Path], Any]
HOSTILE = "<script>alert(1)</script> \u202e" + "a" * 300


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of drafts that differ everywhere, one of them hostile, with a form that somebody filled."""
    folder = tmp_path_factory.mktemp("audit")
    gold, draft = folder / "gold.jsonl", folder / "draft.jsonl"
    rows: list[Any] = sample_bundles(8)
    for row in rows:
        row["producers"] = [{"path": "$.questions[*]", "producer": "author:ana"}]
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for row in rows:
        record = row["record"]
        record["moral_label"], record["transitions"][0]["causality"] = None, HOSTILE
        record["scenes"][0] |= {"action": HOSTILE, "visual_must_show": [HOSTILE]}
        record["questions"][0] |= {"gold_answer": HOSTILE, "accepted_answers": [HOSTILE]}
    draft.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    write_form(folder / "form.csv", read_records(draft), 3)
    audit(draft, gold, folder / "audit", AuditOptions(readings=(folder / "form.csv",)))
    return folder / "audit" / PAGE


def test_audit_page_when_inspected_is_as_every_page(inspected: Inspected, page_file: Path) -> None:
    page = inspected(page_file)
    assert page.title() == "Audit of drafts: draft.jsonl"
    assert page.locator("tbody tr").count() > 30 and page.locator(".change").count() > 30
