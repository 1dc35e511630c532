"""Whether a judge's answer to a question is right: named matchers.

Question: does an answer say what the question's accepted answers say?
Formula: ``accepted`` 1 where the normalised answer is one of the normalised accepted answers (Eq. 50);
    ``exact`` 1 where the answer, without space around it, is the canonical answer letter by letter;
    ``keyword`` 1 where the answer has at least half of the canonical answer's words of three letters and
    more. Any other name: what a matcher of that name said, whose verdicts (kind ``match``) are archived.
Input: a question with canonical and accepted answers; an answer, any text.
Output: right or wrong.
Undefined when: a named matcher's verdict on an answer is not in the archive: an error, never a guess.
Source: KathaTrace, E.6 and Eq. 50-51; the alternatives of Table 61.
Departures from the source: the paper does not say which words its keyword matcher selects, ours are stated
    above; answers are compared after NFKC and case folding, so that all scripts are treated alike.
Example: accepted answers "Fear" and "He is afraid."; the answer "he is afraid" is right by ``accepted``,
    wrong by ``exact``.

Which rules there are is said in :data:`MATCHERS`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

from ...errors import ConfigError, InputError
from ...schemas.katha import Question
from ...schemas.plugins import plugins
from ...schemas.text import normalize_answer
from .definitions import Support

UNCERTAIN = frozenset({"unclear", "ambiguous", "omitted", "contradicted"})
"""Statuses that say a judge could not tell (Eq. 51)."""

REFUSED_SUPPORT: Mapping[Support, frozenset[str]] = {
    "contradicted": frozenset({"contradicted", "ambiguous"}),
    "eq51": UNCERTAIN,
}

Compare = Callable[["Key", str], bool]


@dataclass(frozen=True)
class Key:
    """What answers to one question are compared with."""

    question_id: str
    gold: str  # the canonical answer
    # the accepted answers as :func:`fabula.schemas.text.normalize_answer` leaves them
    accepted: frozenset[str]
    words: frozenset[str]  # the longer words of the canonical answer, for matching by keyword

    @classmethod
    def of(cls, question: Question) -> "Key":
        """Return the key of a question; the canonical answer is always accepted."""
        return cls.of_answers(question.question_id, question.gold_answer, question.accepted_answers)

    @classmethod
    def of_answers(cls, question_id: str, gold: str, more: Iterable[str] = ()) -> "Key":
        """Return the key of a canonical answer and others that are accepted."""
        answers = {normalize_answer(text) for text in (gold, *more)}
        words = normalize_answer(gold).split()
        longer = frozenset(word for word in words if len(word) >= 3) or frozenset(words)
        return cls(question_id, gold.strip(), frozenset(answers - {""}), longer)


def accepted(key: Key, answer: str) -> bool:
    """Return whether the normalised answer is an accepted one."""
    return normalize_answer(answer) in key.accepted


def exact(key: Key, answer: str) -> bool:
    """Return whether the answer is the canonical one, letter by letter."""
    return answer.strip() == key.gold


def keyword(key: Key, answer: str) -> bool:
    """Return whether the answer has at least half of the canonical answer's longer words."""
    said = key.words.intersection(normalize_answer(answer).split())
    return bool(key.words) and 2 * len(said) >= len(key.words)


@dataclass(frozen=True)
class Matcher:
    """A rule by which answers are compared."""

    meaning: str  # when an answer is right, in a sentence
    rule: Callable[[float], Compare]  # its setting -> whether an answer to a question is right
    # the default of its setting, and its least and greatest value; None where it has none
    setting: tuple[float, float, float] | None = None


ACCEPTED = Matcher("The normalised answer is one of the accepted answers.", lambda _: accepted)
EXACT = Matcher("The answer is the canonical answer, letter by letter.", lambda _: exact)
KEYWORD = Matcher("The answer has half of the canonical answer's longer words.", lambda _: keyword)


