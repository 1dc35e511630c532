"""Metadata in video files: what it is, and whether it tells their makers apart."""

from pathlib import Path

import av

from fabula.media.video_file import telling_tags, video_tags
from fabula.testing.drawn import write_video


def titled(path: Path, title: str) -> Path:
    """Write a video again with a title in its metadata."""
    write_video(path.with_name(f"plain_{path.name}"), 4)
    with av.open(str(path.with_name(f"plain_{path.name}"))) as source, av.open(str(path), "w") as target:
        target.metadata["title"] = title
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    return path


def test_tags_when_methods_share_them_tell_nothing(tmp_path: Path) -> None:
    first, second = write_video(tmp_path / "a.mp4", 4), write_video(tmp_path / "b.mp4", 4)
    assert telling_tags({"x": [first], "y": [second]}) == []
    assert "encoder" in video_tags(first)


def test_tags_when_one_method_names_itself_tell_it_apart(tmp_path: Path) -> None:
    named = titled(tmp_path / "a.mp4", "made by x")
    assert video_tags(named)["title"] == "made by x"
    assert telling_tags({"x": [named], "y": [write_video(tmp_path / "b.mp4", 4)]}) == ["title"]


def test_tags_when_a_file_is_no_video_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"no video")
    assert video_tags(tmp_path / "a.mp4") == {}
    assert telling_tags({"x": [tmp_path / "a.mp4"], "y": [tmp_path / "missing.mp4"]}) == []
