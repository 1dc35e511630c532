"""What a stage computes, as one hash: that of the definitions which it reaches, wherever they stand.

From the stage's entry, names are followed through the modules of the computing rooms, by lazy imports and
strings ``module:attribute``, too. Each function, class and statement of a module counts by its syntax tree,
each data file that one of their strings names by its name and bytes. What does not count: where a definition
stands, how it is imported, docstrings, descriptions of settings, names of functions, constants and local
variables. So a file may move, and two may become one. In doubt more is taken: a class whole, a module whole
where it is used as a value, and all that may have added itself to an empty table or a class's subclasses.
"""

import ast
import hashlib
import re
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

COMPUTING = (
    "schemas", "media", "prompts", "validators", "releases", "builders", "evaluation", "people", "studies",
)  # fmt: skip
"""Rooms that decide what a stage makes. What models and the engine do is in the keys of results."""
DATA = (".json", ".csv", ".tsv", ".txt")
"""Endings of data files. A prompt is none of them: its hash is in the keys of the stages that declare it."""
_LOADS = re.compile(r"'importlib\.resources|'__file__'")
_PLACE = re.compile(r"\.*([\w.]+):(\w+)")
_TABLE = re.compile(r"(\{\}|\[\]|(dict|list|set)\(\))$|defaultdict\(")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Definition(NamedTuple):
    """A name at the top of a module; with the name "" all of the module."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Form:
    """A definition by itself."""

    text: str  # its syntax tree, with a mark in place of each definition that it names
    names: tuple[Definition, ...]  # those definitions, in the order of the marks
    # those of them that stand in its decorators, its bases or statements about it
    hangs_on: frozenset[Definition] = frozenset()
    opens: tuple[Definition, ...] = ()  # definitions to which others may have added themselves
    files: frozenset[Path] = frozenset()  # the data files that its strings name


@dataclass(slots=True)
class Module:
    """What stands in a file: statements by the name that they bind, and the origins of imported names."""

    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)


class Code:
    """The code of a package, read as far as it is reached.

    Args:
        root: folder of the package.
        rooms: the folders in it that compute; definitions elsewhere count by their name alone.
        package: the name that it is imported by.
    """

    def __init__(self, root: Path, rooms: Iterable[str] = COMPUTING, package: str = "fabula") -> None:
        self.package = package
        self.paths: dict[str, Path] = {}
        self.files: dict[str, list[Path]] = {}
        for path in sorted(path for room in rooms for path in (root / room).rglob("*.*")):
            parts = path.relative_to(root).with_suffix("").parts
            if path.suffix == ".py":
                self.paths[".".join((package, *parts)).removesuffix(".__init__")] = path
            elif path.suffix in DATA:
                for name in (path.name, path.stem):
                    self.files.setdefault(name, []).append(path)
        self.module, self.form = cache(self._module), cache(self._form)

    def hash(self, module: str, names: Iterable[str], data: Iterable[str] = ()) -> str:
        """Return the hash of all that some names of a module reach, and of more data files."""
        forms = self.reached(module, names)
        number = {definition: str(index) for index, definition in enumerate(forms)}
        lines = [f"{form.text} {' '.join(number[name] for name in form.names)}" for form in forms.values()]
        folders = {self.paths[name.module].parent for name, form in forms.items() if _LOADS.search(form.text)}
        named = {path for form in forms.values() for path in form.files}
        files = {path for path in named if folders.intersection(path.parents)}
        files |= {path for name in data for path in self.files[name]}
        lines += sorted(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def reached(self, module: str, names: Iterable[str]) -> dict[Definition, Form]:
        """Return all definitions that some names of a module reach, in the order in which they are named."""
        todo = [self.find(module, name) for name in names]
        forms: dict[Definition, Form] = {}
        for definition in todo:
            if definition is None:
                raise LookupError(f"{module} has no definition in the computing rooms by one of {names}")
            if definition not in forms:
                forms[definition] = form = self.form(definition)
                todo += [*form.names, *(name for opened in form.opens for name in self._added_to(opened))]
        return forms

    def find(self, module: str, name: str) -> Definition | None:
        """Return what a name in a module stands for; None for one that comes from elsewhere."""
        here = self.module(module)
        if name in here.bound:
            return Definition(module, name)
        return self.at(here.imported[name]) if name in here.imported else None

    def at(self, origin: str) -> Definition | None:
        """Return what a dotted name stands for: a definition, or a module; None where it is elsewhere."""
        if origin in self.paths:
            return Definition(origin, "")
        module, _, name = origin.rpartition(".")
        if module not in self.paths:
            return None
        here = self.module(module)
        known = name in here.bound or name in here.imported
        return self.find(module, name) if known else Definition(module, "")

    def _added_to(self, opened: Definition) -> list[Definition]:
        """Return what names a definition to which others add, and what hangs on that, sorted by content."""
        added: dict[Definition, str] = {}
        todo = [opened]
        for user in todo:
            mentions = (module for module, path in self.paths.items() if user.name in path.read_text("utf-8"))
            for near in [
                Definition(module, name) for module in mentions for name in self.module(module).bound
            ]:
                form = self.form(near)
                if near not in added and user in (form.names if user == opened else form.hangs_on):
                    added[near] = form.text
                    todo.append(near)
        return sorted(added, key=lambda near: (added[near], near))

    def _module(self, name: str) -> Module:
        module, definitions = Module(), (*_FUNCTIONS, ast.ClassDef)
        for statement in ast.parse(self.paths[name].read_text("utf-8")).body:
            _unquote_types(statement)
            if isinstance(statement, definitions):
                bound = [statement.name]
            else:
                module.imported.update(self.imports(statement, name))
                nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
                bound = [node.id for node in nodes if isinstance(node.ctx, ast.Store)]
                # A call or the filling of a table belongs to whatever of this module it names.
                bound = bound or [node.id for node in nodes if node.id not in module.imported]
            for defined in dict.fromkeys(bound):
                module.bound.setdefault(defined, []).append(statement)
        return module

    def package_of(self, module: str) -> str:
        """Return the package of a module: itself where it is one."""
        return module if self.paths[module].name == "__init__.py" else module.rpartition(".")[0]

    def imports(self, statement: ast.stmt, module: str) -> Iterator[tuple[str, str]]:
        """Yield each name that a statement of a module imports, and the dotted name that it stands for."""
        levels = [*self.package_of(module).split("."), ""]
        for node in ast.walk(statement):
            if isinstance(node, ast.ImportFrom):
                origin = [*(levels[: -node.level] if node.level else []), *filter(None, [node.module])]
                for alias in node.names:
                    yield alias.asname or alias.name, ".".join([*origin, alias.name])
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    yield alias.asname or top, alias.name if alias.asname else top

    def _form(self, definition: Definition) -> Form:
        module = self.module(definition.module)
        if not definition.name:
            names = (self.find(definition.module, name) for name in (*module.bound, *module.imported))
            return Form("module", tuple(filter(None, names)))
        reader = _Reader(self, definition.module)
        text = " ".join(reader.read(statement) for statement in module.bound[definition.name])
        opens = [definition] if reader.is_table or "'__init_subclass__'" in text else []
        if "'__subclasses__'" in text:
            opens += [definition, *reader.names]
        return Form(
            text, tuple(reader.names), frozenset(reader.hangs_on), tuple(opens), frozenset(reader.files)
        )


class _Reader(ast.NodeTransformer):
    """Reads statements of a module: notes what they name, and takes out what does not count."""

    def __init__(self, code: Code, module: str) -> None:
        self.code, self.module = code, module
        self.names: dict[Definition, str] = {}
        self.hangs_on: set[Definition] = set()
        self.files: set[Path] = set()
        self.is_table = False
        self.imported: dict[str, str] = {}
        self.outside: set[str] = set()

    def read(self, statement: ast.stmt) -> str:
        """Return the text of a statement."""
        source = ast.unparse(statement)
        copy, again = ast.parse(source).body[0], ast.parse(source).body[0]
        lazy = dict(self.code.imports(statement, self.module))
        self.imported = self.code.module(self.module).imported | lazy
        self.outside = _names_from_outside(symtable.symtable(source, "", "exec")) | lazy.keys()
        self.is_table |= bool(_TABLE.match(ast.unparse(getattr(copy, "value", None) or ast.Pass())))
        names, self.names = self.names, {}
        for part in _apart(again):
            self.visit(part)
        self.hangs_on, self.names = self.hangs_on | self.names.keys(), names
        for function in copy.body if isinstance(copy, ast.ClassDef) else [copy]:
            if isinstance(function, _FUNCTIONS):
                _rename_locals(function, self.outside)
        if isinstance(copy, _FUNCTIONS):
            copy.name = ""
        return ast.dump(self.visit(copy) or ast.Pass())

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.outside:
            return node
        origin = self.imported.get(node.id)
        target = self.code.at(origin) if origin else self.code.find(self.module, node.id)
        return self._marked(target, origin or node.id)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        module = self._module_of(node.value)
        if module is None:
            return self.generic_visit(node)
        return self._marked(self.code.at(f"{module}.{node.attr}"), node.attr)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, str):
            return node
        self.files.update(self.code.files.get(node.value, ()))
        return self._place(node.value) or node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        text = ast.unparse(node)[2:-1].replace("{__package__}", self.code.package_of(self.module))
        return self._place(text.replace("{__name__}", self.module)) or self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_docstring = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_docstring else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None: ...

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "Field":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "description"]
        return self.generic_visit(node)

    def _place(self, text: str) -> ast.AST | None:
        """Return the mark of what ``module:attribute`` names, from this package or in full; else None."""
        if place := _PLACE.fullmatch(text):
            for module in (place[1], f"{self.code.package_of(self.module)}.{place[1]}"):
                if module in self.code.paths:
                    return self._marked(self.code.at(f"{module}.{place[2]}"), place[2])
        return None

    def _marked(self, target: Definition | None, name: str) -> ast.AST:
        if target is None:
            return ast.Name(name.rpartition(".")[2] if name.startswith(f"{self.code.package}.") else name)
        return ast.Name(self.names.setdefault(target, f"#{len(self.names)}"))

    def _module_of(self, node: ast.expr) -> str | None:
        """Return the computing module that an expression stands for; None for anything else."""
        if isinstance(node, ast.Name) and node.id in self.outside and node.id in self.imported:
            origin = self.imported[node.id]
            if origin == self.code.package:
                return origin
        elif isinstance(node, ast.Attribute) and (above := self._module_of(node.value)):
            origin = f"{above}.{node.attr}"
        else:
            return None
        target = self.code.at(origin)
        return target.module if target is not None and not target.name else None


class _Types(ast.NodeTransformer):
    """Takes the quotes from types that are written as strings."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node if ast.unparse(node.value) == "Literal" else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def _unquote_types(statement: ast.stmt) -> None:
    for node in ast.walk(statement):
        for slot in ("annotation", "returns"):
            if isinstance(note := getattr(node, slot, None), ast.expr):
                setattr(node, slot, _Types().visit(note))


