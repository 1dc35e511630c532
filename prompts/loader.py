"""Prompt templates: front matter, strict inputs, filters for data, and the hash that a run records."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError

from ..errors import ConfigError, InputError, MissingRequirement, UserError
from ..models.chat import ChatRequest, Message, ReplySchema, Role
from ..models.spec import ModelSettings
from ..schemas.canonical import Json, canonical_text, sha256_bytes, sha256_file, write_atomic
from ..schemas.values import Own, vocabulary

if TYPE_CHECKING:
    from jinja2 import Environment, Template

# -- The reply schema in a prompt's front matter: vocabularies filled in, strict form checked
#
# Services enforce only part of JSON Schema, and each another part. What is allowed here is what all of them
# take: closed objects with every property required, arrays, scalars, enumerations and ``anyOf``. What else a
# reply must satisfy is checked by whoever reads it.

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_STRUCTURE = {
    "type",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "anyOf",
}
_LIMITS = {"minItems", "maxItems", "minimum", "maximum"}
_REFERENCE = frozenset(("vocabulary", "nullable", "description"))
_KNOWN_LATER = _LIMITS | {"enum"}


def reply_schema(
    prompt_id: str, declared: Mapping[str, Json], value_of: Callable[[str], Json] | None = None
) -> ReplySchema:
    filled = _settled(_filled(declared), value_of)
    problems = list(_problems(filled, "$"))
    if not isinstance(filled, dict) or filled.get("type") != "object":
        problems.insert(0, "$: the reply must be an object")
    if problems:
        raise ValueError(f"prompt {prompt_id}: reply schema: " + "; ".join(problems))
    return ReplySchema(prompt_id.replace("/", "_"), filled)


def depends_on_inputs(declared: Mapping[str, Json]) -> bool:
    """Return whether a limit or an enumeration of a declared schema is an expression over inputs."""
    return any(_expressions(declared))


def _expressions(node: Json) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in _KNOWN_LATER and isinstance(value, str):
                yield value
            else:
                yield from _expressions(value)
    elif isinstance(node, list):
        for entry in node:
            yield from _expressions(entry)


def _settled(node: Json, value_of: Callable[[str], Json] | None) -> Json:
    """Return a schema in which each expression has its value, or is left out where that is not known."""
    if isinstance(node, list):
        return [_settled(entry, value_of) for entry in node]
    if not isinstance(node, Mapping):
        return node
    settled: dict[str, Json] = {}
    for key, value in node.items():
        if key not in _KNOWN_LATER or not isinstance(value, str):
            settled[key] = _settled(value, value_of)
        elif value_of is not None and (known := value_of(value)) not in (None, []):
            settled[key] = known
    return settled


def _filled(node: Json) -> Json:
    if isinstance(node, list):
        return [_filled(entry) for entry in node]
    if not isinstance(node, Mapping):
        return node
    if not isinstance(node.get("vocabulary"), str):
        return {key: _filled(value) for key, value in node.items()}
    if unknown := node.keys() - _REFERENCE:
        raise ValueError(f"beside vocabulary: unknown keys {sorted(unknown)}")
    try:
        values = vocabulary(node["vocabulary"]).values
    except KeyError as error:
        raise ValueError(str(error.args[0])) from error
    one_of: dict[str, Any] = {"type": "string", "enum": list(values)}
    # The form with anyOf is the only one for "or null" that every service takes.
    schema = {"anyOf": [one_of, {"type": "null"}]} if node.get("nullable") else one_of
    return schema | ({"description": node["description"]} if "description" in node else {})


def _problems(node: Json, path: str) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{path}: not a schema"
        return
    if unknown := node.keys() - _STRUCTURE - _LIMITS:
        yield f"{path}: keywords that not every service takes: {', '.join(sorted(unknown))}"
    if "anyOf" in node:
        for number, choice in enumerate(node["anyOf"]):
            yield from _problems(choice, f"{path}.anyOf[{number}]")
        return
    kinds = node.get("type")
    names = [str(name) for name in (kinds if isinstance(kinds, list) else [kinds])]
    if not names or any(name not in _TYPES for name in names):
        yield f"{path}: type must be one of {', '.join(_TYPES)}"
        return
    if "object" in names:
        yield from _object_problems(node, path)
    if "array" in names:
        yield from _problems(node.get("items"), f"{path}.items")
    allowed = tuple(kind for name in names for kind in _TYPES[name])
    for value in node.get("enum", ()):
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            yield f"{path}.enum: {value!r} is no {' or '.join(names)}; quote it"


def _object_problems(node: dict[str, Any], path: str) -> Iterator[str]:
    properties = node.get("properties")
    if not isinstance(properties, dict) or not properties:
        yield f"{path}: an object must list its properties"
        return
    if node.get("additionalProperties") is not False:
        yield f"{path}: an object must say additionalProperties: false"
    required = node.get("required")
    if not isinstance(required, list) or sorted(required) != sorted(properties):
        yield f"{path}: required must list every property: {', '.join(properties)}"
    for name, schema in properties.items():
        yield from _problems(schema, f"{path}.{name}")


# -- Prompt templates

MARK_LENGTH = 12


def fenced(text: str) -> str:
    """Return a text between marks that it cannot hold itself: the first digits of its own SHA-256.

    Whoever wrote the text would have to know its hash to write the closing mark into it. Twelve digits are
    enough against chance; should a text hold its own mark all the same, the mark is made longer.
    """
    sha256, length = sha256_bytes(text.encode("utf-8")), MARK_LENGTH
    while sha256[:length] in text and length < len(sha256):
        length += 4
    mark = sha256[:length]
    return f"<<<{mark}\n{text}\n{mark}>>>"


def numbered(texts: Sequence[str]) -> str:
    """Return texts one a line, each after its number from 1, as in ``[1] Once there was a fox``.

    Line breaks inside a text become spaces, so that no text can begin a line with a number of its own.
    """
    return "\n".join(f"[{number}] {' '.join(text.split())}" for number, text in enumerate(texts, start=1))


def as_json(value: Json) -> str:
    """Return a value as indented JSON with sorted keys, every script as it is."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)


