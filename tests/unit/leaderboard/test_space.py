"""The pages of a leaderboard as a static Space, put on a loopback Hub by the real client."""

from typing import Any

import pytest
import yaml
from huggingface_hub import HfApi

from fabula.leaderboard.site import build
from fabula.testing.hub import TOKEN, HubServer

pytestmark = pytest.mark.slow


def test_site_when_uploaded_is_a_static_space_with_all_its_files(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit("model-a")
    site = world.folder / "site"
    build(world.folder, site)
    head = yaml.safe_load((site / "README.md").read_text("utf-8").split("---")[1])
    assert head["sdk"] == "static"
    assert (site / head["app_file"]).is_file()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with HubServer() as hub:
        api = HfApi(hub.url, token=TOKEN)
        api.create_repo("user/board", repo_type="space", space_sdk="static")
        api.upload_folder(repo_id="user/board", repo_type="space", folder_path=site)
        there = hub.files("spaces/user/board")
    files = {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in files.items()} == {
        name: content for name, content in there.items() if name != ".gitattributes"
    }
