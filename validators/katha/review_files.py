"""What a release holds of a human review, read for its tables: summaries, votes, gold subsets."""

import re
from collections.abc import Mapping
from contextlib import suppress

from ...schemas.canonical import Json
from ...schemas.layout import SUBSETS, VOTE_FILES
from ..lines import ignore
from ..review_marks import MARK, REVIEWED, VOTES
from ..schema_check import check_schema
from .dataset import Dataset
from .review_tables import ReviewData, review_tables, stated_elsewhere, stated_tables
from .votes import Vote, read_vote

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)


def tables_of_release(dataset: Dataset, document: Json, totals: Mapping[str, int]) -> dict[str, Json]:
    """Return the tables of a release's review; none where it does not say that it has any.

    Lines that are unsound are passed over: other rules report them.

    ``document``: its ``statistics.json``, from which comes what cannot be counted again.
    """
    if dataset.kind != "release" or not isinstance(dataset.manifest.get(REVIEWED), dict):
        return {}
    review = document.get("review") if isinstance(document, dict) else None
    data = ReviewData(
        rows=[part.data for part in dataset.reviews(ignore) if not _broken(part.data, part.where)],
        votes=votes_of(dataset),
        gold=gold_of(dataset),
        elsewhere=stated_elsewhere(review),
        simulated=dataset.manifest.get(MARK) is True,
    )
    stated = {} if data.votes is not None else stated_tables(review, totals)
    return {**review_tables(data, totals), **stated}


def votes_of(dataset: Dataset) -> list[Vote] | None:
    """Return the sound votes of a release, in the order of its file; None where it publishes none."""
    if not (dataset.path / VOTES).is_file():
        return None
    return [vote for part in dataset.lines(VOTES, ignore) if (vote := read_vote(part, [])) is not None]


def gold_of(dataset: Dataset) -> dict[str, frozenset[str]]:
    """Return name of a gold subset -> its members; see :mod:`fabula.releases.katha.subsets`."""
    document = dataset.document(SUBSETS, ignore)
    names: list[str] = []
    with suppress(AttributeError, LookupError, TypeError):
        names = [str(entry["name"]) for entry in document["subsets"]]
    gold = {}
    for name in names:
        if "gold" in name and _NAME.fullmatch(name):
            file = f"{name}.jsonl"
            lines = dataset.lines(file if file in VOTE_FILES else f"subsets/{file}", ignore)
            gold[name] = frozenset(str(part.data.get("story_id")) for part in lines)
    return gold


def _broken(row: Mapping[str, Json], where: str) -> bool:
    return any(finding.broken for finding in check_schema("katha_human_validation", row, where))
