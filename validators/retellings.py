"""Retellings of one story: which stories are linked by title, catalogue number, words or meaning, and why.

A link is no verdict that one of two stories is superfluous (that is :mod:`.similarity`): it says that a model
which has seen one may know the other, so that both belong into one split. Three kinds of links need the
stories alone; the fourth needs the vectors of an encoder.

The order of words in a title and of sentences in a text does not count.
"""

import base64
import math
import re
import tomllib
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from ..schemas.canonical import Json
from ..schemas.text import is_unspaced, normalize_answer

if TYPE_CHECKING:
    import numpy as np


# -- Near-duplicate texts: MinHash signatures and the pairs whose estimated Jaccard similarity is high

PERMUTATIONS = 128
"""Numbers in a signature."""

SEED = 42
WORDS, CHARACTERS = 3, 5
DEFAULT_THRESHOLD = 0.8
"""Estimated Jaccard similarity from which two texts count as the same story."""


def shingles(text: str) -> set[str]:
    """Return the word 3-grams of a text, or its character 5-grams where the script has no spaces.

    The text is compared as :func:`fabula.schemas.text.normalize_answer` leaves it (case and punctuation
    do not count). A text shorter than one shingle is its own single shingle; only an empty one has none.
    """
    words = normalize_answer(text).split()
    joined = "".join(words)
    if is_unspaced(joined):
        return {joined[i : i + CHARACTERS] for i in range(max(1, len(joined) - CHARACTERS + 1))}
    if not words:
        return set()
    return {" ".join(words[i : i + WORDS]) for i in range(max(1, len(words) - WORDS + 1))}


def signature(text: str) -> list[int]:
    """Return the MinHash signature of a text: 128 unsigned 32-bit numbers.

    The same text gives the same numbers on every machine; texts that differ only in case, punctuation or
    white space give equal signatures.
    """
    mark = _empty_minhash().copy()
    # Sorting is not needed for the result (a minimum has no order); the set's order never shows.
    parts = [part.encode("utf-8", "surrogatepass") for part in shingles(text)]
    if parts:
        mark.update_batch(parts)
    numbers: list[int] = mark.hashvalues.tolist()
    return numbers


@cache
def _empty_minhash() -> Any:  # noqa: ANN401 - datasketch carries no types
    from datasketch import MinHash

    # The scheme mixes the hash before it permutes it, so a checksum is enough of a hash, and a fast one.
    return MinHash(num_perm=PERMUTATIONS, seed=SEED, scheme="affine32", hashfunc=zlib.crc32)