FILTERS = {"fenced": fenced, "numbered": numbered, "as_json": as_json}
"""Filter name in templates -> function."""


_OPEN, _CLOSE = "{#---\n", "\n---#}\n"
_USER = "\n--- user ---\n"
ENDING = ".j2"

DEFAULT_MAX_TOKENS = 4096
"""Most tokens of a reply where neither the settings nor the prompt say."""


class PromptCard(Own):
    """The front matter of a prompt file."""

    id: str  # the file's path below ``prompts/``, without ending
    version: int = Field(ge=1)  # raised whenever the file changes
    purpose: str  # what it asks for, in one sentence
    inputs: tuple[str, ...]  # names of the values that it takes, exactly these
    source: str  # where its definitions come from
    # what the reply must satisfy, as :func:`.replies.reply_schema` reads it; None for free text
    reply: Mapping[str, Any] | None = None
    max_tokens: int | None = Field(default=None, ge=1)  # most tokens that the reply may have
    # tokens that a usual reply has; what a cost estimate counts with
    typical_tokens: int | None = Field(default=None, ge=1)
    # what its calls are, where an estimate is to tell them apart from those of the stage
    counted_as: str | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    card: PromptCard  # its front matter
    sha256: str  # hash of the whole file, in hexadecimal; what a run records
    parts: tuple[tuple[Role, "Template"], ...]  # the template of each message, by role
    # the schema that a reply must satisfy, without what depends on inputs; None for free text
    reply: ReplySchema | None = None

    @property
    def label(self) -> str:
        """The prompt as it stands in provenance: ``id@version#`` and 12 digits of its hash."""
        return f"{self.card.id}@{self.card.version}#{self.sha256[:12]}"

    def told(self, words: str) -> "Prompt":
        """Return the same prompt with other words in the place of its system message."""
        fixed = _environment().from_string("{{ words }}", globals={"words": words})
        return replace(self, parts=(("system", fixed), *(part for part in self.parts if part[0] != "system")))

    def render(self, **inputs: Json) -> str:
        """Return the text of a prompt of one part for exactly the declared inputs, stripped."""
        self._check(inputs)
        if len(self.parts) > 1:
            raise ValueError(f"prompt {self.card.id} has a system message; use messages()")
        return self.parts[0][1].render(**inputs).strip()

    def messages(self, **inputs: Json) -> tuple[Message, ...]:
        """Return the messages for exactly the declared inputs: the system message, if any, and the user's."""
        self._check(inputs)
        return tuple(Message(role, (part.render(**inputs).strip(),)) for role, part in self.parts)

    def request(self, settings: ModelSettings, seed: int | None, /, **inputs: Json) -> ChatRequest:
        """Return the request that a stage sends.

        ``settings``: the stage's; they must name a model. Their ``max_tokens`` goes before the prompt's.
        """
        if settings.model is None:
            raise ValueError(f"prompt {self.card.id}: the settings name no model")
        return ChatRequest(
            model=settings.model,
            messages=self.messages(**inputs),
            schema=self.reply_to(inputs),
            temperature=settings.temperature,
            seed=seed,
            max_tokens=settings.max_tokens or self.card.max_tokens or DEFAULT_MAX_TOKENS,
        )

    def reply_to(self, inputs: Mapping[str, Json]) -> ReplySchema | None:
        """Return the schema of the reply to these inputs, by which counts and choices are known."""
        if self.reply is None or self.card.reply is None or not depends_on_inputs(self.card.reply):
            return self.reply
        value_of = _environment().compile_expression
        return reply_schema(self.card.id, self.card.reply, lambda text: value_of(text)(**inputs))

    def _check(self, inputs: Mapping[str, Json]) -> None:
        if inputs.keys() != set(self.card.inputs):
            raise ValueError(
                f"prompt {self.card.id} takes exactly the inputs {sorted(self.card.inputs)},"
                f" not {sorted(inputs)}"
            )


