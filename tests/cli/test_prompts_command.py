"""fabula prompts: what is there, one file as it is, and the messages made from it."""

import hashlib
import json


def test_list_when_asked_shows_every_prompt_with_its_label(fabula_command) -> None:
    rows = json.loads(fabula_command("prompts", "list", "--json").stdout)
    lines = fabula_command("prompts", "list").stdout.splitlines()
    assert len(rows) == len(lines) > 0
    for row, line in zip(rows, lines, strict=True):
        assert line.startswith(f"{row['id']}@{row['version']}#{row['sha256'][:12]}")
        assert line.endswith(row["purpose"])


def test_show_when_asked_prints_the_file_as_it_is_and_who_uses_it(fabula_command) -> None:
    done = fabula_command("prompts", "show", "scene_image")
    assert done.returncode == 0, done.stderr
    label, stages, text = done.stdout.split("\n", 2)
    assert label.startswith("scene_image@")
    assert "katha/draft_scenes" in stages
    assert text.strip().startswith("{#---") and "{{ text }}" in text


def test_show_when_json_is_asked_holds_card_schema_and_text(fabula_command) -> None:
    document = json.loads(fabula_command("prompts", "show", "scene_image", "--json").stdout)
    assert document["id"] == "scene_image" and document["reply"] is None
    assert hashlib.sha256(document["text"].encode()).hexdigest() == document["sha256"]


def test_show_when_prompt_is_unknown_names_those_that_exist(fabula_command) -> None:
    done = fabula_command("prompts", "show", "katha/nothing")
    assert done.returncode == 2
    assert "scene_image" in done.stderr and "katha/nothing" in done.stderr
