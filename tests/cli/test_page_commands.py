"""What the pages of the documentation tell people to type is run, page by page, and ends as it should.

A page is followed in a folder where what it talks of is there: ``pages/*.toml`` say how each is made, which
exit codes are right where they are not 0, and what is not run, with the reason. The stand-in answers for
every model that a page names, and a toy draws for what asks for pictures. What a page shows as an answer is
compared. Its blocks of Python are run at its end, as one program.
"""

import re
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import fabula
from fabula.testing import drawn_service, stand_in
from fabula.testing.model_server import Answer, Asked, ModelServer
from fabula.testing.page_shell import BLOCK, Shell, fits, typed

DOCS = Path(fabula.__file__).parent / "docs"
HERE = Path(__file__).with_name("pages")
COMMAND = re.compile(r"^(\$ )?(\w+=\S+ )*(fabula|python3?|pip|export) |^\$ ", re.MULTILINE)
"""A line by which a block without a language is known as one of commands."""
SERVES = re.compile(r"fabula (view|review serve) |python -m fabula\.testing\.model_server (?!.*&)")
"""These go on until they are stopped."""
STOPPED = (0, 130)
KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY")
PLACES = {"openai": "/v1", "google": "", "anthropic": ""}
"""What the address of each service ends with, as ``base_url`` has it."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.waits,
    pytest.mark.skipif(not DOCS.is_dir(), reason="the suite runs against a wheel, which has no docs"),
]


@dataclass(frozen=True, kw_only=True)
class Page:
    """How a page is followed.

    Attributes:
        on: what is there before, by the names under ``[worlds]``.
        before: what is typed first, and not on the page.
        ends: beginning of a command, and its exit code where that is not 0.
        not_run: beginning of a command or of a block of Python, and why it is not run.
    """

    on: tuple[str, ...] = ()
    before: str = ""
    ends: Mapping[str, int] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)


WORLDS: dict[str, str] = {}
PAGES: dict[str, Page] = {}
MODELS: set[str] = set()
for _file in sorted(HERE.glob("*.toml")):
    _read = tomllib.loads(_file.read_text("utf-8"))
    WORLDS |= _read.get("worlds", {})
    MODELS |= set(_read.get("models", ()))
    PAGES |= {name: Page(**given) for name, given in _read["pages"].items()}


def answer(asked: Asked) -> Any:
    """Return the reply to a question under any name: it plays the model that a page names, and says so."""
    if asked.wants == "image" or drawn_service.NAME in asked.model:
        return drawn_service.study_service(replace(asked, model=f"{drawn_service.NAME}-faithful"))
    said = stand_in.answer(replace(asked, model=stand_in.NAME))
    return replace(said, model=asked.model) if isinstance(said, Answer) else said


def written(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a page has people do, in order: language, what is typed, and its answer.

    A block with a title is typed as ``cat`` into that file; where no answer is shown, it is ``...``.
    """
    for language, title, indented in BLOCK.findall(text):
        block = textwrap.dedent(indented)
        if title:
            yield "", f"mkdir -p \"$(dirname '{title}')\" && cat > '{title}' <<'END'\n{block}END", "..."
        elif language == "python":
            yield language, block, "..."
        elif language in ("", "bash", "console") and COMMAND.search(block):
            if re.search(r"^\$ ", block, re.MULTILINE):
                yield from (("", command, shown) for command, shown in typed(block))
            else:
                yield from (("", command, "...") for command in whole_commands(block))


def whole_commands(block: str) -> Iterator[str]:
    """Yield the commands of a block that shows no answers, each with all of its lines."""
    lines: list[str] = []
    for line in block.splitlines():
        lines.append(line)
        command = "\n".join(lines)
        if line.endswith("\\") or not is_whole(command):
            continue
        lines = []
        if command.strip() and not command.startswith("#"):
            yield command
    assert not lines, f"not a whole command: {lines}"


def is_whole(command: str) -> bool:
    """Whether a shell would not wait for more."""
    read = subprocess.run(["bash", "-n", "-c", command], check=False, capture_output=True)
    return read.returncode == 0


