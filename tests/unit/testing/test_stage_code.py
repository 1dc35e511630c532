"""The hash of what a stage computes: which changes of a small package it notices, and which it does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.testing.stage_code import Code

Files = dict[str, str]
Change = Callable[[Files], Files]

PACKAGE: Files = {
    "builders/__init__.py": "",
    "builders/cut_text.py": '''
"""Stage: cut."""

from math import floor as down

from ..engine.stage import Spec
from ..media import frames
from ..media.sizes import LIMIT as MOST, Shape
from .checks import CHECKS, load
from .cues import cues
from .settings import Settings

SPEC = Spec(name="cut_text", version=1, settings=Settings)


def run(item, tools):
    """Cut."""
    from .lazy import joined

    reader = planner(tools)
    first = [frames.half(word) for word in reader.words(item)]
    shape = Shape(len(first[:MOST]))
    names = [load(place) for _, place in CHECKS]
    return joined(first), down(shape.area()), names, cues("verbs")


def planner(tools) -> "Planner":
    """Return who plans."""
    return Planner()


class Planner:
    """Plans."""

    def words(self, item):
        return _split(item)


def _split(text):
    return text.split(" ")


def unrelated(text):
    return text
''',
    "builders/settings.py": '''
from pydantic import BaseModel, Field


class Settings(BaseModel):
    """Settings."""

    most: int = Field(default=3, description="How many.")
    given: "Given | None" = None


class Given(BaseModel):
    words: tuple[str, ...] = ("a",)
''',
    "builders/lazy.py": 'def joined(words):\n    return "-".join(words)\n',
    "builders/checks.py": """
from importlib import import_module

CHECKS = (("short", "rules:check_short"),)


def load(place):
    module, name = place.split(":")
    return getattr(import_module(f".{module}", __package__), name)
""",
    "builders/rules.py": """
def check_short(text):
    return len(text) < 3


def check_long(text):
    return len(text) > 3
""",
    "builders/cues.py": """
import json
from importlib.resources import files


def cues(name):
    return json.loads((files(__package__) / f"{name}.json").read_text())
""",
    "builders/verbs.json": '["go"]',
    "builders/nouns.json": '["dog"]',
    "media/__init__.py": "",
    "media/frames.py": """
from functools import cache

READERS = {}


def reader(function):
    READERS[function.__name__] = function
    return function


def half(word):
    return READERS["plain"](word)[: _middle(word)]


@cache
def _middle(word):
    return len(word) // 2
""",
    "media/readers.py": """
from .frames import reader


@reader
def plain(word):
    return word
""",
    "media/sizes.py": """
from dataclasses import dataclass

LIMIT = 5


class Base:
    kinds = []

    def __init_subclass__(cls):
        Base.kinds.append(cls)

    def area(self):
        return self.width * self.factor


@dataclass
class Shape(Base):
    width: int
    factor: int = 2


class Square(Base):
    factor = 1
