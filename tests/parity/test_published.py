"""The ledger of published numbers is what its program makes of the reference."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.parity

ROOT = Path(__file__).resolve().parents[2]


def test_ledger_when_made_anew_is_the_committed_page(
    reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("published", ROOT / "benchmarks" / "published.py")
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "published", program)
    spec.loader.exec_module(program)
    made = program.page(program.sections(reference))
    assert made == (ROOT / "docs" / "published.md").read_text("utf-8"), (
        "the page is not what the program makes: python benchmarks/published.py --out docs/published.md"
    )