def prompt_ids() -> tuple[str, ...]:
    return tuple(sorted(_ids_in(files(__package__), "")))


def _ids_in(folder: Traversable, above: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.name.endswith(ENDING):
            yield above + entry.name.removesuffix(ENDING)
        elif entry.is_dir():
            yield from _ids_in(entry, f"{above}{entry.name}/")


def prompt_source(prompt_id: str) -> bytes:
    """Return the bytes of a prompt's file; ``package:name`` is one of another package."""
    package, colon, name = prompt_id.rpartition(":")
    if not colon and name not in prompt_ids():
        raise KeyError(f"no prompt {prompt_id!r}; there are: {', '.join(prompt_ids())}")
    try:
        return files(package or __package__).joinpath(*f"{name}{ENDING}".split("/")).read_bytes()
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise KeyError(f"no prompt {prompt_id!r}: {error}") from error


@cache
def load_prompt(prompt_id: str) -> Prompt:
    return read_prompt(prompt_id, prompt_source(prompt_id))


def read_prompt(prompt_id: str, data: bytes) -> Prompt:
    import yaml

    head, mark, body = data.decode("utf-8").replace("\r\n", "\n").partition(_CLOSE)
    if not mark or not head.startswith(_OPEN):
        raise ValueError(
            f"prompt {prompt_id}: the file must start with front matter between {{#--- and ---#}}"
        )
    card = PromptCard.model_validate(yaml.safe_load(head.removeprefix(_OPEN)))
    if card.id != prompt_id:
        raise ValueError(f"prompt {prompt_id}: its front matter says id {card.id!r}")
    # Split as a template: once rendered, a story that holds this line would be taken for the user's message.
    system, mark, user = f"\n{body}".partition(_USER)
    sources: list[tuple[Role, str]] = [("system", system), ("user", user)] if mark else [("user", body)]
    environment = _environment()
    return Prompt(
        card=card,
        sha256=sha256_bytes(data),
        parts=tuple((role, environment.from_string(text)) for role, text in sources if text.strip()),
        reply=None if card.reply is None else reply_schema(prompt_id, card.reply),
    )


def other_form(prompt_id: str, path: Path) -> str | None:
    """Return why a file cannot be asked with in place of a prompt of ours, or None where it can."""
    from jinja2 import TemplateSyntaxError, meta

    ours = load_prompt(prompt_id)
    try:
        own = read_prompt(prompt_id, path.read_bytes())
        body = path.read_text("utf-8").partition(_CLOSE)[2]
        unknown = meta.find_undeclared_variables(_environment().parse(body)) - set(ours.card.inputs)
    except (OSError, ValueError, TemplateSyntaxError) as error:
        return " ".join(str(error).split())[:300]
    if own.card.inputs != ours.card.inputs:
        return f"its inputs are {', '.join(own.card.inputs)}; they must stay {', '.join(ours.card.inputs)}"
    if unknown:
        return f"it uses {', '.join(sorted(unknown))}, which is none of its inputs"
    if own.card.reply != ours.card.reply:
        return "the form of its reply is another one; it must stay, as the reply is read by it"
    return None


@cache
def _environment() -> "Environment":
    import jinja2

    # A prompt is plain text for a model, not HTML: escaping would change the story.
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    environment.filters.update(FILTERS)
    return environment


# -- Sets of texts in the words of others, for judges: folders with a manifest and a hash of each text
#
# A set is a folder with ``set.json`` and its texts. Official sets are fetched by :mod:`.fetching` and lie
# in the user's cache; any folder of the same form is a set, too.

MANIFEST = "set.json"
_NAME = r"^[a-z][a-z0-9_-]{0,63}$"
_LONGEST = 1_000_000
"""Most bytes of a text."""


class TextSet(Own):
    """The texts of a set, as a stage's settings hold them: a run needs neither folder nor cache."""

    name: str = Field(pattern=_NAME)  # such as ``storyeval``
    commit: str = Field(pattern=r"^[0-9A-Za-z._-]{1,64}$")  # of the repository that the texts come from
    texts: Mapping[str, str]  # name -> text
    # names of the texts that are templates: ``{slot}`` stands for a value, ``{{`` for a brace. Every other
    # text is used as it is.
    templates: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        if name not in self.texts:
            raise ConfigError(
                f"prompt set {self.name}", what=f"it has no text {name!r}",
                fix=f"fetch the set again; it has {', '.join(sorted(self.texts))}",
            )  # fmt: skip
        return self.texts[name]

    def fill(self, name: str, slots: Mapping[str, object]) -> str:
        """Return a template with its slots filled, each value as ``str`` gives it.

        Other texts as they are.
        """
        text = self.text(name)
        if name not in self.templates:
            return text
        filled = []
        for literal, slot, _, _ in Formatter().parse(text):
            filled.append(literal)
            if slot is not None:
                if slot not in slots:
                    raise ConfigError(
                        f"prompt set {self.name}: {name}", what=f"nothing fills its slot {{{slot}}}",
                        fix=f"use the slots {', '.join(sorted(slots))}; write a brace twice",
                    )  # fmt: skip
                filled.append(str(slots[slot]))
        return "".join(filled)

    def data(self, name: str) -> Json:
        return json.loads(self.text(name))

    def label(self, name: str) -> str:
        """Return a text as it stands in provenance: ``set/name@commit#`` and 12 digits of its SHA-256."""
        return f"{self.name}/{name}@{self.commit}#{sha256_bytes(self.text(name).encode())[:12]}"

    def labels(self) -> dict[str, str]:
        """Return ``set/name`` -> label of every text, sorted."""
        return {f"{self.name}/{name}": self.label(name) for name in sorted(self.texts)}


class SetText(Own):
    """What a manifest says of a text."""

    file: str
    sha256: str
    template: bool = False
    source: str = ""


class SetManifest(Own):
    """``set.json``: where a set comes from, and what it holds."""

    form: Literal["fabula prompt set 1"] = "fabula prompt set 1"
    name: str = Field(pattern=_NAME)
    repository: str = ""
    commit: str
    commit_checked: bool = False
    licence: str | None = None
    sources: Mapping[str, str] = Field(default_factory=dict, description="File it was read from -> SHA-256.")
    texts: Mapping[str, SetText]


def cache_folder() -> Path:
    """Return the folder of the user's cache in which official sets lie."""
    from platformdirs import user_cache_path

    return user_cache_path("fabula") / "prompts"


def read_set(folder: Path) -> TextSet:
    manifest = read_set_manifest(folder)
    texts, problems = {}, []
    for name, text in manifest.texts.items():
        path = folder / text.file
        if ".." in Path(text.file).parts or Path(text.file).is_absolute():
            problems.append(UserError(str(path), what="it lies outside the set", fix="fetch the set again"))
        elif not path.is_file() or path.stat().st_size > _LONGEST:
            problems.append(UserError(str(path), what="it is not there", fix="fetch the set again"))
        elif sha256_file(path) != text.sha256:
            problems.append(
                UserError(
                    str(path), what="it was changed after the set was made",
                    fix=f"fetch the set again; for a wording of yours give the set another name, and"
                    f" the text its new SHA-256, in {MANIFEST}",
                )
            )  # fmt: skip
        else:
            texts[name] = path.read_bytes().decode("utf-8")
    if problems:
        raise InputError(problems)
    templates = tuple(sorted(name for name, text in manifest.texts.items() if text.template))
    return TextSet(name=manifest.name, commit=manifest.commit, texts=texts, templates=templates)


def read_set_manifest(folder: Path) -> SetManifest:
    path = folder / MANIFEST
    try:
        return SetManifest.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError, ValidationError) as error:
        what = "there is none" if not path.is_file() else f"this is no manifest of a set: {_line(error)}"
        fix = "give a folder that `fabula prompts fetch` wrote, or one of the same form"
        raise InputError.one(str(path), what=what, fix=fix) from error


