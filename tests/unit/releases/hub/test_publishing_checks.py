"""What publishing looks at before a Hub is asked, and what it says when a Hub says yes and does nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, HubUnavailable, InputError
from fabula.kinds.verbs import pack, plan_publishing, publish
from fabula.releases.katha.package_import import import_package
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.official_packages import package_rows, write_package
from fabula.testing.review_exports import summary_of, write_review


def test_publishing_when_an_imported_package_has_no_card_at_the_top_refuses(
    client: Any, tmp_path: Path
) -> None:
    rows = package_rows()
    hidden = {row["story_id"] for row in rows["annotations.jsonl"] if row["split"] == "hidden_test"}
    public = {
        name: [row for row in some if not hidden & {row.get("story_id"), row.get("base_story_id")}]
        for name, some in rows.items()
    }
    write_package(tmp_path / "package", public)
    folder = import_package(tmp_path / "package", tmp_path / "imported").folder
    with pytest.raises(InputError, match=r"without README\.md and LICENSE at the top\n.*fabula export katha"):
        publish(folder, client.to())
    assert client.hub.log == ()


def test_publishing_when_programs_reviewed_the_release_refuses_marked_or_not(
    client: Any, tmp_path: Path, helpers: Any
) -> None:
    bundles = sample_bundles(6)
    people = {"annotator_ids": ["simulated-1", "simulated-2", "simulated-3"]}
    rows = [summary_of(bundle, **people) for bundle in bundles]
    review = write_review(tmp_path / "review", rows)
    options = PackOptions("0.1.0", reviews=review, gold=True, allow_drafts=True)
    folder = pack(write_run(tmp_path / "run", bundles), tmp_path / "out", options).folder
    for ask in (publish, plan_publishing):
        with pytest.raises(InputError, match="cannot be published: programs took part in its review"):
            ask(folder, client.to())
    helpers.edit_json(folder / "release.json", lambda it: it.pop("simulated_reviews"))
    helpers.reseal(folder)
    with pytest.raises(InputError, match=r"simulated-1 at human_validation\.jsonl:1 .* is a program"):
        publish(folder, client.to())
    assert client.hub.log == ()


def test_publishing_when_a_stand_in_wrote_records_refuses_unless_it_is_allowed(
    client: Any, tmp_path: Path, helpers: Any
) -> None:
    bundles = sample_bundles(2)
    bundles[0]["producers"][0]["producer"] = "compatible:stand-in via katha/label_story@1#0a"
    options = PackOptions("0.1.0", allow_stand_in=True, allow_drafts=True)
    folder = pack(write_run(tmp_path / "run", bundles), tmp_path / "out", options).folder
    for ask in (publish, plan_publishing):
        with pytest.raises(ConfigError, match=r"--allow-stand-in: .*compatible:stand-in"):
            ask(folder, client.to())
    assert client.hub.log == ()
    assert publish(folder, replace(client.to(), allow_stand_in=True)).committed


@pytest.mark.parametrize(
    "endpoint", ["notaurl", "ftp://127.0.0.1", "http://", "http://u:s3cret@[x", "http://a:0"]
)
def test_publishing_when_endpoint_is_malformed_says_so_before_the_release_is_looked_at(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    for ask in (publish, plan_publishing):
        with pytest.raises(HubUnavailable, match="HF_ENDPOINT: expected the web address of a Hub") as caught:
            ask(tmp_path / "nothing there", replace(client.to(), endpoint=None))
        assert "s3cret" not in str(caught.value)
