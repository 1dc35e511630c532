"""Settings of the stages that choose what is judged and ask judges: ensembles of judges, and sets of prompts.

The main set and the held-out one ask for the same thing in the same form and other words. Whoever picks
candidates, weights or thresholds with the main set reports with the held-out one, so that nothing fits one
wording. The sets ``neutral``, ``strict`` and ``uncertain`` are the main one but for one stance of the prompts
that show images alone: how much is to be taken for seen (Table 72).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from ...engine.config import RunConfig, read_settings
from ...engine.run_options import RunOptions
from ...errors import ConfigError, InputError, UserError
from ...media.images import MEDIA_TYPES, encode_image, fitted
from ...media.images import Picture as Opened
from ...media.kept_files import keep_file, kept_bytes
from ...media.stretching import Filter, stretched
from ...media.video import pictures_in
from ...models.chat import Image
from ...models.prices import listed_like
from ...models.spec import GIVEN, Makes, ModelSettings, parse_spec
from ...prompts.loader import Prompt, TextSet, load_prompt, prompt_ids
from ...schemas.canonical import sha256_bytes
from ...schemas.judgement import Judge
from ...schemas.values import Listed, Own, is_unset

PromptSet: TypeAlias = Literal["main", "heldout", "neutral", "strict", "uncertain"]
MAIN: PromptSet = "main"

FOLDERS: Mapping[PromptSet, str] = {
    "main": "judge/",
    "heldout": "judge/heldout/",
    "neutral": "judge/neutral/",
    "strict": "judge/strict/",
    "uncertain": "judge/uncertain/",
}
"""Set -> what the ids of its prompts begin with. A prompt that a set lacks is that of the main one."""

SHARED = frozenset({"judge/match_answer"})
"""Prompts beside the judges' own, the same whatever the set."""


def check_set(name: str) -> None:
    """Check that there is a set of prompts of this name."""
    if name not in FOLDERS:
        raise ConfigError(
            f"--prompts {name}", what="there is no such set of prompts",
            fix=f"use {', '.join(FOLDERS)}, official or the folder of a set; see fabula prompts list",
        )  # fmt: skip


def judge_prompt(name: str, prompts: PromptSet = MAIN) -> Prompt:
    """Return a prompt of a set, such as ``question_image``."""
    return load_prompt(_id_in(prompts, name))


@cache
def _id_in(prompts: PromptSet, name: str) -> str:
    own = FOLDERS[prompts] + name
    return own if own in prompt_ids() else FOLDERS[MAIN] + name


def in_all_sets(*names: str) -> tuple[str, ...]:
    """Return the ids that prompts have in every set."""
    return tuple(dict.fromkeys(_id_in(prompts, name) for prompts in FOLDERS for name in names))


def of_sets(ids: Iterable[str], used: Collection[str]) -> list[str]:
    """Return those of some prompts that are used with some sets, sorted: the others are only declared."""
    asked = list(ids)
    names = {prompt_id.rpartition("/")[2] for prompt_id in asked if prompt_id not in SHARED}
    wanted = {_id_in(prompts, name) for prompts in FOLDERS if prompts in used for name in names}
    return sorted(prompt_id for prompt_id in asked if prompt_id in SHARED or prompt_id in wanted)


JUDGES = "judges"
"""The section of a settings file in which judges have names; no stage's."""

SERVED: dict[str, str] = {
    "gemini-2.5-flash": "google:gemini-2.5-flash",
    "claude-haiku-4.5": "anthropic:claude-haiku-4-5-20251001",
    "qwen2.5-vl-7b": "vllm:Qwen/Qwen2.5-VL-7B-Instruct",
    "qwen2.5-vl-3b": "vllm:Qwen/Qwen2.5-VL-3B-Instruct",
    "smolvlm2-2.2b": "vllm:HuggingFaceTB/SmolVLM2-2.2B-Instruct",
    "smolvlm2-500m": "vllm:HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
    "qwen3-vl-8b": "vllm:Qwen/Qwen3-VL-8B-Instruct",
    "llava-onevision-72b": "vllm:llava-hf/llava-onevision-qwen2-72b-ov-chat-hf",
}
"""Judges of published protocols that are known by a short name: a service's model, or open weights that are
served on this machine. ``[judges]`` in a settings file says otherwise; docs/models.md has what memory they
need."""

PRESETS: dict[str, tuple[str, ...]] = {
    "kathatrace-main": (
        "gemini-2.5-flash",
        "qwen2.5-vl-7b",
        "qwen2.5-vl-3b",
        "smolvlm2-2.2b",
        "smolvlm2-500m",
    ),
    "kathatrace-pool": (
        "gemini-2.5-flash",
        "claude-haiku-4.5",
        "qwen2.5-vl-7b",
        "qwen2.5-vl-3b",
        "smolvlm2-2.2b",
        "smolvlm2-500m",
    ),
}
"""Preset -> its judges: the ensemble of section 4.1 of the KathaTrace paper, and the pool of its E.1."""


