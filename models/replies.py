"""A reply's text into the JSON that its schema promises; nothing is guessed silently.

Thinking blocks, code fences and prose around one JSON object are taken off. Where the object is complete
but not valid JSON, json-repair mends it and the reply says so. Text that was cut off, or holds several
objects, is malformed: mending it would invent content or choose between answers.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..schemas.canonical import Json, canonical_text
from ..schemas.paths import format_path
from .chat import Reply, ReplySchema

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

LONGEST_REPLY = 2_000_000
"""Most characters that are read."""

MOST_REPAIR_WORK = 20_000_000
"""Most characters times quotation marks of a text to be mended: the time that json-repair takes grows with
both, to minutes for some texts of 100,000 characters, and stays about a second with this."""

REPAIRED = "json_repaired"

EMPTY, CUT_OFF, ENDLESS, OUT_OF_FORM, SENSELESS = (
    "empty", "cut off", "endless", "out of form", "in form and without sense",
)  # fmt: skip
"""What a reply of no use is, as runs count it; refused and blocked ones bear the name of their outcome."""
_TAIL, _LONGEST_PERIOD, _LEAST_TIMES, _LEAST_TAIL = 2400, 400, 4, 120
"""Characters of the end of a text that are looked at for what repeats itself, the longest piece that may, how
often it has to, and how many characters that must be at least."""
_SHOWN_PROBLEMS = 5
_SHOWN_VALUE = 80
_THINKING = re.compile(r"\s*<(think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
_END_OF_THINKING = re.compile(r"</(?:think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
_OBJECT = re.compile(r"\{\s*[\"'}A-Za-z_]")
_STRICT_OBJECT = re.compile(r'\{\s*["}]')
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Malformed(ValueError):
    """A reply is not what was asked for.

    Attributes:
        problem: what is wrong, worded so that the model can act on it; quotes short pieces of the reply.
        what: the name under which it is counted.
    """

    def __init__(self, problem: str, what: str = OUT_OF_FORM) -> None:
        super().__init__(problem)
        self.problem, self.what = problem, what


@dataclass(frozen=True, slots=True)
class Parsed:
    """A reply, read."""

    value: Json  # JSON that satisfies the schema; the text without thinking where there is no schema
    notes: tuple[str, ...] = ()  # ``("json_repaired",)`` where the JSON had to be mended


def parse_reply(text: str, schema: ReplySchema | None, *, strict: bool = True) -> Parsed:
    """Return what a reply says.

    ``schema``: what it must satisfy; None for free text.
    """
    if schema is None:
        if len(text) > LONGEST_REPLY:
            raise _too_long(text)
        return Parsed(_without_thinking(text).strip())
    value, notes = read_json(text)
    if strict:
        check_value(value, schema)
    return Parsed(value, notes)


def _too_long(text: str) -> Malformed:
    return Malformed(f"the reply has {len(text):,} characters; at most {LONGEST_REPLY:,} are read", ENDLESS)


def named_outcome(reply: Reply) -> str:
    """Return the name under which a reply is counted that is no text to read."""
    if reply.outcome != "truncated":
        return reply.outcome
    return ENDLESS if repeats_itself(reply.text) else CUT_OFF


def repeats_itself(text: str) -> bool:
    """Whether a text ends in one piece again and again, numbers aside: its model would not have stopped."""
    tail = re.sub(r"\d+", "0", text[-_TAIL:])
    for period in range(1, _LONGEST_PERIOD + 1):
        end = tail[-max(_LEAST_TIMES * period, _LEAST_TAIL) :]
        if len(end) >= max(_LEAST_TIMES * period, _LEAST_TAIL) and end[period:] == end[:-period]:
            return True
    return False


def check_value(value: Json, schema: ReplySchema) -> None:
    validator = _validator(schema)
    try:
        if validator.is_valid(value):
            return
        problems = [_problem(error) for error in islice(validator.iter_errors(value), _SHOWN_PROBLEMS)]
    except (ValueError, RecursionError):  # nested beyond what the validator reads
        raise Malformed("the JSON is nested too deeply") from None
    raise Malformed("; ".join(problems))


def read_json(text: str) -> tuple[Json, tuple[str, ...]]:
    """Return the JSON in a reply, and the notes about how it was read."""
    if len(text) > LONGEST_REPLY:
        raise _too_long(text)
    try:
        return _loads(text), ()
    except _NotJson:
        pass
    body = _without_thinking(text)
    complete, broken_at = _objects(body)
    if len(complete) + (broken_at is not None) > 1:
        raise Malformed("the reply holds more than one JSON object; answer with exactly one")
    if complete:
        return _loads(complete[0]), ()
    if broken_at is None:
        what = OUT_OF_FORM if body.strip() else EMPTY
        raise Malformed("the reply holds no JSON object; answer with one JSON object and nothing else", what)
    return _repaired(body[broken_at:]), (REPAIRED,)


class _NotJson(Exception):
    """The text is not one JSON document."""


def _loads(text: str) -> Json:
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise Malformed("the JSON is nested too deeply") from None
    except Malformed:
        raise
    except ValueError:
        raise _NotJson from None
    return _checked_text(value, text)


def _checked_text(value: Json, text: str) -> Json:
    # A lone surrogate can be written in JSON and in no file; escapes are rare, so the check is, too.
    if "\\u" in text and _LONE_SURROGATE.search(_dumped(value)):
        raise Malformed("the JSON holds half of a surrogate pair; write the character itself")
    return value


def _dumped(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # writing gives up a little earlier than reading
        raise Malformed("the JSON is nested too deeply") from None


def _no_constant(name: str) -> Json:
    raise Malformed(f"the JSON holds {name}, which JSON does not have")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise Malformed("the JSON holds a number that is too large")
    return value


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = next(name for name, count in names.items() if count > 1)
        raise Malformed(f"the key {_shown(twice)} stands twice in one object")
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_distinct)


def _without_thinking(text: str) -> str:
    body, position = text.lstrip("\ufeff"), 0
    while (start := _THINKING.match(body, position)) is not None:
        end = _END_OF_THINKING.search(body, start.end())
        if end is None:
            raise Malformed("the thinking never ends; answer after it", ENDLESS)
        position = end.end()
    body = body[position:]
    # Some servers put the opening mark into the prompt, so that a reply has only the closing one.
    end = _END_OF_THINKING.search(body)
    if end is not None and "{" not in body[: end.start()]:
        body = body[end.end() :]
    return body


def _objects(text: str) -> tuple[list[str], int | None]:
    """Return the complete JSON objects at the top level, and where one starts that cannot be read, if any."""
    complete: list[str] = []
    position = 0
    while (match := _STRICT_OBJECT.search(text, position)) is not None and len(complete) < 2:
        try:
            _, position = _DECODER.raw_decode(text, match.start())
        except RecursionError:
            raise Malformed("the JSON is nested too deeply") from None
        except Malformed:
            raise
        except ValueError:
            # What is inside a broken object is no object of its own.
            return complete, match.start()
        complete.append(text[match.start() : position])
    if not complete:
        loose = _OBJECT.search(text)
        return [], None if loose is None else loose.start()
    return complete, None


def _repaired(text: str) -> Json:
    body = text.rstrip()
    if body.endswith("```"):
        body = body.rstrip("`").rstrip()
    work = len(body) * (body.count('"') + body.count("'"))
    if work > MOST_REPAIR_WORK or not body.endswith("}") or not _closed(body):
        raise Malformed(_where_broken(body))
    import json_repair

    try:
        value = json_repair.loads(body, skip_json_loads=True)
        # Through the strict reader once more: it may have made infinities or surrogates.
        value = _loads(json.dumps(value))
    except (ValueError, RecursionError, _NotJson):
        raise Malformed(_where_broken(body)) from None
    if not isinstance(value, dict):
        raise Malformed(_where_broken(body))
    return value


def _closed(body: str) -> bool:
    """Return whether brackets match, and close only at the very end: one object, not cut off."""
    if body.count("{") != body.count("}") or body.count("[") != body.count("]"):
        return False
    depth = 0
    for match in re.finditer(r"[{}]", body):
        depth += 1 if match[0] == "{" else -1
        if depth <= 0:
            return match.end() == len(body)
    return False


def _where_broken(body: str) -> str:
    try:
        json.loads(body)
    except RecursionError:
        return "the JSON is nested too deeply"
    except ValueError as error:
        what = getattr(error, "msg", "it cannot be read")
        at = getattr(error, "pos", 0)
        return f"the JSON is broken after {_shown(body[max(0, at - 30) : at])}: {what}"
    return "the JSON is broken"


_KNOWN: dict[int, tuple[Any, "Draft202012Validator"]] = {}
_MOST_KNOWN = 256


def _validator(schema: ReplySchema) -> "Draft202012Validator":
    # By identity first: the same prompt hands over the same object, and hashing it costs more than checking.
    known = _KNOWN.get(id(schema.schema))
    if known is not None and known[0] is schema.schema:
        return known[1]
    validator = _compiled(canonical_text(schema.schema))
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[id(schema.schema)] = (schema.schema, validator)
    return validator


@lru_cache(maxsize=256)
def _compiled(text: str) -> "Draft202012Validator":
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(json.loads(text), offline=True)


def _problem(error: Any) -> str:  # noqa: ANN401 - no types exported
    path, kind = format_path(error.instance_path), error.kind
    found = _shown(error.instance)
    if kind.name == "required":
        return f"{path}: the key {_shown(kind.property)} is missing"
    if kind.name == "additionalProperties":
        names = ", ".join(_shown(name) for name in kind.unexpected[:3])
        return f"{path}: no key {names} was asked for"
    if kind.name == "enum":
        allowed = canonical_text(kind.options)
        return f"{path}: expected one of {allowed[:400]}, found {found}"
    if kind.name == "type":
        return f"{path}: expected {' or '.join(kind.types)}, found {found}"
    if kind.name in ("minItems", "maxItems"):
        bound = "at least" if kind.name == "minItems" else "at most"
        return f"{path}: expected {bound} {kind.limit} entries, found {len(error.instance)}"
    limit = getattr(kind, "limit", None)
    return f"{path}: breaks {kind.name}{'' if limit is None else f' {limit}'}, found {found}"


def _shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, dict | list) else ""
    # What cannot be seen, or turns the direction of a line around, stays an escape.
    text = "".join(person if person.isprintable() else json.dumps(person)[1:-1] for person in text)
    if not text:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return text if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}..."
