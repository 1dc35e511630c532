"""The words that input needs are printed, and errors that reject a word say how to see them."""

import json

import pytest

from fabula.cli.schemas import EVENTS, USES
from fabula.schemas.events import DIFFICULTIES, ORIGINS, PARTICIPANTS
from fabula.schemas.vocabulary import NAMES, vocabulary


def test_words_when_printed_are_every_list_with_every_word_and_meaning(fabula_command) -> None:
    done = fabula_command("schemas", "words")
    assert done.returncode == 0, done.stderr
    listed = json.loads(fabula_command("schemas", "words", "--json").stdout)
    assert set(listed) == {*NAMES, *EVENTS}
    for name in NAMES:
        assert listed[name]["closed"] == vocabulary(name).closed
        for word, entry in vocabulary(name).entries.items():
            assert listed[name]["words"][word] == entry["description"]
            assert f"  {word} " in done.stdout and entry["description"] in done.stdout


def test_words_when_they_are_of_events_are_those_of_the_suite() -> None:
    assert [tuple(meanings) for _, meanings in EVENTS.values()] == [PARTICIPANTS, ORIGINS, DIFFICULTIES]
    assert set(USES) == set(NAMES)


def test_words_when_a_list_is_named_by_its_field_is_that_list_alone(fabula_command) -> None:
    named = json.loads(fabula_command("schemas", "words", "source_collection", "tag", "--json").stdout)
    assert list(named) == ["character_tag", "source_dataset"]
    unknown = fabula_command("schemas", "words", "morals")
    assert (unknown.returncode, "there is no list 'morals'" in unknown.stderr) == (2, True)
    assert "moral_label, narrative_type" in unknown.stderr


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ("moral_label", "moral_label"),
        ("narrative_type", "narrative_type"),
        ("rights_status", "rights_status"),
    ],
)
def test_build_when_a_word_is_rejected_names_the_command_that_lists_them(
    fabula_command, write_stories, tmp_path, field: str, named: str
) -> None:
    stories = write_stories({field: "goodness"})
    done = fabula_command("build", "katha", stories, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert f"fabula schemas words {named}" in done.stderr
    assert fabula_command("schemas", "words", named).returncode == 0


def test_build_shots_when_a_word_is_rejected_names_the_command_that_lists_them(
    fabula_command, write_stories, tmp_path
) -> None:
    given = tmp_path / "given.jsonl"
    given.write_text(json.dumps({"id": "kb25k_0001", "style": "cubist"}) + "\n", "utf-8")
    stories = write_stories({"id": "kb25k_0001"})
    done = fabula_command("build", "shots", stories, "--scripts", given, "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "fabula schemas words style_category" in done.stderr
