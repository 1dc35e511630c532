"""Templates out of code say what the code itself says when it is called."""

import pytest

from fabula.prompts.code_texts import CodeText, NotThere, texts_in
from fabula.prompts.sets import TextSet

CODE = """
GREETING = ("Good " "day {not a slot}")
WORDS = {"one": {"big": "very " "large"}}

def ask(name, items, hidden, send):
    first = f"Never mind {name}"
    rows = "\\n".join(f"- {item}" for item in items)
    lines = []
    for index, item in enumerate(items):
        lines.append(f"Line {index + 1}: {item}")
    prompt = (
        f"To {name}: {len(items)} things"
        + (f" ({hidden} hidden)" if hidden else "")
        + ".\\n" + "\\n".join(lines) + f'\\n{{"a": 1, {rows}}} {name}'
    )
    body = [{"role": "system", "content": GREETING}, {"role": "user", "content": [prompt or "nothing"]}]
    send(prompt)
    return "{} and {}"
"""
SLOTS = {
    "name": "who", "len(items)": "count", "hidden": "hidden", "'\\n'.join(lines)": "lines", "rows": "rows"
}  # fmt: skip


def place(**about: object) -> CodeText:
    return CodeText.model_validate({"file": "code.py", **about})


def called(name: str, items: list[str], hidden: int) -> str:
    """What the code sends when it is run; the test alone runs it."""
    sent: list[str] = []
    space: dict[str, object] = {}
    exec(CODE, space)
    space["ask"](name, items, hidden, sent.append)  # type: ignore[operator]
    return sent[0]


@pytest.mark.parametrize("hidden", [0, 3])
def test_template_when_filled_is_what_the_called_function_sends(hidden: int) -> None:
    found = texts_in(CODE, "long", place(function="ask", variable="prompt", slots=SLOTS, otherwise="short"))
    texts = {name: text for name, text, template in found if template}
    made = TextSet(name="mine", commit="1", texts=texts, templates=("long", "short"))
    items = ["{pear}", "fig}}"]
    slots = {"who": "Ann {x}", "count": 2, "hidden": hidden, "rows": "- {pear}\n- fig}}"}
    slots["lines"] = "Line 1: {pear}\nLine 2: fig}}"
    assert made.fill("long" if hidden else "short", slots) == called("Ann {x}", items, hidden)


def test_places_when_named_lead_into_lists_calls_and_dictionaries() -> None:
    whole = place(variable="GREETING")
    assert list(texts_in(CODE, "a", whole)) == [("a", "Good day {not a slot}", False)]
    words = place(variable="WORDS", data=True, path=("one",))
    assert list(texts_in(CODE, "w", words)) == [("w", '{\n "big": "very large"\n}', False)]
    nothing = place(function="ask", variable="body", path=(1, "content", 0, 1))
    assert list(texts_in(CODE, "n", nothing)) == [("n", "nothing", False)]
    line = place(function="ask", call="lines.append", path=(0,), slots={"index + 1": "i", "item": "it"})
    assert list(texts_in(CODE, "l", line)) == [("l", "Line {i}: {it}", True)]


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"variable": "MISSING"}, "has no MISSING"),
        ({"function": "ask", "variable": "prompt", "nth": 1, "slots": SLOTS}, "has no prompt"),
        ({"function": "ask", "variable": "prompt"}, "no slot is known for name"),
        ({"variable": "GREETING", "positional": ("one",)}, "0 slots where 1 are known"),
        ({"variable": "WORDS", "path": ("two",)}, "nothing at 'two'"),
    ],
)
def test_code_when_it_was_changed_is_not_guessed(about: dict[str, object], told: str) -> None:
    with pytest.raises(NotThere, match=told):
        list(texts_in(CODE, "x", place(**about)))
