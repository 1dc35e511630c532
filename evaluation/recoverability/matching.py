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

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError, InputError
from ...schemas.katha import Question, StoryRecord, Variant
from ...schemas.plugins import plugins
from ...schemas.text import normalize_answer
from ...schemas.values import vocabulary
from ..stats.uncertainty import Uncertainty

# -- The named definitions with which replies are scored; every report says which were used

Nonresponse = Literal["incorrect", "excluded"]
Support = Literal["contradicted", "eq51"]
Common = Literal["every-seed", "majority"]

PROTOCOL = "katha"
"""Name of the recoverability protocol, which its archives and scores bear."""
NONRESPONSES: Mapping[str, str] = {
    "incorrect": "a judge that was asked and did not answer counts as a vote for a wrong answer",
    "excluded": "a judge that did not answer has no vote; without any vote the question is left out",
}
SUPPORTS: Mapping[str, str] = {
    "contradicted": "under text+image, an answer whose image support is contradicted or ambiguous is wrong",
    "eq51": "under text+image, an answer whose image support is omitted is wrong too (Eq. 51 to the letter)",
}
COMMONS: Mapping[str, str] = {
    "every-seed": "common-valid are questions that are valid for every method with every seed",
    "majority": "common-valid are questions that are valid for every method with most of its seeds; each"
    " counts once, as the mean over the seeds with which it is valid",
}


@dataclass(frozen=True)
class Definitions(Uncertainty):
    """How replies become numbers; how sure they are is :class:`.Uncertainty`'s.

    ``support`` exists because the paper contradicts itself: by Eq. 51 a question is invalid wherever a judge
    says that the images omit the answer, and then no loss could ever be measured (the second row of Table 30
    would be empty, against 89.6 % valid questions in Table 73). The default keeps such questions.

    Attributes:
        matcher: how answers are compared: {evaluation.recoverability.matching:MATCHERS}; some take a value,
            as NAME=VALUE.
        nonresponse: what a judge counts as that was asked and did not answer: ``incorrect`` or ``excluded``.
        support: which image support spoils a text+image answer: ``contradicted`` or ``eq51`` [contradicted].
        common: which questions methods are compared on: {evaluation.recoverability.matching:COMMONS}
            [every-seed].
        weights: weight of each judge, fitted on people's answers; None for one vote each.
    """

    matcher: str = "accepted"
    nonresponse: Nonresponse = "excluded"
    support: Support = "contradicted"
    weights: Mapping[str, float] | None = field(default=None, hash=False)
    common: Common = "every-seed"

    def __post_init__(self) -> None:
        _known("nonresponse", self.nonresponse, NONRESPONSES)
        _known("support", self.support, SUPPORTS)
        _known("common", self.common, COMMONS)
        super().__post_init__()

    def as_json(self) -> dict[str, Any]:
        """Return them as plain JSON; ``common`` came later and stands there where it is not the usual one."""
        given = None if self.weights is None else dict(self.weights)
        fields = asdict(self)
        if self.common == "every-seed":
            del fields["common"]
        return {
            **fields, "weights": given, "aggregation": "majority" if given is None else "weighted",
            "ties": "incorrect",
        }  # fmt: skip


def _known(name: str, value: str, there: Mapping[str, str]) -> None:
    if value not in there:
        raise ConfigError(name, expected=" or ".join(there), found=value, fix="choose one of them")


# --

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
    "token-f1": ".matching:MATCHER",
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


# -- Matching answers by the words that they share: token F1 with a threshold
#
# Question: does an answer say mostly the words of an accepted answer, and little else?
# Formula: F1 = 2 s / (a + b), with s words shared (as often as both have them), a words of the answer and
#     b of an accepted answer; the highest over the accepted answers. Right where it is the threshold or more.
# Input: an answer, any text; the accepted answers, as :func:`fabula.schemas.text.normalize_answer` leaves
# them. Output: F1 in [0, 1]; right or wrong. Undefined when: never; an answer without a word shares
# nothing, and is wrong. Source: F1 of SQuAD, Rajpurkar et al. 2016, section 6.1. Departures from the
# source: SQuAD reports the mean of F1, here a threshold decides, since a question is right
#     or wrong (Eq. 50). Texts are normalised as for ``accepted``: NFKC, case folded, without punctuation.
#     Articles stay, which SQuAD drops in English alone. Words are what stands between spaces, so in a script
#     without spaces an answer is one word, and is right only where it is an accepted one. The default of 0.5
#     asks that half of all words of both texts be shared: as ``keyword`` asks for half of the canonical
#     answer's, but words too many count too.
# Example: accepted "the mouse frees the lion", answer "the lion is free": shared the, lion;
#     2 * 2 / (4 + 5) = 0.44, wrong at 0.5, right at 0.4.


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


# -- What is scored: the stories and questions of a release as arrays

Ints = NDArray[np.int64]

