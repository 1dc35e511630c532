"""Near-duplicate texts: MinHash signatures and the pairs whose estimated Jaccard similarity is high."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ..schemas.text import is_unspaced, normalize_answer

if TYPE_CHECKING:
    import numpy as np

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

    Returns:
        ``(id_a, id_b, similarity)`` with ``id_a < id_b``, sorted. Candidates come from locality-sensitive
        hashing with bands chosen so that a pair at the threshold is missed less than once in a thousand
        times; every pair returned is checked on the full signatures. Equal signatures are always found.
        Of a group of equal ones each is paired with the first of its group and with the first of every
        group near it, but not with the rest, so that a text copied a thousand times gives thousands of
        pairs and not a million.
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
