"""What publishing looks at before a Hub is asked, and what it says when a Hub says yes and does nothing."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, HubUnavailable, InputError
from fabula.kinds.verbs import pack, plan_publishing, publish, verify
from fabula.releases.hub.client import HubFault, Retries
from fabula.releases.katha.package_import import import_package
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import PackResult
from fabula.schemas.canonical import sha256_file
from fabula.schemas.paths import RELEASE
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.hub import TOKEN
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.made_runs import shots_run
from fabula.testing.official_packages import package_rows, write_package
from fabula.testing.review_exports import summary_of, write_review


def test_publishing_when_an_imported_package_has_no_card_at_the_top_refuses(client, tmp_path):
    rows = package_rows()
    hidden = {row["story_id"] for row in rows["annotations.jsonl"] if row["split"] == "hidden_test"}
    public = {
        name: [row for row in some if not hidden & {row.get("story_id"), row.get("base_story_id")}]
        for name, some in rows.items()
    }
    write_package(tmp_path / "package", public)
    folder = import_package(tmp_path / "package", tmp_path / "imported").folder
    with pytest.raises(
        InputError, match=r"without README\.md and LICENSE at the top\n.*fabula export stories"
    ):
        publish(folder, client.to())
    assert client.hub.log == ()


@pytest.mark.slow
def test_publishing_when_programs_reviewed_the_release_refuses_marked_or_not(client, tmp_path, helpers):
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
    assert {each.route for each in client.hub.log} <= {"whoami"}


def test_publishing_when_a_stand_in_wrote_records_refuses_unless_it_is_allowed(client, tmp_path, helpers):
    bundles = sample_bundles(2)
    bundles[0]["producers"][0]["producer"] = "compatible:stand-in via katha/label_story@1#0a"
    options = PackOptions("0.1.0", allow_stand_in=True, allow_drafts=True)
    folder = pack(write_run(tmp_path / "run", bundles), tmp_path / "out", options).folder
    for ask in (publish, plan_publishing):
        with pytest.raises(ConfigError, match=r"--allow-stand-in: .*compatible:stand-in"):
            ask(folder, client.to())
    assert {each.route for each in client.hub.log} <= {"whoami"}
    assert publish(folder, replace(client.to(), allow_stand_in=True)).committed


# Asking again: how long, how often, and what is looked at first.


def failing(*faults: HubFault | None) -> object:
    left = list(faults)

    def ask() -> str:
        fault = left.pop(0) if left else None
        if fault is not None:
            raise fault
        return "asked"

    return ask


def retries(pauses: list[float], **more: float) -> Retries:
    return Retries(sleep=pauses.append, draw=lambda: 1.0, **more)  # type: ignore[arg-type]


def test_pauses_when_hub_does_not_say_double_up_to_the_longest() -> None:
    pauses: list[float] = []
    down = HubFault("down", "no answer")
    with pytest.raises(HubFault, match="step: no answer"):
        retries(pauses, longest=5.0).run("step", failing(*[down] * 9))  # type: ignore[arg-type]
    # Six attempts, five pauses; with the largest draw 1, 2, 4 s, then the longest.
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_asking_again_when_it_may_be_done_looks_first() -> None:
    pauses: list[float] = []
    lost = HubFault("down", "reset", maybe_done=True)
    found = retries(pauses).run("step", failing(lost, lost), lambda: "done before")  # type: ignore[arg-type]
    assert found == "done before"
    assert len(pauses) == 1
    never = HubFault("down", "refused")
    assert retries(pauses).run("step", failing(never), lambda: "done before") == "asked"  # type: ignore[arg-type]


# A release that contradicts nothing in itself, and is not the one that was published.

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


@pytest.mark.slow
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
        ("0" * 63, ConfigError, "cannot be read: nothing there"),
        ("user/none@0123456789012345678901234567890123456789", ConfigError, "no data set user/none"),
        (
            "hf://datasets/user/none@0123456789012345678901234567890123456789",
            ConfigError,
            "no data set user/none",
        ),
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


def test_verify_against_what_was_published_when_only_a_document_is_given_asks_for_the_folder(versions):
    with pytest.raises(ConfigError, match="give the release folder"):
        verify(versions[0].folder / RELEASE, hidden=versions[0].hidden, against="0" * 64)


# What the libraries of users move when they read one table of a published release.

TABLES_REPO = "user/scripts"
PICTURES = "data/reference_images/test.parquet"
LOAD = """
import hashlib, json, sys
import datasets

datasets.disable_progress_bars()
repo, tag, config, streaming, cache = sys.argv[1:]
rows = datasets.load_dataset(
    repo, config, split="test", revision=tag, streaming=streaming == "yes", cache_dir=cache
)
image = rows.features.get("image")
if image is not None:
    rows = rows.cast_column("image", datasets.Image(decode=False))
found = [dict(row) for row in rows]
for row in found:
    if image is not None:
        row["image"] = hashlib.sha256(row["image"]["bytes"]).hexdigest()
print(json.dumps({"image": str(image), "rows": found}))
"""


@pytest.fixture
def published(client: Any, tmp_path: Path) -> Path:
    """A release of shot scripts with reference images on the Hub; its folder."""
    run = shots_run(draw_shot_set(tmp_path / "data"), tmp_path / "run")
    folder = pack(run, tmp_path / "dist", PackOptions("0.1.0", license="CC-BY-4.0")).folder
    publish(folder, client.to(TABLES_REPO))
    client.hub.forget()
    return folder


def read(client: Any, config: str, cache: Path, *, streaming: bool = False) -> Any:
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOAD, TABLES_REPO, "0.1.0", config, ("no", "yes")[streaming], cache],
        capture_output=True, text=True, encoding="utf-8", check=False,
        env={**os.environ, "HF_ENDPOINT": client.hub.url, "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "0",
             "HF_HOME": str(cache), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def moved(client: Any, folder: Path) -> dict[str, int]:
    """Path of a file of the release -> bytes of it that were asked for."""
    names = {sha256_file(path): path.relative_to(folder).as_posix()
             for path in folder.rglob("*.parquet")}  # fmt: skip
    sums: dict[str, int] = {}
    for one in client.hub.log:
        if one.route == "lfs-download":
            name = names[one.path.rpartition("/")[2]]
            sums[name] = sums.get(name, 0) + one.sent
    return sums


@pytest.mark.slow
def test_table_when_it_has_no_pictures_moves_none_and_theirs_moves_them(client, published, tmp_path):
    loaded = read(client, "references", tmp_path / "one")
    size = (published / "data/references/test.parquet").stat().st_size
    assert moved(client, published) == {"data/references/test.parquet": size}
    assert sum(one.sent for one in client.hub.log) < size + 200_000  # card and listings
    assert len(loaded["rows"]) == 12 and loaded["image"] == "None"

    client.hub.forget()
    pictures = read(client, "reference_images", tmp_path / "two", streaming=True)
    assert set(moved(client, published)) == {PICTURES}
    assert pictures["image"].startswith("Image(")
    assert [row["image"] for row in pictures["rows"]] == [row["sha256"] for row in loaded["rows"]]