DIMENSIONS = ("action_visibility", "causal", "emotional", "consequence", "temporal_order", "moral")
"""The scored dimensions (Eq. 5)."""
LATENT = ("causal", "emotional", "consequence", "moral")
"""The dimensions of the latent gap (Eq. 13)."""
CONDITIONS = ("text", "image", "text_image")
GROUPINGS = ("source_family", "narrative_type", "split")
LABELS = vocabulary("moral_label").values
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Items:
    """Stories, questions and contrastive pairs in the order of the release, places counted from 0."""

    records: tuple[StoryRecord, ...] = field(repr=False)  # the stories
    keys: tuple[Key, ...] = field(repr=False)  # what answers to each question are compared with
    story: Ints = field(repr=False)  # question -> place of its story, shape (questions,)
    dimension: Ints = field(repr=False)  # question -> place in :data:`DIMENSIONS`, shape (questions,)
    # story -> place in :data:`LABELS`; -1 where it has none. Shape (stories,).
    moral: Ints = field(repr=False)
    pairs: tuple[str, ...] = field(repr=False)  # the ids of the contrastive pairs
    pair_story: Ints = field(repr=False)  # pair -> place of its story, shape (pairs,)
    # pair -> place of the contrastive label in :data:`LABELS`, -1 where it has none
    pair_moral: Ints = field(repr=False)
    pair_kind: tuple[str, ...] = field(repr=False)  # kind of change of each pair
    # the same stories with the questions about their active variants in place of their own; None where no
    # variant has any
    contrast: "Items | None" = field(default=None, repr=False)

    @property
    def stories(self) -> int:
        return len(self.records)

    @property
    def questions(self) -> int:
        return len(self.keys)

    @cached_property
    def story_places(self) -> dict[str, int]:
        """Story id -> place."""
        return {record.story_id: index for index, record in enumerate(self.records)}

    @cached_property
    def question_places(self) -> dict[str, int]:
        """Question id -> place."""
        return {key.question_id: index for index, key in enumerate(self.keys)}

    @cached_property
    def pair_places(self) -> dict[str, int]:
        """Pair id -> place."""
        return {pair: index for index, pair in enumerate(self.pairs)}

    def chosen(self, stories: Sequence[str]) -> "Items":
        """Return some of the stories, in the order that they have here, with their questions and pairs."""
        wanted = set(stories)
        records = tuple(record for record in self.records if record.story_id in wanted)
        kept = np.array([record.story_id in wanted for record in self.records], dtype=bool)
        new = np.cumsum(kept) - 1
        of_story, of_pair = kept[self.story], kept[self.pair_story]
        return Items(
            records=records,
            keys=tuple(key for key, there in zip(self.keys, of_story, strict=True) if there),
            story=new[self.story[of_story]],
            dimension=self.dimension[of_story],
            moral=self.moral[kept],
            pairs=tuple(pair for pair, there in zip(self.pairs, of_pair, strict=True) if there),
            pair_story=new[self.pair_story[of_pair]],
            pair_moral=self.pair_moral[of_pair],
            pair_kind=tuple(kind for kind, there in zip(self.pair_kind, of_pair, strict=True) if there),
            contrast=None if self.contrast is None else self.contrast.chosen(stories),
        )

    def groups(self, grouping: str) -> dict[str, NDArray[np.bool_]]:
        """Return name -> which stories belong to it, shape (stories,), for one of :data:`GROUPINGS`."""
        names = np.array([_group(record, grouping) for record in self.records], dtype=object)
        return {name: names == name for name in sorted(set(names))}


def items_of(records: Sequence[StoryRecord], variants: Sequence[Variant]) -> Items:
    """Return the stories with their questions and active contrastive variants.

    Questions of a type that is no scored dimension are left out.
    """
    places = {record.story_id: index for index, record in enumerate(records)}
    asked = [
        (index, DIMENSIONS.index(question.question_type), Key.of(question))
        for index, record in enumerate(records)
        for question in record.questions
        if question.question_type in DIMENSIONS
    ]
    pairs = [variant for variant in variants if variant.has_variant and variant.base_story_id in places]
    contrasted = _with_questions_of(records, pairs) if any(pair.questions for pair in pairs) else None
    return Items(
        records=tuple(records),
        keys=tuple(key for _, _, key in asked),
        story=np.array([record for record, _, _ in asked], dtype=np.int64),
        dimension=np.array([dimension for _, dimension, _ in asked], dtype=np.int64),
        moral=_labels([record.moral_label for record in records]),
        pairs=tuple(pair.pair_id for pair in pairs),
        pair_story=np.array([places[pair.base_story_id] for pair in pairs], dtype=np.int64),
        pair_moral=_labels([pair.contrastive_moral for pair in pairs]),
        pair_kind=tuple(pair.change_type for pair in pairs),
        contrast=None if contrasted is None else items_of(contrasted, ()),
    )


def _with_questions_of(records: Sequence[StoryRecord], variants: Sequence[Variant]) -> list[StoryRecord]:
    """Return records with the questions about their variants in place of their own."""
    asked: dict[str, list[Question]] = {record.story_id: [] for record in records}
    for variant in variants:
        asked[variant.base_story_id].extend(variant.questions or ())
    return [record.model_copy(update={"questions": tuple(asked[record.story_id])}) for record in records]


def _labels(labels: Sequence[str | None]) -> Ints:
    places = {label: index for index, label in enumerate(LABELS)}
    return np.array([-1 if label is None else places.get(label, -1) for label in labels], dtype=np.int64)


def _group(record: StoryRecord, grouping: str) -> str:
    if grouping == "source_family":
        return record.provenance.source_dataset
    value = record.narrative_type if grouping == "narrative_type" else record.split
    return value or UNKNOWN
