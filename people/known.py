"""What people can have been asked about: the questions and stories of a release, or the videos of a suite."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..schemas.human import HumanRow
from ..schemas.katha import Question, StoryRecord
from ..schemas.vocabulary import vocabulary

UNCLEAR = "unclear"
STORY_KINDS = frozenset(("answer", "moral_label", "rating", "preference", "attention"))
"""The kinds of lines about storyboards."""


@dataclass(frozen=True)
class Known:
    """What an evaluation knows; a line of a human file that names something else is a problem.

    Attributes:
        questions: question id -> question.
        morals: story id -> its moral label.
        methods: the methods that were judged; none: any is allowed.
        events: file name of a video in the suite -> how many events its prompt has.
        classes: file name of a video in the suite -> the classes of its prompt.
        kinds: the kinds of lines that fit the evaluation; none: every kind.
        pictures: stories and shots of an evaluation of shot images.
        rating: least and greatest rating.
    """

    questions: Mapping[str, Question] = field(default_factory=dict)
    morals: Mapping[str, str | None] = field(default_factory=dict)
    methods: frozenset[str] = frozenset()
    events: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    pictures: frozenset[str] = frozenset()
    rating: tuple[int, int] = (1, 5)

    @classmethod
    def of_records(cls, records: tuple[StoryRecord, ...], methods: frozenset[str] = frozenset()) -> "Known":
        """Return what story records hold."""
        questions = {one.question_id: one for record in records for one in record.questions}
        morals = {record.story_id: record.moral_label for record in records}
        return cls(questions, morals, methods, kinds=STORY_KINDS)

    @cached_property
    def labels(self) -> frozenset[str]:
        """The moral labels that a person may give."""
        return frozenset((*vocabulary("moral_label").values, UNCLEAR))

    def unknown(self, row: HumanRow) -> tuple[str, str, str] | None:
        """Return column, what was expected and what was found, if a line names what is not there."""
        items: Mapping[str, object]
        if row.kind == "attention":
            return None
        if row.kind == "answer":
            items, what = self.questions, "a question of the release"
        elif row.kind == "completion":
            items, what = self.events, "a video of the suite"
        elif self.pictures:
            items = dict.fromkeys(self.pictures)
            what = "a story of the evaluation, or of one of its shots, such as 01/shot_03"
        else:
            items, what = self.morals, "a story of the release"
        if row.item not in items:
            return "item", f"the id of {what}", repr(row.item)
        judged = self.pictures or row.kind in ("answer", "moral_label", "completion")
        if judged and row.method is not None and self.methods and row.method not in self.methods:
            return "method", f"one of {', '.join(sorted(self.methods))}", repr(row.method)
        return self._unknown_detail(row)

    def _unknown_detail(self, row: HumanRow) -> tuple[str, str, str] | None:
        low, high = self.rating
        if row.kind == "rating" and row.value is not None and not low <= row.value <= high:
            return "value", f"a rating from {low} to {high}", str(row.value)
        strange = [label for label in row.labels if label not in self.labels]
        if strange:
            return "labels", "moral labels, or unclear", ", ".join(map(repr, strange))
        if len(set(row.labels)) < len(row.labels):
            return "labels", "different labels", ", ".join(row.labels)
        if row.kind == "completion" and len(row.completion) != self.events[str(row.item)]:
            count = self.events[str(row.item)]
            return "completion", f"{count} values, one for each event", str(len(row.completion))
        return None
