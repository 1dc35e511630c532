"""Parts of secrets in texts: eight characters and more, in any case, with anything between them.

A text is reduced to its letters and digits (of ASCII, in lower case): spaces, line breaks, NULs of UTF-16 and
other separators are gone. What is left of a secret, of its base64 and of its hexadecimal is looked for in
that. Most texts are done with after every fifth place was looked at: in eight characters, four begin there.

What is like a word, alone or with a number, is no part before it has sixteen characters, nor are years and
numbers in a row: they would be found in ordinary texts. What all keys of a service begin with
(``sk-ant-api03-``) is none either.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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
        """Remember a secret."""
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