def _apart(statement: ast.stmt) -> list[ast.AST]:
    """Return what is run when the module is read: decorators and bases, or a statement that binds nothing."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        return [*statement.decorator_list, *getattr(statement, "bases", ())]
    return (
        []
        if any(isinstance(getattr(node, "ctx", None), ast.Store) for node in ast.walk(statement))
        else [statement]
    )


def _names_from_outside(table: symtable.SymbolTable) -> set[str]:
    """Return the names in a statement of a module that do not belong to a function in it."""
    is_top = table.get_type() == "module"
    own = {symbol.get_name() for symbol in table.get_symbols() if is_top or symbol.is_global()}
    return own.union(*map(_names_from_outside, table.get_children()))


def _rename_locals(function: ast.FunctionDef | ast.AsyncFunctionDef, kept: set[str]) -> None:
    """Number the local variables of a function that stand in it as names only, no parameters among them."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.ClassDef) for node in nodes):
        return
    binders = {getattr(node, slot, None) for node in nodes for slot in ("name", "asname", "rest")}
    binders |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    declared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stored = dict.fromkeys(node.id for node in names if isinstance(node.ctx, ast.Store))
    local = [name for name in stored if name not in kept | binders | declared]
    number = {name: f"%{index}" for index, name in enumerate(local)}
    for node in names:
        node.id = number.get(node.id, node.id)
