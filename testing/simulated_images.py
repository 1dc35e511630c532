"""Made-up evaluations of shot images, written as archives: no picture was drawn, no model looked.

Their numbers are random and mean nothing; they are there for what counts, ranks and shows them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..evaluation.archive.archive import write_archive
from ..evaluation.metrics.vectors import packed
from ..evaluation.shots.looking import IMAGES
from ..schemas.canonical import Json, jsonl_lines, write_atomic
from ..schemas.judgement import EvaluationManifest, Judge, Judgement

CREATED = "2026-01-01T00:00:00Z"
JUDGE = Judge(spec="openai:made-up", provider="openai", model="made-up", reported_model=None)
SIZE = 8
"""Numbers of a vector."""


@dataclass(frozen=True)
class Simulated:
    """What is made up."""

    methods: Mapping[str, float]  # method -> how good it is, 0 to 1
    stories: int = 3  # how many stories
    shots: int = 4  # how many shots each has
    characters: tuple[str, ...] = ("Mira", "Tomas")  # their keys, all on stage in every shot
    missing: frozenset[tuple[str, str, int]] = frozenset()  # (method, story, shot) without a picture
    refused: float = 0.0  # share of the ratings that a judge did not give
    rated: bool = True  # whether a judge was asked


def write_images(folder: Path, made: Simulated) -> Path:
    """Write the archive of a made-up evaluation into a new folder, and return it."""
    random = np.random.default_rng(42)
    folder.mkdir(parents=True)
    lines, ratings = [], []
    for method in sorted(made.methods):
        for number in range(1, made.stories + 1):
            lines.append(_line(made, method, f"{number:02d}", random))
            ratings += _ratings(made, method, f"{number:02d}", random) if made.rated else []
    manifest = EvaluationManifest(
        kind="images",
        protocol={
            "release": {"sha256": "0" * 64, "stories": made.stories}, "stories": None,
            "judges": [JUDGE.spec] if made.rated else [],
            "votes": {JUDGE.spec: 1} if made.rated else {}, "interaction_from": 2,
        },
        subject={"methods": {name: _accounting(made, name) for name in sorted(made.methods)}},
        environment={"created_at": CREATED},
    )  # fmt: skip
    write_atomic(folder / IMAGES, jsonl_lines(lines))
    write_archive(folder, manifest, ratings)
    return folder


def _accounting(made: Simulated, method: str) -> dict[str, Json]:
    gone = [one for one in made.missing if one[0] == method]
    asked = made.stories * made.shots
    per_story = {story: sum(one[1] == story for one in gone) for story in {one[1] for one in gone}}
    return {
        "stories_requested": made.stories, "stories_complete": made.stories - len(per_story),
        "stories_without_shot": sum(count == made.shots for count in per_story.values()),
        "shots_requested": asked, "shots_valid": asked - len(gone), "findings": {},
    }  # fmt: skip


def _line(made: Simulated, method: str, story: str, random: np.random.Generator) -> Json:
    numbers = [n for n in range(1, made.shots + 1) if (method, story, n) not in made.missing]
    who = {key: np.eye(SIZE)[place % SIZE] for place, key in enumerate(made.characters)}
    blur = 1.5 - made.methods[method]
    boxes = [[10.0 + 40 * n, 20.0, 40.0 + 40 * n, 90.0, 0.9 - 0.05 * n] for n in range(len(who))]
    crops = {
        str(n): {"e": _rows([v + blur * random.normal(size=SIZE) / 3 for v in who.values()])} for n in numbers
    }
    look = np.eye(SIZE)[0]
    style = [look + blur * random.normal(size=SIZE) / 2 for _ in numbers]
    return {
        "method": method, "story_id": story, "characters": dict.fromkeys(who, "non_human"),
        "references": {key: [f"{place:064d}" for place in range(2)] for key in who},
        "shots": [
            {"number": n, "onstage": len(who), "expected": list(who),
             "sha256": f"{n:064d}" if n in numbers else None}
            for n in range(1, made.shots + 1)
        ],
        "boxes": {"model": "made-up", "shots": {str(n): boxes for n in numbers},
                  "references": {key: [[], []] for key in who}},
        "crops": {
            "encoders": {key: ["e"] for key in who}, "models": {"e": "made-up"}, "shots": crops,
            "references": {key: {"e": _rows([v, np.roll(v, 1) + 2 * v])} for key, v in who.items()},
            "mirrors": {}, "whole_references": [],
        },
        "pictures": {
            "numbers": numbers, "models": {}, "style": _rows(style),
            "aesthetic": _rows([[4.0 + 2 * made.methods[method] + random.normal() / 4] for _ in numbers], 1),
            "inception": None,
            "references": {key: _rows([look]) for key in who},
        },
        "views": {"shots": {}, "crops": []},
    }  # fmt: skip


def _rows(rows: Sequence[object], size: int = SIZE) -> Json:
    return packed(np.array(rows, dtype=np.float32).reshape(len(rows), size))


def _ratings(made: Simulated, method: str, story: str, random: np.random.Generator) -> list[Judgement]:
    asked = []
    for n in range(1, made.shots + 1):
        if (method, story, n) not in made.missing:
            asked += [f"shot_{n:02d}/{name}" for name in ("scene", "shot", "interaction")]
            asked += [f"shot_{n:02d}/action/{key}" for key in made.characters]
    return [_judgement(made, method, story, item, random) for item in asked]


def _judgement(made: Simulated, method: str, story: str, item: str, random: np.random.Generator) -> Judgement:
    rating = int(np.clip(round(4 * made.methods[method] + random.normal() / 2), 0, 4))
    silent = bool(random.random() < made.refused)
    return Judgement(
        protocol="images", kind="alignment", method=method, unit=story, seed=None, item=item,
        condition="image", judge=JUDGE, vote=0, prompt="", raw=None if silent else "",
        outcome="refused" if silent else "answered", reason="would not" if silent else None,
        parsed=None if silent else {"rating": rating, "reason": "made up"}, input_tokens=None,
        output_tokens=None, cost=None, time=None,
    )  # fmt: skip
