"""What a generator of videos is given for each shot of an episode: prompt, entities, name of the result.

Generators differ in what they take, and scripts are converted to the form that each expects (EntityBench,
section 5.1): names or abstract ids, with or without a header that describes entities, with the stored
descriptions of those that were shown before (section 4, stage 3), shot by shot or the whole episode at once.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from ...errors import ConfigError, InputError, UserError
from ...media.images import encode_image, fitted, open_picture
from ...media.kept_files import kept_bytes
from ...schemas.canonical import Json, jsonl_lines, sha256_bytes, sha256_file, write_atomic
from ...schemas.entities import (
    ALL,
    TYPES,
    EntityType,
    EpisodePicture,
    EpisodeRecord,
    EpisodeShot,
    PictureKind,
    TakenPicture,
)
from ...schemas.plain_files import open_plain, read_plain
from ...schemas.values import Issue, Own
from ...validators.entities.view import EntityKey, EpisodeView, view_of
from ..loading import read_rows
from ..options import PackOptions, may_be_released
from ..shots.tree import cut_at_space
from ..target import require_free, staged
from .tree import EntitySet

REQUESTS = "requests.jsonl"
HEADERS = ("official", "none", "first", "all")
"""Header of a prompt: as the file has it; none; the entities that are new in the shot; all that it shows."""
PER = ("shot", "episode")


@dataclass(frozen=True)
class RequestOptions:
    """How scripts are adapted to a generator.

    Attributes:
        header: entities that a prompt describes: ``official`` (as in the file), ``none``, ``all``, or
            ``first`` (new ones). Other descriptions are those of the registry; what it does not have cannot
            be described.
        ids: write ids such as ``[character1]`` for names of this type: character, location, object.
        max_chars: most characters of a prompt; what is beyond is cut at a space and counted [all].
        per: a line per ``shot``, or per ``episode`` for generators that take all shots at once.
        tier: only episodes of this tier [all].
        split: split file that says the tier [that of most episodes].
        seed: seed of the first shot of each episode; every shot adds 1.
    """

    header: str = "official"
    ids: tuple[str, ...] = ()
    max_chars: int | None = None
    per: str = "shot"
    tier: str | None = None
    split: str | None = None
    seed: int = 42

    def checked(self) -> "RequestOptions":
        for option, value, allowed in (("--header", self.header, HEADERS), ("--per", self.per, PER)):
            if value not in allowed:
                raise _wrong(option, f"one of {', '.join(allowed)}", value)
        unknown = [kind for kind in self.ids if kind not in TYPES]
        if unknown:
            raise _wrong("--ids", f"some of {', '.join(TYPES)}", ", ".join(unknown))
        for option, number, least in (("--max-chars", self.max_chars, 1), ("--seed", self.seed, 0)):
            if number is not None and number < least:
                raise _wrong(option, f"{least} or more", str(number))
        return self


def result_name(episode_id: str, shot: EpisodeShot) -> str:
    """Return the path of a generated shot below the folder of results, as the official evaluator has it."""
    return f"{episode_id}/{shot.scene:03d}_{shot.number:03d}.mp4"


def entity_requests(entity_set: EntitySet, options: RequestOptions | None = None) -> Iterator[Json]:
    """Yield one request per shot, or per episode, in order.

    A request of a shot holds ``episode_id``, ``shot`` (its number in the episode), ``key``, ``file`` (where
    the result goes), ``prompt``, ``cut_off`` (characters cut off the prompt), ``cut`` (whether it begins
    anew), ``continues`` (the file of the shot that it continues), ``entities`` and ``seed``. Each entity has
    ``name``, ``as`` (how the prompt calls it), ``type``, ``label``, ``description``, ``described`` (whether
    the prompt does) and ``shown_in`` (files of earlier shots). That of an episode holds ``episode_id``,
    ``overview`` and the same of all its ``shots``.
    """
    chosen = (options or RequestOptions()).checked()
    tiers = entity_set.tiers(chosen.split)
    if chosen.tier is not None and chosen.tier not in tiers:
        raise _wrong("--tier", f"one of {', '.join(tiers)}", chosen.tier)
    wanted = set(tiers[chosen.tier]) if chosen.tier not in (None, ALL) else set(entity_set.by_id)
    for episode in entity_set.episodes:
        if episode.episode_id not in wanted:
            continue
        view = view_of(episode.episode_id, episode.script)
        adapter = _Adapter(view, chosen)
        shots = adapter.requests()
        if chosen.per == "shot":
            yield from shots
        else:
            overview = adapter.renamed(episode.script.story_overview or "")
            yield {"episode_id": view.episode_id, "overview": overview, "shots": list(shots)}


def write_requests(entity_set: EntitySet, out: Path, options: RequestOptions | None = None) -> dict[str, int]:
    """Write what a generator is given into a new folder: ``requests.jsonl``.

    Returned: how many ``requests`` and ``shots`` there are, and how many prompts were ``cut``.
    """
    require_free(out)
    lines = list(entity_requests(entity_set, options))
    with staged(out.absolute()) as (draft,):
        write_atomic(draft / REQUESTS, jsonl_lines(lines))
    shots = [shot for line in lines for shot in line.get("shots", [line])]
    return {"requests": len(lines), "shots": len(shots), "cut": sum(shot["cut_off"] > 0 for shot in shots)}


class _Adapter:
    """Adapts the shots of one episode."""

    def __init__(self, view: EpisodeView, options: RequestOptions) -> None:
        self._view, self._options = view, options
        self._calls = _calls(view, options.ids)
        # All names, longest first: a name within another one is not its own.
        known = {*view.labels, *(name for _, name in view.appearances)} if self._calls else set()
        names = sorted(known, key=lambda name: (-len(name), name))
        joined = "|".join(map(re.escape, names))
        self._names = re.compile(rf"(?<!\w)(?:{joined})(?!\w)") if names else None
        self._first = {key: numbers[0] for key, numbers in view.appearances.items()}

    def requests(self) -> Iterator[dict[str, Json]]:
        before: EpisodeShot | None = None
        for number, shot in enumerate(self._view.shots, 1):
            described = self._described(number, shot)
            prompt, cut_off = cut_at_space(self._prompt(number, shot, described), self._options.max_chars)
            continued = before is not None and not shot.cut
            yield {
                "episode_id": self._view.episode_id,
                "shot": number,
                "key": shot.key,
                "file": result_name(self._view.episode_id, shot),
                "prompt": prompt,
                "cut_off": cut_off,
                "cut": shot.cut,
                "continues": result_name(self._view.episode_id, before) if continued and before else None,
                "entities": [self._entity(number, key, described) for key in _shown(shot)],
                "seed": self._options.seed + number - 1,
            }
            before = shot

    def _described(self, number: int, shot: EpisodeShot) -> Sequence[str]:
        """Return the names that the prompt of a shot describes, in order."""
        if self._options.header == "official":
            lines = self._view.headers[number - 1].lines
            return [line.name for line in lines if line.name is not None]
        known = [key for key in _shown(shot) if self._view.descriptions.get(key[1])]
        if self._options.header == "none":
            return []
        return [
            name for kind, name in known if self._options.header == "all" or self._first[kind, name] == number
        ]

    def _prompt(self, number: int, shot: EpisodeShot, described: Sequence[str]) -> str:
        header = self._view.headers[number - 1]
        if self._options.header == "official" and (not header.ends_with_action or not self._calls):
            return self.renamed(shot.prompt)
        if self._options.header == "official":
            lines = [self.renamed(line.text) for line in header.lines]
        else:
            lines = [
                f"{self._calls.get(name, name)}: {self.renamed(self._view.descriptions[name])}"
                for name in described
            ]
        return "\n".join(lines) + ("\n\n" if lines else "") + self.renamed(shot.action)

    def renamed(self, text: str) -> str:
        """Return a text with ids in the place of names, where they are asked for."""
        if self._names is None:
            return text
        return self._names.sub(lambda match: self._calls.get(match[0], match[0]), text)

    def _entity(self, number: int, key: EntityKey, described: Sequence[str]) -> dict[str, Json]:
        kind, name = key
        shown = [one for one in self._view.appearances[key] if one < number]
        return {
            "name": name,
            "as": self._calls.get(name, name),
            "type": kind,
            "label": next(iter(self._view.labels.get(name, ())), None),
            "description": self._view.descriptions.get(name),
            "described": name in described,
            "shown_in": [result_name(self._view.episode_id, self._view.shots[one - 1]) for one in shown],
        }


def _shown(shot: EpisodeShot) -> list[EntityKey]:
    return [(kind, name) for kind in TYPES for name in dict.fromkeys(shot.scheduled.names(kind))]


def _calls(view: EpisodeView, kinds: Sequence[str]) -> Mapping[str, str]:
    """Return name -> id, for names of some types: numbered as in the registry, then as they appear."""
    counts: dict[EntityType, int] = {}
    calls: dict[str, str] = {}
    for name in (*view.labels, *(name for _, name in view.appearances)):
        kind = view.type_of(name)
        if kind in kinds and kind is not None and name not in calls:
            counts[kind] = counts.get(kind, 0) + 1
            calls[name] = f"[{kind}{counts[kind]}]"
    return calls


def _wrong(option: str, expected: str, found: str) -> ConfigError:
    return ConfigError(option, expected=expected, found=repr(found), fix="correct the option")


# -- Scripts of episodes in the forms that HoloCine, CineTrans and StoryMem read (EntityBench, section 5.1)
#
# Each form is taken from the public documentation of the generator and its samples there. Beside the inputs,
# ``results.jsonl`` says which file each shot's video is, for ``fabula outputs check`` and ``evaluate``; where
# one video shows a whole episode, its cut list is written as well.
#
# ``holocine`` (yihao-meng/HoloCine, README): a global caption that ends with the number of shots, a caption
# for each shot, characters as ``[character1]``; and both as the one string that its script builds of them.
# A video has 48 frames for a shot and one more, as its five shots in 241 frames. ``cinetrans``
# (CineTrans-DiT, ``configs/t2v.yaml``): the captions of the shots, then the general one, and how many
# latent frames each shot has; a shot has 40 frames, as its two in 81. Its script holds ``mask_info``
# itself: put the one of the file there. What else its configuration holds stays as it is. ``storymem``
# (Kevin-thu/StoryMem, README): ``story_overview`` and scenes with ``scene_num``, ``video_prompts`` and
# ``cut``, which its ``pipeline.py`` reads as truth values.

RESULTS = "results.jsonl"
"""One line for each shot: episode, key of the shot, and the file of its video below the folder of outputs."""
Files = Mapping[str, str]
"""Path below the new folder -> text."""


@dataclass(frozen=True, slots=True)
class Generator:
    """What a generator reads."""

    about: str  # the generator, for people
    files: Callable[[Json], Files]  # an episode's request -> the files
    ids: tuple[str, ...] = ()  # types whose names become ids, unless others are asked for
    header: str = "official"  # header of prompts, unless another is asked for
    frames: int | None = None  # of each shot in a video of the whole episode; None for a video per shot


def _general(episode: Json) -> str:
    """Return the overview, whom and what the shots show, each once, and the number of shots."""
    shown = {entity["as"]: entity for shot in episode["shots"] for entity in shot["entities"]}
    looks = [f"{name}: {_closed(one['description'])}" for name, one in shown.items() if one["description"]]
    count = len(episode["shots"])
    number = f"This scene contains {count} shot{'' if count == 1 else 's'}."
    return " ".join([_closed(episode["overview"]), *looks, number])


def _closed(text: str) -> str:
    line = " ".join(text.split())
    return line if not line or line.endswith((".", "!", "?")) else f"{line}."


def _holocine(episode: Json) -> Files:
    captions = [" ".join(shot["prompt"].split()) for shot in episode["shots"]]
    general = _general(episode)
    document = {
        "global_caption": general, "shot_captions": captions,
        "prompt": f"[global caption] {general} [per shot caption] {' [shot cut] '.join(captions)}",
        "num_frames": 48 * len(captions) + 1,
        "shot_cut_frames": [48 * number + 1 for number in range(1, len(captions))],
        "output_path": f"{episode['episode_id']}.mp4",
    }  # fmt: skip
    return {f"{episode['episode_id']}.json": _pretty(document)}


def _cinetrans(episode: Json) -> Files:
    captions = [" ".join(shot["prompt"].split()) for shot in episode["shots"]]
    document = {
        "prompt": [*captions, _general(episode)], "general_prompt": True, "frame_num": 40 * len(captions) + 1,
        "mask_info": [11, *[10] * (len(captions) - 1)], "base_seed": episode["shots"][0]["seed"],
        "save_file": f"{episode['episode_id']}.mp4",
    }  # fmt: skip
    # JSON is YAML, so that no library is needed.
    return {f"{episode['episode_id']}.yaml": _pretty(document)}


def _storymem(episode: Json) -> Files:
    scenes: dict[int, dict[str, Json]] = {}
    for shot in episode["shots"]:
        number = int(shot["key"].partition(":")[0])
        scene = scenes.setdefault(number, {"scene_num": number, "video_prompts": [], "cut": []})
        scene["video_prompts"].append(shot["prompt"])
        scene["cut"].append(shot["cut"])
    return {
        f"{episode['episode_id']}/story.json": _pretty(
            {"story_overview": episode["overview"], "scenes": list(scenes.values())}
        )
    }


def _pretty(document: Json) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


GENERATORS: Mapping[str, Generator] = {
    "holocine": Generator("HoloCine", _holocine, ("character",), "none", 48),
    "cinetrans": Generator("CineTrans-DiT", _cinetrans, (), "none", 40),
    "storymem": Generator("StoryMem", _storymem),
}


def write_inputs(
    entity_set: EntitySet, out: Path, name: str, options: RequestOptions | None = None
) -> dict[str, int]:
    """Write what a generator reads into a new folder, and ``results.jsonl``.

    Returned: how many ``requests`` (episodes), ``files`` and ``shots`` there are, and prompts that were
    ``cut``.
    """
    if name not in GENERATORS:
        what = f"{name} is none of {', '.join(GENERATORS)}"
        raise ConfigError("--for", what=what, fix="use one of them, or leave --for out")
    require_free(out)
    generator, chosen, plain = GENERATORS[name], options or RequestOptions(), RequestOptions()
    chosen = replace(
        chosen, per="episode", ids=chosen.ids or generator.ids,
        header=generator.header if chosen.header == plain.header else chosen.header,
    )  # fmt: skip
    files: dict[str, str] = {}
    results: list[Json] = []
    cut = shots = requests = 0
    for episode in entity_requests(entity_set, chosen):
        requests += 1
        files |= generator.files(episode)
        results += _results(episode, generator)
        shots, cut = shots + len(episode["shots"]), cut + sum(one["cut_off"] > 0 for one in episode["shots"])
        if generator.frames is not None:
            files[f"{episode['episode_id']}.cuts.json"] = _pretty(_cuts(episode["shots"], generator.frames))
    with staged(out.absolute()) as (draft,):
        for path, text in files.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(draft / path, [text.encode("utf-8")])
        write_atomic(draft / RESULTS, jsonl_lines(results))
    return {"requests": requests, "files": len(files), "shots": shots, "cut": cut}


def _results(episode: Json, generator: Generator) -> Iterator[Json]:
    for shot in episode["shots"]:
        whole = f"{episode['episode_id']}.mp4"
        file = shot["file"] if generator.frames is None else whole
        line = {"episode_id": episode["episode_id"], "shot": shot["key"], "file": file}
        if generator.frames is None:  # as StoryMem names it
            scene, number = map(int, shot["key"].split(":"))
            line["from"] = f"{episode['episode_id']}/{scene:02d}_{number:02d}.mp4"
        yield line


def _cuts(shots: Sequence[Json], frames: int) -> Mapping[str, list[int]]:
    """Return the first frame of each shot and the one behind its last; the video has one frame more."""
    ends = [1 + frames * number for number in range(1, len(shots) + 1)]
    starts = [0, *ends[:-1]]
    return {shot["key"]: [start, end] for shot, start, end in zip(shots, starts, ends, strict=True)}


# -- Pictures of episodes: which of those that a run took may be given away, and those of a release checked
#
# A keyframe, crop or thumbnail is part of a release only where a line of the file of ``--video-rights`` says
# of its video a licence that the Hub knows by its SPDX id, or the public domain.

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

    Yielded: what the person who packs should know.
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
