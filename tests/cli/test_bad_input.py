"""Bad input, through the real command: a clear error with the place, the right exit code, nothing lost."""

import pytest

BROKEN_FILES = {
    "empty file": (b"", "at least one"),
    "only blank lines": (b"\n\n\n", "at least one"),
    "latin-1": ('{"id":"a","title":"caf\xe9"}\n'.encode("latin-1"), "UTF-8"),
    "utf-16": ('{"id":"a"}\n'.encode("utf-16"), "UTF-"),
    "a list instead of an object": (b'["a"]\n', "object"),
    "truncated": (b'{"id":"kb25k_0001","title":"A', ":1"),
    "deeply nested": (b'{"id":' + b"[" * 100_000 + b"\n", ":1"),
}


@pytest.mark.parametrize("data, words", BROKEN_FILES.values(), ids=BROKEN_FILES)
def test_build_when_file_is_broken_says_what_and_where(
    fabula_command, tmp_path, data: bytes, words: str
) -> None:
    path = tmp_path / "stories.jsonl"
    path.write_bytes(data)
    done = fabula_command("build", "katha", path, "--out", tmp_path / "run")
    assert done.returncode in (1, 2), done.stderr
    assert "stories.jsonl" in done.stderr
    assert words in done.stderr
    assert "fix:" in done.stderr
    assert "Traceback" not in done.stderr


def test_build_when_target_is_a_file_leaves_it_alone(fabula_command, write_stories, tmp_path) -> None:
    target = tmp_path / "run"
    target.write_text("mine")
    done = fabula_command("build", "katha", write_stories({}), "--out", target)
    assert done.returncode == 2
    assert "fix:" in done.stderr
    assert target.read_text() == "mine"


@pytest.mark.parametrize("verb", [("validate",), ("run", "status"), ("release", "verify"), ("stats",)])
def test_command_when_path_is_missing_says_so(fabula_command, tmp_path, verb: tuple[str, ...]) -> None:
    done = fabula_command(*verb, tmp_path / "nowhere")
    assert done.returncode in (1, 2)
    assert "nowhere" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", [("validate",), ("run", "status"), ("release", "verify"), ("stats",)])
def test_command_when_folder_is_empty_says_so(fabula_command, tmp_path, verb: tuple[str, ...]) -> None:
    folder = tmp_path / "hollow"
    folder.mkdir()
    done = fabula_command(*verb, folder)
    assert done.returncode in (1, 2)
    assert "hollow" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
