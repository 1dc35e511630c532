"""Signs that reviewers of records answered without care: from their votes, and as a review's export says."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ...errors import InputError, UserError
from ...schemas.canonical import Json
from ...schemas.plain_files import read_json, reason_of
from ...validators.careless import CARELESS, SECONDS_PER_ANSWER, Said, careless, hasty
from ...validators.katha.votes import CONFIDENCE, UNITS, Vote

Signs = Mapping[str, Sequence[str]]
"""Reviewer -> signs that their answers say little, one sentence each."""


def signs_in(*votes: Iterable[Vote], stated: Signs | None = None) -> dict[str, list[str]]:
    """Return the signs that some sets of votes show, each by itself, with those that are stated; sorted."""
    signs: dict[str, list[str]] = {name: list(each) for name, each in (stated or {}).items()}
    for listed in map(list, votes):
        seen = careless(list(_said(listed)))
        for name, sentence in _hasty(listed).items():
            seen.setdefault(name, []).append(sentence)
        for name in seen.keys() - signs.keys():
            signs[name] = seen[name]
    return dict(sorted(signs.items()))


def _said(votes: Iterable[Vote]) -> Iterator[Said]:
    for vote in votes:
        criterion, answer = str(vote["criterion"]), vote["answer"]
        thing = (vote["item"], vote["part"])
        if vote["kind"] == "review" and criterion == CONFIDENCE and isinstance(vote["value"], int):
            yield Said(str(vote["rater"]), thing, criterion, None, vote["value"] - 1)
        elif vote["kind"] == "review" and criterion in UNITS:
            words = UNITS[criterion].words
            number = words.index(str(answer)) if answer in words else None
            yield Said(str(vote["rater"]), thing, criterion, answer, number)


def _hasty(votes: Iterable[Vote]) -> dict[str, str]:
    """Return who answered faster than anybody can; how many words were shown is not on file."""
    lines, seconds = Counter[tuple[str, str]](), dict[tuple[str, str], float]()
    for vote in votes:
        if vote["kind"] == "review" and isinstance(vote["seconds"], int | float):
            key = (str(vote["rater"]), str(vote["item"]))
            lines[key] += 1
            seconds[key] = float(vote["seconds"])
    given = Counter(rater for rater, _ in lines)
    under = Counter(key[0] for key, count in lines.items() if seconds[key] < SECONDS_PER_ANSWER * count)
    return hasty(under, given)


def stated_signs(folder: Path) -> dict[str, list[str]]:
    """Return the signs that a review's export states; none where it is of before."""
    path = folder / CARELESS
    if not path.is_file():
        return {}
    try:
        return signs_of(read_json(path, follow=True)["people"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        problem = UserError(
            str(path), what=f"this does not say who answered carelessly: {reason_of(error)}",
            fix="export the review again",
        )  # fmt: skip
        raise InputError([problem]) from error


def signs_of(document: Json) -> dict[str, list[str]]:
    """Return the signs of a JSON object; nothing where it is none."""
    if not isinstance(document, dict):
        return {}
    return {str(name): list(map(str, each)) for name, each in document.items() if isinstance(each, list)}
