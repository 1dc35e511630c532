"""Where each public story is from stands in the source manifest; nothing of hidden stories does."""

import json
from pathlib import Path

import pytest

from fabula.kinds.verbs import pack, verify
from fabula.releases.options import PackOptions
from fabula.schemas.paths import SOURCE_MANIFEST
from fabula.testing.katha_folders import write_jsonl, write_run
from fabula.testing.katha_samples import sample_bundles

HIDDEN = "kb25k_0005"
TOLD = ["kb25k_0006", "kb25k_0007"]


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    run = write_run(folder / "run", sample_bundles(25))
    rows = [
        {"id": f"kb25k_{n:04d}", "edition": "Old Press", "page": str(n), "frame": frame}
        for n, frame in ((1, None), (2, "kb25k_0001"), (3, HIDDEN), (5, None))
    ]
    write_jsonl(run / "sources.jsonl", rows)
    links = [
        {"stories": ["kb25k_0001", "kb25k_0004"], "by": "title", "evidence": "both"},
        {"stories": [HIDDEN, "kb25k_0025"], "by": "meaning", "evidence": "cosine 0.95"},
    ]
    groups = [
        {"id": "kb25k_0001", "stories": ["kb25k_0001", "kb25k_0004"], "links": links[:1]},
        {"id": HIDDEN, "stories": [HIDDEN, "kb25k_0025", "gone"], "links": links[1:]},
        {"id": "gone", "stories": ["gone", *TOLD], "links": [{**links[0], "stories": TOLD}]},
    ]
    write_jsonl(run / "retellings.jsonl", groups)
    pack(run, folder / "out", PackOptions("0.1.0", allow_drafts=True))
    return folder / "out"


def sources(release: Path) -> dict[str, dict]:
    manifest = json.loads((release / SOURCE_MANIFEST).read_text("utf-8"))
    return {row["story_id"]: row for entry in manifest["collections"] for row in entry.get("sources", ())}


def test_manifest_when_sources_are_known_says_them_of_each_public_story(release) -> None:
    found = sources(release)
    assert set(found) == {"kb25k_0001", "kb25k_0002", "kb25k_0003"}
    assert (found["kb25k_0002"]["frame"], found["kb25k_0002"]["page"]) == ("kb25k_0001", "2")
    assert (found["kb25k_0002"]["edition"], found["kb25k_0002"]["translator"]) == ("Old Press", None)


def test_manifest_when_a_frame_is_hidden_names_no_frame(release) -> None:
    assert sources(release)["kb25k_0003"]["frame"] is None
    assert HIDDEN not in (release / SOURCE_MANIFEST).read_text("utf-8")


def test_hidden_folder_when_packed_alone_holds_the_evidence_about_hidden_stories(release) -> None:
    hidden = release.with_name("out-hidden")
    (group,) = map(json.loads, (hidden / "retellings.jsonl").read_text("utf-8").splitlines())
    assert (group["stories"], group["links"]) == ([HIDDEN, "kb25k_0025"], group["links"])
    assert [link["by"] for link in group["links"]] == ["meaning"]
    (source,) = map(json.loads, (hidden / "sources.jsonl").read_text("utf-8").splitlines())
    assert (source["id"], source["edition"]) == (HIDDEN, "Old Press")
    assert "sources.jsonl" not in {path.name for path in release.iterdir()}
    assert [issue for issue in verify(hidden).issues if issue.level == "error"] == []


def retold(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "retellings.jsonl").read_text("utf-8").splitlines()]


def test_public_folder_when_packed_has_the_groups_of_public_stories_alone(release) -> None:
    groups = retold(release)
    assert [(group["id"], group["stories"]) for group in groups] == [
        ("kb25k_0001", ["kb25k_0001", "kb25k_0004"]),
        ("kb25k_0006", TOLD),
    ]
    assert groups[0]["links"][0]["evidence"] == "both"
    assert HIDDEN not in (release / "retellings.jsonl").read_text("utf-8")
    assert "retellings.jsonl" in (release / "dataset_card.md").read_text("utf-8")
    assert "retellings.jsonl" in (release / "SHA256SUMS").read_text("utf-8")


STORY = b'"story_id": "kb25k_0003"'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("retellings.jsonl", b"kb25k_0004", b"kb25k_0009x"),
        ("retellings.jsonl", b',"kb25k_0004"]', b"]"),
        ("retellings.jsonl", b'],"stories":["kb25k_0001",', b'],"stories":['),
        pytest.param(SOURCE_MANIFEST, STORY, b'"story_id": "kb25k_0004x"', id="a source of no public story"),
    ],
)
def test_verify_when_groups_or_sources_name_other_stories_than_there_are_finds_it(release, name, old, new):
    path = release / name
    before = path.read_bytes()
    try:
        path.write_bytes(before.replace(old, new))
        issues = verify(release).issues
        wanted = {"where": SOURCE_MANIFEST} if name == SOURCE_MANIFEST else {"code": "retelling-stories"}
        assert any(wanted.items() <= issue.as_dict().items() for issue in issues)
    finally:
        path.write_bytes(before)
