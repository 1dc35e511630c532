"""Every command of a tutorial, and of howto/own.md, is run, in order, and prints what the page shows.

:mod:`fabula.testing.page_shell` says how pages are written. ``UPDATE_GOLDEN=1`` writes the answers anew.
"""

import os
from pathlib import Path

import pytest

import fabula
from fabula.testing.page_shell import BLOCK, HOME, Shell, fits, typed

DOCS = Path(fabula.__file__).parent / "docs"
PAGES = (*sorted((DOCS / "tutorials").glob("*.md")), DOCS / "howto" / "own.md")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.waits,
    pytest.mark.skipif(not DOCS.is_dir(), reason="the suite runs against a wheel, which has no docs"),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_when_followed_prints_what_it_shows(page: Path, tmp_path: Path, commands: Path) -> None:
    text = page.read_text("utf-8")
    # Readers' pip fetches setuptools to build a package; here it takes the one of this environment, offline.
    offline = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}
    shell = Shell(tmp_path, commands, {"OPENAI_API_KEY": "none", **offline})
    try:
        for language, title, block in BLOCK.findall(text):
            if title:
                file = Path(shell.type("pwd").replace(HOME, str(tmp_path))) / title
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("a", encoding="utf-8") as written:  # settings go behind those of `fabula init`
                    written.write(shell.with_own_ports(block))
            if language != "console":
                continue
            told = block
            for command, shown in typed(block):
                answer = shell.type(command)
                if os.environ.get("UPDATE_GOLDEN") and not fits(shown or "", answer):
                    old = f"$ {command}\n" + (f"{shown}\n" if shown else "")
                    told = told.replace(old, f"$ {command}\n" + (f"{answer}\n" if answer else ""), 1)
                else:
                    assert fits(shown, answer), f"$ {command}\n{answer}"
            text = text.replace(block, told, 1)
    finally:
        shell.close()
    if os.environ.get("UPDATE_GOLDEN"):
        page.write_text(text, encoding="utf-8")
