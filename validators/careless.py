"""Signs that somebody reviewed without care: one option throughout, agreement like chance, haste.

Question: whose answers say nothing of what was shown?
Formula: one option: the share of a person's answers by choice that lie at one place among the options, from
    :data:`SAME` on, over :data:`LEAST` answers or more. Chance: of the answers to each question, the share
    of the others on the same thing who say the same, less what it would be if the person's answers were
    dealt anew among these things, as a share of what perfect agreement would give; flagged where even the
    upper end of its 95 % interval (from the variance of that dealing) is below :data:`CHANCE`. Haste: more
    than half of a person's votes took less than the least time.
Undefined when: there are fewer answers than :data:`LEAST`; for chance also where nothing varies, or nobody
    else answered. Nothing is flagged then.
Source: the long-string index (Johnson 2005) over all questions; the mean and variance of a linear permutation
    statistic (Hoeffding 1951), with agreement as its score.
Departures: a careful reviewer of faultless records accepts throughout, too. A flag is no proof, only what
    somebody must look at; gold items tell the two apart.
Example: 40 answers, 39 of them the first option: 0.975, flagged. Two people who throw coins about 100 things
    agree on about 50: (50 - 50) / (100 - 50) = 0, and up to 0.165 by chance: flagged, as 0.165 is below 0.2.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

CARELESS = "careless.json"
"""File of a review's export that names reviewers with signs of carelessness."""
SECONDS_PER_ANSWER = 0.5
"""Least seconds of an answer, beside those for reading what was shown."""
SAME = 0.97
"""Share of answers at one place among the options from which on they are flagged."""
LEAST = 20
"""Fewest answers that anything is said of."""
CHANCE = 0.2
"""Chance-corrected agreement that is no agreement to speak of."""
HASTY = 0.5
"""Share of votes below the least time from which on a person is flagged."""
_UPPER = 1.645


@dataclass(frozen=True, slots=True)
class Said:
    """One answer by choice."""

    who: str  # the reviewer
    thing: Hashable  # what was asked about: an item, or a part of it
    question: str  # what was asked
    answer: Hashable  # what was answered; None where people need not agree, as on how sure they are
    # the answer's place among the options as the task lists them, from 0; None where unknown
    place: int | None = None


def careless(said: Sequence[Said]) -> dict[str, list[str]]:
    """Return who answered carelessly as far as answers tell, and the signs, one sentence each.

    ``said``: at most one answer of a reviewer to a question about a thing.
    """
    by_reviewer: dict[str, list[Said]] = defaultdict(list)
    for each in said:
        by_reviewer[each.who].append(each)
    everybody = answers_by_thing(said)
    signs: dict[str, list[str]] = defaultdict(list)
    for who, own in sorted(by_reviewer.items()):
        places = Counter(each.place for each in own if each.place is not None)
        total = places.total()
        if total >= LEAST:
            option, count = places.most_common(1)[0]
            if count >= SAME * total:
                signs[who].append(f"chose option {option + 1} in {count} of {total} answers")
        if (agreement := beyond_chance(own, everybody)) is not None and agreement[1] < CHANCE:
            value, _, answers = agreement
            signs[who].append(
                f"agrees with the others no more than chance would ({value:.2f}, over {answers} answers)"
            )
    return dict(signs)


Answers = Mapping[tuple[str, Hashable], Counter[Hashable]]
"""Question and thing -> how often each answer was given."""


def answers_by_thing(said: Iterable[Said]) -> Answers:
    """Return how often each answer was given to each question about each thing."""
    answers: dict[tuple[str, Hashable], Counter[Hashable]] = defaultdict(Counter)
    for each in said:
        if each.answer is not None:
            answers[each.question, each.thing][each.answer] += 1
    return answers


def beyond_chance(own: Iterable[Said], everybody: Answers) -> tuple[float, float, int] | None:
    """Return how far somebody agrees with the others beyond chance: value, upper end, answers it is over.

    None where too few can be compared, or nothing varies.
    """
    by_question: dict[str, list[tuple[Hashable, Counter[Hashable]]]] = defaultdict(list)
    for each in own:
        if each.answer is not None:
            others = everybody[each.question, each.thing] - Counter({each.answer: 1})
            if others:
                by_question[each.question].append((each.answer, others))
    excess = most = variance = 0.0
    answers = 0
    for pairs in by_question.values():
        if len(pairs) > 1:
            agreed, expected, spread = _dealt(pairs)
            excess, most = excess + agreed - expected, most + len(pairs) - expected
            variance, answers = variance + spread, answers + len(pairs)
    if answers < LEAST or most <= 0 or variance <= 0:
        return None
    return excess / most, (excess + _UPPER * float(variance**0.5)) / most, answers


def _dealt(pairs: Sequence[tuple[Hashable, Counter[Hashable]]]) -> tuple[float, float, float]:
    """Return the agreement of one question, and mean and variance of it where answers are dealt anew."""
    size = len(pairs)
    own = Counter(answer for answer, _ in pairs)
    shares = [{answer: count / others.total() for answer, count in others.items()} for _, others in pairs]
    agreed = sum(share.get(answer, 0.0) for (answer, _), share in zip(pairs, shares, strict=True))
    means = {answer: sum(share.get(answer, 0.0) for share in shares) / size for answer in own}
    overall = sum(own[answer] * means[answer] for answer in own) / size
    squares = 0.0
    for share in shares:
        row = sum(own[answer] * share.get(answer, 0.0) for answer in own) / size
        squares += sum(
            own[answer] * (share.get(answer, 0.0) - row - means[answer] + overall) ** 2 for answer in own
        )
    return agreed, size * overall, squares / (size - 1)


def hasty(under: Mapping[str, int], votes: Mapping[str, int]) -> dict[str, str]:
    """Return who gave more than half of the votes in less than the least time, and a sentence about it."""
    return {
        who: f"{under[who]} of {count} votes took less than the least time"
        for who, count in sorted(votes.items())
        if under.get(who, 0) > HASTY * count
    }
