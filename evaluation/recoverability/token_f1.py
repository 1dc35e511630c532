"""Matching answers by the words that they share: token F1 with a threshold.

Question: does an answer say mostly the words of an accepted answer, and little else?
Formula: F1 = 2 s / (a + b), with s words shared (as often as both have them), a words of the answer and
    b of an accepted answer; the highest over the accepted answers. Right where it is the threshold or more.
Input: an answer, any text; the accepted answers, as :func:`fabula.schemas.text.normalize_answer` leaves them.
Output: F1 in [0, 1]; right or wrong.
Undefined when: never; an answer without a word shares nothing, and is wrong.
Source: F1 of SQuAD, Rajpurkar et al. 2016, section 6.1.
Departures from the source: SQuAD reports the mean of F1, here a threshold decides, since a question is right
    or wrong (Eq. 50). Texts are normalised as for ``accepted``: NFKC, case folded, without punctuation.
    Articles stay, which SQuAD drops in English alone. Words are what stands between spaces, so in a script
    without spaces an answer is one word, and is right only where it is an accepted one. The default of 0.5
    asks that half of all words of both texts be shared: as ``keyword`` asks for half of the canonical
    answer's, but words too many count too.
Example: accepted "the mouse frees the lion", answer "the lion is free": shared the, lion;
    2 * 2 / (4 + 5) = 0.44, wrong at 0.5, right at 0.4.
"""

from collections import Counter
from collections.abc import Iterable

from ...schemas.text import normalize_answer
from .matching import Compare, Key, Matcher


def token_f1(answer: str, accepted: Iterable[str]) -> float:
    """Return the highest F1 of an answer with any of the accepted answers, all normalised; 0 with none."""
    return max((_f1(Counter(answer.split()), Counter(text.split())) for text in accepted), default=0.0)


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    shared = (said & wanted).total()
    return 2 * shared / (said.total() + wanted.total()) if shared else 0.0


def _rule(threshold: float) -> Compare:
    def compare(key: Key, answer: str) -> bool:
        value = token_f1(normalize_answer(answer), key.accepted)
        return value > 0 and value >= threshold

    return compare


MATCHER = Matcher("Words shared with an accepted answer: F1 of the threshold or more.", _rule, (0.5, 0, 1))
