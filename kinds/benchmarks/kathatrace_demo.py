"""The authors' demo of KathaTrace: stories, and storyboards with captions. It has no questions.

Its words for collections, morals and transitions are not those of the paper's tables:
``kathatrace_words.json`` says of each which of ours it is, or why it is none.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, jsonl_lines, pretty_bytes, write_atomic
from ...schemas.plain_files import below, json_lines, read_json, read_plain
from ...schemas.text import is_story_id, quoted, tallied
from .benchmark import Home, Licence, PerCall, known_files
from .kathabench import KATHABENCH, storyboard_orders

STORIES, BOARDS, PAGE = "demo_stories.jsonl", "storyboards.json", "index.html"
RECORDS, WORDS, PICTURES, SUMMARY = "records.jsonl", "source_words.jsonl", "storyboards", "summary.json"
LICENCE, AUTHOR = "Apache-2.0", "author:KathaTrace demo"
_LIST = re.compile(r"curatedStories = \[(.*?)\n  \];", re.DOTALL)
_FIELD = re.compile(r"""\b([a-z_]+):\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")
_MORALS = ("moral_label", "intended_meaning", "meaning")
_OF_SCENES = ("caption", "transition_dimension")


@dataclass(frozen=True, slots=True)
class Told:
    """A story of the demo, in its words."""

    id: str
    title: str
    source: str  # the collection
    text: str  # two or three sentences
    moral: str
    captions: tuple[str, ...] = ()  # of the scenes of its storyboard, if it has one
    # for each scene the dimension of the transition that leads to it, as the demo's generator is told and its
    # page shows; that of the first scene stands for nothing
    dimensions: tuple[str, ...] = ()
    pictures: tuple[Path, ...] = ()  # one a scene, or none where they are not here


@cache
def demo_words() -> Mapping[str, Mapping[str, tuple[str | None, str]]]:
    """Return kind of word -> word of the demo -> ours, or None, and why."""
    return json.loads((files(__package__) / "kathatrace_words.json").read_text("utf-8"))  # type: ignore[no-any-return]


def ours(kind: str, word: str) -> tuple[str | None, str]:
    """Return which of our words one of the demo's is, and why; None where it is none."""
    known, why = demo_words()[kind].get(word, (None, "the table does not have it"))
    return known, why


def read_demo(folder: Path) -> list[Told]:
    """Return the stories in a copy of the demo's repository, or in a folder with ``storyboards.json``."""
    found = {name: min(folder.rglob(name), default=None, key=lambda path: (len(path.parts), path))
             for name in (STORIES, BOARDS, PAGE)}  # fmt: skip
    rows: list[tuple[Path, dict[str, Any]]] = []
    if (path := found[BOARDS]) is not None:
        rows += [(path, row) for row in read_json(path)]
    elif (path := found[PAGE]) is not None:
        rows += [(path, row) for row in _on_page(read_plain(path).decode("utf-8"))]
    if (path := found[STORIES]) is not None:
        rows += [(path, row) for row in json_lines(path)]
    if not rows:
        raise InputError.one(
            str(folder), what=f"neither {STORIES} nor {BOARDS} nor the demo's {PAGE} holds a story",
            fix="give a clone of https://github.com/JamunaSMurthy/kathatrace-demo",
        )  # fmt: skip
    stories, problems = [], list[UserError]()
    for path, row in rows:
        try:
            stories.append(_told(path.parent, row))
        except (KeyError, TypeError, ValueError) as error:
            name = row.get("id", "a story") if isinstance(row, dict) else "a line"
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            problems.append(UserError(f"{path}: {name}", what=what, fix="bring the demo anew"))
    twice = [name for name, count in Counter(story.id for story in stories).items() if count > 1]
    problems += [
        UserError(str(folder), what=f"two stories are called {name}", fix="keep one") for name in twice
    ]
    if problems:
        raise InputError(problems)
    return stories


def _on_page(text: str) -> Iterator[dict[str, Any]]:
    """Yield the stories in the list that the demo's page holds, a literal of JavaScript."""
    listed = _LIST.search(text)
    story: dict[str, Any] = {}
    for key, value in _FIELD.findall(listed[1] if listed else ""):
        if key == "id":
            yield from [story] if story else []
            story = {"scenes": []}
        if key == "caption":
            story["scenes"].append({})
        (story["scenes"][-1] if key in _OF_SCENES else story)[key] = ast.literal_eval(value)
    yield from [story] if story else []


