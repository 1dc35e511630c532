"""Bad input, through the real command: a clear error with the place, the right exit code, nothing lost."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

TEXT = (
    "The fox ran to the well because she was thirsty. She fell in. A goat came. He jumped in. "
    "The fox climbed out."
)

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


def test_build_when_line_4000_has_a_trailing_comma_names_the_line(
    fabula_command, write_stories, tmp_path
) -> None:
    path = write_stories(*({"id": f"s_{n}", "title": str(n)} for n in range(4100)))
    lines = path.read_text("utf-8").splitlines()
    lines[3999] = lines[3999][:-1] + ",}"
    path.write_text("\n".join(lines), encoding="utf-8")
    done = fabula_command("build", "katha", path, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "stories.jsonl:4000" in done.stderr


BAD_FIELDS = {
    "id with a slash": ({"id": "a/b"}, "a/b"),
    "id with dots": ({"id": "../x"}, "../x"),
    "id with a space": ({"id": "a b"}, "a b"),
    "id with an emoji": ({"id": "fox🦊"}, "fox"),
    "id of 300 characters": ({"id": "x" * 300}, "xxx"),
    "empty text": ({"text": "  "}, "text"),
    "NUL in the text": ({"text": TEXT + "\x00"}, "NUL"),
    "unknown moral label": ({"moral_label": "cunning"}, "wisdom"),
    "unknown narrative type": ({"narrative_type": "saga"}, "moral_semantic"),
    "text that is a number": ({"text": 5}, "text"),
}


@pytest.mark.parametrize("change, words", BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_build_when_a_field_is_bad_names_line_and_value(
    fabula_command, write_stories, tmp_path, change: dict, words: str
) -> None:
    done = fabula_command("build", "katha", write_stories(change), "--out", tmp_path / "run")
    assert done.returncode == 1, done.stderr
    assert "stories.jsonl:1" in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_build_when_ids_repeat_names_both_lines(fabula_command, write_stories, tmp_path) -> None:
    done = fabula_command(
        "build", "katha", write_stories({"title": "a"}, {"title": "b"}), "--out", tmp_path / "r"
    )
    assert done.returncode == 1
    assert "stories.jsonl:2" in done.stderr
    assert "1" in done.stderr


def test_build_when_a_column_is_missing_names_it(fabula_command, tmp_path) -> None:
    path = tmp_path / "stories.csv"
    path.write_text("id,title\nkb25k_0001,The fox\n", encoding="utf-8")
    done = fabula_command("build", "katha", path, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "text" in done.stderr


def story_outcome(out: Path) -> dict:
    return json.loads((out / "report.json").read_text("utf-8"))


def test_build_when_there_is_one_story_makes_it(fabula_command, write_stories, tmp_path) -> None:
    done = fabula_command("build", "katha", write_stories({}), "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert story_outcome(tmp_path / "run")["totals"]["made"] == 1


def test_build_when_story_is_one_sentence_rejects_it_with_the_reason(
    fabula_command, write_stories, tmp_path
) -> None:
    path = write_stories({"text": "A fox slept."})
    fabula_command("build", "katha", path, "--out", tmp_path / "run")
    (item,) = story_outcome(tmp_path / "run")["items"]
    assert item["status"] == "rejected"
    assert item["code"] == "too_short"


def test_build_when_story_has_20_000_words_finishes(fabula_command, write_stories, tmp_path) -> None:
    words = " ".join(f"The fox number {n} ran to the well because it was thirsty." for n in range(1800))
    done = fabula_command("build", "katha", write_stories({"text": words}), "--out", tmp_path / "run")
    assert done.returncode in (0, 5), done.stderr
    totals = story_outcome(tmp_path / "run")["totals"]
    assert totals["made"] + totals["rejected"] == 1


SCRIPTS = {
    "right-to-left": (
        "ar",
        "كان الثعلب جائعا. ذهب إلى البستان. رأى العنب عاليا. "
        "قفز مرات كثيرة. لم يصل إليه. ثم عاد حزينا.",
    ),
    "CJK": ("zh", "狐狸很饿。它去了果园。它看见高处的葡萄。它跳了很多次。它够不到。最后它难过地回家了。"),
    "CRLF and BOM": ("en", "\ufeff" + TEXT.replace(". ", ".\r\n")),
}  # fmt: skip


@pytest.mark.parametrize("language, text", SCRIPTS.values(), ids=SCRIPTS)
def test_build_when_script_or_line_ends_differ_keeps_the_text_untouched(
    fabula_command, write_stories, tmp_path, language: str, text: str
) -> None:
    path = write_stories({"language": language, "text": text})
    done = fabula_command("build", "katha", path, "--out", tmp_path / "run")
    assert "Traceback" not in done.stderr
    totals = story_outcome(tmp_path / "run")["totals"]
    assert totals["failed"] == 0
    if totals["made"]:
        line = json.loads((tmp_path / "run" / "records.jsonl").read_text("utf-8"))
        assert line["payload"]["record"]["source_text"] == text


def test_run_when_made_by_a_newer_version_is_refused(fabula_command, write_stories, tmp_path) -> None:
    out = tmp_path / "run"
    stories = write_stories({})
    fabula_command("build", "katha", stories, "--out", out)
    manifest = json.loads((out / "run.json").read_text("utf-8"))
    (out / "run.json").write_text(json.dumps({**manifest, "format": 99}))
    for command in (("run", "status", out), ("validate", out), ("build", "katha", stories, "--out", out)):
        done = fabula_command(*command)
        assert done.returncode in (1, 2), command
        assert "99" in done.stderr + done.stdout
        assert "Traceback" not in done.stderr


def test_run_when_journal_is_damaged_says_so(fabula_command, write_stories, tmp_path) -> None:
    out = tmp_path / "run"
    stories = write_stories({})
    fabula_command("build", "katha", stories, "--out", out)
    for extra in out.glob("journal.sqlite-*"):
        extra.unlink()
    (out / "journal.sqlite").write_bytes(b"not a database" * 1000)
    with closing(sqlite3.connect(out / "journal.sqlite")) as damaged, pytest.raises(sqlite3.DatabaseError):
        damaged.execute("select 1 from sqlite_master")
    done = fabula_command("build", "katha", stories, "--out", out)
    assert done.returncode == 2
    assert "journal.sqlite" in done.stderr
    assert "Traceback" not in done.stderr


def test_build_when_target_is_a_file_leaves_it_alone(fabula_command, write_stories, tmp_path) -> None:
    target = tmp_path / "run"
    target.write_text("mine")
    done = fabula_command("build", "katha", write_stories({}), "--out", target)
    assert done.returncode == 2
    assert "fix:" in done.stderr
    assert target.read_text() == "mine"


def test_build_when_target_is_a_folder_of_other_things_leaves_it_alone(
    fabula_command, write_stories, tmp_path
) -> None:
    target = tmp_path / "run"
    target.mkdir()
    (target / "thesis.txt").write_text("mine")
    done = fabula_command("build", "katha", write_stories({}), "--out", target)
    assert done.returncode == 2
    assert sorted(path.name for path in target.iterdir()) == ["thesis.txt"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that nobody can write to")
def test_build_when_target_is_not_writable_says_so(fabula_command, write_stories) -> None:
    done = fabula_command("build", "katha", write_stories({}), "--out", "/proc/fabula-run")
    assert done.returncode == 2
    assert "/proc/fabula-run" in done.stderr
    assert "Traceback" not in done.stderr


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


def test_set_when_key_is_unknown_lists_what_there_is(fabula_command, write_stories, tmp_path) -> None:
    done = fabula_command(
        "build", "katha", write_stories({}), "--out", tmp_path / "r", "--set", "draft_scenes.sceens=6"
    )
    assert done.returncode == 2
    assert "scenes" in done.stderr


def test_planner_when_unknown_lists_what_there_is(fabula_command, write_stories, tmp_path) -> None:
    done = fabula_command("build", "katha", write_stories({}), "--out", tmp_path / "r", "--planner", "magic")
    assert done.returncode == 2
    assert "rules" in done.stderr
