"""Counts over a prompt suite, as a pure function of its records."""

from collections import Counter
from collections.abc import Iterable, Mapping

from ..schemas.canonical import Json
from ..schemas.events import DIFFICULTIES, ORIGINS, PARTICIPANTS, SuiteRecord


def suite_statistics(records: Iterable[SuiteRecord]) -> dict[str, Json]:
    """Return the content of a suite's ``statistics.json``.

    Shares are of the prompts; a prompt has several classes, so that the shares of classes do not add to one.
    """
    labels, origins, sizes, makers = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    words: list[int] = []
    for record in records:
        labels.update(set(record.entry.labels))
        origins[record.origin] += 1
        sizes[str(len(record.entry.event_list))] += 1
        makers.update(f"{part}: {maker}" for part, maker in record.producers.items())
        words.append(len(record.entry.prompt.split()))
    total = len(words)
    known = [name for name in (*PARTICIPANTS, *ORIGINS, *DIFFICULTIES) if labels[name]]
    return {
        "kind": "events",
        "totals": {"prompts": total, "events": sum(int(size) * count for size, count in sizes.items())},
        "classes": _shares(labels, [*known, *sorted(set(labels) - set(known))], total),
        "origins": _shares(origins, sorted(origins), total),
        "events_per_prompt": _shares(sizes, sorted(sizes, key=int), total),
        "words_per_prompt": {
            "least": min(words, default=0),
            "most": max(words, default=0),
            "mean": round(sum(words) / total, 6) if total else 0.0,
        },
        "producers": {name: makers[name] for name in sorted(makers)},
    }


def _shares(counts: Mapping[str, int], order: Iterable[str], total: int) -> dict[str, Json]:
    return {name: {"count": counts[name], "share": round(counts[name] / total, 6)} for name in order}
