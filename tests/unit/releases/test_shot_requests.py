"""Requests to generators: parts, limits, priorities, context."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError
from fabula.evaluation.outputs.shots import check_shots
from fabula.releases.shots.imports import RESULTS, bundled_layouts, export_inputs
from fabula.releases.shots.requests import RequestOptions, shot_requests
from fabula.releases.shots.tree import ShotSet, read_shot_set
from fabula.releases.subsets.requests import GOLD, SubsetRequest, requested
from fabula.testing.drawn_shots import draw_shot, draw_shot_set, drawn_script


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


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lite"], "before a ="),
        (["=200"], "before a ="),
        (["Lite=200"], "before a ="),
        (["../x=200"], "before a ="),
        (["a b=200"], "before a ="),
        (["x" * 65 + "=1"], "before a ="),
        (["lite=0"], "at least 1"),
        (["lite=-1"], "at least 1"),
        (["lite="], "at least 1"),
        (["lite=1.5"], "at least 1"),
        (["lite=٣"], "at least 1"),
        (["lite=9999999999"], "at least 1"),
        (["lite=5/kind"], "at least 1"),
        (["lite=5:"], "at least 1"),
        (["lite=5:../x"], "at least 1"),
        (["lite=0%"], "at least 1"),
        (["lite=101%"], "a share of 1 to 100 %"),
        (["lite=5%%"], "at least 1"),
        (["lite=5/category%"], "at least 1"),
        (["votes=5"], "no file of a release has"),
        (["annotations=5"], "no file of a release has"),
        (["human_validation=5"], "no file of a release has"),
        (["lite=5", "lite=6"], "twice"),
        (["lite=none"], "no such subset"),
        (["lite=5:even"], "--subset even=SIZE"),
        (["lite=5:lite"], "in a circle"),
        (["a=5:b", "b=5:a"], "in a circle"),
    ],
)
def test_a_request_when_it_cannot_be_met_is_refused_with_a_cure(texts, message):
    with pytest.raises(ConfigError, match=message) as caught:
        requested(texts)
    assert caught.value.where.startswith("--subset")
    assert caught.value.fix


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


@pytest.mark.parametrize("name", sorted(bundled_layouts()))
def test_results_when_pictures_lie_where_inputs_say_are_read_back_completely(
    input_set: ShotSet, tmp_path: Path, name: str
) -> None:
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
    assert report.complete
    assert {
        (story, number): file.file.name
        for story, shots in report.shots.items()
        for number, file in shots.items()
    } == {(line["story_id"], line["shot"]): Path(line["file"]).name for line in lines}


def test_inputs_when_a_user_describes_a_generator_are_as_described(
    input_set: ShotSet, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(OWN)
    made = export_inputs(
        input_set,
        tmp_path / "in",
        str(tmp_path / "mine.toml"),
        values={"root": "/r/", "mood": "wild"},
    )
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
    assert sorted(path.name for path in (tmp_path / "in/01/ref_img").iterdir()) == [
        "Mira.png",
        "Old Tomas.png",
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("all.jsonl", "../all.jsonl"), "no path below the new folder"),
        (("values.mood", "values.tone"), "shot.prompt: 'dict object' has no attribute 'tone'"),
        ((" ]\n", "\n"), "file 1 gives no JSON"),
        (("form =", "shape ="), "shape: Extra inputs"),
        (("{{ shot.plot }}", "{{ ''.__class__.__mro__ }}"), "unsafe"),
    ],
)
def test_description_when_wrong_is_refused_with_its_place(
    input_set: ShotSet, tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    (tmp_path / "mine.toml").write_text(OWN.replace(*change))
    with pytest.raises(ConfigError, match=why):
        export_inputs(input_set, tmp_path / "in", str(tmp_path / "mine.toml"))
    assert not (tmp_path / "in").exists()


def test_inputs_when_an_option_or_a_value_does_not_apply_are_refused(
    input_set: ShotSet, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="the description of uno decides this"):
        export_inputs(input_set, tmp_path / "in", "uno", RequestOptions(max_chars=9))
    with pytest.raises(ConfigError, match="values of uno: root"):
        export_inputs(input_set, tmp_path / "in", "uno", values={"mood": "calm"})
    with pytest.raises(ConfigError, match="one of animdirector, seedstory"):
        export_inputs(input_set, tmp_path / "in", "unno")
