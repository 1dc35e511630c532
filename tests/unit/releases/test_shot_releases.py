"""Shot scripts as a release: packed from a build and from an import, verified, loaded, compared, damaged."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, InputError, TargetError
from fabula.evaluation.outputs.shots import check_shots
from fabula.kinds.verbs import diff, pack, verify
from fabula.releases.options import PackOptions
from fabula.releases.shots.form import LEFT_OUT, may_be_released
from fabula.releases.shots.imports import (
    REQUESTS,
    RESULTS,
    export_inputs,
    export_requests,
    import_set,
    read_story_facts,
    with_provenance,
)
from fabula.releases.shots.tree import FOLDER, RequestOptions, ShotSet, read_shot_set, shot_requests
from fabula.releases.subsets import GOLD, SubsetRequest, requested
from fabula.releases.target import bundled
from fabula.testing.drawn_shots import draw_shot, draw_shot_set, drawn_script
from fabula.testing.made_runs import CREATED, shots_run

OPTIONS = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en", "zh"))
FREE = {"Mira": "CC0-1.0", "Old Tomas": "public domain"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An imported set of two stories, of which the images of two characters may be given away."""
    return shots_run(draw_shot_set(tmp_path / "data"), tmp_path / "run", FREE)


@pytest.fixture
def release(run: Path, tmp_path: Path) -> Path:
    pack(run, tmp_path / "dist", OPTIONS)
    return tmp_path / "dist"


def test_pack_when_a_set_is_imported_holds_scripts_tables_and_free_images(run: Path, tmp_path: Path) -> None:
    result = pack(run, tmp_path / "dist", OPTIONS)
    assert result.counts == {"stories": 2, "shots": 10, "characters": 6, "references": 8}
    assert any("4 reference images stay out" in note for note in result.notes)
    dist = tmp_path / "dist"
    for name in ("01/story.json", "02/image/Mira/01.png"):
        assert (dist / FOLDER / name).read_bytes() == (run / FOLDER / name).read_bytes()
    assert not (dist / FOLDER / "01/image/The Fox").exists()
    left_out = [json.loads(line) for line in (dist / LEFT_OUT).read_text("utf-8").splitlines()]
    assert {(one["character"], one["rights"]) for one in left_out} == {("The Fox", None)}
    report = verify(dist)
    assert report.ok, report.issues
    assert report.checked["rows read back twice"] == 2 + 10 + 6 + 8 + 8
    pack(run, tmp_path / "again", OPTIONS)
    assert (tmp_path / "again/SHA256SUMS").read_bytes() == (dist / "SHA256SUMS").read_bytes()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (f"{FOLDER}/01/story.json", "official"),
        (f"{FOLDER}/01/image/Mira/00.png", "official"),
        (f"{FOLDER}/references.jsonl", "file-hash"),
        ("scripts.jsonl", "record-hash"),
        ("data/shots/test.parquet", "file-hash"),
        (LEFT_OUT, "file-hash"),
    ],
)
def test_verify_when_a_file_was_changed_says_which(release: Path, name: str, code: str) -> None:
    content = (release / name).read_bytes()
    changed = content.replace(b"stone", b"solid") if name.endswith(".json") else content
    changed = changed.replace(b"stands still", b"stands there")
    (release / name).write_bytes(changed if changed != content else content[:-1] + b"\n\n"[:1] + b" ")
    report = verify(release, quick=True)
    assert not report.ok
    assert any(issue.where.startswith(name) for issue in report.issues), report.issues
    assert code in {issue.code for issue in report.issues}


def test_pack_when_a_script_was_changed_by_hand_is_refused(run: Path, tmp_path: Path) -> None:
    path = run / FOLDER / "01/story.json"
    path.write_text(path.read_text("utf-8").replace("stands still", "runs"), "utf-8")
    changed = r"ViStory/01/story\.json: the script is not the one in scripts\.jsonl"
    with pytest.raises(InputError, match=changed):
        pack(run, tmp_path / "dist", OPTIONS)
    assert not (tmp_path / "dist").exists()


def test_pack_when_rules_find_errors_lists_them(tmp_path: Path) -> None:
    source = draw_shot_set(tmp_path / "data")
    path = source / FOLDER / "02/story.json"
    script = json.loads(path.read_text("utf-8"))
    script["Shots"][0]["Characters Appearing"]["en"] = ["Nobody"]
    script["Shots"][1]["index"] = 7
    path.write_text(json.dumps(script), "utf-8")
    import_set(source, tmp_path / "run", CREATED)
    with pytest.raises(InputError) as refused:
        pack(tmp_path / "run", tmp_path / "dist", OPTIONS)
    for code in ("onstage-unknown", "shot-order"):
        assert f"[{code}]" in str(refused.value)


