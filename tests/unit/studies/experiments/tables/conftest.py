"""Simulated studies, made once: what is true of them is stated, so that tables can be held against it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabula.evaluation.recoverability.matching import Definitions
from fabula.studies.experiments.study import Closed, Renderer
from fabula.studies.experiments.tables.results import StudyResults, read_results
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_studies import Failed, SimulatedStudy, Simulation, write_simulated_study

PLANNER, RENDERER = 0.15, 0.05
"""What the better plan and the better renderer add to what images tell, in every dimension."""
CLOSED = Renderer(
    model="image:openai:gpt-image-2", seeded=False,
    closed=Closed(name="GPT image 2", accessed="2026-11-01", options="quality=high"),
)  # fmt: skip


def truth(more: float) -> Truth:
    """Return what is true of pictures that tell by so much more than the simplest plan's."""
    base = Truth()
    image = tuple(share + more for share in base.image)
    return Truth(image=image, ambiguous=0.02, errors=(0.0,), labels=(0.75, 0.4 + more, 0.8))


CELLS = {
    ("direct", "plain"): truth(0.0),
    ("direct", "fine"): truth(RENDERER),
    ("transition-aware", "plain"): truth(PLANNER),
    ("transition-aware", "fine"): truth(PLANNER + RENDERER),
}


@pytest.fixture(scope="session")
def cells() -> dict[tuple[str, str], Truth]:
    """Return plan and renderer -> what is true of their pictures."""
    return CELLS


@pytest.fixture(scope="session")
def closed() -> Renderer:
    """Return a closed system."""
    return CLOSED


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> SimulatedStudy:
    """Return a study of 2 plans, 2 renderers, 3 seeds and 48 stories; three generations failed."""
    folder = tmp_path_factory.mktemp("study")
    failed: list[Failed] = [
        ("direct+plain", "kb25k_0001", 42), ("direct+plain", "kb25k_0001", 123),
        ("direct+fine", "kb25k_0002", 2026),
    ]  # fmt: skip
    return write_simulated_study(folder, Simulation(CELLS, 48, seed=8), failed=failed)


@pytest.fixture(scope="session")
def results(study: SimulatedStudy) -> StudyResults:
    """Return the study, read."""
    return read_results(study.folder, Definitions(resamples=2000))


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., SimulatedStudy]:
    """Return what makes a small study: so many stories, with more of the simulation as wanted."""

    def make(
        stories: int, *, failed: tuple[Failed, ...] = (), pictures: bool = False, **more: object
    ) -> SimulatedStudy:
        given = {"cells": CELLS, "seeds": (42,), **more}
        simulation = Simulation(stories=stories, **given)  # type: ignore[arg-type]
        return write_simulated_study(tmp_path / "study", simulation, failed=failed, pictures=pictures)

    return make
