"""Pictures of episodes: which of those that a run took may be given away, and those of a release checked.

A keyframe, crop or thumbnail is part of a release only where a line of the file of ``--video-rights`` says
of its video a licence that the Hub knows by its SPDX id, or the public domain.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from ...errors import ConfigError, InputError, UserError
from ...media.images import encode_image, fitted, open_picture
from ...media.kept_files import kept_bytes
from ...schemas.canonical import jsonl_lines, sha256_bytes, sha256_file, write_atomic
from ...schemas.entities import EpisodePicture, EpisodeRecord, PictureKind, TakenPicture
from ...schemas.plain_files import open_plain, read_plain
from ...schemas.values import Issue, Own
from ..loading import read_rows
from ..options import PackOptions, may_be_released

PICTURES = "pictures.jsonl"
"""The pictures that a run took, and those that a release holds, one line each."""
FOLDER = "pictures"
OPTION = "--video-rights"
_THUMBNAIL_SIDE, _THUMBNAIL_QUALITY = 256, 85
_CURE = "pack the run again"


class VideoRights(Own):
    """A line of the file that says what may be done with a video."""

    video: str = Field(description="Name of the video's file, as episodes have it in `source`.")
    rights: str = Field(description="On what ground it may be used: SPDX id of a licence, or public domain.")
    source: str | None = Field(default=None, description="Where the video comes from.")


def read_rights(path: Path) -> dict[str, VideoRights]:
    """Return name of a video -> what may be done with it."""
    fix = (
        'give a line such as {"video": "film.mp4", "rights": "CC-BY-4.0", "source": "https://..."} per video'
    )
    problems: list[UserError] = []
    known: dict[str, VideoRights] = {}
    for row in read_rows(path, VideoRights, problems, fix, follow=True):
        if row.video in known:
            problems.append(UserError(str(path), what=f"{row.video!r} has more than one line", fix=fix))
        known[row.video] = row
    if problems:
        raise InputError(problems)
    return known


def write_pictures(
    run: Path, draft: Path, records: Sequence[EpisodeRecord], options: PackOptions
) -> Iterator[str]:
    """Copy the pictures of a run that may be given away, make thumbnails, and write their lines.

    Yields:
        What the person who packs should know.
    """
    rights = {} if options.video_rights is None else read_rights(options.video_rights)
    videos = {record.episode_id: record.source for record in records}
    if unknown := sorted(rights.keys() - set(videos.values())):
        raise ConfigError(
            f"{OPTION} {options.video_rights}",
            what=f"no episode is from a video called {unknown[0]!r}",
            fix=f"the videos are: {', '.join(sorted({name for name in videos.values() if name}))}",
        )
    taken = [line for line in _taken(run) if line.episode_id in videos]
    made: list[EpisodePicture] = []
    counts: Counter[tuple[str, PictureKind]] = Counter()
    for line in taken:
        of_video = rights.get(str(videos[line.episode_id]))
        if of_video is None or not may_be_released(of_video.rights):
            continue
        path = run / line.file
        data = kept_bytes(path.parent, path.name, fix=f"copy the folder of pictures back into {run}")
        if line.kind == "keyframe" and not counts[line.episode_id, "thumbnail"]:
            made.append(_kept(draft, _small(data), line, of_video, counts, "thumbnail"))
        made.append(_kept(draft, data, line, of_video, counts, line.kind))
    if made:
        made.sort(key=_order)
        write_atomic(draft / PICTURES, jsonl_lines(picture.as_json() for picture in made))
    gone = len(taken) - sum(picture.kind != "thumbnail" for picture in made)
    if gone:
        yield (
            f"{gone} pictures of shots and people stay out, as nobody said that their videos are under a "
            f"licence with an SPDX id or in the public domain; {OPTION} says it"
        )


def _taken(run: Path) -> Iterator[TakenPicture]:
    """Yield the pictures that a run took; none of one that was imported, or that an older version made."""
    if (run / PICTURES).is_file():
        with open_plain(run / PICTURES) as lines:
            for line in lines:
                yield TakenPicture.model_validate_json(line)


def _small(data: bytes) -> bytes:
    image = fitted(open_picture(data).image, _THUMBNAIL_SIDE)
    return encode_image(image, format="jpeg", quality=_THUMBNAIL_QUALITY)


def _kept(
    draft: Path, data: bytes, line: TakenPicture, of_video: VideoRights,
    counts: Counter[tuple[str, PictureKind]], kind: PictureKind,
) -> EpisodePicture:  # fmt: skip
    """Write a picture under its place in the release, and return its line."""
    counts[line.episode_id, kind] += 1
    file = f"{FOLDER}/{line.episode_id}/{kind}-{counts[line.episode_id, kind]:04d}.jpg"
    picture = open_picture(data, name=file)
    (draft / file).parent.mkdir(parents=True, exist_ok=True)
    (draft / file).write_bytes(data)
    return EpisodePicture(
        **{**line.as_json(), "kind": kind, "file": file}, sha256=sha256_bytes(data),
        width=picture.width, height=picture.height, video=of_video.video, source=of_video.source,
        rights=of_video.rights,
    )  # fmt: skip


def _order(line: EpisodePicture) -> tuple[str, str]:
    return line.episode_id, line.file


def read_pictures(folder: Path) -> list[EpisodePicture]:
    """Return the lines of the pictures of a release; none where it has none."""
    if not (folder / PICTURES).is_file():
        return []
    with open_plain(folder / PICTURES) as lines:
        return [EpisodePicture.model_validate_json(line) for line in lines]


def check_pictures(folder: Path, records: Mapping[str, EpisodeRecord]) -> Iterator[Issue]:
    """Yield what is wrong with the pictures of a release.

    ``records``: id of an episode -> the episode.
    """
    lines = read_pictures(folder)
    if not lines:
        return
    if b"".join(jsonl_lines(line.as_json() for line in sorted(lines, key=_order))) != read_plain(
        folder / PICTURES
    ):
        yield Issue(PICTURES, "$", "official", "not written as packing writes it", _CURE)
    for line in lines:
        record = records.get(line.episode_id)
        if record is None or record.source != line.video:
            yield Issue(line.file, "$", "official", f"no episode {line.episode_id} of {line.video}", _CURE)
        elif line.label is not None and line.label not in record.entry.entity_descriptions:
            yield Issue(line.file, "$", "official", f"{line.label} is not in the registry", _CURE)
        if not may_be_released(line.rights):
            message = f"rights {line.rights!r}: no licence by its SPDX id, and not the public domain"
            yield Issue(line.file, "$", "rights", message, "take the picture out, and pack again")
        path = folder / line.file
        if not line.file.startswith(f"{FOLDER}/{line.episode_id}/") or ".." in line.file.split("/"):
            yield Issue(PICTURES, "$", "official", f"no place of a picture: {line.file!r}", _CURE)
        elif not path.is_file() or sha256_file(path) != line.sha256:
            yield Issue(line.file, "$", "official", f"not the picture of {PICTURES}", _CURE)
