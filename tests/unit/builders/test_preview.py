"""Showing what a stage would ask, from Python."""

import ast
import asyncio
import importlib
import inspect
import json
from pathlib import Path

import fabula.builders.katha
from fabula.builders.katha.checks.settling import APPLIED, SCREEN, SCREENED
from fabula.builders.katha.choosing.assess_story import CRITERIA
from fabula.builders.preview import Preview
from fabula.kinds.verbs import preview_story
from fabula.releases.katha.composition import CHECKS
from fabula.validators.codes import CODES


def test_preview_when_a_loop_is_running_as_in_a_notebook_shows_the_request(tmp_path: Path) -> None:
    text = " ".join(f"The fox saw crow number {number} with a piece of cheese." for number in range(40))
    story = {"id": "s1", "title": "The Fox", "language": "en", "text": text}
    story |= {"source_collection": "mine", "rights_status": "public_domain_or_rights_compatible"}
    (tmp_path / "stories.jsonl").write_text(json.dumps(story))

    async def in_a_cell() -> list[Preview]:
        return preview_story(tmp_path / "stories.jsonl", "s1", "katha/label_story")

    (shown,) = asyncio.run(in_a_cell())
    assert shown.prompt.startswith("katha/label_story@")
    assert "The fox saw crow" in str(shown.request.messages[-1].parts[0])


# The codes of checks that a release may count are those that stages make.


def test_check_codes_when_listed_are_those_that_stages_make_and_no_others() -> None:
    made = {*CODES, *(f"{SCREEN}{code}" for code in (*SCREENED, *CRITERIA.values()))}
    for check in APPLIED:
        made |= {check.code, *check.models, *check.rules}
    root = Path(inspect.getfile(fabula.builders.katha)).parent
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        dotted = ".".join(path.relative_to(root).with_suffix("").parts)
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("make_check", "_verdict"):
                code = call.args[0]
                if isinstance(code, ast.Constant):
                    made.add(str(code.value))
                elif isinstance(code, ast.Name) and code.id.isupper():
                    module = importlib.import_module(f"fabula.builders.katha.{dotted}")
                    made.add(str(getattr(module, code.id)))
    assert made == CHECKS
