"""In which encoding a book is: by its mark, by what the user says, by what the file states; else UTF-8."""

import codecs
import re

from .blocks import BadBook

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"),
)  # fmt: skip
_AS_BROWSERS = {
    "iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874",
    "tis-620": "cp874", "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030",
    "euc_kr": "cp949", "big5": "big5hkscs",
}  # fmt: skip
"""What files mean that state the older encoding: a larger one, as the WHATWG's table of labels has it."""
_TEXTUAL = re.compile(r"utf-(?:8|16|32)|cp\d|iso|koi8|mac|shift|euc|gb|big5|hz|johab|tis")
_XML = re.compile(rb"\A\s*<\?xml\b[^>]*?\sencoding\s*=\s*[\"']\s*([\w.:-]+)", re.IGNORECASE)
_META = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_BODY = re.compile(rb"<body\b", re.IGNORECASE)
_GUTENBERG = re.compile(rb"^character set encoding:[ \t]*(\S[^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_HEAD, _LATE = 6000, 2**18
MARKUP = re.compile(rb"\s*<(?:!doctype\s+html|html|\?xml)", re.IGNORECASE)


def text_of(data: bytes, given: str | None = None, *, markup: bool) -> str:
    """Return the text of a file with line ends of one character.

    ``data``: its bytes.
    """
    name = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if name is None:
        name = _chosen(data, given, markup=markup)
    try:
        text = data.decode(name)
    except (UnicodeError, LookupError) as error:
        at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise BadBook("wrong_encoding", f"it is not {name}{at}{_fix(data)}") from error
    if "\0" in text:
        raise BadBook("wrong_encoding", f"it holds NUL characters, so it is no text in {name}{_fix(data)}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _chosen(data: bytes, given: str | None, *, markup: bool) -> str:
    stated = None if given else _stated(data) if markup else _stated_by_gutenberg(data)
    label = given or stated
    if label is None:
        return "utf-8"
    name = _known(label)
    if name is None:
        raise BadBook("wrong_encoding", f"its encoding {label[:40]!r} is not known{_fix(data)}")
    if stated and name.startswith(("utf-16", "utf-32")):
        return "utf-8"  # what states it could not be read otherwise
    return name


def _known(label: str) -> str | None:
    """Return the codec of a label; None where there is none for texts."""
    try:
        name = codecs.lookup(label.casefold().removeprefix("x-")).name
    except LookupError:
        return None
    name = _AS_BROWSERS.get(name, name)
    return name if _TEXTUAL.match(name) else None


def _stated(data: bytes) -> str | None:
    """Return the encoding that HTML or XML states, however late in its head."""
    head = _COMMENT.sub(b"", data[:_LATE])
    body = _BODY.search(head)
    match = _XML.match(head) or _META.search(head, 0, body.start() if body else len(head))
    return match[1].decode("ascii", "replace") if match else None


def _stated_by_gutenberg(data: bytes) -> str | None:
    """Return what the head of a plain text states, if the text is no UTF-8: many were converted since."""
    match = _GUTENBERG.search(data[:_HEAD])
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        label = match[1].strip().decode("ascii", "replace") if match else ""
        return label if label and _known(label) else None
    return None


def _fix(data: bytes) -> str:
    likely = "windows-1252"
    if b"\0" in data:
        likely = "utf-16-le" if data[1::2].count(0) >= data[::2].count(0) else "utf-16-be"
    return f"; convert it to UTF-8, or name its encoding, such as --set load_books.encoding={likely}"
