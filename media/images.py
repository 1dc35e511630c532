"""Opening pictures with limits, as 8-bit sRGB the right way up; encoding them without metadata."""

import io
import threading
import warnings
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from ..errors import ExitCode, UserError
from ..schemas.canonical import sha256_bytes
from ..schemas.plain_files import open_plain

if TYPE_CHECKING:
    from PIL.Image import Image


# -- What stands beside the pixels of a picture's file: what cannot be read, or is far too much, is left out
#
# Pillow refuses whole pictures for a large text, a checksum of a comment or a short profile; viewers show
# them.

MOST_READ = 4_000_000
"""Bytes beside the pixels that are read, unpacked; what comes behind them is left out."""
LARGEST = 1_000_000
"""Bytes that one text or profile of a PNG may have, unpacked: Pillow unpacks no more."""

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_TEXTS = {b"tEXt": "text", b"zTXt": "text", b"iTXt": "text", b"iCCP": "profile", b"eXIf": "EXIF"}
_APPS = {0xE0: "JFIF", 0xE1: "EXIF or XMP", 0xE2: "profile", 0xEE: "Adobe", 0xFE: "comment"}
_SHORTEST = {(0xE0, b"JFIF"): 14, (0xE2, b"ICC_PROFILE"): 14, (0xEE, b"Adobe"): 12}
"""Bytes that a segment of a JPEG has at least, by marker and by what it begins with."""
_PIXELS_OF_WEBP = (b"VP8 ", b"VP8L", b"ANMF")


@dataclass(slots=True)
class _Kept:
    """The parts of a file that are kept."""

    parts: list[bytes] = field(default_factory=list)  # their bytes, in order
    # what each part was that is left out though it could have been of use
    left_out: set[str] = field(default_factory=set)
    read: int = 0  # bytes beside the pixels so far, unpacked

    def take(self, part: bytes, name: str, size: int | None) -> None:
        """Keep a part of some size, unpacked; None says that it cannot be read."""
        if size is None or self.read + size > MOST_READ:
            self.left_out.add(name)
        else:
            self.parts.append(part)
            self.read += size


def without_oddities(data: bytes) -> tuple[bytes, list[str]]:
    """Return a picture's file without what is odd beside its pixels, and notes: ``beside``, ``animated``.

    The parts that decide about pixels stay as they are, whole or damaged. Of an animated PNG the first
    picture stays.
    """
    ways: tuple[tuple[bytes, Callable[[bytes], tuple[_Kept, list[str]]]], ...]
    ways = ((_PNG, _png), (_JPEG, _jpeg), (b"RIFF", _webp))
    way = next((way for start, way in ways if data.startswith(start)), None)
    if way is None:
        return data, []
    kept, notes = way(data)
    if kept.left_out:
        names = ", ".join(sorted(kept.left_out))
        notes.append(f"beside: {names} left out, damaged or very large")
    return b"".join(kept.parts), notes


def _png(data: bytes) -> tuple[_Kept, list[str]]:
    kept = _Kept([_PNG])
    at, frames, in_animation, pixels = len(_PNG), 0, False, False
    while at + 8 <= len(data):
        size, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + size
        if end > len(data) or not name.isalpha():
            break
        part, content, at = data[at:end], data[at + 8 : end - 4], end
        pixels = pixels or name == b"IDAT"
        if name[:1].isupper() or name == b"tRNS":
            kept.parts.append(part)
        elif name in _TEXTS:
            sound = zlib.crc32(part[4:-4]) == int.from_bytes(part[-4:], "big")
            kept.take(part, _TEXTS[name], _size_of_text(name, content) if sound else None)
        elif name == b"acTL" and size == 8:
            frames = int.from_bytes(content[:4], "big")
        elif name == b"fcTL" and not pixels:
            in_animation = True
    else:
        at = len(data)
    if at < len(data):
        _take_rest(kept, data[at:], pixels=pixels)
    moves = frames > 1 or (frames == 1 and not in_animation)
    return kept, ["animated: only the first frame is used"] if moves else []


