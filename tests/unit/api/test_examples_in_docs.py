"""What help and the page on Python show is run: with a judge and a Hub on loopback, and real files."""

import doctest
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import fabula

VERBS = (
    "build", "validate", "audit", "pack", "verify", "load", "diff", "evaluate", "score", "compare", "report",
    "experiment", "publish", "fetch", "extend",
)  # fmt: skip
"""In the order in which one's files are there for the next."""
PAGE = Path(fabula.__file__).parent / "docs" / "python.md"


def test_verbs_when_help_is_asked_are_there_with_types_and_an_example() -> None:
    for name in VERBS:
        verb = getattr(fabula, name)
        assert verb.__annotations__["return"]
        assert ">>> " in verb.__doc__
    assert set(VERBS) <= set(dir(fabula))


@pytest.mark.parametrize("name", VERBS)
def test_example_when_run_gives_what_it_shows(at_desk: Any, name: str, tmp_path: Path) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        if name == "fetch":
            fabula.publish("dist/mine-0.1.0", "user/mine", progress=False)
        if name in ("pack", "extend"):  # these would change what other tests look at
            shutil.copytree("runs/mine", tmp_path / "runs/mine")
            for file in ("stories.jsonl", "new.jsonl", "fabula.toml"):
                shutil.copy(file, tmp_path)
            patch.chdir(tmp_path)
        text = at_desk.code(getattr(fabula, name).__doc__)
        runner.run(doctest.DocTestParser().get_doctest(text, {}, name, None, None), out=said.append)
    assert runner.summarize(verbose=False) == (0, runner.tries), "".join(said)


def test_evaluate_when_the_settings_file_also_speaks_of_a_build_takes_its_own(
    at_desk: Any, tmp_path: Path
) -> None:
    settings = Path("fabula.toml").read_text("utf-8") + '\n[assemble_records]\nlicense = "CC-BY-4.0"\n'
    (tmp_path / "both.toml").write_text(settings, "utf-8")
    plan = fabula.evaluate(
        "dist/mine-0.1.0", "boards/model-x", tmp_path / "eval", judges=at_desk.judge, dry_run=True,
        config=tmp_path / "both.toml",
    )  # fmt: skip
    assert plan.calls > 0


def test_blocks_of_the_page_when_run_in_order_work(
    at_desk: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not PAGE.exists():
        pytest.skip("the suite runs against an installed wheel, which has no docs")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 7
    shutil.move("dist/mine-0.1.0", tmp_path / "before")  # it is packed again, to the same bytes
    known: dict[str, Any] = {}
    for block in blocks:
        exec(compile(at_desk.code(block), str(PAGE), "exec"), known)
    said = capsys.readouterr().out
    assert "plannner: there is no such option" in said
    assert r"\begin{table}" in said
