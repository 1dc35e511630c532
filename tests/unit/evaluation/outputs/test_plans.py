"""Plans of stories and variants for generators, and the outputs that are made of them."""

import json
from pathlib import Path

import pytest

from fabula.builders.katha.draft_scenes import LIMIT, clip_tokens
from fabula.evaluation.katha.load_items import PLANS, plans, variant_stories, write_plans
from fabula.evaluation.outputs.storyboards import check_outputs
from fabula.testing.drawn import write_outputs
from fabula.testing.drawn_storyboards import drawn_release


@pytest.fixture
def release(tmp_path: Path):
    return drawn_release(tmp_path / "release")


def test_plans_when_exported_have_each_story_and_variant_scene_by_scene(release, tmp_path) -> None:
    counts = write_plans(release, tmp_path / "plans")
    lines = [json.loads(line) for line in (tmp_path / "plans" / PLANS).read_text("utf-8").splitlines()]
    active = [variant for variant in release.variants if variant.has_variant]
    assert counts == {"stories": len(release.records), "variants": len(active)}
    assert {line["id"] for line in lines} == {*release.by_id, *(one.variant_id for one in active)}
    for line in lines:
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
