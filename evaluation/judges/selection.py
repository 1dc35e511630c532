"""Which stories of a release are judged."""

from collections.abc import Sequence
from pathlib import Path

from ...errors import ConfigError, InputError, UserError
from ...releases.layout import JSONL_FILES, VOTE_FILES
from ...releases.loading import Release
from ...releases.subset_requests import FOLDER
from ...schemas.katha import StoryRecord
from ...schemas.plain_files import parse_json, read_plain
from .settings import SelectionSettings

_NO_SUBSETS = (*JSONL_FILES, *VOTE_FILES[:1])
"""JSON Lines files of a release that list something else than chosen stories."""


def chosen_records(release: Release, settings: SelectionSettings) -> tuple[StoryRecord, ...]:
    """Return the records that the settings choose, in id order.

    Raises:
        ConfigError: a split or story is not in the release, or nothing is left.
        InputError: the release has no such subset, or it cannot be read.
    """
    chosen = sorted(release.records, key=lambda record: record.story_id)
    if settings.split:
        _check("--split", settings.split, list(release.splits))
        chosen = [record for record in chosen if record.split in settings.split]
    if settings.stories:
        _check("--story", settings.stories, list(release.by_id))
        chosen = [record for record in chosen if record.story_id in settings.stories]
    if settings.subset is not None:
        listed = subset_ids(release.path, settings.subset)
        chosen = [record for record in chosen if record.story_id in listed]
    if not chosen:
        raise ConfigError(
            f"{release.path}", what="no story is left to judge",
            fix="choose another split, subset or story",
        )  # fmt: skip
    return tuple(chosen[: settings.limit])


def subset_ids(folder: Path, name: str) -> frozenset[str]:
    """Return the story ids that a subset file of a release lists.

    That is ``subsets/NAME.jsonl``, or ``NAME.jsonl`` for those that the paper names, such as
    ``strict_gold_400``.

    Raises:
        InputError: there is no such file, or a line of it has no ``story_id``.
    """
    places = (*folder.glob("*.jsonl"), *folder.glob(f"{FOLDER}/*.jsonl"))
    files = {one.stem: one for one in places if one.name not in _NO_SUBSETS}
    path = files.get(name)
    if path is None:
        there = ", ".join(sorted(files)) or "none"
        raise InputError(
            [
                UserError(
                    f"--subset {name}",
                    what=f"the release has no such subset: {folder} has no such file",
                    fix=f"use one of: {there}",
                )
            ]
        )
    ids, problems = set(), []
    for number, line in enumerate(_lines(path), 1):
        try:
            ids.add(str(parse_json(line)["story_id"]))
        except (ValueError, TypeError, KeyError) as error:
            problems.append(
                UserError(
                    f"{path}:{number}",
                    what=f"the line is not a JSON object with story_id: {str(error)[:100]}",
                    fix="choose another subset, or fetch the release again",
                )
            )
    if problems:
        raise InputError(problems)
    return frozenset(ids)


def _lines(path: Path) -> list[bytes]:
    try:
        return read_plain(path, follow=True).splitlines()
    except OSError as error:
        fix = "choose another subset"
        raise InputError(
            [UserError(str(path), what=f"it cannot be read: {error.strerror}", fix=fix)]
        ) from error


def _check(option: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in known]
    if missing:
        there = ", ".join(known[:10]) + (" ..." if len(known) > 10 else "")
        raise ConfigError(
            option,
            what=f"the release has no {', '.join(missing)}",
            fix=f"use some of: {there}",
        )
