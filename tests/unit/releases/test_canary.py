import pytest

from fabula.releases.canary import CANARY_FORM, canary_file, check_canary, make_canary

CANARY = make_canary("fables", "2026-01-01T00:00:00Z")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "CANARY.txt").write_bytes(canary_file(CANARY, "Fables"))
    for name in ("dataset_card.md", "README.md"):
        (tmp_path / name).write_text(f"# Fables\n\n`{CANARY}`\n")
    return tmp_path


def test_a_canary_when_made_again_is_the_same_and_no_other_benchmarks():
    assert CANARY_FORM.fullmatch(CANARY)
    assert make_canary("fables", "2026-01-01T00:00:00Z") == CANARY
    others = {make_canary("tales", "2026-01-01T00:00:00Z"), make_canary("fables", "2026-01-01T00:00:01Z")}
    assert CANARY not in others
    assert len(others) == 2


def test_a_release_when_it_carries_its_canary_has_no_finding(folder):
    assert list(check_canary(folder, {"canary": CANARY})) == []
    assert list(check_canary(folder, {})) == []  # packed before there were canaries


@pytest.mark.parametrize("name", ["CANARY.txt", "dataset_card.md", "README.md"])
def test_a_place_when_it_lacks_the_canary_is_named(folder, name):
    (folder / name).write_text("nothing\n")
    assert [issue.where for issue in check_canary(folder, {"canary": CANARY})] == [name]
    (folder / name).unlink()
    assert [issue.where for issue in check_canary(folder, {"canary": CANARY})] == [name]


def test_a_hidden_folder_when_checked_needs_the_file_alone(folder):
    (folder / "README.md").unlink()
    document = {"canary": CANARY, "visibility": "hidden"}
    assert list(check_canary(folder, document)) == []


@pytest.mark.parametrize("canary", ["", None, 7, "fabula-canary-1", CANARY.upper(), CANARY + "\n"])
def test_a_canary_when_malformed_is_a_finding(folder, canary):
    assert [issue.path for issue in check_canary(folder, {"canary": canary})] == ["$.canary"]
