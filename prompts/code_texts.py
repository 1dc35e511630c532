"""Texts out of program code: the syntax tree is read, and nothing is executed.

A constant is taken as it is. An f-string, and texts that are joined to it, become a template with a named
slot for each expression. A part that stands under a condition gives two texts, with the part and without.
"""

import ast
import json
from collections.abc import Iterator, Mapping

from pydantic import Field

from ..schemas.values import Own


class CodeText(Own):
    """Where a text stands in a file, and how it becomes a template."""

    file: str  # path in the repository
    function: str | None = None  # function in which it stands; none: anywhere in the file
    variable: str | None = None  # name that it is assigned to
    call: str | None = None  # function or method that it is given to, in place of a variable
    nth: int = Field(default=0, ge=0)  # which of several such places, from 0
    # keys and indices that lead to it inside a list, a dictionary, ``or`` or the arguments of a call
    path: tuple[int | str, ...] = ()
    slots: Mapping[str, str] = Field(default_factory=dict)  # expression -> name of its slot
    positional: tuple[str, ...] = ()  # names of the slots of a text with empty braces, in order
    # what the text without its conditional part is called; none: there is no such part
    otherwise: str | None = None
    data: bool = False  # whether it is a dictionary of texts, kept as JSON

    @property
    def is_code(self) -> bool:
        """Whether it stands in program code; else it is the whole file."""
        return self.variable is not None or self.call is not None


class NotThere(ValueError):
    """The code has no such text, or it is made in another way; the message says what."""


def texts_in(source: str, name: str, location: CodeText) -> Iterator[tuple[str, str, bool]]:
    """Yield name, text, and whether it is a template, of what stands at a place of some code."""
    node = _at(_found(source, location), location.path)
    if location.data:
        try:
            yield name, json.dumps(ast.literal_eval(node), ensure_ascii=False, indent=1), False
        except ValueError as error:
            raise NotThere(f"{ast.unparse(node)[:60]} is no constant") from error
        return
    if location.positional:
        yield name, _named(_constant(node), location.positional), True
        return
    for choice, called in ((True, name), (False, location.otherwise)):
        if called is not None:
            text = _template(node, location.slots, choice=choice)
            yield (called, text, True) if location.slots else (called, _unescaped(text), False)


def _found(source: str, location: CodeText) -> ast.expr:
    tree: ast.AST = ast.parse(source)
    if location.function is not None:
        functions = [node for node in _walk(tree) if isinstance(node, ast.FunctionDef)]
        tree = next((node for node in functions if node.name == location.function), ast.Module([], []))
    values = [value for node in _walk(tree) if (value := _value(node, location)) is not None]
    if len(values) <= location.nth:
        raise NotThere(f"{location.function or 'the file'} has no {location.variable or location.call}")
    return values[location.nth]


def _walk(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes in the order of the text."""
    nodes = [node for node in ast.walk(tree) if hasattr(node, "lineno")]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]


def _value(node: ast.AST, location: CodeText) -> ast.expr | None:
    if location.call is not None:
        is_it = isinstance(node, ast.Call) and ast.unparse(node.func) == location.call
        return ast.List(node.args, ast.Load()) if is_it else None  # type: ignore[attr-defined]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == location.variable for target in targets):
            return node.value
    return None


def _at(node: ast.expr, path: tuple[int | str, ...]) -> ast.expr:
    for step in path:
        inner: ast.expr | None = None
        if isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            inner = node.values[keys.index(step)] if step in keys else None
        elif isinstance(step, int) and isinstance(node, ast.List | ast.BoolOp):
            entries = node.elts if isinstance(node, ast.List) else node.values
            inner = entries[step] if step < len(entries) else None
        if inner is None:
            raise NotThere(f"nothing at {step!r} of {ast.unparse(node)[:60]}")
        node = inner
    return node


def _constant(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise NotThere(f"{ast.unparse(node)[:60]} is no text")


def _template(node: ast.expr, slots: Mapping[str, str], *, choice: bool) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(value, slots, choice=choice) for value in node.values)
    if isinstance(node, ast.Constant):
        return _constant(node).replace("{", "{{").replace("}", "}}")
    if isinstance(node, ast.FormattedValue):
        if node.conversion != -1 or node.format_spec is not None:
            raise NotThere(f"{ast.unparse(node.value)[:60]} is formatted in a way of its own")
        return _slot(node.value, slots)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left, slots, choice=choice) + _template(node.right, slots, choice=choice)
    if isinstance(node, ast.IfExp):
        return _template(node.body if choice else node.orelse, slots, choice=choice)
    return _slot(node, slots)


def _slot(node: ast.expr, slots: Mapping[str, str]) -> str:
    expression = ast.unparse(node)
    if expression not in slots:
        raise NotThere(f"no slot is known for {expression[:60]}")
    return f"{{{slots[expression]}}}"


def _unescaped(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _named(text: str, names: tuple[str, ...]) -> str:
    """Return a text whose empty braces have names."""
    pieces = text.split("{}")
    if len(pieces) != len(names) + 1:
        raise NotThere(f"{len(pieces) - 1} slots where {len(names)} are known")
    filled = [piece + f"{{{name}}}" for piece, name in zip(pieces, names, strict=False)]
    return "".join([*filled, pieces[-1]])
