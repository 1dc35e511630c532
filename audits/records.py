"""Drafts and gold records of the same stories, from runs, releases or files of records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..builders.katha.drafts import maker_of
from ..errors import InputError, UserError
from ..schemas.canonical import Json
from ..schemas.text import tallies
from ..validators.katha.dataset import open_dataset
from ..validators.katha.set_files import producer_lines
from ..validators.lines import ignore
from ..validators.record_rules import check_part
from ..validators.report import as_user_error


@dataclass(frozen=True, slots=True)
class Annotated:
    """One record with what lies beside it, as plain JSON.

    Attributes:
        record: ``schemas.katha.StoryRecord``.
        variants: its variants.
        checks: the checks that a run keeps; none elsewhere.
        producers: who made which field, where that is on file.
    """

    record: Json
    variants: Sequence[Json]
    checks: Sequence[Json] = ()
    producers: Sequence[Json] = ()

    @property
    def texts(self) -> list[str]:
        """The texts of its scenes."""
        return [scene["scene_text"] for scene in self.record["scenes"]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Drafts beside the gold records of the same stories.

    Attributes:
        pairs: story id -> draft and gold record, sorted by id.
        undrafted: gold records without a draft.
        other_text: stories whose texts are not the same, so that nothing can be compared.
        without_gold: drafts without a gold record.
        by_rules: records whose questions rules wrote: they are no gold records, and are left out.
    """

    pairs: Mapping[str, tuple[Annotated, Annotated]]
    undrafted: tuple[str, ...] = ()
    other_text: tuple[str, ...] = ()
    without_gold: tuple[str, ...] = ()
    by_rules: tuple[str, ...] = ()


def read_records(path: Path) -> dict[str, Annotated]:
    """Return the records of a run, a release or a file, by story id.

    Raises:
        UserError: there is nothing that can be read.
        InputError: a record has errors of its schema; all of them are listed.
    """
    dataset = open_dataset(path)
    made = {str(line["id"]): line["fields"] for line in producer_lines(dataset)}
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
        records[story_id] = Annotated(story.record, variants, story.bundle.get("checks", ()), producers)
    if problems:
        raise InputError(problems)
    if not records:
        raise UserError(
            str(path), what="there are no records of stories in it",
            fix="give a run of `fabula build katha`, a release of stories, or a file of records",
        )  # fmt: skip
    return records


def pair_up(drafts: Mapping[str, Annotated], golds: Mapping[str, Annotated]) -> Pairs:
    """Return the drafts beside the gold records of the same stories.

    Raises:
        InputError: no story is in both with the same text.
    """
    shared = sorted(drafts.keys() & golds.keys())
    other = tuple(story_id for story_id in shared if _letters(drafts[story_id]) != _letters(golds[story_id]))
    by_rules = tuple(story_id for story_id in shared if _by_rules(golds[story_id], "$.questions[0].question"))
    pairs = {
        story_id: (drafts[story_id], golds[story_id])
        for story_id in shared
        if story_id not in other and story_id not in by_rules
    }
    if not pairs:
        what = (
            f"no story is in both with the same text "
            f"({tallies({'drafts': len(drafts), 'gold records': len(golds)})}"
            + (f", {len(by_rules)} of which rules wrote)" if by_rules else ")")
        )
        fix = "give gold records, by people or an author, of the stories that were drafted"
        raise InputError([UserError("--gold", what=what, fix=fix)])
    undrafted = tuple(sorted(golds.keys() - drafts.keys()))
    without = tuple(sorted(drafts.keys() - golds.keys()))
    return Pairs(pairs, undrafted, other, without, by_rules)


def _letters(record: Annotated) -> str:
    return "".join(record.record["story_text"].split())


def _by_rules(record: Annotated, path: str) -> bool:
    return (maker_of(path, record.producers) or "").startswith("rules@")
