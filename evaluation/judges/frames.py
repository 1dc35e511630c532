"""The prepared pictures of a storyboard, as stages behind ``prepare_images`` get them."""

from pathlib import Path

from ...engine.stage import Item
from ...errors import InputError, RunError
from ...models.chat import Image
from ...schemas.canonical import Json
from ...schemas.katha import StoryRecord, Variant
from .images import absent_picture, kept_picture


def pictures_of(frames: Json, store: Path | None) -> tuple[Image, ...]:
    """Return the pictures of a storyboard, in story order.

    Where there is no store, as in a rehearsal, each picture is stood for by its name and hash.

    Raises:
        RunError: a picture is no longer in the store.
    """
    if store is None:
        return tuple(absent_picture(frame["file"]) for frame in frames)
    try:
        return tuple(kept_picture(store, frame["file"]) for frame in frames)
    except InputError as error:
        raise RunError(
            error.where, expected=error.expected, found=error.found,
            fix="judge into a new folder, with --reuse and this one: nothing that was answered is paid again",
        ) from error  # fmt: skip


def record_of(item: Item) -> StoryRecord:
    """Return the story record of an item."""
    return StoryRecord.model_validate(item["record"])


def variants_of(item: Item) -> tuple[Variant, ...]:
    """Return the contrastive variants of an item's story."""
    return tuple(Variant.model_validate(variant) for variant in item["variants"])
