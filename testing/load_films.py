"""Stage: made films from a JSON file, name -> the shots: who is seen where, without a video or a detector.

With it the stages that write scripts run in the engine; see :data:`PIPELINE`. A film is a list of shots; each
is written as letters of the people in it, and the number of its place::

    ["AB1", "A1", "B2", "2"]

People are the letters in the order of first appearance. Shots at one place have one colour.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..builders.entities import building
from ..builders.entities.names import Person
from ..builders.entities.pictures import PersonView, ShotView, Views, keep
from ..engine.config import resolve_config
from ..engine.execute import Options, RunRequest, Source
from ..engine.pipeline import Pipeline
from ..engine.stage import Child, Item, Made, StageSpec, Tools
from .drawn import draw_panel, picture_bytes

SPEC = StageSpec(
    name="load_films",
    version=1,
    shape="expand",
    reads=("sources",),
    writes=("video", "shots", "cast", "consolidation", "views"),
)

FROM = "list_entities"
STAGES = building.STAGES[building.STAGES.index(FROM) :]
PIPELINE = Pipeline(
    name="films",
    stages=(__name__, *(f"fabula.builders.entities.{name}" for name in STAGES)),
    finish="fabula.builders.entities.building:finish",
    final_fields=("pictures",),
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per film."""
    del item
    for path in tools.paths:
        for name, shots in json.loads(path.read_bytes()).items():
            fields = made_film(shots["shots"], name=name, store=tools.store, left_out=shots.get("out", ()))
            yield Child(name, Made(fields))


def film_request(
    films: Path, out: Path, *, settings: tuple[str, ...] = (), base_url: str | None = None, **options: object
) -> RunRequest:
    """Return the request that builds episodes from films; with ``base_url`` a model of that server drafts."""
    texts = list(settings)
    models = {}
    if base_url is not None:
        from ..builders.drafting import DraftOptions, planner_texts

        texts = [*planner_texts(PIPELINE, DraftOptions(model="openai:tested")), *texts]
        models = {"openai:tested": {"base_url": base_url}}
    config = resolve_config(PIPELINE, None, texts, models)
    return RunRequest(
        out, PIPELINE, config, (Source("films", films),), created_at="2026-01-01T00:00:00Z",
        options=Options(**{"workers": 0, **options}),  # type: ignore[arg-type]
    )  # fmt: skip


SHOT_FRAMES, FPS = 25, 25
TONES = ("red", "green", "blue", "orange", "purple", "grey")


def made_film(
    shots: Sequence[str],
    *,
    name: str = "film",
    store: Path | None = None,
    left_out: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the fields ``video``, ``shots``, ``cast`` and ``views`` of a film.

    ``store``: where the pictures go; None draws none that can be read.
    """
    frames = SHOT_FRAMES * len(shots)
    video = {
        "video_id": name, "file": f"/videos/{name}.mp4", "sha256": "0" * 64, "frames": frames,
        "seconds": frames / FPS, "fps": float(FPS), "width": 64, "height": 48,
    }  # fmt: skip
    letters = list(dict.fromkeys(char for shot in shots for char in shot if char.isalpha()))
    rows, views = [], []
    seen: dict[str, list[int]] = {letter: [] for letter in letters}
    for number, text in enumerate(shots, 1):
        if number in left_out:
            continue
        first = (number - 1) * SHOT_FRAMES
        people = [char for char in text if char.isalpha()]
        for char in people:
            seen[char].append(number)
        rows.append(
            {
                "shot": {
                    "shot_id": f"{name}__shot{number:04d}", "number": number, "first": first,
                    "last": first + SHOT_FRAMES - 1, "start": first / FPS,
                    "end": (first + SHOT_FRAMES) / FPS, "opens": "start" if number == 1 else "cut",
                },
                "quality": {},
                "tracklets": [_tracklet(name, number, letters.index(char), first) for char in people],
            }
        )  # fmt: skip
        place = int("".join(char for char in text if char.isdigit()) or 0)
        views.append(_shot_view(number, place, store))
    cast = [
        Person(
            person_id=f"p{index:03d}",
            tracklets=tuple(f"{name}__shot{number:04d}__t{index:03d}" for number in seen[letter]),
            shots=tuple(seen[letter]),
        )
        for index, letter in enumerate(letters, 1)
    ]
    crops = [
        PersonView(
            person=person.person_id, files=(_picture(index, store),), tone=TONES[(index - 1) % 6],
            shots=person.shots[:1],
        )
        for index, person in enumerate(cast, 1)
    ]  # fmt: skip
    return {
        "video": video,
        "shots": rows,
        "cast": [person.as_json() for person in cast],
        "consolidation": {"rounds": 0, "made": [], "refused": []},
        "views": Views(shots=tuple(views), people=tuple(crops)).as_json(),
    }


def _tracklet(name: str, shot: int, person: int, first: int) -> dict[str, Any]:
    box = [4.0 + 10 * person, 8.0, 12.0 + 10 * person, 40.0]
    seen = [{"frame": first + at, "box": box, "score": 0.9} for at in (2, 12, 22)]
    return {
        "tracklet_id": f"{name}__shot{shot:04d}__t{person + 1:03d}",
        "shot": shot,
        "seen": seen,
        "best": [1],
    }


def _shot_view(number: int, place: int, store: Path | None) -> ShotView:
    colours = [0] * 64
    colours[place % 64] = 1000
    return ShotView(
        shot=number, files=(_picture(100 + number, store),), colours=tuple(colours), tone=TONES[place % 6]
    )


def _picture(number: int, store: Path | None) -> str:
    panel = draw_panel(number % 20 + 1, (64 + number // 20, 48))
    return keep(picture_bytes(panel, "JPEG", quality=60), store)
