"""Which evaluations may be compared: our rule, and that of the paper (EntityBench, B.5).

``ours``: whatever identifies what was asked and looked at must be the same; versions of libraries are told,
not compared. ``b5``: everything must be the same but method, time, platform and the number of API keys;
checkpoints count by their fingerprint, wherever they lie.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Literal

from ....errors import InputError, UserError
from ....schemas.canonical import Json, canonical_text
from ....schemas.judgement import EvaluationManifest

ManifestRule = Literal["ours", "b5"]
VARYING = ("method_name", "timestamp_utc", "platform", "n_llm_keys", "n_vlm_keys")
"""What may differ under B.5, by the names of the public manifest."""
VERSIONS = ("fabula", "python", "libraries", "python_version")
"""The parts of our environment that B.5 compares; the rest says when, where and how it went."""
_SHOWN = 100


def check_b5(first: EvaluationManifest, second: EvaluationManifest, allowed: Collection[str] = ()) -> None:
    """Check that two evaluations differ in nothing but what B.5 lets differ."""
    both = [
        {"protocol": each.protocol, **{name: each.environment.get(name) for name in VERSIONS}}
        for each in (first, second)
    ]
    differing = [path for path in _differing("", *both) if path.split(".")[-1] not in VARYING]
    refused = [path for path in differing if not {*path.split(".")[:2]} & {*allowed}]
    if refused:
        raise InputError(
            [
                UserError(
                    f"manifest {path}",
                    what=f"the evaluations differ under B.5: {_at(both[0], path)} and {_at(both[1], path)}",
                    fix=f"evaluate with the same, or accept it with --allow {path.split('.')[0]}",
                )
                for path in refused
            ]
        )


def fingerprints(checkpoints: Json) -> dict[str, Json]:
    """Return the checkpoints of a public manifest without their places.

    A file is known by its size and the hash of its first mebibyte, a folder by its name alone, as the public
    evaluator takes no more of it.
    """
    made: dict[str, Json] = {}
    for name, known in (checkpoints if isinstance(checkpoints, Mapping) else {}).items():
        if not isinstance(known, Mapping):
            made[name] = "MISSING" if str(known).startswith("MISSING") else known
        elif "head_sha256" in known:
            made[name] = {key: value for key, value in known.items() if key != "path"}
        else:
            made[name] = {"type": known.get("type"), "name": PurePath(str(known.get("path", ""))).name}
    return made


def _differing(path: str, first: Any, second: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in sorted({*first, *second}):
            yield from _differing(f"{path}.{name}" if path else name, first.get(name), second.get(name))
    elif first != second:
        yield path


def _at(value: Json, path: str) -> str:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return canonical_text(value)[:_SHOWN]
