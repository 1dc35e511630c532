"""Stage: the source stories, hand-written records and edits, all checked before the first story is built.

Stories come as JSONL, CSV or folders of ``.txt`` and ``.md`` files with optional YAML front matter. All
problems of all files are raised as one error.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import InputError
from ...schemas.canonical import Json
from ...schemas.katha import GivenAnswer, Question, Scene, Transition, Variant
from ...schemas.text import normalize_text
from ...schemas.values import Own, Story, vocabulary, wire_of
from ..rows import Reader, Row, Settings, StoryRows, _report, _story_id, read_edits
from ..text.boundaries import scene_spans
from .checks.settling import CODES, SCREEN, Verdict, judges_part, part_of
from .drafts import DEFAULT_AUTHOR, LABELS, LISTS, NARRATED, joined_scenes

_TYPES: Mapping[str, type[Own]] = {
    "scenes": Scene,
    "transitions": Transition,
    "questions": Question,
    "variants": Variant,
}
_KEYS = ("id", "story_id", "author", NARRATED, *LABELS, *LISTS, "checks")
_COMPLETE = ("questions", "variants")


def read_given(rows: Iterable[Row], stories: Mapping[str, Story], reader: Reader) -> dict[str, Json]:
    """Return the hand-written records by story id; problems go to the reader."""
    found: dict[str, Json] = {}
    places: dict[str, str] = {}
    for row in rows:
        story_id = _story_id(row, stories, reader)
        if story_id is None:
            continue
        if story_id in found:
            reader.problem(
                row.where, "one record per story", f"{story_id}, also at {places[story_id]}", "keep one"
            )
            continue
        places[story_id] = row.where
        given = _GivenRecord(row, stories[story_id], reader).checked()
        if given is not None:
            found[story_id] = given
    return found


def read_answers(rows: Iterable[Row], stories: Mapping[str, Story], reader: Reader) -> dict[str, list[Json]]:
    """Return the answers that people gave, by story id, in file order; problems go to the reader."""
    found: dict[str, list[Json]] = {}
    for row in rows:
        try:
            answer = GivenAnswer.model_validate(row.data)
        except ValidationError as error:
            _report(row.where, error, reader)
            continue
        if _story_id(row, stories, reader) is not None:
            found.setdefault(answer.story_id, []).append(answer.as_json())
    return found


class _GivenRecord:
    """One hand-written record under check."""

    def __init__(self, row: Row, story: Story, reader: Reader) -> None:
        self._row, self._story, self._reader = row, story, reader

    def checked(self) -> Json | None:
        """Return the record with ids and numbers filled in, or None after noting every problem."""
        before = len(self._reader.problems)
        data = {key: value for key, value in self._row.data.items() if value is not None}
        for key in sorted(set(data) - set(_KEYS)):
            self._problem(key, f"one of: {', '.join(_KEYS)}", "an unknown field", "remove it")
        for name in LABELS:
            self._check_label(name, data.get(name))
        author = data.get("author", DEFAULT_AUTHOR)
        if not isinstance(author, str) or not author.strip():
            self._problem("author", "a name", repr(author)[:60], "write who made the record")
        told = data.get(NARRATED, False)
        if not isinstance(told, bool):
            self._problem(NARRATED, "true or false", repr(told)[:60], "write true or false")
        lists = {name: self._list(name, data[name]) for name in LISTS if name in data}
        if len(self._reader.problems) == before:
            self._check_fit(lists, narrated=told is True)
        if len(self._reader.problems) == before:
            self._check_verdicts(data.get("checks", []), {**data, **lists})
        if len(self._reader.problems) > before:
            return None
        labels = {name: vocabulary(name).resolve(data[name]) for name in LABELS if name in data}
        checks = {"checks": data["checks"]} if "checks" in data else {}
        return {"author": author, **({NARRATED: True} if told else {}), **labels, **lists, **checks}

    def _problem(self, path: str, expected: str, found: str, fix: str) -> None:
        self._reader.problem(f"{self._row.where}, $.{path}", expected, found, fix)

    def _check_label(self, name: str, value: Json) -> None:
        words = vocabulary(name)
        if value is not None and (not isinstance(value, str) or words.resolve(value) not in words.values):
            cure = f"use one of these words; `fabula schemas words {name}` says what they mean"
            self._problem(name, f"one of: {', '.join(words.values)}", repr(value)[:60], cure)

    def _list(self, name: str, value: Json) -> list[Json]:
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(element, dict) for element in value)
        ):
            self._problem(name, "a list of objects", type(value).__name__, "write a JSON list")
            return []
        elements = [{**self._filled(name, number), **element} for number, element in enumerate(value, 1)]
        kind = _TYPES[name] if name in _COMPLETE else wire_of(_TYPES[name])
        for number, element in enumerate(elements):
            for key in sorted(set(element) - set(_TYPES[name].model_fields)):
                self._problem(
                    f"{name}[{number}].{key}", "a field of the format", "an unknown field", "remove it"
                )
            try:
                kind.model_validate(element)
            except ValidationError as error:
                _report(f"{self._row.where}, $.{name}[{number}]", error, self._reader)
        return elements

    def _filled(self, name: str, number: int) -> Json:
        """Return the fields that follow from the place in the list."""
        story_id = self._story.id
        filled: dict[str, Json] = {
            "scenes": {"story_id": story_id, "scene_index": number},
            "transitions": {"story_id": story_id, "from_scene": number, "to_scene": number + 1},
            "questions": {"story_id": story_id, "question_id": f"{story_id}_q{number:02d}"},
            "variants": {
                "variant_id": f"{story_id}_v{number}",
                "base_story_id": story_id,
                "pair_id": f"{story_id}_pair{number}",
                "has_variant": True,
                "subset": None,
            },
        }
        return filled[name]

    def _check_fit(self, lists: Mapping[str, list[Json]], *, narrated: bool) -> None:
        scenes = lists.get("scenes")
        if scenes is None:
            for name in (*sorted(lists), *((NARRATED,) if narrated else ())):
                self._problem(name, "scenes beside it", "none", "give the scenes that it refers to")
            return
        for scene in scenes:
            if isinstance(scene.get("scene_text"), str):
                scene["scene_text"] = normalize_text(scene["scene_text"])
        texts = [scene.get("scene_text") or "" for scene in scenes]
        text = joined_scenes(texts) if narrated else self._story.normalized_text
        if len(texts) < 2 or scene_spans(text, texts) is None:
            self._problem(
                "scenes", "two or more scenes whose texts, in order, are the story", "texts that are not",
                "copy each scene's text from the story; white space does not count"
                f" ({NARRATED}: true where the scenes tell it in other words)",
            )  # fmt: skip
        transitions = lists.get("transitions")
        if transitions is not None and len(transitions) != len(scenes) - 1:
            self._problem(
                "transitions", f"{len(scenes) - 1}", f"{len(transitions)}", "one per pair of neighbours"
            )

    def _check_verdicts(self, checks: Json, given: Mapping[str, Json]) -> None:
        """Check the verdicts of the author: known codes, about parts that the record gives."""
        if not isinstance(checks, list):
            self._problem("checks", "a list of objects", type(checks).__name__, "write a JSON list")
            return
        for number, check in enumerate(checks):
            path = f"checks[{number}]"
            try:
                verdict = Verdict.model_validate(check)
            except ValidationError as error:
                _report(f"{self._row.where}, $.{path}", error, self._reader)
                continue
            if verdict.code not in CODES and not verdict.code.startswith(SCREEN):
                known = f"one of: {', '.join(CODES)}; or {SCREEN}..."
                self._problem(f"{path}.code", known, repr(verdict.code)[:60], "correct the code")
            elif not judges_part(verdict, given):
                self._problem(
                    f"{path}.path", f"the path of {part_of(verdict.code)} that the record gives",
                    repr(verdict.path)[:60], "give that part, or leave the verdict out",
                )  # fmt: skip


SPEC = StageSpec(
    name="load_stories",
    version=8,
    shape="expand",
    reads=("sources",),
    writes=("story", "source", "given", "answers", "edits", "withdrawn", "added_at"),
    libraries=("pyyaml",),
    settings=Settings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per story, in source order."""
    settings = tools.own(Settings)
    reader = Reader(settings.max_file_bytes)
    fields = read_sources(item["sources"], tools.paths, StoryRows(settings, reader))
    if reader.problems:
        raise InputError(reader.problems)
    for story_id, values in fields.items():
        yield Child(story_id, Made(values))


