"""Counts over a prompt suite, as a pure function of its records."""

from collections import Counter
from collections.abc import Iterable, Mapping

from ..schemas.canonical import Json
from ..schemas.events import DIFFICULTIES, ORIGINS, PARTICIPANTS, EventPrompt, SuiteRecord


def prompt_statistics(prompts: Iterable[EventPrompt]) -> dict[str, Json]:
    """Return what can be counted over prompts without their history; shares are of the prompts.

    A prompt has several classes, so that their shares do not add to one.
    """
    labels, sizes = Counter[str](), Counter[str]()
    words: list[int] = []
    for prompt in prompts:
        labels.update(set(prompt.labels))
        sizes[str(len(prompt.event_list))] += 1
        words.append(len(prompt.prompt.split()))
    total = len(words)
    known = [name for name in (*PARTICIPANTS, *ORIGINS, *DIFFICULTIES) if labels[name]]
    return {
        "kind": "events",
        "totals": {"prompts": total, "events": sum(int(size) * count for size, count in sizes.items())},
        "classes": _shares(labels, [*known, *sorted(set(labels) - set(known))], total),
        "events_per_prompt": _shares(sizes, sorted(sizes, key=int), total),
        "words_per_prompt": {
            "least": min(words, default=0),
            "most": max(words, default=0),
            "mean": round(sum(words) / total, 6) if total else 0.0,
        },
    }


def suite_statistics(records: Iterable[SuiteRecord]) -> dict[str, Json]:
    """Return the content of a suite's ``statistics.json``: counts over its prompts and over their makers."""
    prompts: list[EventPrompt] = []
    origins, makers = Counter[str](), Counter[str]()
    for record in records:
        prompts.append(record.entry)
        origins[record.origin] += 1
        makers.update(f"{part}: {maker}" for part, maker in record.producers.items())
    return {
        **prompt_statistics(prompts),
        "origins": _shares(origins, sorted(origins), len(prompts)),
        "producers": {name: makers[name] for name in sorted(makers)},
    }


def _shares(counts: Mapping[str, int], order: Iterable[str], total: int) -> dict[str, Json]:
    return {name: {"count": counts[name], "share": round(counts[name] / total, 6)} for name in order}