def _take_rest(kept: _Kept, rest: bytes, *, pixels: bool) -> None:
    """Keep what is no whole chunk, unless it is a text behind the pixels that was cut off."""
    if pixels and rest[4:8] in _TEXTS:
        kept.left_out.add(_TEXTS[rest[4:8]])
    else:
        kept.parts.append(rest)


def _size_of_text(name: bytes, content: bytes) -> int | None:
    """Return how many bytes a text, profile or EXIF block has unpacked; None where it cannot be read."""
    if name in (b"tEXt", b"eXIf"):
        return len(content) if len(content) <= LARGEST else None
    _, end, rest = content.partition(b"\0")
    if name == b"iTXt":
        packed, method, rest = rest[:1] == b"\1", rest[1:2], rest[2:]
        rest = rest.split(b"\0", 2)[-1]
    else:
        packed, method, rest = True, rest[:1], rest[1:]
    if not end or method != b"\0":
        return None
    if not packed:
        return len(rest) if len(rest) <= LARGEST else None
    try:
        unpacked = len(zlib.decompressobj().decompress(rest, LARGEST + 1))
    except zlib.error:
        return None
    return unpacked if unpacked <= LARGEST else None


def _jpeg(data: bytes) -> tuple[_Kept, list[str]]:
    kept = _Kept([data[:2]])
    at = 2
    for marker, start, end in _segments(data):
        part, content, at = data[start:end], data[start + 4 : end], end
        if 0xE0 <= marker <= 0xEF or marker == 0xFE:
            shortest = max(
                (n for (m, s), n in _SHORTEST.items() if m == marker and content.startswith(s)), default=0
            )
            kept.take(part, _APPS.get(marker, "data"), None if len(content) < shortest else len(content))
        else:
            kept.parts.append(part)
    kept.parts.append(data[at:])
    return kept, []


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield marker, start and end of the segments of a JPEG before its pixels."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and 0xC0 <= data[at + 1] <= 0xFE and data[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if end > len(data) or end < at + 4:
            return
        yield data[at + 1], at, end
        at = end


def _webp(data: bytes) -> tuple[_Kept, list[str]]:
    """Keep all, but for a part behind the pixels that goes beyond the end of the file."""
    at, pixels = 12, False
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")
        if end > len(data):
            break
        pixels = pixels or data[at : at + 4] in _PIXELS_OF_WEBP
        at = end + end % 2
    if data[8:12] != b"WEBP" or not pixels or at >= len(data) or data[at : at + 4] in _PIXELS_OF_WEBP:
        return _Kept([data]), []
    return _Kept([b"RIFF", (at - 8).to_bytes(4, "little"), data[8:at]], {"EXIF or XMP"}), []


# -- Opening pictures with limits, as 8-bit sRGB the right way up

_SIXTEEN = ("I;16", "I;16L", "I;16B", "I;16N", "I")
TRANSPARENT = "transparent: laid over white"
_SPACES = {"L": "GRAY", "RGB": "RGB", "CMYK": "CMYK"}


def as_srgb(image: "Image") -> tuple["Image", list[str]]:
    """Return a loaded image as mode RGB, and what was done to it as notes.

    Orientation comes from EXIF. Colours go through the embedded ICC profile where there is one that can be
    used; without one they are taken for sRGB, and CMYK is converted without a profile. Of 16 bits the upper
    eight stay. What is transparent is laid over white.
    """
    profile = image.info.get("icc_profile")
    upright, notes = _upright(image)
    plain, alpha, more = _eight_bits(upright)
    coloured, colours = _coloured(plain, profile)
    notes += more + colours
    if alpha is not None:
        from PIL import Image as Images

        white = Images.new("RGB", coloured.size, (255, 255, 255))
        white.paste(coloured, mask=alpha)
        coloured = white
    if coloured is image:
        coloured = image.copy()
    coloured.info = {}
    return coloured, notes


def _upright(image: "Image") -> tuple["Image", list[str]]:
    from PIL import ImageOps

    try:
        with _HEADER, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            orientation = image.getexif().get(0x0112, 1)
        if orientation not in range(2, 9):
            return image, []
        return ImageOps.exif_transpose(image), [f"rotated: EXIF orientation {orientation} was applied"]
    except Exception:  # noqa: BLE001 - decoder boundary: damaged EXIF turns nothing
        return image, ["rotated: the EXIF data cannot be read and was ignored"]


