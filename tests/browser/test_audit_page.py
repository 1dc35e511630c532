"""The page of an audit, with measures, people and cases of every group, in a browser."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.audits.auditing import PAGE, AuditOptions, audit
from fabula.audits.form import write_form
from fabula.audits.records import read_records
from fabula.testing.katha_samples import sample_bundles

Opened = Callable[..., Any]
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


@pytest.mark.parametrize("width", [320, 1440])
def test_audit_page_when_opened_is_quiet_and_fits(opened: Opened, page_file: Path, width: int) -> None:
    page = opened(page_file, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("tbody tr").count() > 30
    assert page.complaints == []


@pytest.mark.parametrize("dark", [False, True])
def test_audit_page_when_checked_by_axe_has_no_violation(opened: Opened, page_file: Path, dark: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    checked = Axe().run(opened(page_file, width=380, dark=dark))
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in checked.response["violations"]] == []
