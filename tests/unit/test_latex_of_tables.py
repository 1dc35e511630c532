"""Tables as LaTeX: plain pdflatex sets them, whatever signs their texts hold."""

import sys

import pytest

from fabula.tables.grid import Grid, latex_of
from fabula.tables.latex import latex_text
from fabula.testing.latex import latex_problems


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("text\u00a0✓ images\u00a0✗", r"text~$\surd$ images~$\times$"),
        ("Zoë's naïve Łódź, ß", r"Zo\"{e}'s na\"{i}ve \L{}\'{o}d\'{z}, \ss{}"),
        ("p < 0.001 | 4 × 3", r"p $<$ 0.001 $|$ 4 $\times$ 3"),
        ("文 \u202e", "[U+6587] [U+202E]"),
        (r"a\b{c}_^~&%$#", r"a\textbackslash{}b\{c\}\_\textasciicircum{}\textasciitilde{}\&\%\$\#"),
    ],
)
def test_text_when_it_has_signs_of_others_is_ascii_that_says_the_same(text: str, latex: str) -> None:
    assert latex_text(text) == latex


def test_text_when_it_is_any_character_is_ascii_that_plain_latex_sets() -> None:
    every = [chr(code) for code in range(0x20, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    assert list(latex_problems("\n".join(f"x{latex_text(sign)}" for sign in every if sign != "\n"))) == []


def test_table_when_a_row_begins_with_a_bracket_is_not_read_as_an_option() -> None:
    text = latex_of([Grid("é", "Title ✓", ("[a]", "b"), (("*", 0.5), ("[x]", None)), "a|b")])
    assert list(latex_problems(text)) == []
    assert "{}[x] & -- \\\\" in text
    assert r"\label{tab:-}" in text
    assert text.startswith("% Needs \\usepackage{booktabs}.")