def _told(home: Path, row: Mapping[str, Any]) -> Told:
    """Return a story with the pictures that a row names, or that lie where the page looks for them."""
    scenes = row.get("scenes", [])
    if "folder" in row:
        names = [f"assets/{row['folder']}/Scene{number}.png" for number in range(1, len(scenes) + 1)]
    else:
        names = row.get("images", [])
    pictures = [below(home, name) for name in names]
    missing = [path.name for path in pictures if not path.is_file()]
    if missing and len(missing) < len(pictures):
        raise ValueError(f"of its pictures {', '.join(missing)} is not here")
    if len(pictures) != len(scenes):
        raise ValueError(f"{tallied(len(pictures), 'pictures')} of {tallied(len(scenes), 'scenes')}")
    named = ["id", "title", "source", "story", next((key for key in _MORALS if key in row), _MORALS[0])]
    texts = [row[key] for key in named] + [scene[key] for key in _OF_SCENES for scene in scenes]
    if not all(isinstance(text, str) and text.strip() for text in texts) or not is_story_id(texts[0]):
        raise ValueError(f"not all of {', '.join((*named, *_OF_SCENES))} are texts, or the id is none")
    captions, dimensions = (tuple(scene[key].strip() for scene in scenes) for key in _OF_SCENES)
    shown = () if missing else tuple(pictures)
    story_id, title, source, text, moral = texts[: len(named)]
    return Told(story_id, title, source, text, moral, captions, dimensions, shown)


