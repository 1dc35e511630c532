"""A step: one drafted field of a record, and the one way in which every such field comes about.

What the author gave stands; else the rules draft it, or a model is asked once, as the settings of the step
say, and its reply is read back or sent back once. A step is a stage of the engine: it has the face that
:mod:`fabula.engine.stage` describes. A pipeline names it as ``module:NAME``, or its module
where it is called ``STEP``.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from ..engine.stage import (
    MOST_REPAIRS,
    UNUSABLE,
    Ask,
    BadReply,
    Item,
    Made,
    NoAnswer,
    Outcome,
    Rejected,
    StageSpec,
    Tools,
)
from ..errors import ConfigError
from ..models.chat import Message, Part
from ..models.spec import ModelSettings, parse_spec
from ..prompts.loader import load_prompt, read_prompt
from ..schemas.canonical import Json, jsonl_lines, write_atomic
from ..schemas.plugins import plugins
from ..schemas.text import contains_phrase, normalize_answer, normalize_text
from ..schemas.values import Issue

# -- Asking a model with one prompt, and what all readers of replies share: gathering problems, tidying texts
#
# A reader is given JSON that satisfies the prompt's schema. It never trusts the reply with anything that is
# known otherwise: ids and scene texts are filled in from the draft, numbers only choose among what is there.
# A reply in the wrong language is known by the script that it is written in.

T = TypeVar("T")

LONGEST_TAG = 35
"""Characters of a language tag that are shown; longer ones are private extensions."""

LONGEST_TEXT = 1000
"""Most characters of one field."""

LONGEST_LIST = 30
"""Most entries of one list of words or answers."""

_SHOWN = 8
_GAP = re.compile(r"\.{2,}|…")


@dataclass(frozen=True, slots=True)
class Drafted(Generic[T]):
    """A part of a record, and who made it."""

    value: T  # the part
    maker: str  # what the producer sidecar says: ``rules@1``, or the model and the prompt


async def ask(
    tools: Tools, prompt_id: str, read: Callable[[Json], T], pictures: Sequence[Part] = (),
    repairs: int = MOST_REPAIRS, /, **inputs: Json,
) -> Drafted[T]:  # fmt: skip
    """Return a model's answer to a prompt.

    ``tools``: what the stage may use; its settings name the model, its asker must be there.
    """
    settings = tools.own(ModelSettings)
    assert tools.asker is not None, "a stage whose settings name a model is given an asker"
    own = getattr(settings, "prompts", {}).get(prompt_id)
    prompt = load_prompt(prompt_id) if own is None else read_prompt(prompt_id, own.encode("utf-8"))
    request = prompt.request(settings, tools.seed, **inputs)
    if pictures:
        *before, last = request.messages
        request = replace(request, messages=(*before, Message(last.role, (*pictures, *last.parts))))
    answer = await tools.asker.ask(Ask(request, read, prompt.label, repairs, settings.sample))
    return Drafted(answer.value, ", ".join([f"{public_name(settings)} via {prompt.label}", *answer.notes]))


def public_name(settings: ModelSettings) -> str:
    """Return a model's spec for published records; a server's address is nobody else's business."""
    return parse_spec(settings.model or "").public


def language(story: Json) -> str:
    """Return the language tag of a story, cut to the length of a usual one."""
    return str(story["language"])[:LONGEST_TAG]


class Problems:
    """Problems of one reply, told to the model all at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note a problem, worded so that the model can act on it."""
        self.found.append(problem)

    def add_issues(self, issues: Iterable[Issue]) -> None:
        """Note what rules of ``fabula validate`` found."""
        self.found += [f"{issue.path}: {issue.message}" for issue in issues]

    def check_script(self, story: Json, values: Json) -> None:
        """Note it if the texts in some values are not in the story's script."""
        problem = script_problem(story["normalized_text"], story["language"], " ".join(texts_in(values)))
        if problem is not None:
            self.add(problem)

    def settle(self) -> None:
        """Do nothing if no problem was noted."""
        if not self.found:
            return
        more = len(self.found) - _SHOWN
        raise BadReply("; ".join(self.found[:_SHOWN]) + (f"; and {more} more" if more > 0 else ""))


