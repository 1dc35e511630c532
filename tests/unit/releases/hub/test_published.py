"""A release that contradicts nothing in itself, and is not the one that was published."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, HubUnavailable
from fabula.kinds.verbs import verify
from fabula.releases.pack.packing import PackResult
from fabula.schemas.canonical import sha256_file
from fabula.schemas.layout import RELEASE

REPO = "user/fables"
Versions = tuple[PackResult, PackResult]


@pytest.fixture
def commit(client: Any, contents: Any, versions: Versions, monkeypatch: pytest.MonkeyPatch) -> str:
    """The commit of the first version on the Hub that HF_ENDPOINT names."""
    monkeypatch.setenv("HF_ENDPOINT", client.hub.url)
    return str(client.hub.put(REPO, contents(versions[0].folder)))


def places(hub: Any, commit: str, folder: Path) -> list[str]:
    return [
        sha256_file(folder / RELEASE),
        f"sha256:{sha256_file(folder / RELEASE).upper()}",
        str(folder),
        str(folder / RELEASE),
        f"{REPO}@{commit}",
        f"hf://datasets/{REPO}@{commit}",
        f"hf://datasets/{REPO}@{commit}/release.json",
        f"{hub.url}/datasets/{REPO}/resolve/{commit}/release.json?token=secret-1234",
    ]


def test_verify_against_what_was_published_when_it_is_that_finds_nothing_and_when_not_says_so(
    client: Any, commit: str, versions: Versions
) -> None:
    first, second = versions
    for number, place in enumerate(places(client.hub, commit, first.folder)):
        same = verify(first.folder, quick=True, against=place)
        assert same.issues == ()
        assert "published: the release that" in same.summary()
        other = verify(second.folder, quick=True, against=place)
        assert [issue.code for issue in other.issues] == ["not-published"]
        assert ("other files: LICENSE, README.md, " in other.issues[0].message) is (number > 1)
        assert sha256_file(first.folder / RELEASE) in other.issues[0].message
        assert "secret-1234" not in json.dumps([same.as_json(), other.as_json()])


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ("0" * 63, ConfigError, "cannot be read: No such file"),
        ("user/none@0123456789012345678901234567890123456789", ConfigError, "user/none"),
        ("http://user:secret-1234@127.0.0.1:1/release.json?secret-1234", HubUnavailable, "ConnectError"),
        ("http://host:port/release.json", ConfigError, "no address"),
        ("HUB/datasets/user/fables/resolve/main/none.json", ConfigError, "status 404"),
        ("HUB/datasets/user/fables/resolve/main/LICENSE", ConfigError, "this is no release.json"),
    ],
)
def test_verify_against_what_nobody_published_says_what_is_wrong_and_no_secret(
    client: Any, commit: str, versions: Versions, place: str, error: type[Exception], said: str
) -> None:
    assert commit
    with pytest.raises(error, match=said) as refused:
        verify(versions[0].folder, quick=True, against=place.replace("HUB", client.hub.url))
    assert "secret-1234@" not in str(refused.value) and "?secret-1234" not in str(refused.value)


def test_verify_against_what_was_published_when_only_a_document_is_given_asks_for_the_folder(
    versions: Versions,
) -> None:
    with pytest.raises(ConfigError, match="give the release folder"):
        verify(versions[0].folder / RELEASE, hidden=versions[0].hidden, against="0" * 64)
