"""A Hub on the loopback interface for each test, asked through the real client, and nobody who waits."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fabula.kinds.verbs import pack
from fabula.releases.form import ReleaseForm
from fabula.releases.hub.client import Retries
from fabula.releases.hub.fetch import FetchOptions
from fabula.releases.hub.publish import PublishOptions
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import PackResult
from fabula.releases.verify.files import VerifyReport
from fabula.releases.verify.verification import verify
from fabula.schemas.canonical import digest, sha256_bytes
from fabula.testing.hub import TOKEN, HubServer
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.tests.unit.releases.conftest import tree

REPO = "user/fables"


@dataclass
class Client:
    """How the tests ask: with a clock that does not wait, but remembers."""

    hub: HubServer
    cache: Path
    pauses: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    @property
    def retries(self) -> Retries:
        return Retries(sleep=self.pauses.append, draw=lambda: 0.5, tell=self.told.append)

    def to(self, repo: str = REPO, *, private: bool = False) -> PublishOptions:
        return PublishOptions(repo, private, endpoint=self.hub.url, retries=self.retries)

    @property
    def source(self) -> FetchOptions:
        return FetchOptions(endpoint=self.hub.url, cache=self.cache, retries=self.retries)


@pytest.fixture
def contents() -> object:
    return tree


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client may be asked; it read its environment when it was imported."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    # The client's own pauses, before its own attempts: nobody has to wait for them.
    monkeypatch.setattr(time, "sleep", lambda _: None)


@pytest.fixture(autouse=True)
def verified_once(known: dict[Any, VerifyReport], monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify the same bytes once: it is the Hub that is tried here, with one release after another."""

    def verify_unknown(folder: Path, form: ReleaseForm, **how: Any) -> VerifyReport:
        beside = sorted(folder.parent.glob(f"{folder.name}*"))  # the hidden folder and its salt, too
        every = [path for part in beside for path in (part, *sorted(part.rglob("*")))]
        if any(path.is_symlink() or not (path.is_file() or path.is_dir()) for path in every):
            return verify(folder, form, **how)
        bytes_of = [(path.relative_to(folder.parent), path.read_bytes()) for path in every if path.is_file()]
        key = (form.kind, repr(how), digest([[str(path), sha256_bytes(data)] for path, data in bytes_of]))
        if key not in known:
            report = verify(folder, form, **how)
            if report.issues:
                return report
            known[key] = report
        return replace(known[key], path=folder)

    monkeypatch.setattr("fabula.releases.hub.publish.verify", verify_unknown)


@pytest.fixture(scope="session")
def known() -> dict[Any, VerifyReport]:
    """What was verified without a finding."""
    return {}


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


@pytest.fixture
def client(hub: HubServer, tmp_path: Path) -> Client:
    return Client(hub, tmp_path / "cache")


@pytest.fixture(scope="session")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[PackResult, PackResult]:
    """Two versions of one benchmark; not to be changed."""
    base = tmp_path_factory.mktemp("versions")
    run = write_run(base / "run", sample_bundles(5), ())
    first = pack(run, base / "fables-0.1.0", PackOptions("0.1.0", name="fables", allow_drafts=True))
    run = write_run(base / "more", sample_bundles(6), ())
    return first, pack(run, base / "fables-0.2.0", PackOptions("0.2.0", name="fables", allow_drafts=True))
