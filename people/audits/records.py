"""Drafts and gold records of the same stories, from runs, releases or files of records."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...builders.katha.drafts import by_person, maker_of
from ...errors import InputError, UserError
from ...schemas.canonical import Json
from ...schemas.text import tallies
from ...schemas.vocabulary import vocabulary
from ...validators.katha.dataset import open_dataset
from ...validators.katha.scene_rules import check_part
from ...validators.katha.validation import producer_lines
from ...validators.lines import ignore
from ...validators.report import MARK, as_user_error, is_simulated

_UNREAD = "a program or nobody that is known wrote their questions, and no person has reviewed them"


@dataclass(frozen=True, slots=True)
class Annotated:
    """One record with what lies beside it, as plain JSON."""

    record: Json  # ``schemas.katha.StoryRecord``
    variants: Sequence[Json]  # its variants
    checks: Sequence[Json] = ()  # the checks that a run keeps; none elsewhere
    producers: Sequence[Json] = ()  # who made which field, where that is on file
    simulated: bool = False  # whether programs took part in the review of its release

    @property
    def whose(self) -> str | None:
        """Who stands for the record: its reviewers, or those who wrote its questions; None for nobody."""
        read = self.record["validation_status"] in vocabulary("validation_status").having("reviewed")
        if read and not self.simulated:
            return "people who reviewed them"
        asked = [
            f"$.questions[{number}].{name}"
            for number in range(len(self.record["questions"]))
            for name in ("question", "gold_answer")
        ]
        makers = {maker_of(path, self.producers) for path in asked or ("$.scenes[0].action",)}
        people = sorted(
            name for name in makers if name and by_person(name) and not is_simulated(name.partition(":")[2])
        )
        return ", ".join(people) if len(people) == len(makers) else None

    @property
    def texts(self) -> list[str]:
        """The texts of its scenes."""
        return [scene["scene_text"] for scene in self.record["scenes"]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Drafts beside the gold records of the same stories."""

    pairs: Mapping[str, tuple[Annotated, Annotated]]  # story id -> draft and gold record, sorted by id
    undrafted: tuple[str, ...] = ()  # gold records without a draft
    other_text: tuple[str, ...] = ()  # stories whose texts are not the same, so that nothing can be compared
    without_gold: tuple[str, ...] = ()  # drafts without a gold record
    unread: tuple[str, ...] = ()  # records given as gold for which nobody stands: they are left out
    # who stands for the gold records -> for how many of the pairs
    whose: Mapping[str, int] = field(default_factory=dict)


def read_records(path: Path) -> dict[str, Annotated]:
    """Return the records of a run, a release or a file, by story id."""
    dataset = open_dataset(path)
    made = {str(line["id"]): line["fields"] for line in producer_lines(dataset)}
    simulated = dataset.manifest.get(MARK) is True
    records: dict[str, Annotated] = {}
    problems: list[UserError] = []
    for story in dataset.stories(ignore):
        checked, issues = check_part(story, only=())
        problems += [as_user_error(issue) for issue in issues if checked.broken and issue.level == "error"]
        if checked.broken:
            continue
        story_id = str(story.record["story_id"])
        producers = story.bundle.get("producers", made.get(story_id, ()))
        variants = [dict(variant.data) for variant in story.variants]
        records[story_id] = Annotated(
            story.record, variants, story.bundle.get("checks", ()), producers, simulated
        )
    if problems:
        raise InputError(problems)
    if not records:
        raise UserError(
            str(path), what="there are no records of stories in it",
            fix="give a run of `fabula build stories`, a release of stories, or a file of records",
        )  # fmt: skip
    return records


def pair_up(drafts: Mapping[str, Annotated], golds: Mapping[str, Annotated]) -> Pairs:
    """Return the drafts beside the gold records of the same stories."""
    shared = sorted(drafts.keys() & golds.keys())
    other = tuple(story_id for story_id in shared if _letters(drafts[story_id]) != _letters(golds[story_id]))
    whose = {story_id: golds[story_id].whose for story_id in shared}
    unread = tuple(story_id for story_id in shared if whose[story_id] is None)
    pairs = {
        story_id: (drafts[story_id], golds[story_id])
        for story_id in shared
        if story_id not in other and story_id not in unread
    }
    if not pairs:
        what = (
            f"no story is in both with the same text "
            f"({tallies({'drafts': len(drafts), 'gold records': len(golds)})}"
            + (f"; for {len(unread)} of these nobody stands: {_UNREAD})" if unread else ")")
        )
        fix = (
            "give gold records of the stories that were drafted: reviewed by people, or built with "
            "`fabula build stories --records FILE`, which says who wrote them"
        )
        raise InputError.one("--gold", what=what, fix=fix)
    undrafted = tuple(sorted(golds.keys() - drafts.keys()))
    without = tuple(sorted(drafts.keys() - golds.keys()))
    counted = Counter(name for story_id in pairs if (name := whose[story_id]) is not None)
    return Pairs(pairs, undrafted, other, without, unread, dict(sorted(counted.items())))


def _letters(record: Annotated) -> str:
    return "".join(record.record["story_text"].split())
