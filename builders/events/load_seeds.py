"""Stage: the seeds, written by people, and a slot for each prompt that a model adds (StoryEval, 2.1.1)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from ...engine.stage import Child, Item, Made, StageSpec, Tools
from ...errors import InputError, UserError, mismatch
from ...media.kept_files import keep_file
from ...releases.events.form import load_suite
from ...schemas.canonical import Json, digest, pretty_bytes, sha256_bytes
from ...schemas.events import video_name
from ...schemas.paths import format_path
from ...schemas.plain_files import read_plain, reason_of, type_reason
from ...validators.events.rules import participants_in
from .grade_prompts import read_results
from .list_events import keyword_of
from .settings import LoadSettings, Seed

_FIX = "see docs/events.md for the form of seeds"
_problem = partial(mismatch, fix=_FIX)

SEEDS, RESULTS = "seeds", "results"
"""Roles of the sources."""

SPEC = StageSpec(
    name="load_seeds",
    version=3,
    shape="expand",
    reads=("sources",),
    writes=("seed", "slot", "results", "place", "stays"),
    settings=LoadSettings,
)


def run(item: Item, tools: Tools) -> Iterator[Child]:
    """Yield one child per seed, and one per prompt that is to be generated."""
    settings = tools.own(LoadSettings)
    problems: list[UserError] = []
    roles = dict(zip(tools.paths, (source["role"] for source in item["sources"]), strict=True))
    results = next((_kept(path, tools) for path, role in roles.items() if role == RESULTS), None)
    seeds: dict[str, dict[str, Json]] = {}
    for path in (path for path, role in roles.items() if role == SEEDS):
        for where, seed in (_suite if path.suffix == ".json" else _seeds)(path, problems):
            name = _name(seed)
            if name in seeds:
                problems.append(_problem(where, "each prompt once", f"{name} again"))
            seeds[name] = seed
    if not seeds and not problems:
        problems.append(_problem(", ".join(map(str, tools.paths)), "at least one seed", "none"))
    if problems:
        raise InputError(problems)
    usual = {"seed": None, "slot": None, "results": results, "place": None, "stays": False}
    for index, (name, seed) in enumerate(seeds.items()):
        # Only the prompts of a suite have an order of their own; it is no part of what a prompt is.
        order = {} if "given" not in seed else {"place": index, "stays": settings.keep_all}
        yield Child(name, Made({**usual, "seed": seed, **order}))
    written = [seed["prompt"] for seed in seeds.values() if seed["prompt"]]
    for number in range(settings.generate):
        kind, subject = keyword_of(number)
        slot = {
            "number": number, "kind": kind, "subject": subject,
            "creative": _is_creative(number, settings.creative_share),
            "examples": _examples(written, number, (settings.examples, tools.seed)),
        }  # fmt: skip
        yield Child(f"guided_{number + 1:05d}", Made({**usual, "slot": slot}))


def identity(fields: Mapping[str, Json]) -> Json:
    """Return what makes a prompt the same prompt; None for one that a model writes."""
    return fields["seed"]


def _kept(path: Path, tools: Tools) -> str:
    """Check results, keep them in the run by their hash, and return the name."""
    assert tools.store is not None
    content = pretty_bytes(read_results(path))
    name = f"{RESULTS}-{sha256_bytes(content)}.json"
    keep_file(content, name, tools.store)
    return name


def _suite(path: Path, problems: list[UserError]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield the prompts of a suite in the official form as seeds, each with its entry as it was read."""
    try:
        suite = load_suite(path)
    except InputError as error:
        problems.extend(error.problems)
        return
    for name, prompt in suite.prompts.items():
        labels = prompt.labels
        seed = Seed(
            prompt=prompt.prompt,
            origin="retrieval" if "retrieval" in labels else "brainstorm",
            event_list=prompt.event_list,
            creative="creative" in labels,
        )
        given = {"unit": name, "entry": prompt.as_json()}
        kinds = list(participants_in(labels))
        yield f"{path} {name}", {**seed.as_json(), "participants": kinds, "given": given}


def _wrong_fields(where: str, error: ValidationError) -> Iterator[UserError]:
    """Yield a problem for each value that a seed may not have, and one for all fields that no seed has."""
    details = error.errors(include_url=False)
    strange = [str(detail["loc"][-1]) for detail in details if detail["type"] == "extra_forbidden"]
    if strange:
        what = f"a seed has no field {', '.join(strange)}; it has {', '.join(Seed.model_fields)}"
        yield UserError(where, what=what, fix=_FIX)
    for detail in details:
        if detail["type"] != "extra_forbidden":
            yield UserError(f"{where} {format_path(detail['loc'])}", what=type_reason(detail), fix=_FIX)


def _seeds(path: Path, problems: list[UserError]) -> Iterator[tuple[str, dict[str, Json]]]:
    try:
        lines = read_plain(path, follow=True).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        problems.append(_problem(str(path), "JSONL in UTF-8", reason_of(error)))
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            seed = Seed.model_validate(json.loads(line))
        except ValidationError as error:
            problems.extend(_wrong_fields(where, error))
            continue
        except (ValueError, RecursionError) as error:
            problems.append(_problem(where, "one JSON object", reason_of(error)[:200]))
            continue
        if not (seed.prompt or "").strip() and not seed.video:
            problems.append(_problem(where, "a prompt or a video", "neither"))
            continue
        video = None if seed.video is None else (path.parent / seed.video).absolute()
        if video is not None and not seed.prompt and not video.is_file():
            problems.append(_problem(where, "a video that is there", str(video)))
        yield where, {**seed.as_json(), "video": None if video is None else str(video)}


def _name(seed: dict[str, Json]) -> str:
    if "given" in seed:
        name = str(seed["given"]["unit"])
        return name.removesuffix(".mp4") or name
    if seed["prompt"]:
        stem = video_name(seed["prompt"]).removesuffix(".mp4")
        return stem or f"seed_{digest(seed['prompt'])[:12]}"
    return f"caption_{Path(seed['video']).stem}"


def _is_creative(number: int, share: float) -> bool:
    """Whether the running total of creative prompts goes up at this number, so that the share is kept to."""
    return int((number + 1) * share + 1e-9) > int(number * share + 1e-9)


def _examples(written: Sequence[str], number: int, chosen: tuple[int, int]) -> list[str]:
    """Return the examples of one request, in an order that depends on seed and number alone."""
    count, seed = chosen
    return sorted(written, key=lambda prompt: digest([seed, number, prompt]))[:count]
