"""What a stand-in for a model wrote or checked: refused by pack and publish, packed on request, and told."""

import json

import pytest

from fabula.errors import ConfigError
from fabula.kinds.verbs import pack, verify
from fabula.releases.options import PackOptions
from fabula.testing.katha_samples import sample_bundles

WHO = "openai:gpt-4.1 via katha/label_story@1#0a, answered by a stand-in"
NAMED = "openai:gpt-4.1, answered by a stand-in"


def bundles(part, split):
    """Sample bundles; in one of a split a stand-in made a field, or a check."""
    made = sample_bundles(24)
    chosen = next(one for one in made if (one["record"]["split"] == "hidden_test") == (split == "hidden"))
    for entry in chosen[part][:1]:
        entry["producer"] = WHO
    return made


@pytest.mark.parametrize("part", ["producers", "checks"])
@pytest.mark.parametrize("split", ["public", "hidden"])
def test_pack_when_a_stand_in_made_anything_is_refused(make_run, tmp_path, part, split):
    with pytest.raises(ConfigError, match=f"--allow-stand-in: .* so they mean nothing: {NAMED}"):
        pack(make_run(bundles(part, split)), tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("part", ["producers", "checks"])
def test_release_when_a_stand_in_is_allowed_says_so_in_its_first_lines_and_stays_sound(
    make_run, tmp_path, helpers, part
):
    out = tmp_path / "out"
    pack(make_run(bundles(part, "public")), out, PackOptions("0.1.0", allow_stand_in=True, allow_drafts=True))
    assert json.loads((out / "release.json").read_bytes())["stand_ins"] == [NAMED]
    before, _, after = (out / "dataset_card.md").read_text("utf-8").partition("## Summary")
    assert "**Programs that stand in for a model wrote or checked records of this release**" in before
    assert (" stand-in |" in after) == (part == "producers")  # a column of its own in the table of makers
    assert not verify(out).issues
    helpers.edit_json(out / "release.json", lambda it: it.pop("stand_ins"))
    helpers.reseal(out)
    assert any(issue.level == "error" for issue in verify(out).issues)
