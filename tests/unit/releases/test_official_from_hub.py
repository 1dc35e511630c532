import json

import pytest

from fabula.errors import ConfigError
from fabula.releases.katha.package_export import export_package
from fabula.releases.katha.package_import import import_package
from fabula.releases.katha.package_lines import ImportOptions
from fabula.testing.hub import TOKEN, HubServer
from fabula.testing.official_packages import write_package

STORY = ImportOptions(fields={"source_text": "story"})


@pytest.fixture
def hub(monkeypatch):
    """A Hub that the client finds through its environment."""
    with HubServer() as server:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def published(hub, tmp_path):
    """An official package in a repository, with the tag v1; return the commit."""
    from huggingface_hub import HfApi

    source = write_package(tmp_path / "package")
    api = HfApi(endpoint=hub.url, token=TOKEN)
    api.create_repo("user/package", repo_type="dataset")
    commit = api.upload_folder(repo_id="user/package", repo_type="dataset", folder_path=source).oid
    api.create_tag("user/package", repo_type="dataset", tag="v1", revision=commit)
    return commit


def test_package_when_on_a_hub_imports_by_tag_as_from_a_folder(published, tmp_path):
    told = []
    imported = import_package("user/package@v1", tmp_path / "imported", STORY, told.append)
    local = import_package(tmp_path / "package", tmp_path / "local", STORY)
    export_package(imported.folder, tmp_path / "exported")
    for path in (tmp_path / "package").iterdir():
        assert (tmp_path / "exported" / path.name).read_bytes() == path.read_bytes()
    for name in ("annotations.jsonl", "official/annotations.jsonl", "official/LICENSE"):
        assert (imported.folder / name).read_bytes() == (local.folder / name).read_bytes()
    document = json.loads((imported.folder / "release.json").read_bytes())
    assert document["imported"]["from"] == f"user/package@{published}"
    assert document["about"]["name"] == "package"
    assert imported.skipped == (".gitattributes",)
    assert any("user/package" in line for line in told)


def test_package_when_its_version_is_not_on_the_hub_names_those_there(published, tmp_path):
    with pytest.raises(ConfigError, match="v1"):
        import_package("user/package@v2", tmp_path / "imported", STORY)
    assert not (tmp_path / "imported").exists()