def judges_of(options: RunOptions, judges: Sequence[str], preset: str | None = None) -> tuple[str, ...]:
    """Return the specs of the judges that options name; see :func:`judge_specs`."""
    specs = specs_of(options, judges, preset)
    check_they_answer(specs)
    return specs


def specs_of(options: RunOptions, named: Sequence[str], preset: str | None = None) -> tuple[str, ...]:
    """Return the specs of models that options name, also by a name of the settings file."""
    toml = options.settings_file
    return judge_specs(named, preset, {} if toml is None else read_settings(toml).get(JUDGES, {}), toml)


def judge_specs(
    judges: Sequence[str], preset: str | None, named: Mapping[str, object], where: Path | None
) -> tuple[str, ...]:
    """Return the model specs of the judges that were asked for, each once, in that order.

    ``named``: the section ``[judges]`` of ``fabula.toml``: name -> spec.
    """
    if preset is not None and preset not in PRESETS:
        raise ConfigError(
            f"--preset {preset}", what="there is no such preset",
            fix=f"use {' or '.join(PRESETS)}, or name each judge with --judge",
        )  # fmt: skip
    wanted = [*(PRESETS[preset] if preset is not None else ()), *judges]
    specs, missing = [], []
    for name in wanted:
        spec = named.get(name, SERVED.get(name, name))
        if spec == name and ":" not in name:
            missing.append(name)
        elif not isinstance(spec, str):
            raise ConfigError(
                f"{where}: [{JUDGES}] {name}", what=f"{spec!r} is not a model spec in quotes",
                fix=f'write {name} = "http://HOST:PORT/v1#NAME"',
            )  # fmt: skip
        else:
            specs.append(parse_spec(spec).text)
    if missing:
        raise _unserved(missing, where)
    return tuple(dict.fromkeys(specs))


def _unserved(missing: Sequence[str], where: Path | None) -> ConfigError:
    """Return the error for judges of whom nobody has said where they are served."""
    close = [spec for name in missing for spec in listed_like(name)]
    fix = f"did you mean {' and '.join(close)}? Or " if close else ""
    return ConfigError(
        "--judge", what=f"no provider serves it, and [{JUDGES}] does not name it: {', '.join(missing)}",
        fix=f"{fix}say in {where or 'fabula.toml'} where it is served: "
        f'[{JUDGES}] "{missing[0]}" = "http://HOST:PORT/v1#NAME"',
    )  # fmt: skip


def check_they_answer(specs: Sequence[str]) -> None:
    """Check that judges answer questions."""
    for spec in specs:
        read = parse_spec(spec)
        if read.encodes:
            raise ConfigError(
                f"--judge {spec}",
                what="this model gives vectors of texts; it cannot answer questions",
                fix="name an encoder with --matcher",
            )
        if read.draws:
            raise ConfigError(
                f"--judge {spec}",
                what=f"this model makes {GIVEN[read.makes]}; it cannot answer questions",
                fix=f"name a chat model, which has no {read.makes}: before it",
            )


class SelectionSettings(Own):
    """Which stories of a release are judged; every condition must hold."""

    split: Listed[str] = Field(default=(), description="Only stories of these splits; none: of all.")
    subset: str | None = Field(
        default=None, description="Only the stories that this file of the release lists, without its ending."
    )
    stories: Listed[str] = Field(default=(), description="Only stories with these ids; none: all.")
    limit: int | None = Field(default=None, ge=1, description="Only the first so many of those, by id.")
    variant_questions: bool = Field(
        default=True, exclude_if=lambda asked: asked,
        description="Whether the questions about contrastive variants are asked, too.",
    )  # fmt: skip


class JudgeSettings(ModelSettings):
    """Who is asked, and how often. A stage without judges asks nobody."""

    encodes: ClassVar[bool] = False
    """Whether those that are asked give vectors, and no answers."""
    keeps_unanswered: ClassVar[bool] = True

    judges: Listed[str] = Field(default=(), description="Model specs of the judges.")
    votes: int = Field(default=1, ge=1, le=100, description="Answers of each judge to each question.")
    texts: TextSet | None = Field(
        default=None, exclude_if=is_unset, description="Texts of others that judges are asked with."
    )
    preset: str | None = Field(
        default=None, exclude_if=is_unset, description="The published protocol that was chosen."
    )

    @model_validator(mode="after")
    def _judges_are_told_apart(self) -> Self:
        if self.model is not None:
            raise ValueError("judges are named by the setting judges, not by model")
        for spec in self.judges:
            wanted: Makes = "vectors" if self.encodes else "text"
            if (makes := parse_spec(spec).makes) != wanted:
                raise ValueError(f"{spec} gives {GIVEN[makes]}; {GIVEN[wanted]} are wanted here")
        names = Counter(public_judge(spec).spec for spec in self.judges)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ValueError(f"each judge once; {', '.join(twice)} is there more than once")
        return self

    def models(self) -> tuple[str, ...]:
        """Return the specs of all judges."""
        return self.judges

    def for_judge(self, spec: str) -> ModelSettings:
        shared = {name: getattr(self, name) for name in ModelSettings.model_fields}
        return ModelSettings.model_validate(shared | {"model": spec})