def _eight_bits(image: "Image") -> tuple["Image", "Image | None", list[str]]:
    """Return the colours as L, RGB or CMYK, the transparency if there is any, and notes."""
    notes: list[str] = []
    if image.mode in _SIXTEEN:
        image, notes = _upper_half(image), ["16-bit: the upper eight bits are used"]
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif "transparency" in image.info and image.mode in ("1", "L", "RGB"):
        image = image.convert("RGBA")
    if image.mode in ("LA", "PA", "RGBA"):
        alpha = image.getchannel("A")
        if alpha.getextrema() == (255, 255):
            return image.convert("RGB"), None, notes
        return image.convert("RGB"), alpha, [*notes, TRANSPARENT]
    if image.mode not in _SPACES:
        image = image.convert("L" if image.mode == "1" else "RGB")
    return image, None, notes


def _upper_half(image: "Image") -> "Image":
    import numpy as np
    from PIL import Image as Images

    values = np.asarray(image).astype(np.int64)
    return Images.fromarray((np.clip(values, 0, 65535) >> 8).astype(np.uint8))


def _coloured(image: "Image", profile: object) -> tuple["Image", list[str]]:
    notes = ["cmyk: converted to RGB"] if image.mode == "CMYK" else []
    if isinstance(profile, bytes) and profile:
        converted = _through(image, profile)
        if converted is not None:
            return converted, [*notes, "icc: converted from the embedded profile to sRGB"]
        notes.append("icc: the embedded profile cannot be used and was ignored")
    return (image if image.mode == "RGB" else image.convert("RGB")), notes


def _through(image: "Image", profile: bytes) -> "Image | None":
    """Return the image converted from its profile, or None where the profile is of no use."""
    from PIL import ImageCms

    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        space = str(source.profile.xcolor_space).strip()
        if space != _SPACES[image.mode]:
            if space != "RGB" or image.mode != "L":
                return None
            image = image.convert("RGB")
        target = ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(image, source, target, outputMode="RGB")
    except Exception:  # noqa: BLE001 - decoder boundary
        return None


class MediaProblem(UserError):
    """A picture or a video that cannot be used.

    ``where``: the file, or what the bytes are called. ``code``: what is wrong, as one of the codes that
    ``docs/outputs.md`` lists, such as ``truncated``. ``expected``: what should have been there. ``found``:
    what was there instead. ``fix``: what to do about it.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FINDINGS

    def __init__(self, where: str, *, code: str, expected: str, found: str, fix: str) -> None:
        super().__init__(where, expected=expected, found=found, fix=fix)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_media, (self.where, self.code, self.expected, self.found, self.fix))


def _rebuild_media(where: str, code: str, expected: str, found: str, fix: str) -> MediaProblem:
    return MediaProblem(where, code=code, expected=expected, found=found, fix=fix)


PictureFormat = Literal["png", "jpeg"]
MEDIA_TYPES: dict[PictureFormat, str] = {"png": "image/png", "jpeg": "image/jpeg"}

FORMATS = ("PNG", "JPEG", "WEBP", "AVIF", "GIF")
_STARTS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_SUFFIXES = {"png": "PNG", "jpg": "JPEG", "jpeg": "JPEG", "webp": "WEBP", "avif": "AVIF", "gif": "GIF"}
# A changed warning filter belongs to the whole process; reading a header takes microseconds.
_HEADER = threading.Lock()


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """What a picture may be at most; the pixels are compared before any of them is decoded."""

    max_bytes: int = 64_000_000  # size of the file
    max_pixels: int = 40_000_000  # width times height
    max_side: int = 20_000  # the longer side, in pixels


LIMITS = PictureLimits()


@dataclass(frozen=True, slots=True)
class Picture:
    # the pixels: mode RGB, 8 bits a channel, sRGB, the right way up, no metadata
    image: "Image" = field(repr=False)
    format: str  # what the file was: PNG, JPEG, WEBP or GIF
    # what was done to it, or is odd about it, each as one line that begins with a code: ``misnamed``,
    # ``beside``, ``animated``, ``rotated``, ``16-bit``, ``transparent``, ``icc``, ``cmyk``, ``blank``
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Width in pixels, after orientation."""
        return int(self.image.width)

    @property
    def height(self) -> int:
        """Height in pixels, after orientation."""
        return int(self.image.height)