def begun(command: str, beginnings: Mapping[str, Any]) -> Any:
    """Return what is said of commands that begin so, or None."""
    plain = " ".join(command.replace("\\\n", " ").split())
    for beginning, told in beginnings.items():
        if plain.startswith(" ".join(beginning.split())):
            return told
    return None


@pytest.fixture(scope="module")
def settings() -> Iterator[str]:
    """A ``fabula.toml``: no worker is started, and every model that a page names is on this machine."""
    with ModelServer(answer, keep_log=False) as server:
        base = server.openai_url.removesuffix("/v1")
        lines = ["[run]", "workers = 0", "[assemble_records]", 'license = "CC-BY-4.0"']
        for name in sorted(MODELS):
            service = next(service for service in PLACES if service in name)
            lines += [f'[models."{name}"]', f'base_url = "{base}{PLACES[service]}"']
        yield "\n".join(lines) + "\n"


class Places:
    """Folders in which things are that pages talk of; each kind is made once.

    All pages are followed in the same folder, one after another, as things hold the paths of others.

    Args:
        base: an empty folder.
        commands: of :class:`Shell`.
        settings: text of ``fabula.toml``.
    """

    def __init__(self, base: Path, commands: Path, settings: str) -> None:
        self.folder = base / "fables"
        self._base, self._commands, self._settings = base, commands, settings

    def fill(self, worlds: tuple[str, ...]) -> Shell:
        """Return a shell in the folder, in which these are then, and nothing else."""
        for world in worlds:
            if not (self._base / world).exists():
                shell = self._emptied()
                try:
                    said = shell.type(f"(set -e\n{WORLDS[world]}\n)")
                    assert shell.status == 0, said
                finally:
                    shell.close()
                self.folder.rename(self._base / world)
        return self._emptied(*worlds)

    def _emptied(self, *worlds: str) -> Shell:
        shutil.rmtree(self.folder, ignore_errors=True)
        for world in worlds:
            shutil.copytree(self._base / world, self.folder, dirs_exist_ok=True, symlinks=True)
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        (self.folder / "fabula.toml").write_text(self._settings, encoding="utf-8")
        variables = dict.fromkeys(KEYS, "any") | {"HOME": str(self.folder / "home"), "ROOT": str(DOCS.parent)}
        return Shell(self.folder, self._commands, variables)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, commands: Path, settings: str) -> Places:
    return Places(tmp_path_factory.mktemp("worlds"), commands, settings)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_page_when_followed_runs_to_its_end(name: str, places: Places) -> None:
    page, code = PAGES[name], ""
    shell = places.fill(page.on)
    wrong, unused = [], {*page.ends, *page.not_run}
    try:
        if page.before:
            said = shell.type(f"set -e\n{page.before}\nset +e")
            assert shell.status == 0, said
        for language, command, shown in written((DOCS / name).read_text("utf-8")):
            unused -= {one for one in unused if begun(command, {one: True})}
            if begun(command, page.not_run):
                continue
            if language == "python":
                code += f"{command}\n"
                continue
            typed_so = f"timeout --preserve-status -s INT 4 {command}" if SERVES.match(command) else command
            said = shell.type(typed_so)
            right = STOPPED if typed_so != command else (begun(command, page.ends) or 0,)
            if shell.status not in right or not fits(shown, said):
                wrong.append(f"$ {command}\n{said}\n[exit code {shell.status}]")
        if code:
            (places.folder / "blocks.py").write_text(shell.with_own_ports(code), encoding="utf-8")
            said = shell.type("python blocks.py")
            wrong += [f"{code}\n{said}"] if shell.status else []
    finally:
        shell.close()
    assert not wrong, "\n".join(wrong)
    assert not unused, f"not on the page: {unused}"


def test_pages_when_they_show_commands_are_followed() -> None:
    own = {"howto/own.md"}  # and the tutorials, in test_tutorials.py
    shown = {
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if path.parent.name not in ("tutorials", "decisions") and any(written(path.read_text("utf-8")))
    }
    assert shown - own == set(PAGES)
