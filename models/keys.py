"""API keys, from the environment or ``.env``; and the removal of secrets from what leaves an adapter."""

import base64
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html.entities import html5
from pathlib import Path

from ..errors import MissingRequirement
from ..schemas.canonical import Json
from .options import ENV_REFERENCE, ModelOptions
from .spec import COMPATIBLE, ModelSpec

# -- Parts of secrets in texts: eight characters and more, in any case, with anything between them
#
# A text is reduced to its letters and digits (of ASCII, in lower case): spaces, line breaks, NULs of UTF-16
# and other separators are gone. What is left of a secret, of its base64 and of its hexadecimal is looked
# for in that. Most texts are done with after every fifth place was looked at: in eight characters, four
# begin there.
#
# What is like a word, alone or with a number, is no part before it has sixteen characters, nor are years
# and numbers in a row: they would be found in ordinary texts. What all keys of a service begin with
# (``sk-ant-api03-``) is none either.

LEAST, LEAST_OF_WORDS = 8, 16
"""Characters of the shortest part that is looked for, and of the shortest that may be a word or a number."""

_LOWER = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_OTHERS = bytes(code for code in range(256) if not (code < 128 and chr(code).isalnum()))
_ORDINARY = re.compile(
    r"(?!.*(?i:[b-df-hj-np-tv-xz]{4}))\d*(?:[A-Za-z][a-z]{4,}|[A-Z]{5,})\d*|(?:19|20)\d{6}"
)
_ROWS = "01234567890123456789-98765432109876543210"
_PUBLIC = re.compile(r"(?:[a-z]{1,8}[0-9]{0,2}[-_]){1,3}|AIza(?:Sy)?")
_NULS = ("\\x00", "\\u0000", "%00")
_NUL = re.compile(r"\\+x00|\\+u0000|%00")
"""What stands between the characters of UTF-16 where they are shown one by one."""
_SIGNS = ("\\x", "0x", "\\u00", "&#x")
_SIGN = re.compile(r"\\+x|\b0x|\\+u00|&#x")
"""What stands before two digits in hexadecimal."""


@dataclass(slots=True)
class _Codes:
    """What is looked for in one reading of a text."""

    # characters that are looked at; where a window is at least twice as long, one begins at each ``gram +
    # 1``-th place in it
    gram: int
    grams: set[bytes] = field(default_factory=set)  # all of that many that a secret has
    # part that counts -> where it stands: in which text, and where in it
    windows: dict[bytes, list[tuple[bytes, int]]] = field(default_factory=dict)
    lengths: set[int] = field(default_factory=set)  # the lengths of these parts

    def add(self, text: bytes, starts: Sequence[int], length: int) -> None:
        """Remember the parts of so many characters that begin at some places of a secret."""
        for start in starts:
            self.windows.setdefault(text[start : start + length], []).append((text, start))
        if starts:
            self.lengths.add(length)
            self.grams |= {text[at : at + self.gram] for at in range(len(text) - self.gram + 1)}

    def may_be_in(self, text: bytes) -> bool:
        """Whether a part is in a reading of a text."""
        gram, step = self.gram, self.gram + 1
        places = range(0, len(text) - gram + 1, step)
        if self.grams.isdisjoint([text[at : at + gram] for at in places]):
            return False
        return any(
            text[start : start + length] in self.windows
            for at in places
            if text[at : at + gram] in self.grams
            for length in self.lengths
            for start in range(max(0, at + gram - length), at + 1)
        )

    def spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield where parts are in a reading of a text, each as long as the secret goes on."""
        done = 0
        for at in range(len(text)):
            for length in self.lengths if at >= done else ():
                part = text[at : at + length]
                for secret, start in self.windows.get(part, ()):
                    before = _common(text[max(0, at - start) : at][::-1], secret[:start][::-1])
                    rest = secret[start + len(part) :]
                    end = at + len(part)
                    end += _common(text[end : end + len(rest)], rest)
                    done = max(done, end - LEAST)
                    yield at - before, end


def _common(one: bytes, other: bytes) -> int:
    """Return how many characters two texts have in common at their beginnings."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _is_ordinary(part: str) -> bool:
    """Return whether a part is like what stands in ordinary texts."""
    return part in _ROWS or _ORDINARY.fullmatch(part) is not None


