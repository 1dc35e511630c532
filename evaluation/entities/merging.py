"""What several evaluations saw of the same and of other episodes, as one: the lines of ``episodes.jsonl``.

An episode of a method may stand in several folders, such as one with its quality and one with its entities:
what was seen in either is there. What two of them saw must be the same, and in the same videos.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, digest, jsonl_lines, write_atomic
from ...schemas.judgement import EvaluationManifest
from ...schemas.plain_files import json_lines
from ..archive.archive import ArchiveForm, Beside
from .entities import EPISODES
from .pipeline import accounting, code_of

SEEN = ("quality", "grounded", "vectors", "grid")
"""What one evaluation may have looked for and another not, of each shot."""
Key = tuple[str, str]
Lines = dict[Key, Json]


def read_lines(folder: Path) -> Lines:
    """Return method and episode -> line of an evaluation folder."""
    path = folder / EPISODES
    try:
        return {(line["method"], line["episode_id"]): _checked(line) for line in json_lines(path)}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError.one(
            str(path), what=f"not what fabula evaluate episodes wrote: {type(error).__name__}: {error}",
            fix="give the folder of such an evaluation",
        ) from error  # fmt: skip


def _checked(line: Json) -> Json:
    for shot in line["shots"]:
        code_of(shot)
        [shot[name] for name in SEEN]
    return line if line["gate"] is None else {**line, "gate": dict(line["gate"])}


def merge_lines(places: Sequence[Path], *, first_wins: bool = False) -> tuple[Lines, list[set[Key]]]:
    """Return the lines of all folders, each episode of a method once, and which of them each folder has."""
    kept: Lines = {}
    owners: dict[Key, Path] = {}
    units: list[set[Key]] = []
    problems: list[UserError] = []
    for folder in places:
        lines = read_lines(folder)
        units.append(set(lines))
        for key, line in lines.items():
            if key not in kept:
                kept[key], owners[key] = line, folder
                continue
            if _videos(kept[key]) != _videos(line):
                problems.append(_differs(owners[key], folder, key, "videos or schedule", "the same videos"))
                continue
            kept[key], differ = _joined(kept[key], line)
            if differ and not first_wins:
                what = ", ".join(sorted(differ))
                problems.append(_differs(owners[key], folder, key, what, "on one machine, by one judge"))
    if problems:
        raise InputError(problems)
    return dict(sorted(kept.items())), units


def _videos(line: Json) -> Json:
    return [line["episode"], [[shot["shot"], shot["frames"]["invalid"]] for shot in line["shots"]]]


def _joined(first: Json, other: Json) -> tuple[Json, set[str]]:
    """Return a line with what either saw, and what they saw differently."""
    differ: set[str] = set()

    def either(name: str, mine: Json, theirs: Json) -> Json:
        if mine is not None and theirs is not None and mine != theirs:
            differ.add(name)
        return theirs if mine is None else mine

    shots = [
        {**mine, **{name: either(name, mine[name], theirs[name]) for name in SEEN}}
        for mine, theirs in zip(first["shots"], other["shots"], strict=True)
    ]
    return {**first, "shots": shots, "gate": either("gate", first["gate"], other["gate"])}, differ


def _differs(first: Path, second: Path, key: Key, what: str, how: str) -> UserError:
    return UserError(
        "/".join(key), what=f"{first} and {second} have other {what}",
        fix=f"evaluate {how}, or keep what the first folder has with --first-wins",
    )  # fmt: skip


def merged_subject(
    manifests: Sequence[EvaluationManifest], lines: Lines, units: Sequence[set[Key]]
) -> dict[str, Any]:
    """Return the subject of a merged archive: what was asked for and is there, counted anew."""
    methods: dict[str, dict[str, list[list[str]]]] = {}
    for (method, episode), line in lines.items():
        shots = [[shot["shot"]["key"], code_of(shot)] for shot in line["shots"]]
        methods.setdefault(method, {})[episode] = shots
    return {
        "methods": {
            method: {**accounting(episodes), **_outputs(method, manifests, units)}
            for method, episodes in methods.items()
        }
    }


def _outputs(
    method: str, manifests: Sequence[EvaluationManifest], units: Sequence[set[Key]]
) -> dict[str, Any]:
    """Return findings and hash of a method's outputs; those of parts with other episodes add."""
    codes, seen, hashes = Counter[str](), set[Key](), set[str]()
    for manifest, keys in zip(manifests, units, strict=True):
        own = {key for key in keys if key[0] == method}
        if not own:
            continue
        account = (manifest.subject.get("methods") or {})[method]
        findings = Counter[str](account["findings"])
        codes = codes | findings if own & seen else codes + findings
        hashes.add(account["outputs_sha256"])
        seen |= own
    one = hashes.pop() if len(hashes) == 1 else digest(sorted(hashes))
    return {"findings": dict(sorted(codes.items())), "outputs_sha256": one}


def merged_protocol(protocol: Mapping[str, Any], lines: Lines) -> dict[str, Any]:
    """Return the part of a merged protocol that is counted anew: which episodes were chosen."""
    names = sorted({episode for _, episode in lines})
    whole = (protocol.get("release") or {}).get("episodes")
    return {"episodes": None if len(names) == whole else names}


def write_lines(folder: Path, lines: Lines) -> None:
    """Write the lines into a folder that exists."""
    write_atomic(folder / EPISODES, jsonl_lines(lines.values()))


def _read_to_write(source: Path) -> Callable[[Path], None]:
    return partial(write_lines, lines=read_lines(source))


def _contents(folder: Path) -> dict[Hashable, str]:
    """Return method, episode and what was looked for -> digest of what was seen."""
    contents: dict[Hashable, str] = {}
    for key, line in read_lines(folder).items():
        parts = {name: [shot[name] for shot in line["shots"]] for name in ("shot", *SEEN)}
        seen = {name: each for name, each in parts.items() if any(part is not None for part in each)}
        if line["gate"] is not None:
            seen["gate"] = line["gate"]
        contents |= {(*key, name): digest(each) for name, each in seen.items()}
    return contents


def _join(places: Sequence[Path], first_wins: bool) -> Beside:
    lines, units = merge_lines(places, first_wins=first_wins)
    return Beside(
        partial(write_lines, lines=lines),
        partial(merged_subject, lines=lines, units=units),
        partial(merged_protocol, lines=lines),
        len(lines),
    )


ARCHIVE = ArchiveForm(
    (
        "definitions", "episodes", "judge_models", "judges", "judging", "metrics", "models", "pillars",
        "prompts", "votes",
    ),
    (EPISODES,), _read_to_write, _contents, _join,
)  # fmt: skip
"""Archives of episodes: what was seen lies beside replies; ``judging`` keeps those of two judges apart."""
