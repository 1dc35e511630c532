"""Simulated judgements: drawn from stated truths, to find out whether the statistics recover them.

Whatever is computed from them is a **simulation** and says nothing about any model or judge. For every
question it is drawn whether it is ambiguous, and whether its answer can be recovered from text and from
images; each judge then sees that truth, but for its error rate. Stories differ: in half of them everything is
easier, in half harder, so that questions of a story are not independent, as in real data.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..evaluation.recoverability.matching import CONDITIONS, DIMENSIONS, LABELS, Items
from ..evaluation.recoverability.replies import (
    CONTRASTIVE,
    KINDS,
    NO_ANSWER,
    RIGHT,
    SOURCE,
    UNCLEAR_LABEL,
    Columns,
    Replies,
)
from ..schemas.judgement import EvaluationManifest, Judge, Judgement

PROVIDER = "simulated"


@dataclass(frozen=True)
class Truth:
    """What is true in a simulation."""

    # dimension -> share of questions whose answer the text gives
    text: tuple[float, ...] = (0.85, 0.8, 0.75, 0.8, 0.8, 0.7)
    # dimension -> share of the questions that are not ambiguous whose answer the images give
    image: tuple[float, ...] = (0.6, 0.5, 0.5, 0.45, 0.6, 0.35)
    ambiguous: float = 0.1  # share of questions that text and images together do not answer
    # error rate of each judge, for questions only: how often it sees the opposite of what is true
    errors: tuple[float, ...] = (0.1, 0.15, 0.2)
    spread: float = 0.15  # by how much a story's shares of text and image are higher or lower
    silent: float = 0.0  # share of questions that a judge does not answer
    # share of stories whose label is found under each condition, by all judges or by none
    labels: tuple[float, float, float] = (0.75, 0.4, 0.8)
    pairs: float = 0.7  # share of pairs for which all judges choose the source; the rest is the contrastive

    @property
    def judges(self) -> tuple[str, ...]:
        """The specs of the judges."""
        return tuple(f"{PROVIDER}:judge-{number}" for number in range(1, len(self.errors) + 1))


def expected(truth: Truth) -> dict[str, float]:
    """Return what scoring measures on average in a simulation without silent judges, by name of the value.

    It is the stated truth as the judges' majority sees it: with error rates of zero, the truth itself.
    """
    seen, imagined = _majority([1 - error for error in truth.errors]), _majority(truth.errors)
    valid = (1 - truth.ambiguous) * seen + truth.ambiguous * imagined
    text = np.array(truth.text) * seen + (1 - np.array(truth.text)) * imagined
    clear = np.array(truth.image) * seen + (1 - np.array(truth.image)) * imagined
    image = ((1 - truth.ambiguous) * seen * clear + truth.ambiguous * imagined * imagined) / valid
    values = {
        f"question.filtered.gap.{name}": float((text - image)[index]) for index, name in enumerate(DIMENSIONS)
    }
    return {
        **values,
        "question.filtered.text": float(text.mean()),
        "question.filtered.image": float(image.mean()),
        "question.filtered.gap": float((text - image).mean()),
        "ambiguity": 1 - valid,
        "moral.text": truth.labels[0],
        "moral.image": truth.labels[1],
        "moral.gap": truth.labels[0] - truth.labels[1],
        "pairs.accuracy": truth.pairs,
    }


def simulated_replies(
    items: Items,
    truths: Sequence[tuple[str, Truth]],
    seed: int,
    generations: Mapping[str, Sequence[int | None]] | None = None,
) -> Replies:
    """Return replies drawn from truths.

    ``generations``: method -> seeds of its generations, each drawn anew; None for one without a seed of each.
    """
    random = np.random.default_rng(seed)
    judges = truths[0][1].judges
    made = generations or {name: (None,) for name, _ in truths}
    seeds = sorted(
        {each for some in made.values() for each in some}, key=lambda each: (each is not None, each)
    )
    parts: dict[str, list[Columns]] = {kind: [] for kind in KINDS}
    is_first = True
    for index, (name, truth) in enumerate(truths):
        for generation in made[name]:
            conditions = (0, 1, 2) if is_first else (1, 2)
            is_first = False
            shown = _questions(items, truth, random)
            for kind, values in (
                ("question", shown),
                ("moral_label", _labels(items, truth, random)),
                ("contrast", _choices(items, truth, random)),
            ):
                asked = (1,) if kind == "contrast" else conditions
                parts[kind].append(_columns(values, asked, index, seeds.index(generation)))
    columns = {kind: _joined(some) for kind, some in parts.items()}
    return Replies(
        methods=tuple(name for name, _ in truths),
        seeds=tuple(seeds),
        judges=judges,
        columns=columns,
        outcomes=Counter(),
        units=frozenset(record.story_id for record in items.records),
        outside=0,
    )


def simulated_lines(replies: Replies, items: Items) -> Iterator[Judgement]:
    """Yield simulated replies as the lines of an archive, with made-up answers in words."""
    for kind, rows in replies.columns.items():
        table = (rows.method, rows.seed, rows.item, rows.condition, rows.judge, rows.vote, rows.value)
        for method, seed, item, condition, judge, vote, value in zip(
            *(one.tolist() for one in table), strict=True
        ):
            spec = replies.judges[judge]
            yield Judgement(
                protocol="katha", kind=kind, method=None if method < 0 else replies.methods[method],
                unit=_unit(kind, item, items), seed=None if method < 0 else replies.seeds[seed],
                item=_item(kind, item, items), condition=CONDITIONS[condition],
                judge=Judge(spec=spec, provider=PROVIDER, model=spec.partition(":")[2], reported_model=None),
                vote=vote, prompt="", outcome="refused" if value == NO_ANSWER else "answered",
                reason="simulated" if value == NO_ANSWER else None, raw=None,
                parsed=None if value == NO_ANSWER else _parsed(kind, (item, condition, value), items),
                input_tokens=None, output_tokens=None, cost=None, time=None,
            )  # fmt: skip


def simulated_manifest(release_sha256: str, replies: Replies) -> EvaluationManifest:
    """Return the manifest of a simulated evaluation; it names seeds where there are none."""
    seeds: dict[str, object] = {"seeds": [None]} if replies.seeds == (None,) else {}
    return EvaluationManifest(
        kind="katha",
        protocol={
            "release": {"sha256": release_sha256},
            "judges": list(replies.judges),
            "stories": {"count": len(replies.units)},
        },
        subject={"methods": {method: {**seeds, "invalid": []} for method in replies.methods}},
        environment={"simulation": True},
    )


def _majority(rates: Sequence[float]) -> float:
    """Return the probability that more than half of independent judges say right; a tie is wrong."""
    chances = np.ones(1)
    for rate in rates:
        chances = np.convolve(chances, [1 - rate, rate])
    return float(chances[len(rates) // 2 + 1 :].sum())


def _questions(items: Items, truth: Truth, random: np.random.Generator) -> NDArray[np.int64]:
    """Return right or wrong per judge, condition and question."""
    size = items.questions
    shift = truth.spread * random.choice([-1.0, 1.0], items.stories)[items.story]
    clear = random.random(size) >= truth.ambiguous
    text = random.random(size) < np.array(truth.text)[items.dimension] + shift
    image = clear & (random.random(size) < np.array(truth.image)[items.dimension] + shift)
    real = np.stack([text, image, clear])
    errors = np.array(truth.errors)[:, None, None]
    seen = real ^ (random.random((len(truth.errors), 3, size)) < errors)
    silent = random.random(seen.shape) < truth.silent
    return np.where(silent, NO_ANSWER, seen.astype(np.int64))


def _labels(items: Items, truth: Truth, random: np.random.Generator) -> NDArray[np.int64]:
    found = random.random((3, items.stories)) < np.array(truth.labels)[:, None]
    other = (items.moral + random.integers(1, len(LABELS), (3, items.stories))) % len(LABELS)
    values = np.where(items.moral < 0, UNCLEAR_LABEL, np.where(found, items.moral, other))
    return np.broadcast_to(values, (len(truth.errors), *values.shape))


def _choices(items: Items, truth: Truth, random: np.random.Generator) -> NDArray[np.int64]:
    values = np.where(random.random(len(items.pairs)) < truth.pairs, SOURCE, CONTRASTIVE)
    return np.broadcast_to(values, (len(truth.errors), 3, len(items.pairs)))


def _columns(values: NDArray[np.int64], conditions: tuple[int, ...], method: int, seed: int) -> Columns:
    """Return values per judge, condition and item as columns, of some conditions only."""
    chosen = values[:, list(conditions)]
    judge, condition, item = (index.ravel() for index in np.indices(chosen.shape))
    condition = np.array(conditions)[condition]
    is_text = condition == 0
    value = chosen.ravel()
    return Columns(
        method=np.where(is_text, -1, method), seed=np.where(is_text, -1, seed), item=item,
        condition=condition, judge=judge, vote=np.zeros_like(item), value=value, loose=value,
    )  # fmt: skip


def _joined(parts: Sequence[Columns]) -> Columns:
    names = ("method", "seed", "item", "condition", "judge", "vote", "value", "loose")
    none = [np.zeros(0, dtype=np.int64)]
    return Columns(*(np.concatenate([*none, *(getattr(part, name) for part in parts)]) for name in names))


def _unit(kind: str, item: int, items: Items) -> str:
    story = {"question": items.story, "contrast": items.pair_story}.get(kind)
    return items.records[item if story is None else int(story[item])].story_id


def _item(kind: str, item: int, items: Items) -> str:
    if kind == "question":
        return items.keys[item].question_id
    return items.pairs[item] if kind == "contrast" else items.records[item].story_id


def _parsed(kind: str, said: tuple[int, int, int], items: Items) -> dict[str, object]:
    item, condition, value = said
    if kind != "question":
        names = (*LABELS, "unclear") if kind == "moral_label" else ("source", "contrastive", "unclear")
        return {"answer": names[value], "confidence": "high"}
    answer = items.keys[item].gold if value == RIGHT else f"something else, number {item % 977}"
    if CONDITIONS[condition] == "text_image":
        final = {"final_answer": answer, "image_support": "supported", "confidence": "medium"}
        return {"source_answer": answer, **final}
    return {"answer": answer, "evidence_status": "recoverable", "confidence": "medium"}
