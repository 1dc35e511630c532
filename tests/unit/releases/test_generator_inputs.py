"""Inputs of named generators, from descriptions of ours and of users."""

import json
from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.evaluation.outputs.shots import check_shots
from fabula.releases.shots.imports import RESULTS, export_inputs
from fabula.releases.shots.layouts import bundled_layouts
from fabula.releases.shots.requests import RequestOptions
from fabula.releases.shots.tree import ShotSet, read_shot_set
from fabula.testing.drawn_shots import draw_shot, draw_shot_set

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
def shot_set(tmp_path: Path) -> ShotSet:
    drawn, _ = read_shot_set(draw_shot_set(tmp_path / "data", 2, 5, 1))
    return drawn


@pytest.mark.parametrize("name", sorted(bundled_layouts()))
def test_results_when_pictures_lie_where_inputs_say_are_read_back_completely(
    shot_set: ShotSet, tmp_path: Path, name: str
) -> None:
    values = {"time_stamp": "20260101-101500"} if name == "storygen" else {}
    export_inputs(shot_set, tmp_path / "in", name, values=values)
    lines = [json.loads(line) for line in (tmp_path / "in" / RESULTS).read_text("utf-8").splitlines()]
    assert len(lines) == 10
    picture = draw_shot(())
    for line in lines:
        file = tmp_path / name / line["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture)
    report = check_shots(tmp_path / name, shot_set)
    assert report.complete
    assert {
        (story, number): file.file.name
        for story, shots in report.shots.items()
        for number, file in shots.items()
    } == {(line["story_id"], line["shot"]): Path(line["file"]).name for line in lines}


def test_inputs_when_a_user_describes_a_generator_are_as_described(shot_set: ShotSet, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(OWN)
    made = export_inputs(
        shot_set, tmp_path / "in", str(tmp_path / "mine.toml"), values={"root": "/r/", "mood": "wild"}
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
    shot_set, _ = read_shot_set(tree)
    made = export_inputs(shot_set, tmp_path / "in", "vlogger")
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
    shot_set: ShotSet, tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    (tmp_path / "mine.toml").write_text(OWN.replace(*change))
    with pytest.raises(ConfigError, match=why):
        export_inputs(shot_set, tmp_path / "in", str(tmp_path / "mine.toml"))
    assert not (tmp_path / "in").exists()


def test_inputs_when_an_option_or_a_value_does_not_apply_are_refused(
    shot_set: ShotSet, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="the description of uno decides this"):
        export_inputs(shot_set, tmp_path / "in", "uno", RequestOptions(max_chars=9))
    with pytest.raises(ConfigError, match="values of uno: root"):
        export_inputs(shot_set, tmp_path / "in", "uno", values={"mood": "calm"})
    with pytest.raises(ConfigError, match="one of animdirector, seedstory"):
        export_inputs(shot_set, tmp_path / "in", "unno")
