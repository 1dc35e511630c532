import errno
import json
import os

import pytest

from fabula.errors import ConfigError, InputError, TargetError
from fabula.releases.katha.package import export_package
from fabula.releases.katha.package_import import ImportOptions, import_package
from fabula.testing.official_packages import package_rows, write_package
from fabula.validators.katha.validation import validate

STORY = ImportOptions(fields={"source_text": "story"})


@pytest.fixture
def source(tmp_path):
    return write_package(tmp_path / "package")


@pytest.fixture
def refused(tmp_path):
    """Import a package that must be refused, leaving nothing behind; return the problems."""

    def run(folder, options=STORY):
        before = sorted(tmp_path.iterdir())
        with pytest.raises(InputError) as error:
            import_package(folder, tmp_path / "out", options)
        assert sorted(tmp_path.iterdir()) == before
        return [str(problem) for problem in error.value.problems]

    return run


def change_first(change):
    rows = package_rows()
    change(rows["annotations.jsonl"][0])
    return rows


def test_source_when_it_is_no_package_says_what_is_there(tmp_path, refused, packed):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("{}")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Annotations.json").write_text("{}")
    found = {name: refused(tmp_path / name)[0] for name in ("nothing", "empty", "file", "other")}
    assert "found nothing there" in found["nothing"]
    assert "found no annotations.jsonl (no file)" in found["empty"]
    assert "found a file" in found["file"]
    assert "found no annotations.jsonl (Annotations.json)" in found["other"]
    assert "a release of Fabula" in refused(packed.folder)[0]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "at least one story"),
        (b"\n\n", "at least one story"),
        (b'{"story_id": "a"', "Expecting"),
        ("{}\n".encode("utf-16"), "UTF-16"),
        ('{"story_id": "Pu\u00f1yasena"}\n'.encode("latin-1"), "is not UTF-8"),
        (b'{"story_id": "a", "x": NaN}\n', "NaN is not a JSON number"),
        (b'{"story_id": "a", "x": 1e999}\n', "not JSON compliant"),
        (b'{"story_id": "a", "x": "\\ud800"}\n', "half a character"),
        (b'{"story_id": "a", "title": "x", "title": "y"}\n', "occurs twice"),
        (b'["story_id"]\n', "expected an object"),
        (b'{"story_id": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "nested too deeply"),
        (b'{"story_id": "a", "x": ' + b"[" * 200 + b"]" * 200 + b"}\n", "nested too deeply"),
        (b'{"story_id": 7}\n', "a text in story_id, found 7"),
        (b'{"title": "x"}\n', "a text in story_id, found null"),
        (b'{"story_id": ""}\n', "a text in story_id"),
        (b"PAR1\x00\x01\x02", "NUL byte"),
    ],
)
def test_annotations_when_they_cannot_be_read_without_loss_are_refused(source, refused, content, found):
    (source / "annotations.jsonl").write_bytes(content)
    problems = refused(source)
    assert found in problems[0], problems
    assert all("fix:" in problem for problem in problems)


@pytest.mark.parametrize(
    ("change", "place", "found"),
    [
        (lambda record: record.pop("title"), "/title", "this field, found no such field"),
        (lambda record: record.update(title=None), "/title", "a text, found null"),
        (lambda record: record.update(title=["x"]), "/title", "a text, found ['x']"),
        (lambda record: record.pop("scenes"), "/scenes", "found no such field"),
        (lambda record: record.update(scenes={"1": {}}), "/scenes", "a list, found"),
        (lambda record: record.update(scenes=["a text"]), "/scenes/0", "an object, found 'a text'"),
        (lambda record: record.update(evidence_status="ok"), "/evidence_status", "found 'ok'"),
        (lambda record: record["scenes"][0].update(scene_index=0), "/scenes/0/scene_index", "1, found 0"),
        (lambda record: record["scenes"][0].update(scene_index="1"), "/scenes/0/scene_index", "a whole"),
        (lambda record: record["scenes"][0].update(scene_index=True), "/scenes/0/scene_index", "a whole"),
        (lambda record: record["scenes"][0].update(characters=[1]), "/scenes/0/characters/0", "found 1"),
        (
            lambda record: record["questions"][0].pop("accepted_answers"),
            "/questions/0/accepted_answers",
            "no such field",
        ),
        (lambda record: record["provenance"].pop("created_at"), "/provenance/created_at", "no such field"),
    ],
)  # fmt: skip
def test_record_when_a_value_cannot_be_held_says_where(tmp_path, refused, change, place, found):
    problems = refused(write_package(tmp_path / "package", rows=change_first(change)))
    assert len(problems) == 1
    assert problems[0].startswith(f"annotations.jsonl:1 kb25k_0001 {place}: expected ")
    assert found in problems[0]


def test_problems_when_there_are_many_are_all_listed(tmp_path, refused):
    rows = package_rows()
    for record in rows["annotations.jsonl"]:
        del record["title"]
    del rows["contrastive_variants.jsonl"][3]["semantic_delta"]
    rows["human_validation.jsonl"][1]["story_id"] = rows["human_validation.jsonl"][0]["story_id"]
    rows["annotations.jsonl"].append(rows["annotations.jsonl"][0] | {"title": "again"})
    problems = refused(write_package(tmp_path / "package", rows=rows))
    assert [problem.split(" ")[0] for problem in problems] == [
        "contrastive_variants.jsonl:4", *(f"annotations.jsonl:{line}" for line in range(1, 7)),
        "annotations.jsonl:7:", "human_validation.jsonl:2:",
    ]  # fmt: skip
    assert "'kb25k_0001', as annotations.jsonl:1 has" in problems[7]