class SecretParts:
    """Finds parts of secrets in texts."""

    def __init__(self) -> None:
        self._plain, self._hexadecimal = _Codes(4), _Codes(8)

    def add(self, secret: str) -> None:
        kept = re.sub(r"[^0-9A-Za-z]", "", secret)
        public = _PUBLIC.match(secret)
        skipped = "" if public is None else public[0]
        begins = len(re.sub(r"[^0-9A-Za-z]", "", skipped))
        text = kept.lower().encode("ascii")
        places = range(begins, len(kept) - LEAST + 1)
        self._plain.add(text, [at for at in places if not _is_ordinary(kept[at : at + LEAST])], LEAST)
        self._plain.add(text, range(len(kept) - LEAST_OF_WORDS + 1), LEAST_OF_WORDS)
        if LEAST <= len(kept) < LEAST_OF_WORDS and not _is_ordinary(kept):
            self._plain.add(text, (0,), len(kept))
        for coded, length in _in_base64(secret):
            self._plain.add(coded, range(len(coded) - length + 1), length)
        pairs = [f"{byte:02x}".encode() for byte in secret.encode("utf-8", "surrogatepass")]
        for between in (b"", b"00"):  # that of UTF-16 in either order of its bytes
            coded = between.join(pairs)
            each = 2 + len(between)
            length = each * LEAST - len(between)
            starts = range(each * len(skipped), len(coded) - length + 1, each)
            self._hexadecimal.add(coded, starts, length)

    def replaced_in(self, text: str, mark: str) -> str:
        """Return the text with every part of a secret replaced; the text itself where there is none."""
        if len(text) < LEAST or not self._plain.grams:
            return text
        letters, digits = _without(text, _NULS, _NUL), _without(text, _SIGNS, _SIGN)
        spans = [*_places(letters, self._plain), *_places(digits, self._hexadecimal)]
        if not spans:
            return text
        pieces, position = [], 0
        for start, end in _united(spans):
            pieces += [text[position:start], mark]
            position = end
        return "".join((*pieces, text[position:]))


def _without(text: str, hints: Iterable[str], pattern: re.Pattern[str]) -> str:
    """Return a text with blanks in place of a pattern, of which it has none without one of the hints."""
    if not any(hint in text for hint in hints):
        return text
    return pattern.sub(lambda match: " " * len(match[0]), text)


def _places(text: str, codes: _Codes) -> Iterator[tuple[int, int]]:
    """Yield where parts are in a text."""
    letters = text.encode("utf-8", "surrogatepass").translate(_LOWER, _OTHERS)
    if codes.may_be_in(letters):
        places = [at for at, char in enumerate(text) if char.isascii() and char.isalnum()]
        yield from ((places[start], places[end - 1] + 1) for start, end in codes.spans(letters))