class WordedSettings(JudgeSettings):
    """The same for a stage whose prompts come in several wordings."""

    prompts: PromptSet = Field(default=MAIN, description="Which set of judges' prompts is used.")


class ScanSettings(Own):
    """Settings of the leakage scan: it scans what the judges would be sent."""

    prompts: PromptSet = Field(default=MAIN, description="Which set of judges' prompts is used.")


class LabelledSettings(WordedSettings):
    """The same for a stage that also asks for the moral target of each story."""

    labels: bool = Field(default=True, description="Whether the moral target is asked for (Eq. 39).")


class MatcherSettings(JudgeSettings):
    """The same for the stage that compares answers: one matcher, asked once."""

    @model_validator(mode="after")
    def _one_verdict(self) -> Self:
        if len(self.judges) > 1 or self.votes != 1:
            raise ValueError("one matcher, and one verdict on each answer")
        return self


class VectorSettings(MatcherSettings):
    """The same for the stage that compares the vectors of answers: one encoder."""

    encodes: ClassVar[bool] = True

    threshold: float = Field(
        default=0.8,
        ge=-1,
        lt=1,
        description="An answer nearer than this to an accepted one is right (cosine).",
    )


def public_judge(spec: str) -> Judge:
    """Return a judge as archives name it: where a server is reached is nobody else's business."""
    read = parse_spec(spec)
    weights = read.weights
    name = read.name if weights is None or weights.path is None else weights.public
    return Judge(spec=read.public, provider=read.provider, model=name, reported_model=None)


def without_judges(config: RunConfig) -> RunConfig:
    """Return settings under which nobody is asked."""
    stages = {name: _without_judges(settings) for name, settings in config.stages.items()}
    return replace(config, stages=stages, models={})


def _without_judges(settings: Own) -> Own:
    return settings.model_copy(update={"judges": ()}) if isinstance(settings, JudgeSettings) else settings


# -- The pictures that judges get from the files of a storyboard: decoded once, encoded once, no metadata
#
# What a file holds besides pixels is read from its bytes without decoding it.

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_NEEDED = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
# FF is followed by 00 where it is data and by D0 to D7 where decoding may start again.
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_SOS, _EOI, _APP0 = 0xDA, 0xD9, 0xE0
# Tables and frame headers: DHT, DQT, DRI and the SOF family.
_JPEG_NEEDED = {0xDB, 0xDD, *range(0xC0, 0xD0)}
_JFIF_WITHOUT_THUMBNAIL = 16


