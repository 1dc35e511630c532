"""Study folders of simulated judgements: plans, renderers and seeds with stated truths, for tests and pages.

What is computed from them is a **simulation** and says nothing about any plan, renderer or judge.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..evaluation.archive.archive import release_sha256, write_archive
from ..evaluation.recoverability.matching import Items, items_of
from ..evaluation.report.showing import FRAMES
from ..releases.loading import load
from ..schemas.canonical import jsonl_lines, pretty_bytes, write_atomic
from ..schemas.judgement import EvaluationManifest
from ..studies.experiments.study import (
    EVALUATION,
    OUTPUTS,
    RESOLVED,
    SEEDS,
    Renderer,
    Study,
    method_name,
    resolved,
)
from ..studies.experiments.tables.results import GENERATIONS
from .drawn_storyboards import draw_panel
from .katha_samples import sample_bundles
from .simulated_evaluations import write_loadable_release
from .simulated_judgements import Truth, simulated_lines, simulated_replies

Failed = tuple[str, str, int | None]
"""Method, story and seed of a generation that failed."""


@dataclass(frozen=True)
class SimulatedStudy:
    """A simulated study on disk."""

    folder: Path  # the study folder; its release lies in ``release``
    study: Study  # the study
    items: Items = field(repr=False)  # stories, questions and pairs


@dataclass(frozen=True)
class Simulation:
    """What is simulated."""

    cells: Mapping[tuple[str, str], Truth]  # plan and renderer -> what is true of their pictures
    stories: int  # how many there are
    seeds: tuple[int, ...] = SEEDS  # seeds of every renderer that takes them
    unseeded: Collection[str] = ()  # renderers that are run once, without a seed
    # how renderers are written in the study, where they are not drawn
    renderers: Mapping[str, Renderer] = field(default_factory=dict)
    # method -> the only stories, by place, that pictures were asked for
    only: Mapping[str, Sequence[int]] = field(default_factory=dict)
    seed: int = 42  # of the random numbers


def write_simulated_study(
    folder: Path, simulation: Simulation, *, failed: Sequence[Failed] = (), pictures: bool = False
) -> SimulatedStudy:
    """Write a study folder as a finished run leaves it, with judgements drawn from truths."""
    release = load(write_loadable_release(folder / "release", sample_bundles(simulation.stories)))
    items = items_of(release.records, release.variants)
    study = _study(simulation)
    write_atomic(folder / RESOLVED, [pretty_bytes(resolved(study))])
    asked = _asked(simulation, items)
    _write_evaluation(folder, simulation, items, asked, set(failed))
    for method, keys in asked.items():
        rows = [row for story, seed in keys for row in _rows((method, story, seed), set(failed))]
        (folder / OUTPUTS / method).mkdir(parents=True)
        write_atomic(folder / OUTPUTS / method / GENERATIONS, jsonl_lines(rows))
    if pictures:
        _write_pictures(folder, items, asked, set(failed))
    return SimulatedStudy(folder, study, items)


def _study(simulation: Simulation) -> Study:
    plans = tuple(dict.fromkeys(plan for plan, _ in simulation.cells))
    names = dict.fromkeys(renderer for _, renderer in simulation.cells)
    renderers = {
        name: simulation.renderers.get(
            name, Renderer(model="image:drawn:shapes", seeded=name not in simulation.unseeded)
        )
        for name in names
    }
    judges = next(iter(simulation.cells.values())).judges
    return Study(
        name="simulated", release="release", plans=plans, renderers=renderers, seeds=simulation.seeds,
        judges=judges,
    )  # fmt: skip


def _asked(simulation: Simulation, items: Items) -> dict[str, list[tuple[str, int | None]]]:
    """Return method -> story and seed of each generation that it was asked for."""
    asked = {}
    for plan, renderer in simulation.cells:
        method = method_name(plan, renderer)
        places = simulation.only.get(method, range(items.stories))
        seeds: Sequence[int | None] = (None,) if renderer in simulation.unseeded else simulation.seeds
        asked[method] = [(items.records[place].story_id, seed) for place in places for seed in seeds]
    return asked


def _write_evaluation(
    folder: Path,
    simulation: Simulation,
    items: Items,
    asked: Mapping[str, Sequence[tuple[str, int | None]]],
    failed: Collection[Failed],
) -> None:
    truths = [(method_name(*cell), truth) for cell, truth in simulation.cells.items()]
    seeds = {method: tuple(dict.fromkeys(seed for _, seed in keys)) for method, keys in asked.items()}
    replies = simulated_replies(items, truths, simulation.seed, seeds)
    valid = {(method, *key) for method, keys in asked.items() for key in keys if (method, *key) not in failed}
    lines = [
        line
        for line in simulated_lines(replies, items)
        if line.method is None or (line.method, line.unit, line.seed) in valid
    ]
    every = [record.story_id for record in items.records]
    methods: dict[str, Any] = {
        method: {
            "seeds": list(seeds[method]),
            "packets_scanned": len(keys) * 20,
            "leaks": [],
            "invalid": [
                {"story_id": story, "seed": seed, "codes": ["missing-panel"]}
                for story in every
                for seed in seeds[method]
                if (method, story, seed) not in valid
            ],
        }
        for method, keys in asked.items()
    }
    release = folder / "release"
    manifest = EvaluationManifest(
        kind="katha",
        protocol={"release": {"sha256": release_sha256(release)}, "judges": list(replies.judges)},
        subject={"methods": methods},
        environment={"simulation": True, "sources": [{"role": "release", "path": str(release.absolute())}]},
    )
    target = folder / EVALUATION
    target.mkdir(parents=True)
    write_archive(target, manifest, lines)


def _rows(key: Failed, failed: Collection[Failed]) -> list[dict[str, Any]]:
    _, story, seed = key
    rows = []
    for panel in range(1, 6):
        is_refused = key in failed and panel == 3
        refusal = {"reason": "refused by its policy", "reply": f"I cannot draw picture {panel}."}
        rows.append(
            {
                "story_id": story, "seed": seed, "panel": panel, "cost": 0.04, "prompt": f"{story} {panel}",
                "outcome": "refused" if is_refused else "made",
                **(refusal if is_refused else {"reason": None, "reply": None}),
            }
        )  # fmt: skip
    return rows


def _write_pictures(
    folder: Path,
    items: Items,
    asked: Mapping[str, Sequence[tuple[str, int | None]]],
    failed: Collection[Failed],
) -> None:
    target = folder / EVALUATION / "store"
    target.mkdir(parents=True)
    rows = []
    for method, keys in asked.items():
        for story, seed in keys:
            if (method, story, seed) in failed:
                continue
            place = items.story_places[story]
            frames = []
            for panel in range(1, 6):
                name = f"store/{place}_{panel}.png"
                if not (folder / EVALUATION / name).exists():
                    write_atomic(folder / EVALUATION / name, [draw_panel(place, 60 * panel)])
                frames.append({"file": name})
            rows.append(
                {"method": method, "unit": story, "seed": seed, "frames": frames, "scenes": [1, 2, 3, 4, 5]}
            )
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    write_atomic(folder / EVALUATION / FRAMES, lines)