def identity(fields: Mapping[str, Json]) -> Json:
    """Return what makes a story the same story."""
    return fields["story"]


def read_sources(
    sources: Sequence[Mapping[str, Json]], paths: Sequence[Path], builder: StoryRows
) -> dict[str, dict[str, Json]]:
    """Return the fields of each story that the sources hold, in their order; problems go to the reader."""
    settings, reader = builder.settings, builder.reader
    rows: dict[str, list[Row]] = {"stories": [], "records": [], "answers": [], "edits": []}
    for number, (source, path) in enumerate(zip(sources, paths, strict=True)):
        for row in reader.rows(path):
            if source["role"] != "stories":
                rows[source["role"]].append(row)
            else:
                builder.add(row, number)
    stories = builder.stories
    if len(stories) > settings.max_stories:
        reader.problem(
            "the sources", f"at most {settings.max_stories} stories", f"{len(stories)}",
            "build them in parts, or raise load_stories.max_stories",
        )  # fmt: skip
    # Records and edits of stories that could not be read would only repeat the first problem.
    known = stories if not reader.problems else {}
    given = read_given(rows["records"] if known else (), known, reader)
    answers = read_answers(rows["answers"] if known else (), known, reader)
    edits, withdrawn = read_edits(rows["edits"] if known else (), known, reader)
    return {
        story_id: {
            "story": story.as_json(),
            "source": details.as_json() if (details := builder.details.get(story_id)) else None,
            "given": given.get(story_id),
            "answers": answers.get(story_id, []),
            "edits": edits.get(story_id, []),
            "withdrawn": withdrawn.get(story_id),
            "added_at": sources[builder.sources[story_id]].get("added_at"),
        }
        for story_id, story in stories.items()
    }
