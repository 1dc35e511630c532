"""Perspectives in the words of scripts and in those of the judge."""

import pytest

from fabula.validators.shots.camera import Camera, is_jump, is_repeated, read_camera


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Medium shot, eye level shot", ("medium_shot", None, "eye_level_shot")),
        ("Wide shot, rear view, bird's eye view shot", ("wide_shot", "back_view", "birds_eye_view_shot")),
        ("low-angle shot; Close-up.", ("close_up", None, "low_angle_shot")),
        ("中景，平视镜头", ("medium_shot", None, "eye_level_shot")),
        ("", (None, None, None)),
    ],
)
def test_read_camera_finds_the_words_of_the_lists(text: str, words: tuple[str | None, ...]) -> None:
    camera = read_camera(text)
    assert camera.words == words
    assert camera.unknown == ()


def test_read_camera_when_a_part_is_in_no_list_or_the_second_of_its_kind_keeps_it() -> None:
    assert read_camera("Full shot, from a drone, wide shot").unknown == ("from a drone", "wide shot")


def test_camera_in_the_judges_words_moves_close_ups_one_step() -> None:
    assert Camera("close_up", "front_view", "dutch_angle_shot").for_judge() == (
        "extreme close-up", "front view", "tilted shot",
    )  # fmt: skip
    assert Camera("medium_close_up", None, "inverted_shot").for_judge() == ("close-up",)


@pytest.mark.parametrize("language", ["en", "ch"])
def test_camera_when_written_is_read_again(language: str) -> None:
    camera = Camera("full_shot", "side_view", "high_angle_shot")
    assert read_camera(camera.text(language)) == camera


def test_neighbouring_shots_are_told_to_be_alike_or_to_jump() -> None:
    wide, near = read_camera("wide shot"), read_camera("close up")
    assert is_jump(wide, near) and is_jump(near, wide)
    assert not is_jump(wide, read_camera("medium close up"))
    assert is_repeated(wide, read_camera("Wide shot"))
    assert not is_repeated(wide, read_camera("wide shot, side view"))
    assert not is_repeated(Camera(), Camera())