def write_set(folder: Path, manifest: SetManifest, texts: Mapping[str, str], licence: bytes | None) -> None:
    """Write a set; the manifest comes last, so that half a set is none."""
    (folder / "texts").mkdir(parents=True, exist_ok=True)
    for name, text in manifest.texts.items():
        write_atomic(folder / text.file, [texts[name].encode("utf-8")])
    if licence is not None:
        write_atomic(folder / "LICENSE", [licence])
    write_atomic(folder / MANIFEST, [canonical_text(manifest.as_json()).encode("utf-8")])


def official_set(name: str, commit: str) -> TextSet:
    """Return an official set of the user's cache."""
    folder = cache_folder() / f"{name}@{commit}"
    if not (folder / MANIFEST).is_file():
        # "paper" stands for a commit where no code has the texts
        source = " --from paper.md" if commit == "paper" else ", or offline with --from CLONE"
        raise MissingRequirement(
            f"official prompts of {name}", what=f"{name}@{commit} is not in {cache_folder()}",
            fix=f"fetch them once: fabula prompts fetch {name}{source}",
        )  # fmt: skip
    return read_set(folder)


def check_texts(texts: TextSet, needed: Iterable[str], where: str) -> None:
    missing = [name for name in needed if name not in texts.texts]
    if missing:
        raise ConfigError(
            where, what=f"the set {texts.name} lacks {', '.join(missing)}",
            fix="give a set for this kind of evaluation",
        )  # fmt: skip


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
