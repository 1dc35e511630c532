"""The kept history of the sample benchmark is what its commands make now."""

import json
from pathlib import Path

import fabula
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.schemas.canonical import digest, sha256_file
from fabula.schemas.layout import ANNOTATIONS, VARIANTS
from fabula.testing.sample_history import CREATED, VERSIONS, go_on
from fabula.validators.katha.dataset import iter_bundles

HISTORY = Path(fabula.__file__).parent / "releases" / "history"
SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"
CURE = "the history has drifted: run make history"


def kept(version: str, name: str = "release.json") -> dict:
    return json.loads((HISTORY / version / name).read_bytes())


def hashes(run: Path) -> dict[str, dict[str, str]]:
    """Record and variant hashes of the public stories of a run, as its release.json will have them."""
    found: dict[str, dict[str, str]] = {ANNOTATIONS: {}, VARIANTS: {}}
    for bundle in iter_bundles(run):
        bundle["record"]["provenance"]["dataset_license"] = "CC-BY-4.0"
        if bundle["record"]["split"] != "hidden_test":
            found[ANNOTATIONS][bundle["record"]["story_id"]] = digest(bundle["record"])
            found[VARIANTS].update((one["variant_id"], digest(one)) for one in bundle["variants"])
    return found


def test_history_when_made_again_has_the_same_records(tmp_path) -> None:
    run = tmp_path / "run"
    options = BuildOptions(records=SAMPLES / "gold.jsonl", created_at=CREATED, workers=0)
    build_katha(SAMPLES / "stories.jsonl", run, options)
    for version in VERSIONS:
        wanted = {name: kept(version)["records"][name] for name in (ANNOTATIONS, VARIANTS)}
        assert hashes(run) == wanted, CURE
        if version == VERSIONS[0]:
            go_on(run)


def test_history_when_read_chains_its_versions() -> None:
    first, second, changes = kept("0.1.0"), kept("0.2.0"), kept("0.2.0", "changes.json")
    assert (first["version"], second["version"]) == VERSIONS
    sha256 = sha256_file(HISTORY / "0.1.0" / "release.json")
    assert second["previous"] == changes["previous"] == {"version": "0.1.0", "sha256": sha256}, CURE
    assert first["canary"] == second["canary"]
    assert set(first["commitments"]["values"]) == set(second["commitments"]["values"])
    gone = [entry["id"] for entry in changes["gone"]]
    assert gone == [entry["id"] for entry in second["withdrawn"]["stories"]]
    before, after = (set(release["records"][ANNOTATIONS]) for release in (first, second))
    assert (before - after, after - before) == (set(gone), set(changes["added"][ANNOTATIONS]))
    same = {
        story
        for story in before & after
        if first["records"][ANNOTATIONS][story] == second["records"][ANNOTATIONS][story]
    }
    assert len(before & after) - len(same) == 1
