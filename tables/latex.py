"""Text for LaTeX: ASCII that pdflatex sets without a package, whatever the text holds."""

import unicodedata

_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    '"': "''", "`": r"\textasciigrave{}", "\n": " ", "\t": " ",
    "\N{NO-BREAK SPACE}": "~", "\N{NARROW NO-BREAK SPACE}": r"\,", "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--", "\N{EM DASH}": "---", "\N{HORIZONTAL ELLIPSIS}": r"\dots{}",
    "\N{LEFT SINGLE QUOTATION MARK}": "`", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": "``", "\N{RIGHT DOUBLE QUOTATION MARK}": "''",
    "\N{CHECK MARK}": r"$\surd$", "\N{BALLOT X}": r"$\times$", "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MIDDLE DOT}": r"$\cdot$", "\N{BULLET}": r"$\bullet$", "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$", "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{ALMOST EQUAL TO}": r"$\approx$", "\N{DEGREE SIGN}": r"$^\circ$", "\N{SUPERSCRIPT TWO}": "$^2$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$", "\N{LEFTWARDS ARROW}": r"$\leftarrow$",
    "\N{UPWARDS ARROW}": r"$\uparrow$", "\N{DOWNWARDS ARROW}": r"$\downarrow$",
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$", "\N{GREEK SMALL LETTER KAPPA}": r"$\kappa$",
    "\N{GREEK SMALL LETTER RHO}": r"$\rho$", "\N{GREEK SMALL LETTER TAU}": r"$\tau$",
    "\N{GREEK CAPITAL LETTER DELTA}": r"$\Delta$", "\N{LATIN SMALL LETTER SHARP S}": r"\ss{}",
    "\N{LATIN SMALL LETTER AE}": r"\ae{}", "\N{LATIN CAPITAL LETTER AE}": r"\AE{}",
    "\N{LATIN SMALL LIGATURE OE}": r"\oe{}", "\N{LATIN CAPITAL LIGATURE OE}": r"\OE{}",
    "\N{LATIN SMALL LETTER O WITH STROKE}": r"\o{}", "\N{LATIN CAPITAL LETTER O WITH STROKE}": r"\O{}",
    "\N{LATIN SMALL LETTER L WITH STROKE}": r"\l{}", "\N{LATIN CAPITAL LETTER L WITH STROKE}": r"\L{}",
}  # fmt: skip
_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": "`", "\N{COMBINING ACUTE ACCENT}": "'",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "^", "\N{COMBINING TILDE}": "~", "\N{COMBINING MACRON}": "=",
    "\N{COMBINING BREVE}": "u", "\N{COMBINING DOT ABOVE}": ".", "\N{COMBINING DIAERESIS}": '"',
    "\N{COMBINING RING ABOVE}": "r", "\N{COMBINING DOUBLE ACUTE ACCENT}": "H", "\N{COMBINING CARON}": "v",
    "\N{COMBINING CEDILLA}": "c", "\N{COMBINING DOT BELOW}": "d",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Return a text as LaTeX of ASCII that needs no package.

    Accented Latin letters are written with their accents; a character that the fonts of plain LaTeX lack
    stands as its code point in brackets, such as ``[U+6587]``.
    """
    return "".join(map(_sign, unicodedata.normalize("NFC", text)))


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character.isascii() and character.isprintable():
        return character
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[1] in _ACCENTS and parts[0].isascii():
        return rf"\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"[U+{ord(character):04X}]"
