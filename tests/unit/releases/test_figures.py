"""Figures of suites and of episodes: what they hold is what is counted."""

import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import fabula
from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.releases.entities.figures import episode_figures
from fabula.releases.entities.tree import read_entity_set
from fabula.releases.events.figures import draw_cloud
from fabula.schemas.canonical import digest, sha256_file
from fabula.schemas.layout import ANNOTATIONS, VARIANTS
from fabula.testing.sample_history import CREATED, VERSIONS, go_on
from fabula.testing.written_episodes import write_episodes
from fabula.validators.entities.view import view_of
from fabula.validators.katha.dataset import iter_bundles

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(figure).iter(f"{SVG}text")]


def test_cloud_when_words_are_drawn_gives_more_frequent_ones_more_room() -> None:
    figure = draw_cloud(Counter({"river": 9, "hat": 3, "bridge": 1}))
    sizes = {
        node.text: float(node.get("font-size", 0))
        for node in ElementTree.fromstring(figure).iter(f"{SVG}text")
    }
    assert sizes["river"] > sizes["hat"] > sizes["bridge"]


def test_episode_when_drawn_shows_registry_strip_and_every_shot(tmp_path: Path) -> None:
    entity_set, _ = read_entity_set(write_episodes(tmp_path / "data"))
    figures = episode_figures(entity_set)
    episode = entity_set.episodes[0]
    first = {name: figure for name, figure in figures.items() if name.startswith("001-")}
    assert sorted(name.split("-")[-1] for name in first)[:2] == ["registry.svg", "strip.svg"]
    for figure in first.values():
        ElementTree.fromstring(figure)
    (timeline,) = [figure for name, figure in first.items() if "timeline" in name]
    said = "".join("".join(texts(timeline)).split())
    for shot in view_of(episode.episode_id, episode.script).shots:
        assert "".join(shot.action.split()) in said


# The kept history of the sample benchmark is what its commands make now.

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