@lru_cache(maxsize=64)
def foreign_chunks(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return what a PNG or JPEG file holds besides pixels: name of the chunk, start of its content.

    A file of any other format, or a damaged one, is reported as a whole: re-encoded pictures are neither.
    """
    try:
        if data.startswith(_PNG):
            return tuple(_png(data))
        if data.startswith(b"\xff\xd8"):
            return tuple(_jpeg(data))
    except (IndexError, ValueError):
        return (("damaged file", shown(data)),)
    return (("file that is not a PNG or JPEG", shown(data)),)


def shown(data: bytes) -> str:
    """Return the start of some bytes as one line of text."""
    return data[:40].decode("latin-1").encode("unicode_escape").decode("ascii")


def _png(data: bytes) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    offset = len(_PNG)
    while offset < len(data):
        size, name = int.from_bytes(data[offset : offset + 4], "big"), data[offset + 4 : offset + 8]
        content = data[offset + 8 : offset + 8 + size]
        if len(name) < 4 or len(content) < size:
            raise ValueError("a chunk is cut")
        if name not in _PNG_NEEDED:
            texts.append((f"PNG chunk {shown(name)}", shown(content)))
        offset += 12 + size
        if name == b"IEND":
            return [*texts, *_rest(data[offset:])]
    raise ValueError("no end")


def _jpeg(data: bytes) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    offset = 2
    while True:
        if data[offset] != 0xFF:
            raise ValueError("no marker")
        marker = data[offset + 1]
        if marker == _EOI:
            return [*texts, *_rest(data[offset + 2 :])]
        size = int.from_bytes(data[offset + 2 : offset + 4], "big")
        content = data[offset + 4 : offset + 2 + size]
        plain = marker == _APP0 and content[:5] == b"JFIF\x00" and size == _JFIF_WITHOUT_THUMBNAIL
        if marker not in _JPEG_NEEDED and marker != _SOS and not plain:
            texts.append((f"JPEG segment {marker:02X}", shown(content)))
        offset += 2 + max(size, 2)
        if marker == _SOS:
            following = _MARKER.search(data, offset)
            if following is None:
                raise ValueError("no end")
            offset = following.start()


def _rest(data: bytes) -> list[tuple[str, str]]:
    return [("bytes after the picture", shown(data))] if data else []


_SUFFIX = {"image/png": "png", "image/jpeg": "jpg"}
_TYPES = {suffix: media_type for media_type, suffix in _SUFFIX.items()}


class ImageSettings(Own):
    """How pictures are encoded for judges. Part of the protocol: a judge sees exactly this."""

    max_side: int | None = Field(
        default=1024, ge=16, le=8192, description="Longer side in pixels at most; null keeps the size."
    )
    format: Literal["jpeg", "png"] = Field(default="jpeg", description="What the pictures are sent as.")
    quality: int = Field(default=92, ge=1, le=95, description="Quality of a JPEG.")
    size: tuple[int, int] | None = Field(
        default=None, exclude_if=is_unset,
        description="Width and height that pictures are stretched to, whatever their shape; null keeps it.",
    )  # fmt: skip
    stretching: Filter = Field(default="area", exclude_if=lambda value: value == "area")
    subsampled: bool = Field(
        default=False, exclude_if=is_unset, description="Whether a JPEG keeps a quarter of its colours."
    )

    @field_validator("size")
    @classmethod
    def _can_be_shown(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value is not None and not all(16 <= side <= 8192 for side in value):
            raise ValueError("each side must have 16 to 8192 pixels")
        return value


@dataclass(frozen=True, slots=True)
class PreparedPicture:
    """One encoded picture: pixels and nothing else."""

    sha256: str  # of the bytes
    width: int  # in pixels, as encoded
    height: int  # in pixels, as encoded
    media_type: str  # ``image/jpeg`` or ``image/png``
    data: bytes = field(repr=False)  # the bytes
    # what was done to the file, or is odd about it (see :class:`~fabula.media.images.Picture`)
    notes: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        """Its name in a folder of pictures named by content, such as ``3f...9a.jpg``."""
        return f"{self.sha256}.{_SUFFIX[self.media_type]}"

    @property
    def part(self) -> Image:
        return Image(self.data, self.media_type)


def prepare_storyboard(
    files: Sequence[Path], settings: ImageSettings, *, frames: int = 1
) -> tuple[PreparedPicture, ...]:
    """Decode the files of a storyboard with limits and encode each once, in the order given.

    ``files``: pictures, or videos of which frames are taken.
    ``frames``: how many frames of each video, the middles of equal parts.
    """
    prepared: list[PreparedPicture] = []
    problems: list[UserError] = []
    for file in files:
        try:
            prepared += [prepare_picture(shown, settings) for shown in pictures_in(file, frames)]
        except UserError as problem:
            problems.append(problem)
    if problems:
        raise InputError(problems)
    return tuple(prepared)


def prepare_picture(picture: Opened, settings: ImageSettings) -> PreparedPicture:
    """Encode one opened picture, or frame of a video, as the settings say."""
    image = (
        fitted(picture.image, settings.max_side)
        if settings.size is None
        else stretched(picture.image, settings.size, settings.stretching)
    )
    data = encode_image(
        image, format=settings.format, quality=settings.quality, subsampled=settings.subsampled
    )
    media_type = MEDIA_TYPES[settings.format]
    return PreparedPicture(sha256_bytes(data), image.width, image.height, media_type, data, picture.notes)


def keep_pictures(pictures: Iterable[PreparedPicture], store: Path) -> tuple[str, ...]:
    """Write pictures into a folder named by their content; return their file names there.

    What is there already is left alone; a file is never seen half written.
    """
    store.mkdir(parents=True, exist_ok=True)
    names = []
    for picture in pictures:
        keep_file(picture.data, picture.file_name, store)
        names.append(picture.file_name)
    return tuple(names)


def absent_picture(file_name: str) -> Image:
    """Return what stands for a kept picture where its bytes are not at hand; requests have the same key."""
    stem, _, suffix = file_name.partition(".")
    return Image(file_name.encode("ascii"), _TYPES[suffix], stem)


def kept_picture(store: Path, file_name: str) -> Image:
    """Return a kept picture as a part of a message; what its bytes are is checked against its name."""
    fix = "remove the folder `images` of the run and run the command again"
    data = kept_bytes(store, file_name, fix=fix)
    return Image(data, _TYPES[file_name.partition(".")[2]])
