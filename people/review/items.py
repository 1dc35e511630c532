"""The items of a study: what the pages show of each, and, apart from it, what each stands for.

A page shows an :class:`Item`: opaque ids and pictures under opaque names. What it stands for, such as story
and method, is in :class:`Stands`, which no page reads. A source yields :class:`Drawn`, which has both.
"""

import random
import re
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256, shake_256
from hmac import new as keyed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self
from zlib import crc32

from pydantic import Field

from ...builders.step import texts_in
from ...errors import InputError, MissingRequirement
from ...media.images import encode_image, fitted, open_picture
from ...media.kept_files import write_once
from ...media.video import opaque as opaque_frame
from ...media.video_file import frames_of, has_alpha, video_stream
from ...schemas.canonical import Json, canonical_text, sha256_bytes
from ...schemas.plain_files import open_plain, read_plain
from ...schemas.values import Own
from ...validators.katha.review_tables import content_sha256
from .task import UNCLEAR, Question, Task, Texts, is_due, place_of

ITEMS, KEY = "items.jsonl", "key.jsonl"
_UNSPACED = re.compile(r"[\u3005\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


class Value(Own):
    """A value of a record that a reviewer may correct."""

    path: str  # where it stands in the record
    label: str  # what it is called
    value: Json  # what stands there
    # what may stand there: ``text``, ``number``, or a list of ``texts`` or ``numbers``
    takes: Literal["text", "number", "texts", "numbers"] = "text"
    options: tuple[Json, ...] = ()  # what may stand there, where that is a few values only
    optional: bool = False  # whether nothing may stand there: null, or an empty list


class Part(Own):
    """One of several things that are asked alike, such as one question of a story."""

    id: str  # opaque
    text: str  # what is shown of it
    detail: tuple[str, ...] = ()  # lines that explain it, such as accepted answers
    values: tuple[Value, ...] = ()  # what of it may be corrected


def _words(text: str) -> int:
    return len(text.split()) + len(_UNSPACED.findall(text)) // 2


class Media(Own):
    """A picture or a video: the name under which the pages get it, and its size in pixels."""

    name: str
    kind: str
    width: int
    height: int


class Item(Own):
    """What the pages show of one item."""

    item: str  # opaque id
    texts: Mapping[str, Json] = {}  # what the task's template shows; empty where reviewers see pictures only
    # the pictures or videos, in order; two sides where things are compared
    sides: tuple[tuple[Media, ...], ...] = ()
    parts: Mapping[str, tuple[Part, ...]] = {}  # list name -> parts
    values: tuple[Value, ...] = ()  # what of the whole may be corrected

    @property
    def part_ids(self) -> dict[str, tuple[str, ...]]:
        """List name -> ids of its parts."""
        return {name: tuple(part.id for part in parts) for name, parts in self.parts.items()}

    @cached_property
    def words(self) -> int:
        """How many words it shows; two letters of a script without spaces count as one."""
        parts = [part for listed in self.parts.values() for part in listed]
        asked = [text for part in parts for text in (part.text, *part.detail)]
        return sum(_words(text) for text in texts_in([dict(self.texts), asked]))

    @property
    def media(self) -> tuple[Media, ...]:
        """All that is shown, of all sides."""
        return tuple(medium for side in self.sides for medium in side)


class Stands(Own):
    """What an item stands for; only who runs a study reads it."""

    item: str  # opaque id
    about: str  # what votes name as item, such as a story id
    story: str  # the story or other cluster that it belongs to
    condition: str | None = None  # evidence condition, where there is one
    methods: tuple[str, ...] = ()  # whose outputs are shown, side by side; none where nothing generated is
    seed: int | None = None  # of the generation
    stratum: str = ""  # what the item was drawn among, where it was
    parts: Mapping[str, str] = {}  # opaque id of a part -> its own id
    files: Mapping[str, str] = {}  # opaque name of a picture or video -> the file in the study's ``media``
    # place of an answer -> the answers that are right; of training and check items
    expected: Mapping[str, tuple[Json, ...]] = {}
    explained: Texts = Field(default={})  # what training says after the answer
    digest: str = ""  # hash of the thing that was read, as the release or run has it
    # of a record under review, its draft and story, as corrections of it are applied
    record: Mapping[str, Json] = {}

    @cached_property
    def seen(self) -> str | None:
        """Hash of what reviewers are shown of a record; None of anything else."""
        return content_sha256(self.about, self.record["draft"]) if self.record else None


@dataclass(frozen=True)
class Drawn:
    """One item as its source gives it."""

    about: str  # what votes name as item
    story: str  # the story or other cluster that it belongs to
    texts: Mapping[str, Json] = field(default_factory=dict)  # what the template shows
    # files of pictures or videos; two sides where things are compared
    sides: tuple[tuple[Path, ...], ...] = ()
    # list name -> parts, with their own ids
    parts: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    values: tuple[Value, ...] = ()  # what of the whole may be corrected
    condition: str | None = None  # evidence condition
    methods: tuple[str, ...] = ()  # whose outputs the sides show
    seed: int | None = None  # of the generation
    stratum: str = ""  # what it was drawn among
    digest: str = ""  # hash of what is read
    # place of an answer, with the parts' own ids -> the answers that are right
    expected: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    explained: Texts = field(default_factory=dict)  # what training says after the answer
    record: Mapping[str, Json] = field(default_factory=dict)  # of a record under review, its draft and story

    @property
    def named(self) -> str:
        """What tells it from the other items of its study."""
        return "\n".join(map(str, (self.about, self.condition, self.seed, *self.methods, self.digest)))


def opaque(secret: bytes, *names: object, prefix: str = "") -> str:
    """Return a name that tells nothing of what it stands for, the same each time."""
    text = "\n".join(map(str, names)).encode("utf-8")
    return prefix + keyed(secret, text, sha256).hexdigest()[:20]


def hide(drawn: Drawn, secret: bytes, stored: Sequence[Sequence[tuple[str, Media]]]) -> tuple[Item, Stands]:
    """Return what pages show of an item, and what it stands for."""
    item = opaque(secret, "item", drawn.named, prefix="i")
    own = {
        part.id: opaque(secret, "part", drawn.named, part.id, prefix="p")[:9]
        for parts in drawn.parts.values()
        for part in parts
    }
    named = [
        [(opaque(secret, "media", drawn.named, side, turn, prefix="m"), file, medium) for turn, (file, medium)
         in enumerate(files)]
        for side, files in enumerate(stored)
    ]  # fmt: skip
    shown = Item(
        item=item,
        texts=dict(drawn.texts),
        sides=tuple(
            tuple(medium.model_copy(update={"name": name}) for name, _, medium in side) for side in named
        ),
        parts={
            name: tuple(part.model_copy(update={"id": own[part.id]}) for part in parts)
            for name, parts in drawn.parts.items()
        },
        values=drawn.values,
    )
    stands = Stands(
        item=item, about=drawn.about, story=drawn.story, condition=drawn.condition, methods=drawn.methods,
        seed=drawn.seed, stratum=drawn.stratum, parts={name: real for real, name in own.items()},
        files={name: file for side in named for name, file, _ in side},
        expected={_hidden_place(place, own): answers for place, answers in drawn.expected.items()},
        explained=drawn.explained, digest=drawn.digest, record=drawn.record,
    )  # fmt: skip
    return shown, stands


def _hidden_place(place: str, own: Mapping[str, str]) -> str:
    name, slash, part = place.partition("/")
    return f"{name}{slash}{own.get(part, part)}"


def shuffled_parts(item: Item, draw: str) -> dict[str, tuple[Part, ...]]:
    """Return the parts of an item in the order in which a seat sees them.

    Only lists whose order tells nothing are shuffled; a list whose name ends in ``_in_order`` stays.
    """
    ordered: dict[str, tuple[Part, ...]] = {}
    for name, parts in item.parts.items():
        listed = list(parts)
        if not name.endswith("_in_order"):
            random.Random(f"{draw}/{name}").shuffle(listed)
        ordered[name] = tuple(listed)
    return ordered


def distinct(items: Iterable[Drawn]) -> list[Drawn]:
    """Return items without those that are there twice, in order."""
    return list({each.named: each for each in items}.values())


# -- Pictures and videos of a study: copied without their metadata, kept once, named by content
#
# A picture is decoded and encoded anew, so that the pages give pixels and nothing else. A video of a codec
# that browsers play is packed anew without its tags; any other is encoded anew. What is sent under a name
# has bytes of its own, so that neither a hash nor a size tells that two names stand for one file.

MEDIA = "media"
MOVING = frozenset((".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi"))
LARGEST_SIDE = 1600
"""Longest side of a picture, in pixels; larger ones are made smaller."""
PLAYED = {"h264": "mp4", "vp8": "webm", "vp9": "webm", "av1": "mp4"}
"""Codec that browsers play -> the container that it is packed into."""
TYPES = {"png": "image/png", "mp4": "video/mp4", "webm": "video/webm"}
"""Ending of a kept file -> what the pages call it."""

_PIECE = 256 * 1024
_LEAST, _SPREAD = 64, 1024  # bytes of a mark, and how many more it may have
_AFTER_HEADER = 33  # where the second chunk of a PNG file begins


@dataclass(frozen=True, slots=True)
class Marked:
    """A kept file as it is sent under one name: with bytes in it that decoders pass over."""

    path: Path  # the kept file
    at: int  # where the mark stands in what is sent
    mark: bytes  # a PNG chunk of a private type, a box ``free`` of MP4 or an element ``Void`` of WebM

    @classmethod
    def of(cls, path: Path, name: str, secret: bytes) -> Self:
        """Return what is sent of a kept file; nobody can tell from it which other names stand for it."""
        seed = keyed(secret, f"mark\n{name}".encode(), sha256).digest()
        noise = shake_256(seed).digest(_LEAST + int.from_bytes(seed[:2], "big") % _SPREAD)
        if path.suffix == ".png":
            body = b"fbNm" + noise
            mark = struct.pack(">I", len(noise)) + body + struct.pack(">I", crc32(body))
            return cls(path, _AFTER_HEADER, mark)
        if path.suffix == ".mp4":
            mark = struct.pack(">I4s", len(noise) + 8, b"free") + noise
        else:
            mark = b"\xec" + (len(noise) | 1 << 56).to_bytes(8, "big") + noise
        return cls(path, path.stat().st_size, mark)

    @property
    def size(self) -> int:
        """How many bytes are sent."""
        return self.path.stat().st_size + len(self.mark)

    def pieces(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield what is sent from one byte to before another."""
        end = self.at + len(self.mark)
        yield from self._of_file(start, min(stop, self.at))
        if marked := self.mark[max(start - self.at, 0) : max(stop - self.at, 0)]:
            yield marked
        yield from self._of_file(max(start, end) - len(self.mark), stop - len(self.mark))

    def content(self) -> bytes:
        return b"".join(self.pieces(0, self.size))

    def _of_file(self, start: int, stop: int) -> Iterator[bytes]:
        if start >= stop:
            return
        with open_plain(self.path) as file:
            file.seek(start)
            while piece := file.read(min(_PIECE, stop - start)):
                start += len(piece)
                yield piece


def store_file(folder: Path, path: Path) -> tuple[str, Media]:
    """Keep a picture or video in a study; return the name of the kept file, and its kind and size."""
    if path.suffix.lower() in MOVING:
        data, ending, width, height = _packed(path)
        kind = "video"
    else:
        data, width, height = _pixels(path)
        ending, kind = "png", "picture"
    name = f"{sha256_bytes(data)}.{ending}"
    write_once(data, name, folder / MEDIA)
    return name, Media(name="", kind=kind, width=width, height=height)


def _pixels(path: Path) -> tuple[bytes, int, int]:
    image = fitted(open_picture(path).image, LARGEST_SIDE)
    return encode_image(image, format="png"), image.width, image.height


def _packed(path: Path) -> tuple[bytes, str, int, int]:
    try:
        import av
    except ImportError as error:
        raise MissingRequirement(
            "videos", what="PyAV is not installed", fix='install it: pip install "fabula[video]"'
        ) from error
    try:
        with av.open(str(path), metadata_errors="ignore") as source:
            stream = video_stream(source)
            if stream is None:
                raise IndexError("it has sound and perhaps a cover, and no video")
            size = (stream.codec_context.width, stream.codec_context.height)
            ending = None if has_alpha(stream) else PLAYED.get(stream.codec_context.name)
            if ending is None:
                return _written("mp4", lambda target: _encode(source, stream, target)), "mp4", *size
            return _written(ending, lambda target: _copy(source, stream, target)), ending, *size
    except (av.FFmpegError, IndexError, OSError) as error:
        fix = "make it again, or leave its method out"
        raise InputError.one(
            str(path), what=f"this is no video that can be read: {error}", fix=fix
        ) from error


def _written(ending: str, fill: Callable[[Any], None]) -> bytes:
    """Return a new container as bytes. FFmpeg puts the index first only in a file that it can open anew."""
    import av

    with TemporaryDirectory() as folder:
        path = Path(folder, f"video.{ending}")
        with av.open(str(path), "w", format=ending, options=_bare(ending)) as target:
            fill(target)
        return read_plain(path, path.stat().st_size)


def _copy(source: Any, stream: Any, target: Any) -> None:  # noqa: ANN401 - PyAV's
    copied = target.add_stream_from_template(stream)
    copied.metadata.clear()
    for packet in source.demux(stream):
        if packet.dts is not None:
            packet.stream = copied
            target.mux(packet)


def _encode(source: Any, stream: Any, target: Any) -> None:  # noqa: ANN401 - PyAV's
    import av

    made = target.add_stream("libx264", rate=stream.average_rate or 24)
    made.width, made.height = stream.codec_context.width // 2 * 2, stream.codec_context.height // 2 * 2
    made.pix_fmt, made.options = "yuv420p", {"crf": "18"}
    for decoded in frames_of(source, stream):
        frame = opaque_frame(decoded)
        if frame is not decoded:
            frame.pts, frame.time_base = decoded.pts, decoded.time_base
        frame.pict_type = av.video.frame.PictureType.NONE
        target.mux(made.encode(frame.reformat(made.width, made.height, "yuv420p")))
    target.mux(made.encode())


def _bare(ending: str) -> dict[str, str]:
    """Return options that keep the muxer's own name out, and let a browser begin before the end has come."""
    return {"fflags": "+bitexact", **({"movflags": "+faststart"} if ending == "mp4" else {})}


# -- Corrections that people ask for: which values may change, what may stand there, when two are the same

LONGEST_VALUE = 20_000
"""Characters of a new value, as JSON."""


def values_of(item: Item, question: Question, part: str) -> tuple[Value, ...]:
    """Return the values that an ``edits`` question lets people change.

    ``part``: id of the part that it is asked of; empty for the whole item.
    """
    held = item.values
    if part:
        held = next((each.values for each in item.parts[question.each or ""] if each.id == part), ())
    return tuple(value for value in held if not question.corrects or value.path.startswith(question.corrects))


def edits_after(task: Task, question: Question) -> Question | None:
    """Return the question that asks for corrections after answers to another; None where there is none."""
    named = (each for each in task.card.questions if each.type == "edits" and question.name in each.when)
    return next(named, None)


def notes_after(task: Task, question: Question) -> tuple[Question, ...]:
    """Return the questions for a note that are asked after answers to another."""
    return tuple(each for each in task.card.questions if each.type == "text" and question.name in each.when)


def said_value(
    task: Task, item: Item, question: Question, part: str, answers: Mapping[str, Json]
) -> tuple[bool, Json]:
    """Return whether a question is about one value of the item, and the value that answers say is right.

    That is the one that was shown, or the one that a correction puts there; :data:`.task.UNCLEAR` where the
    answer says that several readings stand. Reviewers who agree that a label is wrong may differ in which is
    right: this is what tells.

    Example: the label courage was shown. ``correct`` says courage; ``corrected`` with kindness says kindness;
    ``ambiguous`` says unclear.
    """
    after = edits_after(task, question)
    values = () if after is None else values_of(item, after, part)
    if len(values) != 1:
        return False, None
    if answers.get(place_of(question.name, part)) in (*question.ambiguous, UNCLEAR):
        return True, UNCLEAR
    return True, tidy(edits_in(answers, after, part).get(values[0].path, values[0].value))


def edits_in(answers: Mapping[str, Json], question: Question | None, part: str) -> dict[str, Json]:
    """Return path -> new value of the corrections in a vote; empty where it has none."""
    given = answers.get(place_of(question.name, part)) if question is not None else None
    return {str(edit["path"]): edit["new"] for edit in given or ()}


def listed_edits(edits: Mapping[str, Json]) -> list[Json]:
    """Return corrections as votes and decisions have them, by path."""
    return [{"path": path, "new": new} for path, new in sorted(edits.items())]


def wrong_corrections(task: Task, item: Item, answers: Mapping[str, Json]) -> dict[str, str]:
    """Return what is wrong with the corrections in answers of the right shape: place -> what."""
    wrong = {}
    for question, part in task.asked(item.part_ids):
        place = place_of(question.name, part)
        if question.type == "edits" and place in answers and is_due(question, part, answers):
            problem = problem_of(values_of(item, question, part), answers[place])
            if problem is not None:
                wrong[place] = problem
    return wrong


def problem_of(values: Sequence[Value], edits: Json) -> str | None:
    """Return what is wrong with corrections, a list of ``path`` and ``new``; None where nothing is."""
    known = {value.path: value for value in values}
    seen = set()
    for edit in edits:
        value = known.get(edit["path"])
        if value is None:
            return f"{str(edit['path'])[:100]} is not among the fields that can be corrected here"
        if value.path in seen:
            return f"{value.label} is corrected twice"
        seen.add(value.path)
        if problem := _problem_of_value(value, edit["new"]):
            return f"{value.label}: {problem}"
    return None


def _problem_of_value(value: Value, new: Json) -> str | None:
    """Return what keeps a new value from standing in a place, or None."""
    if is_same(value.value, new):
        return "this is what stands there"
    if value.options:
        known = {(type(option), option) for option in value.options}
        listed = ", ".join("nothing" if option is None else str(option) for option in value.options)
        fits = (new is None or isinstance(new, str | int)) and (type(new), new) in known
        return None if fits else f"one of {listed} is expected"
    if new is None or new == []:
        return None if value.optional else "something has to stand there"
    return _problem_of_kind(value.takes, new)


def _problem_of_kind(takes: str, new: Json) -> str | None:
    many, is_right = takes.endswith("s"), _is_text if takes.startswith("text") else _is_number
    if many != isinstance(new, list) or not all(map(is_right, new if many else [new])):
        return f"a list of {takes} is expected" if many else f"a {takes} is expected"
    return (
        f"at most {LONGEST_VALUE} characters are expected"
        if len(canonical_text(new)) > LONGEST_VALUE
        else None
    )


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_same(first: Json, second: Json) -> bool:
    """Return whether two values say the same, whatever the form of letters and white space around texts."""
    return bool(tidy(first) == tidy(second))


def tidy(value: Json) -> Json:
    """Return a value with its texts in composed form (NFC) and without white space around them."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    if isinstance(value, list):
        return [tidy(entry) for entry in value]
    if isinstance(value, dict):
        return {name: tidy(entry) for name, entry in value.items()}
    return value
