"""Plans of stories and variants for generators, and the outputs that are made of them."""

import json
from pathlib import Path

import pytest

from fabula.builders.katha.draft_scenes import LIMIT, clip_tokens
from fabula.errors import ConfigError
from fabula.evaluation.katha.load_items import variant_stories
from fabula.evaluation.katha.plans import PLANS, export_plans, plans, write_plans
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.testing.drawn import write_outputs
from fabula.testing.drawn_storyboards import drawn_release


def test_plans_when_exported_have_each_story_and_variant_scene_by_scene(release, tmp_path) -> None:
    counts = write_plans(release, tmp_path / "plans")
    rows = lines(tmp_path / "plans" / PLANS)
    active = [variant for variant in release.variants if variant.has_variant]
    assert counts == {"stories": len(release.records), "variants": len(active)}
    assert {line["id"] for line in rows} == {*release.by_id, *(one.variant_id for one in active)}
    for line in rows:
        record = release.by_id[line["story_id"]]
        assert [scene["file"] for scene in line["scenes"]] == [
            f"{line['id']}/0{number}.png" for number in range(1, len(record.scenes) + 1)
        ]
        for scene, own in zip(line["scenes"], record.scenes, strict=True):
            if scene["scene"] != line["changed_scene"]:
                assert (scene["text"], scene["prompt"]) == (own.scene_text, own.generation_prompt)


def test_plan_of_a_variant_when_made_has_a_prompt_of_the_changed_text_that_fits(release) -> None:
    variants = {variant.variant_id: variant for variant in release.variants}
    for line in plans(release, release.records):
        if line["variant_id"] is not None:
            variant = variants[line["variant_id"]]
            scene = line["scenes"][variant.changed_scene_id - 1]
            first = variant.contrastive_scene_text.split()[-1].rstrip(".")
            assert scene["text"] == variant.contrastive_scene_text
            assert first in scene["prompt"] and clip_tokens(scene["prompt"]) <= LIMIT
            assert variant.contrastive_scene_text in scene["prompt_long"]


@pytest.fixture
def two(tmp_path: Path):
    """A release of two stories, one of them of the public test."""
    return drawn_release(tmp_path / "two", 2)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_plans_when_exported_for_storydiffusion_are_its_examples_with_a_shot_for_each_scene(
    two, tmp_path
) -> None:
    export_plans(two, tmp_path / "sd", "storydiffusion", {"style": "Comic book"})
    made: dict = {}
    exec((tmp_path / "sd" / "examples.py").read_text("utf-8"), made)
    told = [*two.records, *variant_stories(two, two.records)]
    examples = {example[5]: example for example in made["examples"]}
    assert sorted(examples) == sorted(story.story_id for story in told)
    for story in told:
        example = examples[story.story_id]
        prompts = example[8].splitlines()
        assert len(prompts) == len(story.scenes)
        for scene, prompt in zip(story.scenes, prompts, strict=True):
            assert prompt.startswith(f"{scene.scene_text}; {scene.generation_prompt}; ")
        names = {name for scene in story.scenes for name in scene.characters}
        assert [line.partition("]")[0][1:] for line in example[6].splitlines()] == list(
            dict.fromkeys(name for scene in story.scenes for name in scene.characters)
        ) and names
        assert (example[9], example[10]) == ("Comic book", "Only Using Textual Description")


def test_results_of_a_story_generator_when_put_where_they_are_named_are_valid_outputs(two, tmp_path) -> None:
    made = export_plans(two, tmp_path / "sg", "storygen", {"time_stamp": "run"}, ["public_test"])
    chosen = [record for record in two.records if record.split == "public_test"]
    results = lines(tmp_path / "sg" / "results.jsonl")
    assert (
        made.shots
        == len(results)
        == sum(len(story.scenes) for story in [*chosen, *variant_stories(two, chosen)])
    )
    first = chosen[0].story_id
    assert results[0] == {
        "story_id": first, "scene": 1, "made": f"{first}/run/shot_01.png", "file": f"{first}/01.png",
    }  # fmt: skip
    shots = json.loads((tmp_path / "sg" / first / "shots.json").read_text("utf-8"))
    assert list(shots) == [f"{number:02}" for number in range(1, len(chosen[0].scenes) + 1)]
    folder = write_outputs(tmp_path / "storygen", [chosen[0].story_id])
    for line in results:
        if line["story_id"] == first:
            assert (folder / line["file"]).is_file()
    assert [board.unit for board in check_outputs(folder, chosen[:1], known=two).valid] == [first]


def test_plans_when_a_generator_needs_pictures_of_characters_say_so(two, tmp_path) -> None:
    with pytest.raises(ConfigError, match="nobody on stage has a reference image to begin with"):
        export_plans(two, tmp_path / "seed", "seedstory", {})
    assert not (tmp_path / "seed").exists()


def test_outputs_of_variants_when_there_are_checked_beside_the_stories(release, tmp_path) -> None:
    first = release.records[0]
    told = variant_stories(release, release)
    own = [record.story_id for record in told if record.story_id.startswith(first.story_id)]
    folder = write_outputs(tmp_path / "model-x", [first.story_id, *own])
    (folder / own[1] / "05.png").unlink()
    report = check_outputs(folder, [first], known=release, variants=told)
    assert [board.unit for board in report.valid] == [first.story_id]
    assert [(board.unit, board.codes) for board in report.variants] == [
        (own[0], ()),
        (own[1], ("missing",)),
    ]
    assert report.accounting()["stories_requested"] == 1
    assert [(issue.where, issue.code) for issue in report.issues] == [(own[1], "missing")]