def _united(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((start, end))
    return united


def in_base64(raw: bytes) -> Iterator[str]:
    """Yield what bytes are in base64, in either alphabet: alone, and inside of others at each offset."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            coded = encode(bytes(offset) + raw).decode("ascii").rstrip("=")
            # The first characters mix with what stands before, the last one with what stands after.
            yield coded[(offset * 8 + 5) // 6 : -1]


def _in_base64(secret: str) -> Iterator[tuple[bytes, int]]:
    """Yield a secret in base64, of UTF-8 and of UTF-16, with what its parts are long there."""
    for encoding, length in (("utf-8", 10), ("utf-16-le", 20), ("utf-16-be", 20)):
        for coded in set(in_base64(secret.encode(encoding, "surrogatepass"))):
            yield coded.encode("ascii").translate(_LOWER, _OTHERS), length


# -- API keys, from the environment or ``.env``

MARK = "[secret removed]"
SHORTEST = 6
"""A shorter secret is not searched for: it would be found everywhere."""

_HEAD = 64  # characters that are searched for; what follows is compared where they are found


SHORT_KEY = (
    f"with less than {LEAST} letters and digits it is taken out of replies and messages only where it stands"
    f" as it is, and with less than {SHORTEST} characters not at all; use a longer one"
)


def is_short(secret: str) -> bool:
    """Return whether a secret is too short to be found in parts."""
    return sum(char.isascii() and char.isalnum() for char in secret) < LEAST


class Redactor:
    """Knows the secrets that were loaded, and takes them out of texts.

    Each one is found as it is, and each of its characters may be escaped as in JSON (however often strings
    were put into strings), in an address, in HTML or in Markdown. Parts of it are found in any case, with
    anything between their characters, in base64, in hexadecimal and in UTF-16: see :mod:`.secret_parts`.

    ``values``: secrets known already. ``warn``: told of a secret that is too short for that.
    """

    def __init__(self, values: Iterable[str] = (), warn: Callable[[str], None] = lambda _: None) -> None:
        self._warn = warn
        self._values: set[str] = set()
        self._forms: tuple[_Form, ...] = ()
        self._plain: tuple[bytes, ...] = ()
        self._parts = SecretParts()
        for value in values:
            self.add(value)

    def add(self, value: str, name: str = "a secret") -> None:
        """Remember a secret; its name is for a warning where it is short."""
        if not value or value in self._values:
            return
        if is_short(value):
            self._warn(f"{name} is short: {SHORT_KEY}")
        if len(value) < SHORTEST:
            return
        self._values.add(value)
        self._parts.add(value)
        # Longest first, so that a secret inside a longer one leaves nothing of the longer one.
        self._forms = tuple(_form(text) for text in sorted(self._values, key=lambda text: (-len(text), text)))
        coded = {form for secret in self._values for form in _in_bytes(secret)}
        self._plain = tuple(sorted(coded, key=lambda form: (-len(form), form)))

    def redact(self, text: str) -> str:
        """Return the text with every known secret, and every part of one, replaced by :data:`MARK`."""
        for form in self._forms:
            text = form.removed_from(text)
        return self._parts.replaced_in(text, MARK)

    def redact_bytes(self, data: bytes) -> bytes:
        """Return the bytes of a file with every known secret in it replaced.

        It is found as a whole: in UTF-8, UTF-16, base64 and hexadecimal.
        """
        for form in self._plain:
            data = data.replace(form, MARK.encode("ascii"))
        return data

    def redact_json(self, value: Json) -> Json:
        """Return JSON with every string in it, keys included, redacted."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            return [self.redact_json(entry) for entry in value]
        if isinstance(value, dict):
            return {self.redact(key): self.redact_json(entry) for key, entry in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class _Form:
    """What a secret looks like: a pattern for its first characters, and one for each that may follow."""

    head: re.Pattern[str]
    rest: tuple[re.Pattern[str], ...]

    def removed_from(self, text: str) -> str:
        pieces, position = [], 0
        while (match := self.head.search(text, position)) is not None:
            pieces += [text[position : match.start()], MARK]
            position = self._end(text, match.end())
        return "".join((*pieces, text[position:])) if pieces else text

    def _end(self, text: str, position: int) -> int:
        for step in self.rest:
            match = step.match(text, position)
            if match is None:
                cut_off = _CUT_OFF.match(text, position)
                return position if cut_off is None else cut_off.end()
            position = match.end()
        return position


_CUT_OFF = re.compile(r"[\w.*-]*")


@lru_cache(maxsize=256)
def _form(text: str) -> _Form:
    steps = re.findall(r"\\+|[^\\]", text)
    first, more = _step(steps[0], first=True), map(_step, steps[1:_HEAD])
    return _Form(re.compile(first + "".join(more)), tuple(_compiled(_step(step)) for step in steps[_HEAD:]))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_SLASH = r"\\(?:u005[cC])?"
_SLASHES = f"(?:{_SLASH}){{1,64}}"
"""A string that was put into strings six times has 63 before each escape."""

_FIRST_SLASHES = rf"\\(?<!\\\\)(?<!u005[cC]\\)(?:u005[cC])?(?:{_SLASH})*"
"""The same at the start of a run alone, so that each is read once, however long it is."""


@lru_cache(maxsize=1024)
def _step(step: str, first: bool = False) -> str:
    """Return the pattern of one character, or of a run of backslashes, in every form it may have.

    Each choice begins with a literal: then the search skips what no choice begins with.
    """
    char, slashes = step[0], _FIRST_SLASHES if first else _SLASHES
    percent = "(?i:" + "%".join(f"(?:25)*{byte:02x}" for byte in char.encode("utf-8", "surrogatepass")) + ")"
    names = "|".join(re.escape(name) for name in _entities().get(char, ()))
    entity = f"(?:amp;)*(?:#0*{ord(char)};|#[xX]0*(?i:{ord(char):x});{'|' + names if names else ''})"
    units = char.encode("utf-16-be", "surrogatepass").hex()
    unicode = _SLASHES.join(f"(?i:u{units[at : at + 4]})" for at in range(0, len(units), 4))
    escaped = f"{unicode}|(?i:x{ord(char):02x})|u0025{percent}|u0026{entity}"
    if not char.isalnum():
        escaped += f"|{re.escape(char)}"
    plain = slashes if char == "\\" else re.escape(char)
    space = r"|\+" if char == " " else ""
    return f"(?:{plain}|{slashes}+(?:{escaped})|%{percent}|&{entity}{space})"


@lru_cache(maxsize=1)
def _entities() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, char in html5.items():
        if name.endswith(";") and len(char) == 1:
            names.setdefault(char, []).append(name)
    return names


def _in_bytes(secret: str) -> Iterator[bytes]:
    """Yield what a secret is in the bytes of a file."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield raw
    yield from (raw.hex().encode("ascii"), raw.hex().upper().encode("ascii"))
    yield from (secret.encode(f"utf-16-{order}", "surrogatepass") for order in ("le", "be"))
    yield from (coded.encode("ascii") for coded in in_base64(raw) if len(coded) >= SHORTEST + 2)


KEY_VARIABLES: dict[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY",),
}
"""Where each service's key is looked for. A server given by its address gets only a key named for it: the
key of one service must not be sent to another."""

NO_KEY = "none-needed"
"""What a compatible server is sent where no key is named; the SDK insists on something."""

ENV_FILE = ".env"


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """Whether a model's key is there."""

    variables: tuple[str, ...]  # the environment variables looked at, in order; empty where no key is needed
    variable: str | None = None  # the one that holds it
    source: str | None = None  # ``environment`` or ``.env``; None where it was not found or none is needed
    is_short: bool = False  # whether it is too short to be kept out of replies and messages in all its forms

    @property
    def found(self) -> bool:
        """Whether a call can be made as far as keys are concerned."""
        return not self.variables or self.source is not None


def key_status(spec: ModelSpec, options: ModelOptions | None = None) -> KeyStatus:
    """Return whether the key of a model is there, and where; never the key."""
    variables = _variables(spec, options)
    key = _find(variables)
    return KeyStatus(variables) if key is None else KeyStatus(variables, key[0], key[1], is_short(key[2]))


def find_key(spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> str:
    """Return the key for a model; :data:`NO_KEY` for a compatible server that names none."""
    variables = _variables(spec, options)
    if not variables:
        return NO_KEY
    return _required(variables, f"API key of {spec}", redactor)


def expand(text: str, where: str, redactor: Redactor) -> str:
    """Return a setting with each ``${VARIABLE}`` replaced by its value."""
    return ENV_REFERENCE.sub(lambda match: _required((match[1],), where, redactor), text)


def _variables(spec: ModelSpec, options: ModelOptions | None) -> tuple[str, ...]:
    if options is not None and options.api_key_env is not None:
        return (options.api_key_env,)
    return () if spec.provider == COMPATIBLE else KEY_VARIABLES.get(spec.provider, ())


def _required(variables: Sequence[str], where: str, redactor: Redactor) -> str:
    names = " or ".join(variables)
    key = _find(variables)
    if key is None:
        raise MissingRequirement(
            where, what=f"{names} is not set, in the environment or in {Path.cwd() / ENV_FILE}",
            fix=f"export {variables[0]}=..., or write the line {variables[0]}=... into that file",
        )  # fmt: skip
    value = key[2]
    redactor.add(value, key[0])
    if not (value.isascii() and value.isprintable()) or " " in value.strip():
        raise MissingRequirement(
            where, what=f"{key[0]} has characters that a key cannot have",
            fix="copy the key again, without quotes or line breaks",
        )  # fmt: skip
    return value


def _find(variables: Sequence[str]) -> tuple[str, str, str] | None:
    """Return variable, source and value of the first variable that is set and not blank."""
    for name in variables:
        value = os.environ.get(name, "").strip()
        if value:
            return name, "environment", value
    held = _env_file()
    for name in variables:
        value = (held.get(name) or "").strip()
        if value:
            return name, ENV_FILE, value
    return None


def _env_file() -> dict[str, str | None]:
    path = Path(ENV_FILE)
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    try:
        return dict(dotenv_values(path, interpolate=False))
    except (OSError, UnicodeDecodeError) as error:
        raise MissingRequirement(
            str(path.resolve()), what=f"cannot be read as lines NAME=value in UTF-8: {error}",
            fix="correct or remove it",
        ) from error  # fmt: skip