def open_picture(source: Path | bytes, limits: PictureLimits = LIMITS, *, name: str = "picture") -> Picture:
    """Open a picture and bring it to 8-bit sRGB without transparency, the right way up.

    ``source``: the file, or its bytes. ``limits``: what it may be at most. ``name``: what to call bytes in
    messages.
    """
    where = name if isinstance(source, bytes) else str(source)
    data = _checked(source, where, limits) if isinstance(source, bytes) else read_bytes(source, limits)
    decoded = DECODED.get(sha256_bytes(data))
    if decoded is None:
        read, odd = without_oddities(data)
        opened = _open(read, where, limits)
        size, kind = opened.size, str(opened.format)
        odd += _animated(opened)
        _load(opened, where)
        image, changes = _converted(opened, where)
        decoded = _Decoded(image, size, kind, (*odd, *changes, *_blank(image)))
        DECODED.put(sha256_bytes(data), decoded)
    else:
        _check_size(decoded.size, where, limits)
    kind = "JPEG" if decoded.kind == "MPO" else decoded.kind
    return Picture(decoded.image.copy(), kind, (*_misnamed(where, kind), *decoded.notes))


@dataclass(frozen=True, slots=True)
class _Decoded:
    """The pixels of a picture, its size and format as the file has them, and notes but for its name."""

    image: "Image"
    size: tuple[int, int]
    kind: str
    notes: tuple[str, ...]


