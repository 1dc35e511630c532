"""What one submission takes before it is run: panels of the generator, calls of judges."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..evaluation.judging.packets import EVIDENCE
from ..kinds.verbs import load_stories
from ..schemas.text import counted


@dataclass(frozen=True, slots=True)
class Cost:
    """What a set of stories takes, for one seed (KathaTrace, Section G.8, Tables 47 and 48).

    Attributes:
        setting: the split, or how many stories.
        stories: how many.
        panels: pictures that the generator makes.
        questions: recoverability questions.
        calls: of all judges: each question under each evidence condition.
        estimated: whether the numbers are a share of the whole release's, rounded.
    """

    setting: str
    stories: int
    panels: int
    questions: int
    calls: int
    estimated: bool = False


@dataclass(frozen=True)
class Costs:
    """What sets of stories take.

    Attributes:
        rows: the sets.
        judges: how many judges answer.
    """

    rows: tuple[Cost, ...]
    judges: int

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"judges": self.judges, "settings": [asdict(row) for row in self.rows]}

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people."""
        yield f"one submission with one seed, {counted(self.judges, 'judge')}; ~ is by the release's mean"
        yield f"{'':<20}{'stories':>10}{'panels':>10}{'questions':>11}{'calls':>11}"
        for row in self.rows:
            mark = "~" if row.estimated else ""
            questions, calls = f"{mark}{row.questions:,}", f"{mark}{row.calls:,}"
            yield f"{row.setting:<20}{row.stories:>10,}{row.panels:>10,}{questions:>11}{calls:>11}"
        yield "moral labels and contrastive pairs come on top; text-only calls are asked once for all methods"


def calls_of(questions: int, judges: int = 1) -> int:
    """Return how many calls questions take: one under each evidence condition (text, images, both)."""
    return len(EVIDENCE) * questions * judges


def share(whole: Cost, stories: int, judges: int = 1) -> Cost:
    """Return what so many stories take by the mean of a whole set, as Tables 47 and 48 have it."""
    panels, questions = (round(count * stories / whole.stories) for count in (whole.panels, whole.questions))
    return Cost(f"{stories:,} stories", stories, panels, questions, calls_of(questions, judges), True)


def costs_of(release: Path, sizes: Sequence[int] = (), judges: int = 1) -> Costs:
    """Return what each split of a release takes, the whole, and sets of other sizes.

    Raises:
        InputError: it cannot be read, or its kind has no recoverability questions.
    """
    records = load_stories(release).records
    groups = {split: [record for record in records if record.split == split] for split in
              dict.fromkeys(record.split for record in records)}  # fmt: skip
    rows = []
    for name, some in (*groups.items(), ("whole release", records)):
        panels = sum(len(record.scenes) for record in some)
        questions = sum(len(record.questions) for record in some)
        rows.append(Cost(name, len(some), panels, questions, calls_of(questions, judges)))
    return Costs((*rows, *(share(rows[-1], size, judges) for size in sizes)), judges)
