"""Check that LaTeX can be set by plain pdflatex, where no LaTeX is installed."""

import re
from collections.abc import Iterator

_MATH = re.compile(r"(?<!\\)\$[^$\n]+(?<!\\)\$")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")


def latex_problems(text: str) -> Iterator[str]:
    """Yield what is wrong in tables as LaTeX, by line: what plain LaTeX lacks or reads otherwise."""
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("%"):
            continue
        if not line.isascii():
            yield f"line {number}: {next(sign for sign in line if not sign.isascii())!a} is not ASCII"
        plain = _COMMAND.sub(" ", _MATH.sub("", line))
        yield from (f"line {number}: {sign} in text" for sign in sorted(set('<>|"$#_^%') & set(plain)))
        if line.startswith(("[", "*")):
            yield f"line {number}: begins with {line[0]}, an option of the line before"
        depth += plain.count("{") - plain.count("}")
        if depth < 0:
            yield f"line {number}: a brace is closed that was not opened"
            depth = 0
    if depth:
        yield "a brace is not closed"
