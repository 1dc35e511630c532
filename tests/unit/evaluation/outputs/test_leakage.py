"""An image-only packet holds pixels, index labels and what is asked; everything else is found."""

from collections.abc import Sequence

import pytest
from PIL import Image as Images
from PIL.PngImagePlugin import PngInfo

from fabula.evaluation.judging.packets import fixed_texts, scan_packet
from fabula.evaluation.judging.settings import foreign_chunks
from fabula.media.images import encode, open_picture
from fabula.models.chat import Image, Part
from fabula.prompts.loader import fenced
from fabula.schemas.katha import StoryRecord
from fabula.testing.drawn import draw_panel, picture_bytes

Records = tuple[StoryRecord, ...]
FIXED = ("You are a judge. Answer with a joy and care.", "The question:", "Reply with JSON.")


def pictures(format: str = "jpeg") -> list[Image]:
    opened = [open_picture(picture_bytes(draw_panel(number))) for number in (1, 2)]
    return [Image(encode(one, format=format), f"image/{format}") for one in opened]


def packet(record: StoryRecord, *more: Part) -> list[Part]:
    first, second = pictures()
    question = fenced(record.questions[0].question)
    return [FIXED[0], "Image 1", first, "Image 2", second, f"The question:\n{question}\n{FIXED[2]}", *more]


def scan(record: StoryRecord, parts: Sequence[Part], **options: object) -> list[tuple[str, str]]:
    question = record.questions[0].question
    return [(leak.kind, leak.source) for leak in scan_packet(record, question, parts, **options)]


@pytest.mark.parametrize("fixed", [None, FIXED])
def test_scan_packet_when_clean_finds_nothing(records: Records, fixed: Sequence[str] | None) -> None:
    for record in records:
        assert scan(record, packet(record), fixed=fixed, names=("model-x",)) == []


@pytest.mark.parametrize("fixed", [None, FIXED])
@pytest.mark.parametrize(
    ("take", "path"),
    [
        (lambda record: record.source_text, "$.source_text"),
        (lambda record: record.scenes[2].scene_text, "$.source_text"),
        (lambda record: record.scenes[0].generation_prompt, "$.scenes[0].generation_prompt"),
        (lambda record: record.scenes[1].action, "$.scenes[1].action"),
        (lambda record: record.transitions[1].consequence, None),
        (lambda record: record.questions[3].gold_answer, None),
        (lambda record: record.title, "$.title"),
    ],
)
def test_scan_packet_when_text_of_the_record_is_sent_finds_it(records, fixed, take, path):
    record = records[0]
    text = take(record)  # type: ignore[operator]
    found = scan(record, packet(record, f"Caption: {text.upper()}!"), fixed=fixed)
    assert any(kind == "text" for kind, _ in found), text
    if path is not None:
        assert ("text", path) in found


@pytest.mark.parametrize("text", ["greed", "relief", "gratitude_or"])
def test_scan_packet_when_a_single_word_is_sent_counts_it_only_against_fixed_texts(records, text):
    record = records[0].model_copy(update={"moral_label": text})
    found = scan(record, packet(record, f"Label: {text}"), fixed=FIXED)
    assert ("text", "$.moral_label") in found
    assert scan(record, packet(record, f"Label: {text}")) == []


def test_scan_packet_when_a_run_of_a_longer_text_is_sent_finds_it(records: Records) -> None:
    words = records[0].source_text.split()
    run = " ".join(words[8:14])
    assert ("text", "$.source_text") in scan(records[0], packet(records[0], f"... {run} ..."))


def test_scan_packet_when_script_has_no_spaces_finds_a_run(records: Records) -> None:
    story = (
        "\u6625\u79cb\u5b8b\u570b\u6709\u4e00\u500b\u8fb2\u592b\u6b63\u5728\u7530\u91cc"
        "\u7ffb\u571f\u7a81\u7136\u9593\u770b\u898b\u4e00\u96bb\u91ce\u5154"
    )
    record = records[0].model_copy(update={"source_text": story})
    assert ("text", "$.source_text") in scan(record, packet(record, story[5:19]))
    assert scan(record, packet(record, story[5:9])) == []


def test_scan_packet_when_text_is_a_paraphrase_is_unaccounted_for(records: Records) -> None:
    found = scan_packet(
        records[0], records[0].questions[0].question, packet(records[0], "He was a miser."), fixed=FIXED
    )
    assert [(leak.part, leak.kind, leak.found) for leak in found] == [(7, "unaccounted", "he was a miser")]


@pytest.mark.parametrize("text", ["kb25k_0001", "see 03.png", "from model-x", "out/seed_42/scene_01.webp"])
def test_scan_packet_when_names_are_sent_finds_them(records: Records, text: str) -> None:
    found = scan(records[0], packet(records[0], text), names=("model-x",))
    assert {kind for kind, _ in found} == {"name"}


def noted(format: str, **options: object) -> bytes:
    return picture_bytes(draw_panel(1), format, **options)


def test_scan_packet_when_pictures_carry_more_than_pixels_finds_it(records: Records) -> None:
    info = PngInfo()
    info.add_text("prompt", "a miser buries his gold")
    exif = Images.Exif()
    exif[0x010E] = "a miser"
    for data, source in (
        (noted("PNG", pnginfo=info), "PNG chunk tEXt"),
        (noted("PNG", exif=exif), "PNG chunk eXIf"),
        (noted("PNG") + b"a miser", "bytes after the picture"),
        (noted("JPEG", comment=b"a miser"), "JPEG segment FE"),
        (noted("JPEG", exif=exif), "JPEG segment E1"),
        (noted("JPEG") + b"a miser", "bytes after the picture"),
        (noted("JPEG", dpi=(72, 72)), None),
        (noted("WEBP"), "file that is not a PNG or JPEG"),
        (noted("JPEG")[:-30], "damaged file"),
        (noted("PNG")[:-30], "damaged file"),
    ):
        found = scan(records[0], [Image(data, "image/png")])
        assert found == ([("metadata", source)] if source else []), source


@pytest.mark.parametrize("format", ["png", "jpeg"])
def test_foreign_chunks_when_pictures_are_prepared_finds_none(format: str) -> None:
    for picture in pictures(format):
        assert foreign_chunks(picture.data) == ()


def test_fixed_texts_when_prompt_is_rendered_with_marks_gives_what_stands_around_them() -> None:
    rendered = ["You are a judge.", "These are @@count@@ images.\n\n@@question@@\n"]
    assert fixed_texts(rendered, ["@@count@@", "@@question@@"]) == (
        "You are a judge.",
        "These are",
        "images.",
    )
    assert fixed_texts(rendered, []) == ("You are a judge.", "These are @@count@@ images.\n\n@@question@@")
