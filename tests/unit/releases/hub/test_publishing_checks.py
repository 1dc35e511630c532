"""What publishing looks at before a Hub is asked, and what it says when a Hub says yes and does nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import HubUnavailable, InputError
from fabula.kinds.verbs import plan_publishing, publish
from fabula.releases.katha.package_import import import_package
from fabula.testing.official_packages import package_rows, write_package


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
