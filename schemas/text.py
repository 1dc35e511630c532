"""Text normalisation that builders and validators share."""

import re
import unicodedata

_SPACE = re.compile(r"\s+")


def normalize_text(text: str) -> str:
    """Return a text in normal form C, without control and format noise, white space collapsed.

    Zero-width joiners are kept: Indic and Persian scripts need them.
    """
    composed = unicodedata.normalize("NFC", text)
    kept = "".join(
        char
        if char in "\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")
        else " "
        if char.isspace()
        else ""
        for char in composed
    )
    return _SPACE.sub(" ", kept).strip()


def normalize_answer(text: str) -> str:
    """Return an answer as it is compared: NFKC, casefolded, punctuation dropped, spaces collapsed."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    letters = "".join(" " if unicodedata.category(char)[0] in "PSZC" else char for char in folded)
    return " ".join(letters.split())
