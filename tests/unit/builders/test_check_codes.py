"""The codes of checks that a release may count are those that stages make."""

import ast
import importlib
import inspect
from pathlib import Path

import fabula.builders.katha
from fabula.builders.katha.checks.settling import APPLIED, SCREEN, SCREENED
from fabula.builders.katha.choosing.assess_story import CRITERIA
from fabula.releases.katha.composition import CHECKS
from fabula.validators.codes import CODES


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