def test_line_when_it_belongs_to_a_repeated_id_of_a_bad_one_is_still_named(source, refused):
    path = source / "contrastive_variants.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    assert "each variant_id once" in refused(source)[0]


@pytest.mark.parametrize("make", ["link out", "folder link", "broken link", "pipe"])
def test_file_when_it_is_none_is_refused(tmp_path, source, refused, make):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("x")
    place = source / "more"
    if make == "pipe":
        os.mkfifo(place)
    else:
        targets = {"link out": "elsewhere/secret", "folder link": "elsewhere", "broken link": "nowhere"}
        place.symlink_to(tmp_path / targets[make])
    assert "a link that leads out of the package" in refused(source)[0]


def test_package_when_it_lies_in_the_cache_of_the_hub_is_read_through_its_links(tmp_path, source):
    snapshot = tmp_path / "repo" / "snapshots" / "0123"
    (tmp_path / "repo" / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, path in enumerate(sorted(source.iterdir())):
        path.rename(tmp_path / "repo" / "blobs" / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    assert import_package(snapshot, tmp_path / "out", STORY).counts["stories"] == 6


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (ImportOptions(fields={"text": "story"}), "text=story"),
        (ImportOptions(fields={"title": "split"}), "title=split"),
        (ImportOptions(fields={"title": ""}), "title="),
        (ImportOptions(language="not a tag"), "not a tag"),
        (ImportOptions(version="1.0"), "1.0"),
        (ImportOptions(name="../up"), "../up"),
    ],
)
def test_options_when_wrong_are_named_before_anything_is_read(tmp_path, options, found):
    with pytest.raises((ConfigError, InputError)) as error:
        import_package(write_package(tmp_path / "package"), tmp_path / "out", options)
    assert isinstance(error.value, ConfigError)
    assert found in str(error.value)


def test_target_when_it_is_taken_or_inside_is_refused(tmp_path, source):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    for out in (tmp_path / "full", source / "inside", source, tmp_path / "full" / "x"):
        with pytest.raises(TargetError):
            import_package(source, out, STORY)
    import_package(source, tmp_path / "imported", STORY)
    for out in (tmp_path / "full", tmp_path / "imported" / "inside"):
        with pytest.raises(TargetError):
            export_package(tmp_path / "imported", out)


def test_disk_when_it_fills_leaves_nothing_behind(tmp_path, source, monkeypatch):
    def full(file, copy):
        copy.write(file.read(1))
        raise OSError(errno.ENOSPC, "No space left on device", str(copy.name))

    monkeypatch.setattr("fabula.releases.katha.package.shutil.copyfileobj", full)
    with pytest.raises(TargetError, match="No space left on device"):
        import_package(source, tmp_path / "out", STORY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["package"]


def test_export_when_the_folder_is_no_public_release_is_refused(tmp_path, source, packed):
    for folder, found in (
        (source, "release.json"),
        (packed.hidden, "the hidden test"),
        (tmp_path / "no", "nothing there"),
    ):
        with pytest.raises(InputError, match=found):
            export_package(folder, tmp_path / "out")


def test_document_when_it_is_damaged_or_huge_is_kept_as_it_is(tmp_path, source):
    (source / "statistics.json").write_bytes(b'{"hidden_test": {"stories": [')
    (source / "croissant_metadata.json").write_bytes(
        b'{"version": "9.9.9", "creator": "me", "x": "' + b"a" * 17_000_000
    )
    imported = import_package(source, tmp_path / "imported", STORY)
    assert imported.version == "0.0.0"
    export_package(tmp_path / "imported", tmp_path / "out")
    for name in ("statistics.json", "croissant_metadata.json"):
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()


def test_keys_when_hostile_are_shown_on_one_plain_line(tmp_path):
    rows = change_first(
        lambda record: record.update({"\x1b[31m\n\u202e": 1, **{f"k{n}": n for n in range(80)}})
    )
    imported = import_package(write_package(tmp_path / "package", rows=rows), tmp_path / "imported", STORY)
    shown = list(imported.lines())
    assert all(line.isprintable() for line in shown)
    assert any(r"/\x1b[31m\n\u202e (1)" in line for line in shown)
    assert any("more fields; release.json lists them all" in line for line in shown)
    assert len(imported.as_json()["fields"]) > 80


def test_ids_when_hostile_name_no_files(tmp_path):
    rows = change_first(lambda record: record.update(story_id="../../etc/passwd\n\u202e"))
    imported = import_package(write_package(tmp_path / "package", rows=rows), tmp_path / "imported", STORY)
    names = [path.name for path in imported.folder.rglob("*")]
    assert not any("passwd" in name for name in names)
    assert json.loads((imported.folder / "annotations.jsonl").read_bytes().splitlines()[0])[
        "story_id"
    ].startswith("..")


def test_gold_line_when_its_id_is_no_text_is_a_finding(tmp_path):
    rows = package_rows()
    rows["human_gold_1k.jsonl"][0] = {"story_id": ["kb25k_0001"]}
    imported = import_package(write_package(tmp_path / "package", rows=rows), tmp_path / "imported", STORY)
    assert [(one.code, one.where) for one in validate(imported.folder).errors] == [
        ("review-unproven", "human_gold_1k.jsonl:1")
    ]