class DecodedPictures:
    """The pictures that this process decoded last, by the hash of their bytes, up to so many bytes of pixels.

    Several stages look at the same picture one after another; so it is decoded once, as long as it is here.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._pictures: OrderedDict[str, _Decoded] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, sha256: str) -> _Decoded | None:
        """Return a picture if it is here; it is the last to go then."""
        with self._lock:
            if sha256 in self._pictures:
                self._pictures.move_to_end(sha256)
            return self._pictures.get(sha256)

    def put(self, sha256: str, decoded: _Decoded) -> None:
        """Keep a picture, but for one that would push out most others; those used longest ago go."""
        with self._lock:
            if 4 * _pixel_bytes(decoded) > self.most or sha256 in self._pictures:
                return
            self._pictures[sha256] = decoded
            self.held += _pixel_bytes(decoded)
            while self.held > self.most:
                self.held -= _pixel_bytes(self._pictures.popitem(last=False)[1])

    def clear(self) -> None:
        with self._lock:
            self._pictures.clear()
            self.held = 0


def _pixel_bytes(decoded: _Decoded) -> int:
    return 3 * decoded.image.width * decoded.image.height


DECODED = DecodedPictures(128_000_000)


def read_bytes(path: Path, limits: PictureLimits = LIMITS) -> bytes:
    """Return the bytes of a file that is no larger than the limits allow."""
    where = str(path)
    try:
        if not path.is_file():
            raise _problem(where, "missing", "a file", "none", "generate it again")
        with open_plain(path, follow=True) as file:
            data = file.read(limits.max_bytes + 1)
    except OSError as error:
        raise _problem(where, "unreadable", "a file that can be read", str(error.strerror)) from error
    return _checked(data, where, limits)


def encode(
    picture: Picture, *, max_side: int | None = None, format: PictureFormat = "png", quality: int = 92
) -> bytes:
    """Return a picture as the bytes of a PNG or JPEG file with pixels and nothing else.

    The same pixels give the same bytes with the same Pillow; no time, name, profile or tag is written.

    ``format``: ``png`` keeps every pixel value, ``jpeg`` is smaller.
    """
    return encode_image(fitted(picture.image, max_side), format=format, quality=quality)


def encode_image(
    image: "Image", *, format: PictureFormat, quality: int = 92, subsampled: bool = False
) -> bytes:
    """Return an RGB image as the bytes of a file, without metadata.

    ``subsampled`` keeps a quarter of a JPEG's colours, as most programs do (4:2:0).
    """
    clean = image.copy()
    clean.info = {}
    file = io.BytesIO()
    if format == "png":
        clean.save(file, "PNG", compress_level=6)
    else:
        subsampling = 2 if subsampled else 0
        clean.save(file, "JPEG", quality=quality, subsampling=subsampling, optimize=False, progressive=False)
    return file.getvalue()


def fitted(image: "Image", max_side: int | None) -> "Image":
    """Return an image whose longer side is at most so many pixels, in proportion."""
    longest = max(image.size)
    if max_side is None or longest <= max_side:
        return image
    from PIL.Image import Resampling

    width, height = (max(1, (side * max_side + longest // 2) // longest) for side in image.size)
    return image.resize((width, height), Resampling.LANCZOS)


def _checked(data: bytes, where: str, limits: PictureLimits) -> bytes:
    if not data:
        raise _problem(where, "empty", "a picture", "an empty file")
    if len(data) > limits.max_bytes:
        raise _problem(
            where, "too_large", f"at most {limits.max_bytes:,} bytes", "more", "write it as a smaller file"
        )
    return data


def _open(data: bytes, where: str, limits: PictureLimits) -> "Image":
    """Read the header and check what it promises."""
    from PIL import Image, UnidentifiedImageError

    try:
        with _HEADER, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        if data.startswith(_STARTS):
            raise _problem(where, "damaged", "a header that can be read", _start(data)) from error
        raise _problem(
            where, "not_a_picture", "a PNG, JPEG, WebP, AVIF or GIF picture", _start(data)
        ) from error
    except Image.DecompressionBombError as error:
        raise _too_many(where, limits, "far more") from error
    except Exception as error:  # decoder boundary
        raise _undecoded(where, "a header that can be read", error) from error
    _check_size(opened.size, where, limits)
    return opened


def _check_size(size: tuple[int, int], where: str, limits: PictureLimits) -> None:
    width, height = size
    if width * height > limits.max_pixels or max(width, height) > limits.max_side:
        raise _too_many(where, limits, f"{width} x {height}")


def _load(opened: "Image", where: str) -> None:
    """Decode the pixels of the first frame."""
    try:
        opened.load()
    except Exception as error:  # decoder boundary
        raise _undecoded(where, "pixels that can be decoded", error) from error


def _undecoded(where: str, expected: str, error: Exception) -> MediaProblem:
    text = _told(error)
    cut = any(word in text.lower() for word in ("truncated", "end of file", "broken data stream"))
    return _problem(where, "truncated" if cut else "damaged", expected, text)


def _converted(loaded: "Image", where: str) -> tuple["Image", list[str]]:
    try:
        return as_srgb(loaded)
    except Exception as error:  # decoder boundary
        raise _problem(where, "damaged", "colours that can be converted", _told(error)) from error


def _misnamed(where: str, kind: str) -> list[str]:
    said = _SUFFIXES.get(Path(where).suffix.lower().lstrip("."))
    return [] if said in (None, kind) else [f"misnamed: the name says {said}, the content is {kind}"]


def _animated(opened: "Image") -> list[str]:
    try:
        moving = bool(getattr(opened, "is_animated", False))
    except Exception:  # noqa: BLE001 - decoder boundary: the first frame may still be fine
        return []
    return ["animated: only the first frame is used"] if moving else []


def _blank(image: "Image") -> list[str]:
    spans = image.getextrema()
    return ["blank: all pixels have one colour"] if all(low == high for low, high in spans) else []  # type: ignore[misc]


def _too_many(where: str, limits: PictureLimits, found: str) -> MediaProblem:
    expected = f"at most {limits.max_pixels:,} pixels and {limits.max_side:,} a side"
    return _problem(where, "too_many_pixels", expected, found, "write it at a smaller size")


def _start(data: bytes) -> str:
    return f"a file that begins with {data[:8]!r}"


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _problem(where: str, code: str, expected: str, found: str, fix: str = "") -> MediaProblem:
    return MediaProblem(
        where, code=code, expected=expected, found=found, fix=fix or "generate or copy it again"
    )