def archived(name: str, verdicts: Mapping[tuple[str, str], bool]) -> Compare:
    """Return the matcher that looks its verdicts up.

    ``verdicts``: (question id, answer) -> whether it is right.
    """

    def compare(key: Key, answer: str) -> bool:
        verdict = verdicts.get((key.question_id, answer))
        if verdict is None:
            raise InputError.one(
                f"question {key.question_id}",
                what=f"the archive has no verdict of the matcher {name!r} on the answer {answer[:80]!r}",
                fix="run the matcher on all answers, or choose another",
            )
        return verdict

    return compare


@dataclass
class Marker:
    """Decides whether replies are right; the same answer to the same question is compared once."""

    compare: Compare  # the matcher
    support: Support = "contradicted"  # what the image support of a text+image reply decides
    _seen: dict[tuple[str, str], bool] = field(default_factory=dict, repr=False)

    def marks(self, key: Key, condition: str, parsed: Mapping[str, object]) -> tuple[bool, bool]:
        """Return whether a reply is right, and whether its answer alone would be.

        A reply whose status says that the judge could not tell is wrong, unless that status is itself an
        accepted answer (Eq. 51).
        """
        if condition == "text_image":
            answer, status = parsed.get("final_answer"), parsed.get("image_support")
            spoiled = REFUSED_SUPPORT[self.support]
        else:
            answer, status = parsed.get("answer"), parsed.get("evidence_status")
            spoiled = UNCERTAIN
        unsure = isinstance(status, str) and status in spoiled  # imported replies may hold anything
        says = isinstance(answer, str) and self._matches(key, answer)
        return (status in key.accepted if unsure else says), says

    def _matches(self, key: Key, answer: str) -> bool:
        pair = (key.question_id, answer)
        known = self._seen.get(pair)
        if known is None:
            known = self._seen[pair] = self.compare(key, answer)
        return known


# -- Which matchers there are: an explicit list, an entry-point group for users' own, and archived verdicts

MATCHERS = {
    "accepted": ".matching:ACCEPTED",
    "exact": ".matching:EXACT",
    "keyword": ".matching:KEYWORD",
    "token-f1": ".token_f1:MATCHER",
}
"""Name -> where it is. Each passes ``tests/contract/test_matchers.py``."""
GROUP = "fabula.matchers"
"""Entry points of this group add matchers: the object is a :class:`.matching.Matcher`."""


@cache
def rules() -> "Mapping[str, Matcher]":
    """Return all matchers that are rules, by name: our own, then those of plug-ins."""
    matchers: dict[str, Matcher] = {}
    for name, address in MATCHERS.items():
        module, _, attribute = address.partition(":")
        matchers[name] = getattr(import_module(module, __package__), attribute)
    for entry in plugins(GROUP):
        rule = entry.load()
        if not isinstance(rule, Matcher) or entry.name in matchers:
            raise ConfigError(
                f"entry point {entry.name} of {GROUP}", what="it is no Matcher, or there is one of that name",
                fix="name it otherwise; CONTRIBUTING.md shows how",
            )  # fmt: skip
        matchers[entry.name] = rule
    return matchers


def is_rule(name: str) -> bool:
    """Return whether a matcher needs no archived verdicts; it may be written with its setting."""
    return name.partition("=")[0] in rules()


def matcher_of(name: str, verdicts: "Mapping[str, Mapping[tuple[str, str], bool]]") -> "Compare":
    """Return a matcher by name.

    ``verdicts``: name -> archived verdicts.
    """
    base, equals, text = name.partition("=")
    rule = rules().get(base)
    if rule is None and name in verdicts:
        return archived(name, verdicts[name])
    if rule is None:
        there = ", ".join((*rules(), *sorted(verdicts)))
        raise ConfigError("matcher", expected=f"one of {there}", found=name, fix="choose one of them")
    default, least, most = rule.setting or (0.0, 0.0, 0.0)
    try:
        value = float(text) if equals else default
    except ValueError:
        value = float("nan")
    if equals and (rule.setting is None or not least <= value <= most):
        wanted = "no setting" if rule.setting is None else f"a number from {least:g} to {most:g}"
        raise ConfigError(f"matcher {base}", expected=wanted, found=text, fix=f"for example {base}")
    return rule.rule(value)