def test_diff_when_a_shot_changes_names_it_and_asks_for_a_version(run, release, tmp_path):
    source = tmp_path / "data"
    path = source / FOLDER / "01/story.json"
    path.write_text(path.read_text("utf-8").replace("a stone bridge", "a wooden bridge"), "utf-8")
    import_set(source, tmp_path / "run2", CREATED)
    options = PackOptions("auto", license="CC-BY-4.0", languages=("en", "zh"), since=release)
    result = pack(tmp_path / "run2", tmp_path / "next", options)
    assert result.version == "0.2.0"  # before 1.0.0 a change of meaning counts up the second number
    assert "1 script changed in meaning" in result.notes[0]
    found = diff(release, tmp_path / "next")
    assert [(one.file, one.id) for one in found.changed] == [("scripts.jsonl", "01")]
    assert any("Setting Description" in change.path for change in found.changed[0].changes)
    assert verify(tmp_path / "next").ok


@pytest.mark.parametrize(
    ("rights", "free"),
    [
        ("CC0-1.0", True), ("cc-by-4.0", True), ("public domain", True), (" MIT ", True),
        (None, False), ("", False), ("fair use", False), ("not under CC-BY-4.0", False), ("other", False),
    ],
)  # fmt: skip
def test_rights_when_they_name_a_licence_let_an_image_go(rights: str | None, free: bool) -> None:
    assert may_be_released(rights) is free


# Sets of shot scripts brought in and out, with what is known of their images.


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return draw_shot_set(tmp_path / "data")


def test_import_set_when_sound_keeps_fields_bytes_and_facts(tree: Path, tmp_path: Path) -> None:
    facts = {"story_id": "01", "style": "storybook", "culture": None, "realistic": False, "characters": {}}
    (tree / "ViStory/stories.jsonl").write_text(json.dumps(facts) + "\n")
    made = import_set(tree, tmp_path / "run")
    assert made.report.counts == {"facts-realistic": 1, "facts-word": 1}  # Mira is realistic
    again, _ = read_shot_set(tmp_path / "run")
    assert again.sha256 == made.shot_set.sha256
    name = "ViStory/01/story.json"
    assert json.loads((tmp_path / "run" / name).read_bytes()) == json.loads((tree / name).read_bytes())
    image = "ViStory/01/image/Mira/00.png"
    assert (tmp_path / "run" / image).read_bytes() == (tree / image).read_bytes()
    assert read_story_facts(again)["01"].style == "storybook"


def test_import_set_when_imported_twice_keeps_source_and_rights(tree: Path, tmp_path: Path) -> None:
    first = import_set(tree, tmp_path / "one")
    path = first.out / "ViStory/references.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0] |= {"source": "drawn for the set", "rights": "CC0-1.0"}
    lines[1] |= {"source": "somewhere", "sha256": "0" * 64}  # of another image: it says nothing of this one
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    second = import_set(first.out, tmp_path / "two")
    again, _ = read_shot_set(second.out)
    one, other, *_ = sorted(with_provenance(again), key=lambda one: (one.story_id, one.file))
    assert (one.source, one.rights) == ("drawn for the set", "CC0-1.0")
    assert other.source is None


def test_import_set_when_a_line_is_wrong_says_which(tree: Path, tmp_path: Path) -> None:
    (tree / "ViStory/stories.jsonl").write_text('{"story_id": "01", "mood": 3}\n')
    with pytest.raises(InputError, match=r"stories.jsonl:1 \$.mood"):
        import_set(tree, tmp_path / "run")


