"""What a suite gets from results: the filters that need judged videos, and the labels easy, medium and hard.

Source: StoryEval, sections 2.1.2, 2.1.3 and 6.1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...errors import ConfigError
from ...schemas.events import DIFFICULTIES, EventPrompt, Suite
from .scores import EventScores

Rates = Mapping[str, Mapping[str, float | None]]
"""Method -> file name -> completion rate; null where there is no answer."""

SILENT = {"more_than_two": 3, "at_least_two": 2}
"""Named definitions of the second filter -> how many methods without an answer a prompt goes with: section
2.1.2 says more than two, section 6.1 at least two."""


@dataclass(frozen=True)
class Grading:
    """How a suite is filtered and graded.

    Attributes:
        silent: see :data:`SILENT`; None filters no prompt for missing answers.
        exempt: methods that do not count for that filter, as an early model that fails often.
        max_difference: a prompt goes where judge and people differ by more than this on average, in (0, 1];
            the paper states no number. None filters none.
        above: methods whose average is above this share count for the difficulty.
        easy: so many prompts with the highest mean rate over these methods are easy.
        hard: so many with the lowest are hard.
    """

    silent: Literal["more_than_two", "at_least_two"] | None = "more_than_two"
    exempt: tuple[str, ...] = ()
    max_difference: float | None = None
    above: float = 0.15
    easy: int = 100
    hard: int = 100


@dataclass(frozen=True)
class Graded:
    """A suite with difficulties.

    Attributes:
        suite: the prompts that stay, labelled.
        dropped: file name -> why the prompt went.
        methods: the methods that the difficulty is from.
        means: file name -> mean rate over these methods.
    """

    suite: Suite
    dropped: Mapping[str, str]
    methods: tuple[str, ...]
    means: Mapping[str, float] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return what was done as plain JSON, without the suite."""
        return {
            "prompts": len(self.suite.prompts),
            "dropped": dict(self.dropped),
            "methods": list(self.methods),
        }

    def lines(self) -> Iterable[str]:
        """Return what was done as lines for people."""
        count, methods = len(self.suite.prompts), ", ".join(self.methods)
        yield f"{count} prompts graded by {len(self.methods)} methods: {methods}"
        for name, why in self.dropped.items():
            yield f"left out: {name}: {why}"


def rates_of(scores: Sequence[EventScores], judge: str | None = None) -> Rates:
    """Return the completion rates of every method.

    Args:
        scores: scored evaluations.
        judge: whose; None where there is one only.

    Raises:
        ConfigError: there are several judges and none is named, it has no scores, or a method has two.
    """
    panels = [panel for one in scores for panel in one.panels]
    judges = sorted({panel.panel.judge for panel in panels})
    if judge is None and len(judges) > 1:
        raise ConfigError(
            "--judge", expected="one of several judges", found="none", fix=f"name one of: {', '.join(judges)}"
        )
    chosen = [panel for panel in panels if judge is None or panel.panel.judge == judge]
    if not chosen:
        raise ConfigError(
            "--judge", expected=f"one of: {', '.join(judges)}", found=str(judge), fix="name one"
        )
    rates: dict[str, dict[str, float | None]] = {}
    for panel in chosen:
        if panel.panel.method in rates:
            raise ConfigError(
                "--run", expected="each method once", found=f"{panel.panel.method} twice", fix="leave one out"
            )
        rates[panel.panel.method] = {video.unit: video.rate for video in panel.videos}
    return rates


def grade(suite: Suite, rates: Rates, how: Grading, human: Rates | None = None) -> Graded:
    """Return a suite without the prompts that filters take out, labelled by difficulty.

    A prompt's difficulty is its mean rate over the methods above the stated average, no answer counted as
    zero; equal rates are ordered by file name.

    Args:
        suite: the suite; difficulties that it has are replaced.
        rates: completion rates of the methods.
        how: the filters and numbers.
        human: rates by people for some of the videos, as method -> file name -> rate.

    Raises:
        ConfigError: no method is above the average, or there are fewer prompts than easy and hard ones.
    """
    dropped = {**_silent(suite, rates, how), **_unlike(suite, rates, human or {}, how)}
    kept = [name for name in suite.prompts if name not in dropped]
    averages = {method: _average(found, kept) for method, found in rates.items()}
    methods = tuple(sorted(method for method, value in averages.items() if value > how.above))
    if not methods:
        best = max(averages.values(), default=0.0)
        raise ConfigError(
            "--above", expected=f"a method whose average is above {how.above:g}", found=f"at most {best:.3f}",
            fix="judge more methods, or state a lower share",
        )  # fmt: skip
    if how.easy + how.hard > len(kept):
        raise ConfigError(
            "--easy, --hard", expected=f"at most {len(kept)} together, as many as prompts stay",
            found=str(how.easy + how.hard), fix="state smaller numbers",
        )  # fmt: skip
    means = {name: sum(rates[method].get(name) or 0.0 for method in methods) / len(methods) for name in kept}
    order = sorted(kept, key=lambda name: (-means[name], name))
    hard = set(order[len(order) - how.hard :])
    level = {name: "hard" if name in hard else "medium" for name in order} | dict.fromkeys(
        order[: how.easy], "easy"
    )
    return Graded(
        Suite({name: _labelled(suite.prompts[name], level[name]) for name in kept}), dropped, methods, means
    )


def _silent(suite: Suite, rates: Rates, how: Grading) -> dict[str, str]:
    if how.silent is None:
        return {}
    most, dropped = SILENT[how.silent], {}
    for name in suite.prompts:
        count = sum(
            found.get(name) is None for method, found in rates.items() if method not in how.exempt
        )  # fmt: skip
        if count >= most:
            dropped[name] = f"no answer for {count} methods ({how.silent})"
    return dropped


def _unlike(suite: Suite, rates: Rates, human: Rates, how: Grading) -> dict[str, str]:
    if how.max_difference is None:
        return {}
    dropped = {}
    for name in suite.prompts:
        differences = []
        for method, found in human.items():
            rated, judged = found.get(name), rates.get(method, {}).get(name)
            if rated is not None and judged is not None:
                differences.append(abs(rated - judged))
        if differences and (mean := sum(differences) / len(differences)) > how.max_difference:
            dropped[name] = f"judge and people differ by {mean:.2f}"
    return dropped


def _average(found: Mapping[str, float | None], kept: Sequence[str]) -> float:
    return sum(found.get(name) or 0.0 for name in kept) / len(kept) if kept else 0.0


def _labelled(prompt: EventPrompt, level: str) -> EventPrompt:
    """Return a prompt with its difficulty, which stands before the number of events."""
    labels = [label for label in prompt.labels if label not in DIFFICULTIES]
    counts = [label for label in labels if label.endswith("_events")]
    rest = [label for label in labels if label not in counts]
    return prompt.model_copy(update={"labels": (*rest, level, *counts)})