def texts_in(values: Json) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from texts_in(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from texts_in(value)


def needed(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> str:
    """Return a text of an entry in its normal form; note it where it is empty or too long."""
    text = normalize_text(str(entry[name]))
    if not normalize_answer(text):
        problems.add(f"{where}: {name} says nothing")
    elif len(text) > LONGEST_TEXT:
        problems.add(f"{where}: {name} has {len(text)} characters; one sentence is asked for")
    return text


def optional(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> str | None:
    """Return a text of an entry in its normal form, None for null and for nothing."""
    if entry[name] is None or not normalize_answer(entry[name]):
        return None
    return needed(entry, name, where, problems)


def is_told(words: str | None, text: str) -> bool:
    """Return whether words that a reply copies, pieces joined by dots, stand in a text, each piece whole."""
    plain = normalize_answer(text)
    pieces = [normalize_answer(piece) for piece in _GAP.split(words or "")]
    return any(pieces) and all(contains_phrase(plain, piece) for piece in pieces if piece)


def told_feeling(entry: Mapping[str, Json], text: str, where: str, problems: Problems) -> str | None:
    """Return the emotion of an entry where the words that it copies stand in the text; else None."""
    return optional(entry, "emotion", where, problems) if is_told(entry["emotion_words"], text) else None


def listed(entry: Mapping[str, Json], name: str, where: str, problems: Problems) -> list[str]:
    """Return a list of texts in their normal form, without empty and repeated ones."""
    kept: dict[str, str] = {}
    for text in map(normalize_text, entry[name]):
        kept.setdefault(normalize_answer(text), text)
    kept.pop("", None)
    if len(kept) > LONGEST_LIST or any(len(text) > LONGEST_TEXT for text in kept.values()):
        problems.add(f"{where}: {name} is too long; a few short phrases are asked for")
    return list(kept.values())


def by_number(entries: Sequence[Json], key: str, numbers: Sequence[int], what: str) -> list[Json]:
    """Return the entries with given numbers, in the order of these; see :func:`by_key`."""
    return by_key(entries, key, numbers, f"{what} {_range(numbers)}" if numbers else f"no {what}")


def by_key(entries: Sequence[Json], key: str, wanted: Sequence[Json], what: str) -> list[Json]:
    """Return the entries with given values of a key, in the order of these.

    ``wanted``: the values that there must be, each once.
    """
    listed = [entry[key] for entry in entries]
    if sorted(listed) != sorted(wanted):
        shown = ", ".join(map(str, listed[:20])) or "none"
        raise BadReply(
            f"expected {what}, each once: the values of {key} must be"
            f" {', '.join(map(str, wanted[:20])) or 'none'}; found {shown}"
        )
    by_value = {entry[key]: entry for entry in entries}
    return [by_value[value] for value in wanted]


def _range(numbers: Sequence[int]) -> str:
    whole = list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]} to {numbers[-1]}" if whole and len(numbers) > 1 else ", ".join(map(str, numbers))


def check_count(entries: Sequence[Json], count: int, what: str) -> None:
    if len(entries) != count:
        raise BadReply(f"expected exactly {count} {what}, found {len(entries)}")


MAIN_SHARE = 0.6
"""Share of a story's letters from which on its script counts as settled."""

LEAST_SHARE = 0.5
"""Share of a reply's letters that must be in the story's script."""

LEAST_LETTERS = 24
"""A reply with fewer letters is not judged."""

# Japanese mixes the three, and any of them may be missing from a short text.
_ALIKE = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC"), "HAN AND KANA")


@lru_cache(maxsize=4096)
def _script(char: str) -> str | None:
    if not char.isalpha():
        return None
    word = unicodedata.name(char, "").replace("-", " ").partition(" ")[0]
    return _ALIKE.get(word, word) or None


def _count(text: str) -> Counter[str]:
    return Counter(script for char in text if (script := _script(char)) is not None)


def main_script(text: str) -> str | None:
    """Return the script of most letters of a text, such as ``LATIN``; None where none clearly leads."""
    counts = _count(text)
    if not counts:
        return None
    script, number = counts.most_common(1)[0]
    return script if number >= MAIN_SHARE * counts.total() else None


def script_problem(story: str, language: str, reply: str) -> str | None:
    """Return what is wrong with the script of a reply about a story, or None.

    Languages that share a script are not told apart.
    """
    wanted, counts = main_script(story), _count(reply)
    if wanted is None or counts.total() < LEAST_LETTERS or counts[wanted] >= LEAST_SHARE * counts.total():
        return None
    letters = counts.most_common(1)[0][0]
    return (
        f"the values are mostly in {letters.lower()} letters, the story (language {language}) in"
        f" {wanted.lower()}: write every value in the language and script of the story"
    )


# --

PLANNERS = ("rules", "model")
"""Names that a planner setting may have."""
GROUP = "fabula.steps"
"""Entry points of this group add steps, or say who drafts one of ours; the object is a :class:`Step`."""
ADDED = "added_steps.jsonl"
"""File of a run: what the steps that packages add drafted, one line for each item."""
RULES = "rules@1"
"""The producer of what our rules draft."""


class Worded(ModelSettings):
    """Settings of a stage whose prompts may be asked in words of the user."""

    prompts: Mapping[str, str] = Field(
        default_factory=dict,
        exclude_if=lambda prompts: not prompts,
        description="Id of a prompt -> the whole file that is asked with in its place; see --prompts.",
    )


class PlannerSettings(Worded):
    """Settings of a step: who drafts. A model is asked only where ``planner`` says so."""

    planner: Literal["rules", "model", "rehearsal"] = "rules"

    @field_validator("planner")
    @classmethod
    def _model_is_named(cls, planner: str, info: ValidationInfo) -> str:
        if planner == "model" and info.data.get("model", "") is None:
            raise PydanticCustomError(
                "model_missing",
                "rules, or model together with a model spec in the setting model of this stage",
            )
        if planner == "rehearsal":
            raise PydanticCustomError("planner_unknown", "rules or model; a rehearsal is never a build")
        return planner

    @property
    def rehearsed(self) -> bool:
        """Whether a model's draft is only to be stood in for, in number and length; nothing of it is kept."""
        return self.planner == "rehearsal"

    def models(self) -> tuple[str, ...]:
        """Return the specs of all models that the stage asks: none for the rules."""
        return super().models() if self.planner == "model" else ()


def check_planner(name: str) -> None:
    if name not in PLANNERS:
        near = "".join(f"; did you mean {close}?" for close in get_close_matches(name, PLANNERS, 1))
        raise ConfigError(
            f"planner {name}", what=f"there is no such planner{near}",
            fix="use --planner rules, or --planner model with --model",
        )  # fmt: skip


class Unfit(Exception):
    """Nothing can be drafted for an item: one of the reject codes of the step, and the reason."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


S = TypeVar("S")
P = TypeVar("P", bound=PlannerSettings)


def _nothing(sketch: Any, settings: Any) -> Json:  # noqa: ANN401 - the face of a step's functions
    return None


def _as_drafted(drafted: Json, sketch: Any, settings: Any) -> Json:  # noqa: ANN401
    return drafted


@dataclass(frozen=True)
class Step(Generic[S, P]):
    """One drafted field of one kind of record, and the stage that drafts it.

    All functions take ``(sketch, settings)``: the record as far as it is drafted, and the step's settings.
    They are pure; any but ``read`` may raise :class:`Unfit`.
    """

    id: str  # kind and name of the step, such as ``shots/plan_shots``; its name is that of its stage
    version: int  # of the stage: to be raised whenever the code changes what can come out
    writes: tuple[str, ...]  # the drafted field; or several, of which the value then is a mapping
    reads: tuple[str, ...]  # fields of the item that the sketch is made of
    sketch: Callable[[Item], S]  # makes it
    rules: Callable[[S, P], Json]  # what can be drafted without a model; None where that is nothing
    # the inputs of the prompt; None where there is nothing to ask, and the rules know all there is
    show: Callable[[S, P], Mapping[str, Json] | None] = _nothing
    # ``read(reply, sketch, settings)``: the value of a reply that satisfies the prompt's schema; raises
    # :class:`~fabula.engine.stage.BadReply` with words that the model can act on
    read: Callable[[Json, S, P], Json] = _as_drafted
    # what the author gave, if that is all of it; None where something is left to draft. What an earlier step
    # drafted together with other fields comes as :class:`Drafted`.
    given: Callable[[S, P], Json] = _nothing
    # ``settle(drafted, sketch, settings)``: the value that is kept of what was drafted, with what the author
    # gave of it; not called for what ``given`` returns
    settle: Callable[[Json, S, P], Json] = _as_drafted
    # for a step that asks several questions, in place of ``show`` and ``read``
    ask: Callable[[Tools, S], Awaitable[Drafted[Json]]] | None = None
    by: str = ""  # the field that says who drafted it; null where nobody did
    asks: tuple[str, ...] = ()  # ids of its prompts, if they are not the one of its own id
    # the type of its settings
    settings: type[P] = PlannerSettings  # type: ignore[assignment]
    # what it may raise Unfit with, and what each code means
    reject_codes: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)  # code -> what keeps such an item
    libraries: tuple[str, ...] = ()  # distributions whose version is part of the result's key
    prompts: tuple[str, ...] = ()  # prompts that the rules use, too
    maker: str = RULES  # whose rules they are, as producers name them
    # whether later steps can do without a model's draft: where its replies are of no use, the step has what
    # rules draft, the item goes on, and the run says so
    spare: bool = False

    @property
    def SPEC(self) -> StageSpec:  # noqa: N802 - the face of a stage
        return StageSpec(
            name=self.id.rpartition("/")[2],
            version=self.version,
            shape="map",
            reads=self.reads,
            writes=(*self.writes, self._by),
            libraries=self.libraries,
            reject_codes=self.reject_codes,
            keep=self.keep,
            settings=self.settings,
            prompts=self.prompts,
            asks=self._asks,
        )

    @property
    def _asks(self) -> tuple[str, ...]:
        asking = self.ask is not None or self.show is not _nothing
        return self.asks or ((self.id,) if asking else ())

    @property
    def _by(self) -> str:
        return self.by or f"{self.writes[0]}_by"

    async def run(self, item: Item, tools: Tools) -> Outcome:
        """Return the field and who drafted it; the function of its stage."""
        settings, missed = tools.own(self.settings), None
        try:
            sketch = self.sketch(item)
            value, maker = self.given(sketch, settings), None
            if isinstance(value, Drafted):
                value, maker = value.value, value.maker or None
            elif value is None:
                try:
                    drafted = await self.draft(sketch, tools)
                except NoAnswer as none:
                    if not self.spare or none.code not in UNUSABLE:
                        raise
                    drafted, missed = self._ruled(sketch, settings, self.maker), none
                value, maker = self.settle(drafted.value, sketch, settings), drafted.maker or None
        except Unfit as unfit:
            return Rejected(unfit.code, unfit.reason)
        fields = {self.writes[0]: value} if len(self.writes) == 1 else value
        return Made({**fields, self._by: maker}, missed)

    async def draft(self, sketch: S, tools: Tools) -> Drafted[Json]:
        """Return what is drafted, by whom the settings name; the maker of nothing (None) is ""."""
        settings = tools.own(self.settings)
        maker = self.maker
        if settings.planner == "model" and self._asks:
            if self.ask is not None:
                return await self.ask(tools, sketch)
            shown = self.show(sketch, settings)
            if shown is not None:
                return await ask(
                    tools, self._asks[0], lambda reply: self.read(reply, sketch, settings), **shown
                )
            maker = f"{settings.model}"
        return self._ruled(sketch, settings, maker)

    def _ruled(self, sketch: S, settings: P, maker: str) -> Drafted[Json]:
        value = self.rules(sketch, settings)
        return Drafted(value, "" if value is None else maker)


@cache
def package_steps(kind: str) -> Mapping[str, tuple[str, Step[Any, Any]]]:
    """Return name -> place and value of the steps that installed packages have for a kind."""
    steps: dict[str, tuple[str, Step[Any, Any]]] = {}
    for entry in plugins(GROUP):
        of, _, name = entry.name.partition("/")
        if of != kind:
            continue
        step, package = entry.load(), "" if entry.dist is None else entry.dist.name
        if not isinstance(step, Step) or step.id != entry.name or package not in step.libraries:
            raise ConfigError(
                f"entry point {entry.name} of {GROUP}",
                what=f"it is no Step with this id, or {package} is not among the Step's libraries",
                fix=f"correct {entry.value}; CONTRIBUTING.md shows how",
            )
        steps[name] = (entry.value, step)
    return steps


def with_packages(kind: str, stages: Sequence[str], before: str) -> tuple[str, ...]:
    """Return the places of a kind's stages with those of packages.

    A step of the name of one of ours takes its place; others come before the stage named.
    """
    steps = {name: address for name, (address, _) in package_steps(kind).items()}
    places = {stage.replace(":", ".").rpartition(".")[2].lower(): stage for stage in stages}
    added = [address for name, address in steps.items() if name not in places]
    at = list(places).index(before)
    kept = [steps.get(name, address) for name, address in places.items()]
    return (*kept[:at], *added, *kept[at:])


def added_fields(kind: str, stages: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that steps of packages write beside ours."""
    names = {stage.replace(":", ".").rpartition(".")[2].lower() for stage in stages}
    added = (step for name, (_, step) in package_steps(kind).items() if name not in names)
    return tuple(written for step in added for written in step.SPEC.writes)


def keeping_added(folder: Path, items: Iterable[Item], added: Sequence[str]) -> Iterator[Item]:
    """Yield the items of a finished run; in the end write what packages' steps drafted, if there are any."""
    rows: list[Json] = []
    for item in items:
        rows.append({"id": item.id, **{name: item[name] for name in added}})
        yield item
    if added:
        write_atomic(folder / ADDED, jsonl_lines(rows))
