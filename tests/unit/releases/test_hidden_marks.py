import json
import shutil
from pathlib import Path

import pytest

from fabula.kinds.verbs import pack, verify
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.field_rules import record_hashes

PREFACE = (
    "On the road the spirit on the king's back began a tale, as it had begun one every night before, "
    "and the king listened without a word. "
)


def framed(bundle):
    """The same bundle with a preface that every tale of the frame has."""
    record = bundle["record"]
    scene = record["scenes"][0]
    old = scene["scene_text"]
    scene["scene_text"] = PREFACE + old
    record["source_text"] = PREFACE + record["source_text"]
    record["story_text"] = PREFACE + record["story_text"]
    for variant in bundle["variants"]:
        variant["contrastive_story_text"] = PREFACE + variant["contrastive_story_text"]
        if variant["changed_scene_id"] == 1:
            variant["contrastive_scene_text"] = PREFACE + variant["contrastive_scene_text"]
    record["provenance"].update(record_hashes(record, bundle["variants"]))
    return bundle


def leaks(release: Path, **options) -> list[str]:
    return [str(issue) for issue in verify(release, **options).issues if issue.code == "hidden-leak"]


def test_tales_of_one_frame_when_packed_are_no_leak(tmp_path):
    run = write_run(tmp_path / "run", [framed(bundle) for bundle in sample_bundles(24)])
    packed = pack(run, tmp_path / "frame-0.1.0", PackOptions("0.1.0"))
    assert packed.hidden is not None
    assert leaks(packed.folder, quick=True) == []


@pytest.mark.parametrize("part", [slice(None), slice(0, 160), slice(-160, None)], ids=["all", "start", "end"])
def test_a_hidden_text_when_quoted_in_a_document_is_found_by_a_quick_check_too(packed, tmp_path, part):
    release = Path(shutil.copytree(packed.folder, tmp_path / packed.folder.name))
    hidden = Path(shutil.copytree(packed.hidden, tmp_path / packed.hidden.name))
    secret = json.loads((hidden / "annotations.jsonl").read_text("utf-8").splitlines()[0])
    with (release / "README.md").open("a", encoding="utf-8") as card:
        card.write(secret["story_text"][part] + "\n")
    assert any("README.md" in leak for leak in leaks(release, quick=True))


def test_a_damaged_release_document_when_verified_in_full_stops_nothing(release):
    path = release / "release.json"
    path.write_bytes(path.read_bytes().replace(b'"license"', b'"licensf"'))
    found = verify(release)
    assert not found.ok
    assert any("release.json" in issue.where for issue in found.issues)
