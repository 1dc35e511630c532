"""Scoring the archive of an evaluation of episodes: ours, or one made of the public evaluator's results."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ....schemas.text import counted
from ...archive.archive import read_archive
from ...archive.replies import archive_notes
from ..archived import read_facts
from ..metrics.aggregate import Definitions
from ..published.importing import RESULTS, notes_of, read_results
from ..published.scores import score_result
from .scores import EntityScores, EpisodeScore, score_episode, score_methods

Scored = tuple[str, EpisodeScore]
"""Method and episode."""


def score_folder(folder: Path, definitions: Definitions) -> EntityScores:
    """Return the scores of an evaluation folder of episodes."""
    archive = read_archive(folder)
    notes = list(archive_notes(archive.manifest))
    if (Path(folder) / RESULTS).exists():
        results = read_results(Path(folder) / RESULTS)
        pillars = frozenset().union(*(result.pillars for result in results))
        episodes = [(each.method, score_result(each, pillars)) for each in results]
        notes.extend(notes_of(all(each.schedule is not None for each in results)))
    else:
        facts = read_facts(folder, archive)
        episodes = [(each.method, score_episode(each)) for each in facts]
    notes.extend(_notes(episodes, definitions))
    return EntityScores(definitions, score_methods(episodes, definitions), tuple(notes))


def _notes(episodes: Sequence[Scored], definitions: Definitions) -> Iterator[str]:
    sources = len({episode.source for _, episode in episodes})
    yield from definitions.notes(sources, "source")
    if definitions.coverage == "code":
        yield (
            "code counts every entity of another type as skipped, and nothing that is absent or missing: its "
            "coverage compares with nothing else"
        )
    if definitions.coverage in ("b5", "code"):
        yield "a plain mean of episodes: missing shots and failures do not lower it"
    for method in dict.fromkeys(method for method, _ in episodes):
        gates = [episode.gate for name, episode in episodes if name == method and episode.gate is not None]
        if gates:
            present, gated = sum(gate.present for gate in gates), sum(gate.gated for gate in gates)
            unscored = sum(gate.unscored for gate in gates)
            yield (
                f"{method}: the gate held back {gated} of {counted(present, 'present appearance')}; "
                f"{unscored} were let through without a fidelity"
            )
