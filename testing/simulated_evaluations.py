"""Release and evaluation folders of simulated judgements, for tests and benchmarks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..evaluation.archive.archive import release_sha256, write_archive
from ..evaluation.recoverability.matching import Items, items_of
from ..evaluation.recoverability.replies import Replies
from ..releases.loading import load
from ..schemas.canonical import Json, pretty_bytes, write_atomic
from ..schemas.paths import RELEASE
from .katha_folders import write_release
from .katha_samples import sample_bundles
from .simulated_judgements import Truth, simulated_lines, simulated_manifest, simulated_replies


@dataclass(frozen=True)
class Simulated:
    """A simulated evaluation on disk."""

    release: Path  # folder of the release
    run: Path  # the evaluation folder
    items: Items  # stories, questions and pairs
    replies: Replies  # what the judges said


def write_loadable_release(folder: Path, bundles: Sequence[Json]) -> Path:
    """Write a release of bundles that can be loaded; return the folder. Nothing of it is hidden."""
    for bundle in bundles:
        if bundle["record"]["split"] == "hidden_test":
            bundle["record"]["split"] = "public_test"
    write_release(folder, bundles)
    document = {"format": 1, "kind": "katha", "version": "0.1.0"}
    write_atomic(folder / RELEASE, [pretty_bytes(document)])
    return folder


def write_simulated(
    folder: Path,
    questions: int,
    truths: Sequence[tuple[str, Truth]],
    seed: int = 42,
    generations: Mapping[str, Sequence[int | None]] | None = None,
) -> Simulated:
    """Write a release and an evaluation with judgements drawn from truths.

    ``generations``: method -> seeds of its storyboards; None for one without a seed of each.
    """
    bundles = sample_bundles(-(-questions // 6))
    last = bundles[-1]["record"]
    last["questions"] = last["questions"][: len(last["questions"]) - (6 * len(bundles) - questions)]
    release = load(write_loadable_release(folder / "release", bundles))
    items = items_of(release.records, release.variants)
    replies = simulated_replies(items, truths, seed, generations)
    run = folder / "run"
    run.mkdir()
    manifest = simulated_manifest(release_sha256(release.path), replies)
    write_archive(run, manifest, simulated_lines(replies, items))
    return Simulated(release.path, run, items, replies)
