"""Replies that hold contrastive variants."""

import pytest

from fabula.builders.katha.write_contrastives import read_corrected_variants, read_variants, variants_shown

LABELS = ("causal_transition", "gratitude")


def entry(draft, scene: int = 5, **changes) -> dict:
    text = draft["scenes"][scene - 1]["scene_text"] if 1 <= scene <= 5 else ""
    return {
        "changed_scene": scene,
        "change_type": "remove_consequence",
        "semantic_delta": "She thanked him; now she does not.",
        "contrastive_scene_text": f"{text} Nothing came of it.",
        "contrastive_moral": None,
        **changes,
    }


def read(draft, hat, *entries, count=1):
    return read_variants({"variants": list(entries)}, hat.story, draft["scenes"], LABELS, count)


def test_variant_when_good_changes_one_scene_and_nothing_else(draft, hat) -> None:
    (made,) = read(draft, hat, entry(draft, contrastive_moral="gratitude"))
    before = [scene["scene_text"] for scene in draft["scenes"]]
    expected = " ".join([*before[:4], made["contrastive_scene_text"]])
    assert made["contrastive_story_text"] == expected
    assert made["variant_kind"] == "semantic_contrast"
    assert made["original_moral"] == "gratitude"
    assert made["contrastive_moral"] is None  # the original label again is no other label
    assert (made["variant_id"], made["pair_id"]) == ("tale_1_v1", "tale_1_pair1")


def test_variant_when_events_change_places_is_a_temporal_contrast(draft, hat) -> None:
    (made,) = read(draft, hat, entry(draft, change_type="reorder_events"))
    assert made["variant_kind"] == "temporal_contrast"


def test_variant_when_its_scene_is_not_there_goes_back(model, draft, hat) -> None:
    for scene in (0, 6, -3):
        with pytest.raises(model.BadReply, match=f"changed_scene must be 1 to 5, found {scene}"):
            read(draft, hat, entry(draft, scene))


def test_variant_when_it_says_the_same_again_goes_back(model, draft, hat) -> None:
    text = draft["scenes"][4]["scene_text"].upper() + " !"
    with pytest.raises(model.BadReply, match="contrast 1: the text of scene 5 is as before"):
        read(draft, hat, entry(draft, contrastive_scene_text=text))


def test_variant_when_a_character_is_lost_names_it(model, draft, hat) -> None:
    scene = next(n for n, part in enumerate(draft["scenes"], 1) if "fisherman" in part["characters"])
    changed = entry(draft, scene, contrastive_scene_text="The river was quiet and nobody was there at all.")
    with pytest.raises(model.BadReply, match="the new text must still name"):
        read(draft, hat, changed)


def test_variant_when_far_too_long_goes_back(model, draft, hat) -> None:
    text = draft["scenes"][4]["scene_text"] + " And so on." * 100
    with pytest.raises(model.BadReply, match="more than twice as long as scene 5"):
        read(draft, hat, entry(draft, contrastive_scene_text=text))


def test_variants_when_too_few_or_equal_go_back_and_surplus_ones_are_left_out(model, draft, hat) -> None:
    with pytest.raises(model.BadReply, match="expected exactly 2 contrasts, found 1"):
        read(draft, hat, entry(draft), count=2)
    with pytest.raises(model.BadReply, match="contrast 2 is the same as contrast 1"):
        read(draft, hat, entry(draft), entry(draft), count=2)
    assert len(read(draft, hat, entry(draft), entry(draft, 9), count=1)) == 1


def test_corrected_variants_when_their_number_changes_go_back(model, draft, hat) -> None:
    labels = (draft["narrative_type"], "gratitude")
    shown = {"variants": variants_shown(draft["variants"])}
    assert read_corrected_variants(shown, hat.story, draft["scenes"], labels, 2) == draft["variants"]
    with pytest.raises(model.BadReply):
        read_corrected_variants(shown, hat.story, draft["scenes"], labels, 1)
