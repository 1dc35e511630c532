"""Episodes on disk: read, written, imported, exported, packed, verified, loaded; and bad input."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import fabula
from fabula.errors import ConfigError, InputError, RunError, TargetError
from fabula.evaluation.outputs.entities import read_cuts
from fabula.kinds.entities import MARKS
from fabula.kinds.verbs import pack, verify
from fabula.releases.entities.form import EntityRelease, export_episodes, import_episodes
from fabula.releases.entities.requests import (
    GENERATORS,
    RequestOptions,
    entity_requests,
    write_inputs,
    write_requests,
)
from fabula.releases.entities.tree import (
    EntitySet,
    Episode,
    is_file_name,
    read_entity_set,
    script_bytes,
    write_tree,
)
from fabula.releases.options import PackOptions
from fabula.schemas.entities import EntityEpisode
from fabula.testing.written_episodes import CAST, SECOND, SHOTS, write_episodes, written_episode
from fabula.tests.unit.releases.conftest import tree

OPTIONS = PackOptions("0.1.0", license="CC-BY-4.0", languages=("en",))
CREATED = "2026-01-01T00:00:00Z"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_episodes(tmp_path / "data")


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Path:
    return import_episodes(data, tmp_path / "run", CREATED).out


def test_episodes_when_imported_and_exported_are_the_same_bytes(run, data, tmp_path):
    assert tree(run / "data") == tree(data)
    assert export_episodes(read_entity_set(run)[0], tmp_path / "out")["episodes"] == 2
    assert tree(tmp_path / "out") == tree(data)


def test_episodes_when_laid_out_otherwise_keep_bytes_order_unknown_fields_and_what_is_absent(data, tmp_path):
    path = data / "scripts" / "ep_a.json"
    document = json.loads(path.read_bytes())
    document["note"] = {"by": "somebody", "numbers": [1, 2.5, None]}
    document["scenes"][0]["camera"] = "low"
    document["story_overview"] = None
    del document["_name_map"]
    path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    made = import_episodes(data, tmp_path / "run", CREATED)
    assert (tmp_path / "run/data/scripts/ep_a.json").read_bytes() == path.read_bytes()
    script = made.entity_set.by_id["ep_a"].script
    assert script.as_json() == document
    assert json.loads(script_bytes(script.as_json())) == document
    assert list(script.as_json()["entity_descriptions"]) == list(document["entity_descriptions"])
    assert made.report.counts["unknown-field"] == 2


def test_folder_of_scripts_when_given_alone_is_a_set_without_splits(data: Path, tmp_path: Path) -> None:
    entity_set, report = read_entity_set(data / "scripts")
    assert (len(entity_set.episodes), entity_set.splits, report.counts) == (2, (), {})
    assert entity_set.tiers() == {"all": ("ep_a", "ep_b")}
    assert import_episodes(data / "scripts", tmp_path / "run", CREATED).entity_set.counts()["episodes"] == 2
    assert [MARKS.match(one) for one in (data, data / "scripts", data / "splits", tmp_path)] == [
        True, True, False, True,
    ]  # fmt: skip


def test_episode_when_its_file_name_is_decomposed_is_that_of_the_splits(data: Path) -> None:
    one, two = "ep_\u00e9", "ep_e\u0301"
    (data / "scripts/ep_a.json").rename(data / f"scripts/{two}.json")
    for path in (data / "splits").iterdir():
        path.write_text(path.read_text("utf-8").replace("ep_a", one), "utf-8")
    found, report = read_entity_set(data)
    assert one in found.by_id and "split-unknown" not in report.counts
    shutil.copy(data / f"scripts/{two}.json", data / f"scripts/{one}.json")
    assert read_entity_set(data)[1].counts["stray-file"] == 1


def test_tiers_when_split_files_differ_go_by_the_one_that_names_most(data: Path) -> None:
    (data / "splits" / "few.json").write_text('{"hard": ["ep_a"], "all": ["ep_a"]}', "utf-8")
    (data / "splits" / "again.json").write_text(
        '{"easy": ["ep_a"], "hard": [{"episode_id": "ep_b", "window_score": 0.9}]}', "utf-8"
    )
    entity_set, report = read_entity_set(data)
    assert entity_set.tiers() == {"easy": ("ep_a",), "hard": ("ep_b",), "all": ("ep_a", "ep_b")}
    chosen = entity_set.split_file()
    assert chosen is not None
    assert chosen.name == "ids"
    assert entity_set.tiers("few") == {"hard": ("ep_a",), "all": ("ep_a",)}
    assert report.counts == {"split-object": 1}
    with pytest.raises(ConfigError, match="again, few, ids"):
        entity_set.tiers("none")


def test_import_when_no_file_can_be_used_says_which_and_what_to_do(data, tmp_path, refusals, snapshot):
    def read(content: bytes) -> None:
        for path in (data / "scripts").iterdir():
            path.write_bytes(content)
        import_episodes(data, tmp_path / "run", CREATED)

    assert refusals(read, [
        b"", b'{"scenes": [', '{"story_name": "Kränich"}'.encode("utf-16"), b'{"note": 1e999}',
        b'{"_num_shots": 1, "_num_scenes": Infinity}', b"[" * 100_000, b'{"scenes": 3}',
        b'{"story_name": "a", "story_name": "b"}', b'{"story_name": "\\ud800"}',
    ]) == snapshot  # fmt: skip
    assert not (tmp_path / "run").exists()


def test_import_when_one_file_cannot_be_used_takes_the_others_and_says_so(data: Path, tmp_path: Path) -> None:
    (data / "scripts" / "ep_b.json").write_bytes(b'{"scenes": [')
    made = import_episodes(data, tmp_path / "run", CREATED)
    assert [one.episode_id for one in made.entity_set.episodes] == ["ep_a"]
    assert [issue.code for issue in made.lost] == ["json"]
    assert "split-unknown" not in made.report.counts  # its file is there, and is named above


def test_read_when_a_registry_is_huge_and_its_numbers_are_too_stays_quick(tmp_path: Path) -> None:
    count = 2500
    actions = [f"name{place} walks here." for place in range(count)]
    episode = {
        "story_name": "huge",
        "scenes": [
            {
                "scene_num": 10**30, "video_prompts": actions, "cut": [True] * count,
                "action_descriptions": actions,
            }
        ],
        "entity_descriptions": {
            f"Character {10**8 + place}": {"name": f"name{place}", "description": "the same"}
            for place in range(count)
        } | {"Object " + "9" * 5000: {"name": "a vase"}},
        "_window_shot_ids": ["huge__shot" + "9" * 5000],
    }  # fmt: skip
    report = read_entity_set(write_episodes(tmp_path / "data", [episode]))[1]
    assert report.counts["unscheduled-mention"] == count
    assert {"label-gap", "label-form", "window-id", "scene-order"} <= report.counts.keys()
    assert max(len(issue.message) for issue in report.issues) < 500


def test_import_when_names_are_hostile_writes_nothing_outside(data: Path, tmp_path: Path) -> None:
    path = data / "scripts" / "ep_a.json"
    document = json.loads(path.read_bytes())
    document["story_name"] = "../../escaped"
    document["entity_descriptions"]["Object 1"]["name"] = "../cup"
    path.write_bytes(script_bytes(document))
    made = import_episodes(data, tmp_path / "run", CREATED)
    assert {"story-name"} == {issue.code for issue in made.lost}
    assert not list(tmp_path.parent.glob("escaped*"))
    assert sorted(one.name for one in (tmp_path / "run/data/scripts").iterdir()) == ["ep_a.json", "ep_b.json"]
    with pytest.raises(InputError, match=r"story-name|story_name"):
        pack(tmp_path / "run", tmp_path / "release", OPTIONS)


def test_import_when_files_are_links_follows_them_and_refuses_what_never_ends(data, tmp_path):
    elsewhere = tmp_path / "store.json"
    (data / "scripts" / "ep_b.json").rename(elsewhere)
    (data / "scripts" / "ep_b.json").symlink_to(elsewhere)
    (data / "scripts" / "loop.json").symlink_to(data / "scripts" / "loop.json")
    (data / "scripts" / "null.json").symlink_to("/dev/null")
    made = import_episodes(data, tmp_path / "run", CREATED)
    assert [one.episode_id for one in made.entity_set.episodes] == ["ep_a", "ep_b"]
    assert not (tmp_path / "run/data/scripts/ep_b.json").is_symlink()
    assert sorted(issue.where for issue in made.lost) == ["scripts/loop.json", "scripts/null.json"]


def test_write_tree_when_written_again_drops_what_is_gone_and_refuses_unsafe_ids(tmp_path: Path) -> None:
    episodes = [
        Episode.of(EntityEpisode.model_validate(written_episode(name, SECOND))) for name in ("one", "two")
    ]
    write_tree(tmp_path, EntitySet(tuple(episodes)))
    write_tree(tmp_path, EntitySet((episodes[1],)))
    assert [path.name for path in (tmp_path / "scripts").iterdir()] == ["two.json"]
    odd = Episode.of(EntityEpisode.model_validate(written_episode("a/b", SECOND)))
    with pytest.raises(InputError, match="cannot be the name of a file"):
        write_tree(tmp_path, EntitySet((odd,)))
    assert [is_file_name(name) for name in ("ep-1.a", "", "..", "a/b", "a\\b", "c:d", "x" * 201, "a\n")] == [
        True, False, False, False, False, False, False, False,
    ]  # fmt: skip


def test_release_when_packed_twice_has_the_same_bytes_is_sound_and_loads(run: Path, tmp_path: Path) -> None:
    packed = pack(run, tmp_path / "one", OPTIONS)
    again = pack(run, tmp_path / "two", OPTIONS)
    assert tree(packed.folder) == tree(again.folder)
    assert packed.counts == {"episodes": 2, "scenes": 3, "shots": 7, "entities": 9, "slots": 20}
    report = verify(packed.folder)
    assert report.ok, [str(issue) for issue in report.issues]
    assert report.checked["rows read back twice"] == 2 + 3 + 7 + 9 + 20
    release = fabula.load(packed.folder)
    assert isinstance(release, EntityRelease)
    assert (release.version, len(release), release.tiers["easy"]) == ("0.1.0", 2, ("ep_a",))
    assert release.by_id["ep_a"].tiers == {"ids": ("all", "easy")}
    assert tree(packed.folder / "scripts") == tree(run / "data" / "scripts")
    document = json.loads((packed.folder / "release.json").read_bytes())
    assert (document["kind"], document["created_at"]) == ("entities", CREATED)
    card = (packed.folder / "dataset_card.md").read_text("utf-8")
    assert "| gap |" not in card
    assert "`fabula validate` finds none." in card
    assert str(tmp_path) not in card + json.dumps(document)


def test_tables_when_read_with_datasets_hold_gaps_and_references(run: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = pack(run, tmp_path / "release", OPTIONS).folder
    rows = {
        name: pq.read_table(folder / "data" / name / "test.parquet").to_pylist()
        for name in ("episodes", "scenes", "shots", "entities", "slots")
    }
    assert {one["episode_id"]: one["tier"] for one in rows["episodes"]} == {"ep_a": "easy", "ep_b": "hard"}
    assert rows["scenes"][1] == {"episode_id": "ep_a", "scene": 2, "first_shot": 3, "shots": 3, "cuts": 1}
    cup = [one for one in rows["slots"] if (one["episode_id"], one["name"]) == ("ep_a", "the red cup")]
    assert [(one["shot"], one["gap"], one["described"]) for one in cup] == [(1, None, True), (5, 4, False)]
    ladder = next(one for one in rows["entities"] if one["name"] == "the old ladder")
    assert (ladder["label"], ladder["appearances"], ladder["max_gap"]) == ("Object 2", 1, None)
    assert [one["key"] for one in rows["shots"]] == ["1:1", "1:2", "2:1", "2:2", "2:3", "1:1", "1:2"]


def test_pack_when_the_official_files_are_not_those_of_the_run_refuses(run: Path, tmp_path: Path) -> None:
    path = run / "data" / "scripts" / "ep_a.json"
    document = json.loads(path.read_bytes())
    document["story_overview"] = "Another story."
    path.write_bytes(script_bytes(document))
    with pytest.raises(InputError, match=r"the script is not the one in episodes\.jsonl"):
        pack(run, tmp_path / "release", OPTIONS)
    path.unlink()
    with pytest.raises(InputError, match="missing or unusable"):
        pack(run, tmp_path / "release", OPTIONS)
    (run / "episodes.jsonl").write_bytes(b"")
    with pytest.raises(RunError, match=r"is not the one that report\.json names"):
        pack(run, tmp_path / "release", OPTIONS)
    assert not (tmp_path / "release").exists()


def test_pack_when_episodes_have_findings_counts_them_on_the_card(data: Path, tmp_path: Path) -> None:
    path = data / "scripts" / "ep_b.json"
    document: dict[str, Any] = json.loads(path.read_bytes())
    document["entity_schedule"]["1:2"]["objects"].append("microphone")
    path.write_bytes(script_bytes(document))
    made = import_episodes(data, tmp_path / "run", CREATED)
    assert made.lost == ()
    packed = pack(tmp_path / "run", tmp_path / "release", OPTIONS)
    assert any("findings of 3 kinds" in note for note in packed.notes)
    assert "| unregistered | 1 |" in (packed.folder / "dataset_card.md").read_text("utf-8")
    assert verify(packed.folder, quick=True).ok


# -- What generators are given for episodes: every way to adapt a script, worked out by hand

ANA, CUP = CAST["Character 1"][1], CAST["Object 1"][1]


@pytest.fixture
def episodes(tmp_path: Path) -> EntitySet:
    return read_entity_set(write_episodes(tmp_path / "data"))[0]


def asked(episodes: EntitySet, **options: Any) -> list[Any]:
    return list(entity_requests(episodes, RequestOptions(**options)))


def test_requests_when_nothing_is_asked_for_are_the_prompts_of_the_files(episodes: EntitySet) -> None:
    lines = asked(episodes)
    prompts = [shot.prompt for episode in episodes.episodes for shot in episode.script.shots()]
    assert [line["prompt"] for line in lines] == prompts
    assert [line["file"] for line in lines][:3] == [
        "ep_a/001_001.mp4", "ep_a/001_002.mp4", "ep_a/002_001.mp4",
    ]  # fmt: skip
    assert [line["continues"] for line in lines[:5]] == [
        None, "ep_a/001_001.mp4", None, "ep_a/002_001.mp4", "ep_a/002_002.mp4",
    ]  # fmt: skip
    assert [line["seed"] for line in lines] == [42, 43, 44, 45, 46, 42, 43]


def test_requests_when_headers_are_left_out_or_injected_describe_who_is_asked_for(episodes):
    last = SHOTS[4][1]
    assert asked(episodes, header="none")[4]["prompt"] == last
    assert asked(episodes, header="first")[4]["prompt"] == last
    injected = asked(episodes, header="all")[4]
    assert injected["prompt"].splitlines() == [
        f"Ana: {ANA}", f"Ben: {CAST['Character 2'][1]}", f"The Garden: {CAST['Location 2'][1]}",
        f"the red cup: {CUP}", "", last,
    ]  # fmt: skip
    cup = injected["entities"][3]
    assert cup == {
        "name": "the red cup", "as": "the red cup", "type": "object", "label": "Object 1", "description": CUP,
        "described": True, "shown_in": ["ep_a/001_001.mp4"],
    }  # fmt: skip
    first = asked(episodes, header="first")
    assert first[0]["prompt"] == asked(episodes)[0]["prompt"]
    assert [one["described"] for one in first[1]["entities"]] == [False, True, False]


def test_requests_when_ids_stand_for_names_replace_whole_names_only(episodes, tmp_path):
    line = asked(episodes, ids=("character",))[1]
    assert line["prompt"].endswith("[character2] runs into The Kitchen and waves at [character1].")
    assert [one["as"] for one in line["entities"]] == ["[character1]", "[character2]", "The Kitchen"]
    both = asked(episodes, ids=("character", "location", "object"), header="none")[0]
    assert both["prompt"] == "[character1] fills [object1] at the sink of [location1]."
    path = tmp_path / "data/scripts/ep_a.json"
    text = path.read_text("utf-8").replace("the red cup", "the cup of Ana")
    path.write_text(text, "utf-8")
    again = asked(read_entity_set(tmp_path / "data")[0], ids=("character",), header="none")[0]
    assert again["prompt"] == "[character1] fills the cup of Ana at the sink of The Kitchen."


def test_requests_when_prompts_are_too_long_are_cut_at_a_space_and_counted(episodes: EntitySet) -> None:
    line = asked(episodes, header="none", max_chars=12)[0]
    assert (line["prompt"], line["cut_off"]) == ("Ana fills", len(SHOTS[0][1]) - 9)


def test_requests_when_the_registry_lacks_a_name_leave_it_undescribed(tmp_path: Path) -> None:
    folder = write_episodes(tmp_path / "data")
    path = folder / "scripts/ep_b.json"
    document = json.loads(path.read_bytes())
    document["entity_schedule"]["1:2"]["objects"].append("microphone")
    path.write_text(json.dumps(document), "utf-8")
    line = asked(read_entity_set(folder)[0], header="all", ids=("object",))[-1]
    assert "microphone" not in line["prompt"]
    wanted = {"name": "microphone", "as": "[object2]", "label": None, "description": None}
    assert wanted.items() <= line["entities"][-1].items()


def test_inputs_of_generators_when_written_have_the_form_of_their_public_samples(episodes, tmp_path):
    made = {name: write_inputs(episodes, tmp_path / name, name) for name in GENERATORS}
    script = episodes.by_id["ep_a"].script
    shots = list(script.shots())
    assert made["storymem"] == {"requests": 2, "files": 2, "shots": made["holocine"]["shots"], "cut": 0}
    # HoloCine: the caption of the scene, whom it shows, how many shots; characters by number.
    holo = json.loads((tmp_path / "holocine/ep_a.json").read_text())
    assert holo["global_caption"].endswith(f"This scene contains {len(shots)} shots.")
    assert "[character1]: " in holo["global_caption"] and "Ana" not in json.dumps(holo)
    assert len(holo["shot_captions"]) == len(shots) and "[character1]" in holo["shot_captions"][0]
    before, _, rest = holo["prompt"].partition(" [per shot caption] ")
    assert before == f"[global caption] {holo['global_caption']}"
    assert rest.split(" [shot cut] ") == holo["shot_captions"]
    assert len(holo["shot_cut_frames"]) == len(shots) - 1 and holo["num_frames"] == 48 * len(shots) + 1
    # CineTrans: 40 frames of a shot are 10 latent ones, and the first has one more.
    cine = yaml.safe_load((tmp_path / "cinetrans/ep_a.yaml").read_text())
    assert [len(cine["prompt"]), cine["general_prompt"]] == [len(shots) + 1, True]
    assert cine["prompt"][0] == shots[0].action
    assert sum(cine["mask_info"]) == (cine["frame_num"] - 1) // 4 + 1
    # StoryMem: the script's own overview, prompts and truth values.
    story = json.loads((tmp_path / "storymem/ep_a/story.json").read_text())
    assert story["story_overview"] == script.story_overview
    assert [scene["video_prompts"] for scene in story["scenes"]] == [
        list(scene.video_prompts) for scene in script.scenes
    ]  # fmt: skip
    assert {type(cut) for scene in story["scenes"] for cut in scene["cut"]} == {bool}
    lines = [json.loads(line) for line in (tmp_path / "storymem/results.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "episode_id": "ep_a", "shot": "1:1", "file": "ep_a/001_001.mp4", "from": "ep_a/01_01.mp4",
    }  # fmt: skip
    cuts = read_cuts(tmp_path / "holocine/ep_a.cuts.json", holo["num_frames"])
    assert list(cuts.spans) == [shot.key for shot in shots]
    with pytest.raises(ConfigError, match="none of holocine, cinetrans, storymem"):
        write_inputs(episodes, tmp_path / "no", "sora")


def test_requests_when_written_are_one_line_each_in_a_new_folder(episodes: EntitySet, tmp_path: Path) -> None:
    told = write_requests(episodes, tmp_path / "out", RequestOptions(max_chars=60))
    assert told == {"requests": 7, "shots": 7, "cut": 5}
    lines = (tmp_path / "out/requests.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["key"] for line in lines[:2]] == ["1:1", "1:2"]
    with pytest.raises(TargetError):
        write_requests(episodes, tmp_path / "out")
    with pytest.raises(ConfigError, match="--split"):
        write_requests(episodes, tmp_path / "other", RequestOptions(split="none"))