""",
    "engine/stage.py": "class Spec:\n    def __init__(self, **names): ...\n",
}


def hash_of(files: Files, folder: Path) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stage = next(name for name in files if name.endswith("cut_text.py"))
    module = f"pkg.{stage.removesuffix('.py').replace('/', '.')}"
    return Code(folder, ("builders", "media", "kinds"), "pkg").hash(module, ("SPEC", "run"))


def edit(name: str, old: str, new: str) -> Change:
    def change(files: Files) -> Files:
        assert old in files[name]
        return files | {name: files[name].replace(old, new)}

    return change


def add(name: str, text: str) -> Change:
    return lambda files: files | {name: files.get(name, "") + text}


def move(old: str, new: str, *edits: tuple[str, str, str]) -> Change:
    def change(files: Files) -> Files:
        files = {new if name == old else name: text for name, text in files.items()}
        for name, before, after in edits:
            files = edit(name, before, after)(files)
        return files

    return change


def merge_rules_into_checks(files: Files) -> Files:
    files = edit("builders/checks.py", "rules:", "checks:")(files)
    return add("builders/checks.py", files.pop("builders/rules.py"))(files)


def merge_frames_into_sizes(files: Files) -> Files:
    files = edit("builders/cut_text.py", "import frames", "import sizes as frames")(files)
    files = edit("media/readers.py", ".frames", ".sizes")(files)
    return add("media/sizes.py", files.pop("media/frames.py"))(files)


CUT = "builders/cut_text.py"
LISTS = ("builders/cues.py", "builders/verbs.json", "builders/nouns.json")
SAME: dict[str, Change] = {
    "a helper moves to another room": move(
        "builders/lazy.py", "kinds/words.py", (CUT, "from .lazy", "from ..kinds.words")
    ),
    "the stage moves into a folder": move(
        CUT, "kinds/cut/cut_text.py", (CUT.replace("builders", "kinds/cut"), "from ..", "from ..."),
        (CUT.replace("builders", "kinds/cut"), "from .c", "from ...builders.c"),
        (CUT.replace("builders", "kinds/cut"), "from .l", "from ...builders.l"),
        (CUT.replace("builders", "kinds/cut"), "from .s", "from ...builders.s"),
    ),
    "the engine's module moves": move(
        "engine/stage.py", "engine/parts/stage.py", (CUT, "engine.stage", "engine.parts.stage")
    ),
    "two files become one, named in strings": merge_rules_into_checks,
    "two files become one, used as a module": merge_frames_into_sizes,
    "word lists move with what reads them": lambda files: edit(CUT, "from .cues", "from ..kinds.words.cues")(
        {(f"kinds/words/{Path(name).name}" if name in LISTS else name): text for name, text in files.items()}
    ),
    "imports change their order": edit(
        CUT, "from .cues import cues\nfrom .settings import Settings",
        "from .settings import Settings\nfrom .cues import cues",
    ),
    "a module's function is imported by itself": lambda files: edit(CUT, "frames.half", "half")(
        edit(CUT, "from ..media import frames", "from ..media.frames import half")(files)
    ),
    "an alias changes": edit(CUT, "MOST", "GREATEST"),
    "a lazy import becomes an early one": lambda files: edit(CUT, "    from .lazy import joined\n", "")(
        edit(CUT, "from .settings", "from .lazy import joined\nfrom .settings")(files)
    ),
    "a package shows what a module of it has": lambda files: edit(CUT, "from ..media.sizes", "from ..media")(
        add("media/__init__.py", "from .sizes import LIMIT, Shape\n")(files)
    ),
    "a function is added": add("media/sizes.py", "\n\ndef more(words):\n    return words\n"),
    "a rule that is not in the table changes": edit("builders/rules.py", "> 3", "> 4"),
    "a function of the stage's module that it does not use changes": edit(
        CUT, "def unrelated(text):\n    return text", "def unrelated(text):\n    return 1"
    ),
    "a word list that nobody names changes": edit("builders/nouns.json", "dog", "cat"),
    "docstrings change": edit(CUT, '"""Cut."""', '"""Cuts the text."""'),
    "a setting's description changes": edit("builders/settings.py", "How many.", "How many words."),
    "a function has another name": edit(CUT, "_split", "_words_of"),
    "local variables have other names": lambda files: edit(CUT, "first", "words")(
        edit(CUT, "reader", "drafter")(files)
    ),
    "comments and blank lines change": edit("media/sizes.py", "LIMIT = 5", "\n# As in the paper.\nLIMIT = 5"),
}  # fmt: skip
OTHER: dict[str, Change] = {
    "its own function": edit(CUT, "return joined(first)", "return joined(first[1:])"),
    "its declaration": edit(CUT, 'name="cut_text"', 'name="cut_texts"'),
    "a method reached through an instance": edit(CUT, "_split(item)", "_split(item[1:])"),
    "a helper of that method": edit(CUT, 'split(" ")', 'split("-")'),
    "a function imported lazily": edit("builders/lazy.py", '"-"', '"+"'),
    "a function used through its module": edit("media/frames.py", '["plain"]', '["fancy"]'),
    "a decorated helper": edit("media/frames.py", "// 2", "// 3"),
    "a decorator": edit("media/frames.py", "@cache\n", ""),
    "a constant imported under an alias": edit("media/sizes.py", "LIMIT = 5", "LIMIT = 6"),
    "a default of a dataclass": edit("media/sizes.py", "factor: int = 2", "factor: int = 3"),
    "a decorator of a dataclass": edit("media/sizes.py", "@dataclass", "@dataclass(frozen=True)"),
    "a base class": edit("media/sizes.py", "self.width *", "2 * self.width *"),
    "a subclass that its base knows of": edit("media/sizes.py", "factor = 1", "factor = 4"),
    "a new subclass": add("media/more.py", "from .sizes import Base\n\n\nclass Round(Base):\n    x = 3\n"),
    "a function that registers itself": edit("media/readers.py", "return word", "return word.lower()"),
    "a new function that registers itself": add(
        "media/readers.py", "\n\n@reader\ndef upper(word):\n    return word.upper()\n"
    ),
    "a table filled by a statement": add("media/frames.py", '\n\nREADERS["more"] = len\n'),
    "a table's rows": edit("builders/checks.py", "check_short", "check_long"),
    "a function named in a string": edit("builders/rules.py", "< 3", "< 4"),
    "a default setting": edit("builders/settings.py", "default=3", "default=4"),
    "a type named in quotes": edit("builders/settings.py", '("a",)', '("b",)'),
    "a word list": edit("builders/verbs.json", "go", "went"),
    "which word list": edit(CUT, 'cues("verbs")', 'cues("nouns")'),
    "what a name from a library stands for": edit(CUT, "floor as down", "ceil as down"),
    "which library a name is from": edit(CUT, "from math", "from numpy"),
    "which of two values comes first": edit(CUT, "[load(place) for _, place", "[load(_) for _, place"),
    "the module as a value": lambda files: edit("media/frames.py", "READERS[", "vars(half)[")(
        edit(CUT, "frames.half(word)", "getattr(frames, word)(word)")(files)
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_hash_when_only_the_place_or_the_words_change_stays(change: Change, tmp_path: Path) -> None:
    assert hash_of(change(dict(PACKAGE)), tmp_path / "after") == hash_of(PACKAGE, tmp_path / "before")


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_hash_when_what_is_computed_changes_is_another(change: Change, tmp_path: Path) -> None:
    assert hash_of(change(dict(PACKAGE)), tmp_path / "after") != hash_of(PACKAGE, tmp_path / "before")


def test_hash_when_a_module_is_used_as_a_value_counts_all_of_it(tmp_path: Path) -> None:
    files = edit(CUT, "frames.half(word)", "getattr(frames, word)(word)")(PACKAGE)
    changed = add("media/frames.py", "\n\ndef third(word):\n    return word[::3]\n")(files)
    assert hash_of(changed, tmp_path / "after") != hash_of(files, tmp_path / "before")