def test_import_set_when_it_fails_on_the_way_leaves_nothing(tree, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fabula.releases.shots.imports.write_imported_run", fail)
    (tmp_path / "runs").mkdir()
    with pytest.raises(TargetError, match="No space left"):
        import_set(tree, tmp_path / "runs/vistory")
    assert list((tmp_path / "runs").iterdir()) == []


def test_export_requests_when_capped_writes_lines_and_their_images(tree: Path, tmp_path: Path) -> None:
    shot_set, _ = read_shot_set(tree)
    told = export_requests(shot_set, tmp_path / "out", RequestOptions(references=1, max_chars=40))
    lines = [json.loads(line) for line in (tmp_path / "out" / REQUESTS).read_text("utf-8").splitlines()]
    assert told["requests"] == len(lines) == 10
    assert all(len(line["references"]) <= 1 for line in lines)
    assert all((tmp_path / "out" / one["file"]).is_file() for line in lines for one in line["references"])
    with pytest.raises(TargetError, match="a folder with files"):
        export_requests(shot_set, tmp_path / "out")


# -- Requests to generators: parts, limits, priorities, context


@pytest.fixture
def shot_set(tmp_path: Path) -> ShotSet:
    draw_shot_set(tmp_path, stories=1)
    script = drawn_script()
    script["Shots"][2]["Characters Appearing"]["en"].reverse()  # the fox first, who appears least
    (tmp_path / "ViStory/01/story.json").write_text(json.dumps(script), "utf-8")
    return read_shot_set(tmp_path)[0]


def requests(shot_set: ShotSet, **options: Any) -> list[Any]:
    return list(shot_requests(shot_set, RequestOptions(**options)))


def test_request_when_nothing_is_chosen_has_every_part_in_order(shot_set: ShotSet) -> None:
    first = requests(shot_set)[0]
    assert first["prompt"].splitlines() == [
        "Medium shot, low-angle shot", "Part 1 of the tale.", "Mira stands still",
        "Mira: wears a coat of colour (200, 40, 40)", "Daytime, a dry well",
    ]  # fmt: skip
    assert (first["cut"], first["width"], first["height"], first["seed"]) == (0, 1344, 768, 42)
    assert first["references"] == [{"character": "Mira", "file": "01/image/Mira/00.png"}]
    assert (shot_set.folder / first["references"][0]["file"]).is_file()


def test_request_when_references_are_few_goes_by_number_of_appearances(shot_set: ShotSet) -> None:
    third = requests(shot_set, references=2)[2]
    assert [one["character"] for one in third["references"]] == ["Mira", "Old Tomas"]
    assert third["left_out"] == ["The Fox"]
    many = requests(shot_set, per_character=2)[0]
    assert [one["file"][-6:] for one in many["references"]] == ["00.png", "01.png"]


def test_request_when_the_prompt_is_too_long_is_cut_between_words_and_says_so(shot_set: ShotSet) -> None:
    whole = requests(shot_set)[0]["prompt"]
    cut = requests(shot_set, max_chars=20)[0]
    assert cut["prompt"] == "Medium shot,"
    assert cut["cut"] == len(whole) - len("Medium shot,")
    chinese = requests(shot_set, language="ch", max_chars=4, parts=("setting",))[0]
    assert chinese["prompt"] == "白天，枯"


def test_requests_when_read_are_what_was_typed_parents_first():
    found = requested(["strict=50/category:even", "lite=200", "even=125/category"])
    assert [request.name for request in found] == ["lite", "even", "strict"]
    assert found[2] == SubsetRequest("strict", 50, per_category=True, parent="even")
    assert [request.asked for request in found] == ["200", "125/category", "50/category:even"]


def test_shares_when_read_are_what_was_typed_and_those_of_the_paper():
    assert requested(["lite=10%", "even=5%/category"])[1] == SubsetRequest("even", 5, True, None, share=True)
    gold = requested(GOLD)
    assert [request.asked for request in gold] == ["20%/category", "8%/category:human_gold"]
    assert [request.strict for request in gold] == [False, True]
    assert requested([f"{request.name}={request.asked}" for request in gold]) == gold


def test_a_request_when_it_cannot_be_met_is_refused_with_a_cure(refusals, snapshot):
    sizes = ("0", "-1", "", "1.5", "٣", "9999999999", "5/kind", "5:", "5:../x", "0%", "5%%", "5/category%")
    names = ("", "Lite", "../x", "a b", "x" * 65)
    assert refusals(requested, [
        *([f"{name}=200"] for name in names), ["lite"], *([f"lite={size}"] for size in sizes), ["lite=101%"],
        ["votes=5"], ["annotations=5"], ["human_validation=5"], ["lite=5", "lite=6"], ["lite=none"],
        ["lite=5:even"], ["lite=5:lite"], ["a=5:b", "b=5:a"],
    ]) == snapshot  # fmt: skip


def test_a_parent_when_it_is_dropped_leaves_no_orphan():
    earlier = requested(["even=5/category", "strict=2/category:even"])
    with pytest.raises(ConfigError, match="parent"):
        requested(["even=none"], earlier)


# Inputs of named generators, from descriptions of ours and of users.

OWN = """
about = "Ours: a line for each shot."
results = "{{ story.id }}/{{ shot.index }}.png"

[values]
root = ""
mood = "calm"

[shot]
prompt = "{{ shot.plot }} / {{ values.mood }}"

[[file]]
path = "all.jsonl"
form = "jsonl"
content = '''
[ {% for story in stories %}{% set last = loop.last %}{% for shot in story.shots %}
{"id": "{{ story.id }}-{{ shot.index }}", "text": {{ shot.prompt | tojson }},
 "pictures": {{ shot.onstage | map(attribute="image") | list | tojson }}}{{ "," if not (last and loop.last) }}
{% endfor %}{% endfor %} ]
'''
"""


@pytest.fixture
def input_set(tmp_path: Path) -> ShotSet:
    drawn, _ = read_shot_set(draw_shot_set(tmp_path / "data", 2, 5, 1))
    return drawn


@pytest.mark.parametrize("name", bundled("fabula.releases.shots"))
def test_results_when_pictures_lie_where_inputs_say_are_read_back_completely(input_set, tmp_path, name):
    values = {"time_stamp": "20260101-101500"} if name == "storygen" else {}
    export_inputs(input_set, tmp_path / "in", name, values=values)
    lines = [json.loads(line) for line in (tmp_path / "in" / RESULTS).read_text("utf-8").splitlines()]
    assert len(lines) == 10
    picture = draw_shot(())
    for line in lines:
        file = tmp_path / name / line["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture)
    report = check_shots(tmp_path / name, input_set)
    assert report.ok
    assert {
        (story, number): file.file.name
        for story, shots in report.shots.items()
        for number, file in shots.items()
    } == {(line["story_id"], line["shot"]): Path(line["file"]).name for line in lines}


def test_inputs_when_a_user_describes_a_generator_are_as_described(input_set, tmp_path):
    (tmp_path / "mine.toml").write_text(OWN)
    mine, values = str(tmp_path / "mine.toml"), {"root": "/r/", "mood": "wild"}
    made = export_inputs(input_set, tmp_path / "in", mine, values=values)
    lines = [json.loads(line) for line in (tmp_path / "in/all.jsonl").read_text("utf-8").splitlines()]
    assert lines[1] == {
        "id": "01-2", "text": "Part 2 of the tale. / wild",
        "pictures": ["/r/01/image/Mira/00.png", "/r/01/image/Old Tomas/00.png"],
    }  # fmt: skip
    assert (tmp_path / "in/01/image/Mira/00.png").is_file()
    assert (made.files, made.shots, made.references, made.missing) == (("all.jsonl",), 10, 6, ())


def test_inputs_when_a_script_lacks_texts_or_images_say_so(tmp_path: Path) -> None:
    tree = draw_shot_set(tmp_path / "data", 1, 5, 1) / "ViStory"
    script = json.loads((tree / "01/story.json").read_text("utf-8"))
    script["Shots"][1]["Static Shot Description"]["ch"] = None
    (tree / "01/story.json").write_text(json.dumps(script), "utf-8")
    (tree / "01/image/The Fox/00.png").unlink()
    input_set, _ = read_shot_set(tree)
    made = export_inputs(input_set, tmp_path / "in", "vlogger")
    assert made.missing == ("01 shot 2 static.ch",)
    assert made.unshown == (("01", "The Fox"),)
    images = {path.name for path in (tmp_path / "in/01/ref_img").iterdir()}
    assert images == {"Mira.png", "Old Tomas.png"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("all.jsonl", "../all.jsonl"), "no path below the new folder"),
        (("values.mood", "values.tone"), "shot.prompt: 'dict object' has no attribute 'tone'"),
        ((" ]\n", "\n"), "file 1 gives no JSON"),
        (("form =", "shape ="), "shape: there is no such field"),
        (("{{ shot.plot }}", "{{ ''.__class__.__mro__ }}"), "unsafe"),
    ],
)
def test_description_when_wrong_is_refused_with_its_place(input_set, tmp_path, change, why):
    (tmp_path / "mine.toml").write_text(OWN.replace(*change))
    with pytest.raises(ConfigError, match=why):
        export_inputs(input_set, tmp_path / "in", str(tmp_path / "mine.toml"))
    assert not (tmp_path / "in").exists()


def test_inputs_when_an_option_or_a_value_does_not_apply_are_refused(input_set, tmp_path):
    with pytest.raises(ConfigError, match="the description of uno decides this"):
        export_inputs(input_set, tmp_path / "in", "uno", RequestOptions(max_chars=9))
    with pytest.raises(ConfigError, match="uno has no value mood; it has: root"):
        export_inputs(input_set, tmp_path / "in", "uno", values={"mood": "calm"})
    with pytest.raises(ConfigError, match="one of animdirector, seedstory"):
        export_inputs(input_set, tmp_path / "in", "unno")
