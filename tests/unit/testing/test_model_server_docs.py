"""The page about the server is true."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import fabula
from fabula.testing.model_server import read_plan, scripted
from fabula.testing.model_server.faults import known_faults

PAGE = Path(fabula.__file__).parent / "docs" / "model_server.md"

pytestmark = pytest.mark.skipif(
    not PAGE.exists(), reason="the suite runs against an installed wheel, which has no docs"
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}(?: [^\n]*)?\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_python_when_run_in_order_works() -> None:
    names: dict[str, Any] = {}
    assert len(blocks("python")) == 4
    for block in blocks("python"):
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["moody"](names["asked"]) == names["RateLimited"]()
    assert names["plan"].seed == 42


def test_fault_table_when_read_lists_every_fault() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\|.*\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert set(rows) >= known_faults().keys()


def test_examples_when_read_are_a_script_and_a_plan(tmp_path: Path) -> None:
    script, plan = blocks("yaml")
    assert len(yaml.safe_load(script)) == 5
    for name, text in (("script.yaml", script), ("plan.yaml", plan)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert callable(scripted(tmp_path / "script.yaml"))
    assert read_plan(tmp_path / "plan.yaml").seed == 42