@dataclass(frozen=True, slots=True)
class ImportedDemo:
    """What became of the demo."""

    folder: Path
    stories: tuple[Told, ...]

    @property
    def left_out(self) -> dict[str, str]:
        """Stories that are told with a storyboard, too -> the other one, which is kept."""
        shown = {story.text: story.id for story in self.stories if story.captions}
        return {story.id: shown[story.text] for story in self.stories
                if story.text in shown and not story.captions}  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        boards = [story for story in self.stories if story.captions]
        used = {
            "collection": [story.source for story in self.stories],
            "moral": [story.moral for story in self.stories],
            "dimension": [word for story in boards for word in story.dimensions[1:]],
        }
        return {
            "stories": len(self.stories) - len(self.left_out),
            "storyboards": len(boards),
            "pictures": sum(len(story.pictures) for story in boards),
            "left_out": self.left_out,
            "words": {
                kind: {word: _ours_and_why(kind, word) for word in sorted({*words})}
                for kind, words in used.items()
            },
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        told = self.as_json()
        boards, pictures = tallied(told["storyboards"], "storyboards"), tallied(told["pictures"], "pictures")
        yield f"{self.folder}: {tallied(told['stories'], 'stories')}, {boards} of {pictures}"
        yield from (
            f"  {name} is left out: it has the text of {other}" for name, other in self.left_out.items()
        )
        yield "  scenes of storyboards are their captions, which are no parts of the stories' texts"
        for kind, words in told["words"].items():
            kept = {word: row["why"] for word, row in words.items() if row["ours"] is None}
            yield f"  {kind}: {len(words) - len(kept)} of {tallied(len(words), 'words')} are ours"
            yield from (f"    {word}: {why}" for word, why in kept.items())
        yield f"  {WORDS} keeps all words of the demo; {SUMMARY} says which are ours, and why"
        given = f" --records {quoted(self.folder / RECORDS)}" if told["storyboards"] else ""
        stories = quoted(self.folder / "stories.jsonl")
        yield f"next: fabula build stories {stories}{given} --model MODEL --out runs/demo"


def _ours_and_why(kind: str, word: str) -> dict[str, str | None]:
    known, why = ours(kind, word)
    return {"ours": known, "why": why}


def import_demo(folder: Path, out: Path) -> ImportedDemo:
    """Write the demo as stories for ``build stories``, given scenes of its storyboards, and outputs."""
    from ...releases.target import require_free, staged

    require_free(out)
    made = ImportedDemo(out, tuple(read_demo(folder)))
    boards = [story for story in made.stories if story.captions]
    kept = [story for story in made.stories if story.id not in made.left_out]
    with staged(out.absolute()) as (draft,):
        write_atomic(draft / "stories.jsonl", jsonl_lines(map(_story, kept)))
        write_atomic(draft / RECORDS, jsonl_lines(map(_scenes, boards)))
        write_atomic(draft / WORDS, jsonl_lines(map(_words, made.stories)))
        write_atomic(draft / SUMMARY, [pretty_bytes(made.as_json())])
        for story in boards:
            for number, picture in enumerate(story.pictures, 1):
                copy = draft / PICTURES / story.id / f"{number:02d}{picture.suffix.lower()}"
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(read_plain(picture, follow=True))
    return made


def _story(story: Told) -> Json:
    """Return a line of ``stories.jsonl``; the demo's own words stand in its reference."""
    reference = f"KathaTrace demo: {story.source}; moral: {story.moral}"
    if story.dimensions:
        reference += f"; transitions: {', '.join(story.dimensions[1:])}"
    label, _ = ours("moral", story.moral)
    return {
        "id": story.id, "title": story.title, "language": "en", "text": story.text,
        "source_collection": ours("collection", story.source)[0] or story.source,
        "source_reference": reference, "dataset_license": LICENCE,
        "rights_status": "public_domain_or_rights_compatible",
        **({} if label is None else {"moral_label": label}),
    }  # fmt: skip


def _scenes(story: Told) -> Json:
    """Return a line of ``records.jsonl``: captions as scenes, each closed with a full stop."""
    closed = [caption if caption[-1:] in ".!?" else f"{caption}." for caption in story.captions]
    scenes = [{"scene_text": text} for text in closed]
    return {"story_id": story.id, "author": AUTHOR, "narrated": True, "scenes": scenes}


def _words(story: Told) -> Json:
    transitions = [
        {
            "from_scene": number, "to_scene": number + 1, "word": word,
            "question_type": ours("dimension", word)[0],
        }
        for number, word in enumerate(story.dimensions[1:], 1)
    ]  # fmt: skip
    words: dict[str, Json] = {"id": story.id, "source": story.source, "moral": story.moral}
    if story.captions:
        words |= {"first_scene": story.dimensions[0], "transitions": transitions}
    return words


def _release(data: Path, made: Path, model: str | None) -> Path:
    """Draft records of the stories with a model, and pack them as drafts that nobody has read."""
    from ...builders.katha.building import BuildOptions
    from ...errors import ConfigError
    from ...releases.options import PackOptions
    from ..verbs import build, pack

    if model is None:
        what = "the demo has no questions, so a model has to draft them"
        raise ConfigError("--model", what=what, fix="name one, such as --model openai:gpt-4.1-mini")
    drafts = made.with_name(f"{made.name}-drafts")
    if not (drafts / "demo").is_dir():
        drafts.mkdir(parents=True, exist_ok=True)
        import_demo(data, drafts / "demo")
    options = BuildOptions(
        model=model, records=drafts / "demo" / RECORDS, settings={"assign_splits.only": "public_test"}
    )
    build("stories", drafts / "demo" / "stories.jsonl", drafts / "run", options)
    packing = PackOptions(version="0.1.0", usual_license=LICENCE, allow_drafts=True, allow_stand_in=True)
    pack(drafts / "run", made, packing)
    return made


KATHATRACE_DEMO = replace(
    KATHABENCH,
    name="kathatrace-demo",
    title="KathaTrace demo",
    about="The stories of the KathaTrace demo, nine of them told by captions of the authors' storyboards, "
    "to try all at little cost: nothing to compare with.",
    licence=Licence(LICENCE, "LICENSE of the repository."),
    home=Home(
        "repository", "https://github.com/JamunaSMurthy/kathatrace-demo",
        "b84f60737d00785a2d7f18f9cece766762d1b8b1", known_files("kathatrace-demo"),
    ),
    judges=(),
    judge="openai:gpt-4.1-mini",
    size={"stories": 18, "storyboards": 18},
    per_call=PerCall(pictures=5, tokens=500, reply=80),
    prepare=_release,
    orders=partial(storyboard_orders, ()),
    options={},
    printed=(),
    drafts=True,
    untried=(
        "the download from the repository: its files were read from a copy",
        "drafting with a real model",
        "any real judge",
    ),
)  # fmt: skip
"""The benchmark."""
