"""Rules about the votes of a release, and about the mark that it needs where programs reviewed it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from ...schemas.layout import RELEASE
from ...schemas.values import Issue
from ..codes import issue
from ..lines import ignore
from ..review_marks import MARK, VOTES, is_simulated
from ..view import Story
from .set_rules import SetRule
from .votes import order_of, parts_of, read_vote, stray


@dataclass(slots=True)
class Votes(SetRule):
    """Every vote of a release is sound, about one of its stories, and stands there once."""

    reads: ClassVar[tuple[str, ...]] = ("story_id", "transitions", "questions", "variants")
    parts: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)

    def add(self, story: Story) -> None:
        """Note what of a story is voted on."""
        self.parts[story.id] = parts_of(story.record, [part.data for part in story.variants])

    def finish(self) -> Iterator[Issue]:
        """Yield what is wrong with the votes."""
        if self.dataset.kind != "release":
            return
        problems: list[Issue] = []
        seen: set[tuple[str, ...]] = set()
        for part in self.dataset.lines(VOTES, problems.append):
            vote = read_vote(part, problems)
            if vote is None:
                continue
            if self.complete and (strange := stray(vote, self.parts)) is not None:
                problems.append(issue("vote", part.where, f"$.{strange[0]}", strange[1]))
            if order_of(vote) in seen:
                problems.append(issue("vote", part.where, "$", "the same reviewer said this before"))
            seen.add(order_of(vote))
        yield from problems


@dataclass(slots=True)
class Simulated(SetRule):
    """A release with reviews or votes of programs bears the mark of it."""

    def finish(self) -> Iterator[Issue]:
        """Yield the finding that the mark is missing."""
        if self.dataset.kind != "release" or self.dataset.manifest.get(MARK) is True:
            return
        for where, name, simulated in self._raters():
            if simulated:
                message = f"{name} at {where} is a program, and {MARK} is not true"
                yield issue("simulated-unmarked", RELEASE, f"$.{MARK}", message)
                return

    def _raters(self) -> Iterator[tuple[str, object, bool]]:
        """Yield where somebody reviewed, who, and whether it was a program."""
        for part in self.dataset.reviews(ignore):
            names = part.data.get("annotator_ids")
            for name in (*(names if isinstance(names, list) else ()), part.data.get("adjudicator_id")):
                yield part.where, name, is_simulated(name)
        for part in self.dataset.lines(VOTES, ignore):
            name = part.data.get("rater")
            yield part.where, name, is_simulated(name) or part.data.get("simulated") is True
