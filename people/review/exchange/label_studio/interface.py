"""The labeling interface of a seat in Label Studio: its XML, made from the task's questions.

A question about parts is there once for each: ``name__1``, ``name__2`` and so on, in the order in which the
seat sees them. Labels that are ranked are one list of choices for each rank: ``name``, ``name__second``,
``name__third``. Choices are called by the values of their options (``alias``), which is what comes back.

Source: labelstud.io/tags (Choices, Choice, TextArea, View, Header, HyperText): visibility can depend on which
choice is selected, several in one condition with commas between them, and applies to View and Choices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as Tree

from .....errors import ConfigError
from ...serve.pages import strings
from ...task import UNCLEAR, Question, text_in
from ..cells import EQUALS, NONE, token_of, tokens
from ..sheets import Load

EVIDENCE = "evidence"
RANKS = ("", "__second", "__third", "__fourth", "__fifth")
SIDE_BY_SIDE, COLUMN = "display:flex;gap:1em", "flex:1;min-width:0"
WORD_JOINER = "\u2060"
Element = Tree.Element


@dataclass(frozen=True, slots=True)
class Control:
    """A field of the interface.

    Attributes:
        name: what it is called there.
        question: what it asks.
        turn: which part it is about, from 1; 0 for the whole item.
        rank: of ranked labels, which it is, from 0.
    """

    name: str
    question: Question
    turn: int
    rank: int = 0


@dataclass(frozen=True)
class Interface:
    """The interface of a seat.

    Attributes:
        controls: name -> field, in order.
        xml: the labeling config.
        limits: what it cannot hold.
    """

    controls: Mapping[str, Control]
    xml: str
    limits: tuple[str, ...]


def data_name(listed: str, turn: int) -> str:
    """Return what a part of an item is called in the data of a task."""
    return f"part_{listed}_{turn}"


def pictures_name(side: int) -> str:
    """Return what the pictures of a side are called in the data of a task."""
    return f"pictures_{side + 1}"


def sides_of(load: Load) -> int:
    """Return how many sides with pictures the items of a seat have.

    Raises:
        ConfigError: they cannot be embedded: there are videos, or items differ in their sides.
    """
    shapes = {tuple(bool(side) for side in sheet.item.sides) for sheet in load.sheets}
    videos = any(medium.kind != "picture" for sheet in load.sheets for medium in sheet.item.media)
    if videos or len(shapes) > 1 or not all(all(shape) for shape in shapes):
        what = "the items have videos" if videos else "some items lack pictures that others have"
        raise ConfigError("--embed", what=what, fix="leave it out: pictures and videos are then files beside")
    return max(map(len, shapes), default=0)


def controls_of(load: Load) -> dict[str, Control]:
    """Return the fields that the items of a seat need: as many of each as the item with the most parts."""
    listed: dict[str, Control] = {}
    for question in load.study.task.card.questions:
        turns = range(1, _most(load, question) + 1) if question.each else (0,)
        ranks = min(question.most, len(question.choices), len(RANKS)) if question.type == "labels" else 1
        for turn in turns:
            for rank in range(ranks):
                name = f"{question.name}{f'__{turn}' if turn else ''}{RANKS[rank]}"
                listed[name] = Control(name, question, turn, rank)
    return listed


def _most(load: Load, question: Question) -> int:
    counts = (len(sheet.item.parts.get(question.each or "", ())) for sheet in load.sheets)
    return max(counts, default=0)


def _least(load: Load, question: Question) -> int:
    counts = (len(sheet.item.parts.get(question.each or "", ())) for sheet in load.sheets)
    return min(counts, default=0)


def interface_of(load: Load) -> Interface:
    """Return the interface of a seat."""
    maker = _Maker(load)
    return Interface(maker.controls, maker.xml(), tuple(dict.fromkeys(maker.limits)))


@dataclass
class _Maker:
    """Makes the XML of an interface, and notes what cannot be said in it."""

    load: Load
    controls: dict[str, Control] = field(init=False)
    limits: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.controls = controls_of(self.load)

    def xml(self) -> str:
        root = Tree.Element("View")
        shown = {"name": EVIDENCE, "value": f"${EVIDENCE}", "valueType": "text", "inline": "true"}
        Tree.SubElement(root, "HyperText", shown)
        self._add_pictures(root)
        for section, groups in self._sections():
            heading = self.load.study.task.card.sections.get(section)
            if heading is not None:
                Tree.SubElement(root, "Header", value=self._text(heading), size="3")
            for listed, turn, controls in groups:
                if turn:
                    Tree.SubElement(root, "Header", value=f"${data_name(listed, turn)}", size="4")
                for control in controls:
                    self._add(root, control)
        Tree.indent(root)
        return Tree.tostring(root, encoding="unicode") + "\n"

    def _add_pictures(self, root: Element) -> None:
        sides = sides_of(self.load) if self.load.embed else 0
        row = Tree.SubElement(root, "View", style=SIDE_BY_SIDE) if sides else root
        for side in range(sides):
            column = Tree.SubElement(row, "View", style=COLUMN)
            if sides > 1:
                words = strings(self.load.language)
                Tree.SubElement(column, "Header", value=words["side.right" if side else "side.left"])
            name = pictures_name(side)
            Tree.SubElement(column, "Image", name=name, valueList=f"${name}")

    def _sections(self) -> Iterator[tuple[str, list[tuple[str, int, list[Control]]]]]:
        """Yield sections, each with its parts (list and turn; 0 for the whole item) and their fields."""
        sections: dict[str, dict[tuple[str, int], list[Control]]] = {}
        for control in self.controls.values():
            groups = sections.setdefault(control.question.section or "", {})
            groups.setdefault((control.question.each or "", control.turn), []).append(control)
        for section, groups in sections.items():
            yield section, [(listed, turn, controls) for (listed, turn), controls in groups.items()]

    def _add(self, parent: Element, control: Control) -> None:
        question = control.question
        holder = self._held(parent, control)
        title = self._text(question.title)
        if control.rank:
            Tree.SubElement(holder, "Header", value=f"{title} ({control.rank + 1})", size="5")
        else:
            Tree.SubElement(holder, "Header", value=title, size="5")
            if question.help:
                Tree.SubElement(holder, "Header", value=self._text(question.help), size="5")
        if question.type in ("text", "edits"):
            self._add_text(holder, control)
        else:
            self._add_choices(holder, control)

    def _add_choices(self, parent: Element, control: Control) -> None:
        question = control.question
        inline = "true" if question.type == "scale" else "false"
        about = {"name": control.name, "toName": EVIDENCE, "choice": "single-radio", "showInline": inline}
        choices = Tree.SubElement(parent, "Choices", about | self._required(control))
        texts: dict[str | int, str] = {UNCLEAR: strings(self.load.language)["unclear"]}
        texts |= {option.value: self._text(option.text) for option in question.choices}
        order = list(tokens(question).items())
        if question.type == "labels" and self.load.sheets:
            shown = self.load.sheets[0].shown.options(question)
            order = [(token_of(question, option.value), option.value) for option in shown]
            order += [(UNCLEAR, UNCLEAR)] if question.unclear and not control.rank else []
        for name, value in order:
            Tree.SubElement(choices, "Choice", value=texts.get(value, name), alias=name)

    def _add_text(self, parent: Element, control: Control) -> None:
        how = f"PATH {EQUALS} NEW VALUE, one correction a line; {NONE} if there is none"
        hint = how if control.question.type == "edits" else ""
        if control.question.unclear:
            hint += f"{'; ' if hint else ''}or write {UNCLEAR}"
        about = {
            "name": control.name, "toName": EVIDENCE, "rows": "3", "editable": "true", "maxSubmissions": "1",
            "placeholder": hint,
        }  # fmt: skip
        Tree.SubElement(parent, "TextArea", about | self._required(control))

    def _required(self, control: Control) -> dict[str, str]:
        question = control.question
        always = question.each is None or control.turn <= _least(self.load, question)
        if not always:
            self.limits.append(
                f"items have different numbers of {question.each}: fields of parts that an item lacks are"
                " shown with a dash above them, and stay empty"
            )
        needed = not question.optional and not control.rank and always and self._can_be_hidden(question)
        return {"required": "true", "requiredMessage": self._text(question.title)} if needed else {}

    def _held(self, parent: Element, control: Control) -> Element:
        """Return the element that holds a field: one for each condition under which it is asked."""
        conditions = [
            self._condition(control, name, wanted) for name, wanted in control.question.when.items()
        ]
        if control.rank:
            begin = control.name.removesuffix(RANKS[control.rank])
            before = self.controls[begin + RANKS[control.rank - 1]]
            names = [name for name, value in tokens(control.question).items() if value != UNCLEAR]
            conditions.append((before.name, names))
        for condition in conditions:
            if condition is not None:
                parent = Tree.SubElement(
                    parent, "View", visibleWhen="choice-selected", whenTagName=condition[0],
                    whenChoiceValue=",".join(condition[1]),
                )  # fmt: skip
        return Tree.SubElement(parent, "View")

    def _condition(
        self, control: Control, name: str, wanted: Sequence[str | int]
    ) -> tuple[str, list[str]] | None:
        other = self._named(name)
        names = {value: token for token, value in tokens(other).items()}
        if not self._decides(control.question, other):
            self.limits.append(
                f"{control.question.name} is shown whatever was answered to {name}; answers to it are left"
                " out where it is not asked"
            )
            return None
        turn = control.turn if other.each is not None else 0
        listed = [names[value] for value in wanted if value in names]
        return f"{name}{f'__{turn}' if turn else ''}", listed

    def _named(self, name: str) -> Question:
        return next(question for question in self.load.study.task.card.questions if question.name == name)

    def _decides(self, question: Question, other: Question) -> bool:
        return other.type in ("choice", "scale") and other.each in (None, question.each)

    def _can_be_hidden(self, question: Question) -> bool:
        return all(self._decides(question, self._named(name)) for name in question.when)

    def _text(self, texts: Mapping[str, str]) -> str:
        """Return a text in the language; a dollar sign in it names no data of the task."""
        return text_in(texts, self.load.language).replace("$", f"${WORD_JOINER}")