def similarity(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the estimated Jaccard similarity of two signatures: the share of equal numbers, 0 to 1."""
    return sum(a == b for a, b in zip(first, second, strict=True)) / len(first)


def near_duplicates(
    signatures: Mapping[str, Sequence[int]], threshold: float = DEFAULT_THRESHOLD
) -> list[tuple[str, str, float]]:
    """Return the pairs of ids whose estimated similarity reaches a threshold.

    ``signatures``: id -> what :func:`signature` returned. ``threshold``: estimated Jaccard similarity, above
    0 and at most 1.

    Returned: ``(id_a, id_b, similarity)`` with ``id_a < id_b``, sorted. Candidates come from
    locality-sensitive hashing with bands chosen so that a pair at the threshold is missed less than once in a
    thousand times; every pair returned is checked on the full signatures. Equal signatures are always found.
    Of a group of equal ones each is paired with the first of its group and with the first of every group near
    it, but not with the rest, so that a text copied a thousand times gives thousands of pairs and not a
    million.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1, not {threshold}")
    import numpy as np

    ids = sorted(signatures)
    if len(ids) < 2:
        return []
    table = np.asarray([signatures[id_] for id_ in ids], dtype=np.uint32)
    groups: dict[bytes, list[int]] = {}
    for row, numbers in enumerate(table):
        groups.setdefault(numbers.tobytes(), []).append(row)
    equals = list(groups.values())
    pairs = [(rows[0], row, 1.0) for rows in equals for row in rows[1:]]
    distinct = table[[rows[0] for rows in equals]]
    for first, others in _candidates(distinct, threshold):
        for other, share in zip(others, _shares(distinct, first, others), strict=True):
            if share >= threshold:
                pairs += [(equals[other][0], row, share) for row in equals[first]]
                pairs += [(equals[first][0], row, share) for row in equals[other][1:]]
    # Rows are in id order.
    return sorted((ids[min(a, b)], ids[max(a, b)], share) for a, b, share in pairs)


def _candidates(table: "np.ndarray[Any, Any]", threshold: float) -> Iterator[tuple[int, list[int]]]:
    """Yield each row with the earlier rows that share a band with it."""
    width = _band_width(threshold)
    buckets: list[dict[bytes, list[int]]] = [{} for _ in range(PERMUTATIONS // width)]
    for row in range(len(table)):
        candidates: set[int] = set()
        for band, bucket in enumerate(buckets):
            key = table[row, band * width : (band + 1) * width].tobytes()
            members = bucket.setdefault(key, [])
            candidates.update(members)
            members.append(row)
        if candidates:
            yield row, sorted(candidates)


def _band_width(threshold: float) -> int:
    """Return the widest band (fewest false candidates) that misses a pair at the threshold rarely enough."""
    for width in (32, 16, 8, 4, 2):
        if (1 - threshold**width) ** (PERMUTATIONS // width) < 1e-3:
            return width
    return 1


def _shares(table: "np.ndarray[Any, Any]", row: int, others: list[int]) -> list[float]:
    shares: list[float] = (table[others] == table[row]).mean(axis=1).tolist()
    return shares


# -- Retellings of one story

By = Literal["title", "number", "text", "meaning"]

SHARED = 0.32
"""Share of the word groups of the lighter text from which a build takes two texts for one story told twice.

Groups weigh by their rarity among the stories. Of a text in which a fifth of the words were replaced and the
order of the sentences was turned, 0.34 to 0.5 remain in the other; two different fables share less than 0.05,
and tales made of the same few frames up to 0.36.
"""

PLAIN = 0.42
"""The same for those who only look: more, because weights depend on which stories there are."""

FEWEST = 8
"""Fewer common word groups say nothing."""

MOST_GROUPS = 4096
"""Word groups that are kept of a text: those with the smallest checksums."""

FORMULA = (100, 0.1, 300)
"""A word group in more stories than a tenth of all (100 at least, 300 at most) is a formula, and no trace."""

MOST_BEARERS = 50
"""A title or number that more stories bear is a common heading, and says nothing."""

MEANING = 0.92
"""Cosine of the vectors of two texts from which they are taken to tell one story."""

_WORDS = tomllib.loads((files(__package__) / "titles.toml").read_text("utf-8"))
_FRAMES = re.compile(
    r"^(?:the )?(?:(?:story|tale|fable|legend|parable|history|account|adventures?) (?:of|about|how)\b)"
)
_NUMBER = re.compile(r"[\dIVXLCivxlc]+")
_INDEXES = "|".join(re.escape(name).replace(r"\ ", r"[\s-]+") for name in _WORDS["catalogues"])
_CATALOGUE = re.compile(
    rf"(?<!\w)({_INDEXES})(?:[\s,.-]+(?:index|type|fable|number|no|nr))*"
    r"[\s,.:#-]*(\d+(?:[.,]\d+)*[a-z]?\*{0,2})(?!\w)",
    re.IGNORECASE,
)


def title_key(title: str) -> str | None:
    """Return what two titles of one story have in common; None where a title does not name a story.

    Articles and "the story of" go, the other words stand in order of the alphabet, so that "The Fox and the
    Grapes" and "Grapes and Fox" are the same title. "Chapter IV" and "Untitled" name no story.
    """
    plain = _FRAMES.sub("", normalize_answer(title)).split()
    words = [word for word in plain if word not in _WORDS["articles"]]
    if all(word in _WORDS["nameless"] or _NUMBER.fullmatch(word) for word in words):
        return None
    return " ".join(sorted(words))


def catalogue_keys(*references: str | None) -> tuple[str, ...]:
    """Return the numbers of story catalogues in references, as ``perry 150``, sorted.

    Aarne-Thompson types count as those of Uther's revision, which keeps most numbers.
    """
    keys = set()
    for match in (match for text in references if text for match in _CATALOGUE.finditer(text)):
        index = _WORDS["catalogues"][" ".join(re.split(r"[\s-]+", match[1].casefold()))]
        keys.add(f"{index} {match[2].casefold().replace(',', '.')}")
    return tuple(sorted(keys))


def word_groups(text: str) -> str:
    """Return the checksums of the word groups of a text, sorted, as little-endian 32-bit numbers in base64.

    Word groups are those of :func:`.similarity.shingles`; of a long text the smallest 4,096 are kept.
    """
    import numpy as np

    sums = {zlib.crc32(group.encode("utf-8", "surrogatepass")) for group in shingles(text)}
    kept = np.asarray(sorted(sums)[:MOST_GROUPS], dtype="<u4")
    return base64.b64encode(kept.tobytes()).decode("ascii")


@dataclass(frozen=True, slots=True)
class Traces:
    """By what a story may be known again."""

    title: str | None  # its key, see :func:`title_key`
    numbers: tuple[str, ...]  # its catalogue numbers
    groups: str  # see :func:`word_groups`

    @classmethod
    def of(cls, title: str, text: str, *references: str | None) -> "Traces":
        return cls(title_key(title), catalogue_keys(*references), word_groups(text))

    @classmethod
    def from_json(cls, value: Json) -> "Traces":
        return cls(value["title"], tuple(value["numbers"]), value["groups"])

    def as_json(self) -> Json:
        return {"title": self.title, "numbers": list(self.numbers), "groups": self.groups}


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """Two stories that are probably one, and what shows it."""

    first: str  # id of a story; the smaller one
    second: str  # id of the other
    by: By  # kind of evidence
    evidence: str  # the evidence, in a few words

    def as_json(self) -> dict[str, Json]:
        return {"stories": [self.first, self.second], "by": self.by, "evidence": self.evidence}


def links_between(traces: Mapping[str, Traces], shared: float = SHARED) -> list[Link]:
    """Return the links by title, number and words, sorted.

    Of stories with the same title or number, each is linked to the first of them.

    ``traces``: story id -> its traces. ``shared``: share of the word groups of the lighter text, by weight,
    from which two are linked.
    """
    ids = sorted(traces)
    titles = ((traces[key].title, key) for key in ids)
    numbers = ((number, key) for key in ids for number in traces[key].numbers)
    return sorted(
        [
            *_bearing("title", "both titles come down to", titles),
            *_bearing("number", "both are", numbers),
            *_by_words(ids, [_unpacked(traces[key].groups) for key in ids], shared),
        ]
    )


def _bearing(by: By, says: str, marks: Iterable[tuple[str | None, str]]) -> Iterator[Link]:
    bearers: dict[str, list[str]] = defaultdict(list)
    for mark, story_id in marks:
        if mark is not None:
            bearers[mark].append(story_id)
    for mark, (first, *others) in bearers.items():
        if len(others) < MOST_BEARERS:
            yield from (Link(first, other, by, f"{says} {mark!r}") for other in others)


def _unpacked(groups: str) -> "np.ndarray[Any, Any]":
    import numpy as np

    return np.frombuffer(base64.b64decode(groups), dtype="<u4")


def _by_words(ids: Sequence[str], groups: Sequence[Any], shared: float) -> Iterator[Link]:
    """Yield the pairs that share enough word groups, by weight: ``100 log2((stories + 10) / holders)`` each.

    A text of which a part was kept is compared over the range of checksums that both cover.
    """
    import numpy as np

    if len(ids) < 2:
        return
    least, part, most = FORMULA
    limit = min(max(least, part * len(ids)), most)
    _, order, held = np.unique(np.concatenate(groups), return_inverse=True, return_counts=True)
    rarity = {count: round(100 * math.log2((len(ids) + 10) / count)) for count in np.unique(held).tolist()}
    weights = np.asarray([rarity[count] for count in held.tolist()], dtype=np.int64)
    ends = np.cumsum([len(sums) for sums in groups])
    own = [order[end - len(sums) : end] for sums, end in zip(groups, ends.tolist(), strict=True)]
    texts = [_Weighed(sums, weights[at]) for sums, at in zip(groups, own, strict=True)]
    totals = np.asarray([text.weights.sum() for text in texts])
    is_part = np.asarray([len(sums) == MOST_GROUPS for sums in groups])
    holders = np.repeat(np.arange(len(own)), [len(at) for at in own])[np.argsort(order, kind="stable")]
    starts = np.cumsum(held) - held
    for row, at in enumerate(own):
        tracing = at[(held[at] > 1) & (held[at] <= limit)]
        sizes = held[tracing]
        # The holders of each group lie in one stretch: here are the places of all of them.
        places = np.arange(sizes.sum()) + np.repeat(starts[tracing] - np.cumsum(sizes) + sizes, sizes)
        met = holders[places]
        counts = np.bincount(met, minlength=row)[:row]
        sums = np.bincount(met, np.repeat(weights[tracing], sizes), minlength=row)
        others = np.flatnonzero(counts >= FEWEST)
        lighter = np.minimum(totals[others], totals[row])
        for number in np.flatnonzero(is_part[others] | is_part[row]).tolist():
            lighter[number] = _lighter(texts[row], texts[others[number]])
        shares = sums[others] / np.maximum(lighter, 1)
        for number in np.flatnonzero(shares >= shared).tolist():
            evidence = f"{shares[number]:.0%} of the word groups of the shorter text are in both, by weight"
            yield Link(ids[others[number]], ids[row], "text", evidence)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """The checksums of the word groups of a text, sorted, and what each weighs."""

    sums: Any
    weights: Any


def _lighter(first: _Weighed, second: _Weighed) -> int:
    """Return the weight of the lighter of two texts, over the range of checksums that both cover."""
    both = (first, second)
    cut = min((int(text.sums[-1]) for text in both if len(text.sums) == MOST_GROUPS), default=2**32)
    return min(int(text.weights[text.sums <= cut].sum()) for text in both)


def links_by_meaning(vectors: Mapping[str, str], threshold: float = MEANING) -> Iterator[Link]:
    """Yield the pairs whose vectors point almost the same way.

    ``vectors``: story id -> its vector, packed (see :mod:`fabula.models.chat`).
    """
    import numpy as np

    from ..models.chat import cosine, unpacked

    ids = sorted(vectors)
    rows = [unpacked(vectors[key]) for key in ids]
    if len(rows) < 2:
        return
    if len({len(row) for row in rows}) > 1:
        raise ValueError("vectors of different lengths; one encoder gives all vectors of a run")
    table = np.asarray([row / np.linalg.norm(row) for row in rows])
    for row in range(1, len(ids)):
        # Numpy's sums depend on the processor in their last digits; what is near is computed exactly.
        near = np.flatnonzero(table[:row] @ table[row] >= threshold - 1e-6).tolist()
        for other in near:
            value = cosine(rows[other], rows[row])
            if value >= threshold:
                yield Link(ids[other], ids[row], "meaning", f"cosine of their vectors {value:.3f}")
