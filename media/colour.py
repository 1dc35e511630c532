"""Bringing decoded pixels to 8-bit sRGB without transparency, the right way up."""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_SIXTEEN = ("I;16", "I;16L", "I;16B", "I;16N", "I")
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
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa"):
        whole = image if image.mode == "RGBA" else image.convert("RGBA")
        alpha = whole.getchannel("A")
        if alpha.getextrema() == (255, 255):
            return whole.convert("RGB"), None, notes
        return whole.convert("RGB"), alpha, [*notes, "transparent: laid over white"]
    if image.mode not in _SPACES:
        image = image.convert("L" if image.mode == "1" else "RGB")
    return image, None, notes


def _upper_half(image: "Image") -> "Image":
    import numpy as np
    from PIL import Image as Images

    values = np.asarray(image).astype(np.int64)
    return Images.fromarray((np.clip(values, 0, 65535) >> 8).astype(np.uint8))


def _coloured(image: "Image", profile: object) -> tuple["Image", list[str]]:
    """Return the image as sRGB."""
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
