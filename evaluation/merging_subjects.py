"""What several evaluations are about, as one: methods, their outputs, and what could not be judged."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InputError, UserError
from ..schemas.canonical import digest
from ..schemas.judgement import EvaluationManifest

ADDED = (
    "frames", "generations_requested", "generations_valid", "generations_invalid", "packets_scanned",
    "panels", "pictures_with_notes", "requested", "stories_requested", "stories_valid", "valid",
)  # fmt: skip
"""Counts that add where parts are about different stories or prompts."""
LISTED = ("invalid", "leaks", "strays")
Units = set[tuple[str | None, str]]


def merged_subject(
    manifests: Sequence[EvaluationManifest], units: Sequence[Units]
) -> tuple[dict[str, Any], set[str]]:
    """Return the subject of a merged archive, and the stories or prompts that it is about.

    Args:
        manifests: of the parts.
        units: of each part, the methods and stories, or prompts, that its judgements are about.

    Raises:
        InputError: two parts are about other outputs of one method for the same stories or prompts.
    """
    methods: dict[str, dict[str, Any]] = {}
    seen: dict[str, set[str]] = {}
    every: set[str] = set()
    problems: list[UserError] = []
    for manifest, shown in zip(manifests, units, strict=True):
        every.update(unit for _, unit in shown)
        listed = manifest.subject.get("methods")
        for name, about in sorted(listed.items()) if isinstance(listed, Mapping) else ():
            own = {unit for method, unit in shown if method == name} | _invalid_units(about)
            every.update(own)
            known = methods.get(name)
            if known is None:
                methods[name], seen[name] = dict(about), own
            elif known.get("outputs_sha256") == about.get("outputs_sha256"):
                methods[name] = _same(known, about)
                seen[name] |= own
            elif own & seen[name]:
                problems.append(_other_outputs(name, known, about, len(own & seen[name])))
            else:
                methods[name] = _added(known, about)
                seen[name] |= own
    if problems:
        raise InputError(problems)
    return {"methods": dict(sorted(methods.items()))}, every


def _invalid_units(about: Mapping[str, Any]) -> set[str]:
    listed = about.get("invalid")
    rows = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    return {str(one.get("story_id", one.get("unit"))) for one in rows}


def _same(known: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accounting of the same outputs judged twice: what was scanned or stopped in either."""
    merged = dict(known)
    for name in LISTED:
        if isinstance(known.get(name), list) and isinstance(about.get(name), list):
            merged[name] = _union(known[name], about[name])
    if "packets_scanned" in known:
        merged["packets_scanned"] = max(known["packets_scanned"], about.get("packets_scanned", 0))
    return merged


def _added(known: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accounting of outputs of one method for different stories or prompts."""
    merged = dict(known)
    for name in ADDED:
        if name in known and name in about:
            merged[name] = known[name] + about[name]
    for name in LISTED:
        if isinstance(known.get(name), list) and isinstance(about.get(name), list):
            merged[name] = _union(known[name], about[name])
    merged["seeds"] = sorted({*known.get("seeds", ()), *about.get("seeds", ())})
    merged["outputs_sha256"] = digest(sorted([known["outputs_sha256"], about["outputs_sha256"]]))
    wanted = merged.get("generations_requested", merged.get("requested", 0))
    valid = merged.get("generations_valid", merged.get("valid", 0))
    merged["invalid_rate"] = (wanted - valid) / wanted if wanted else None
    return merged


def _union(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [*first, *(one for one in second if one not in first)]


def _other_outputs(name: str, known: Mapping[str, Any], about: Mapping[str, Any], shared: int) -> UserError:
    return UserError(
        f"method {name}",
        what=f"two evaluations judged different outputs of this method for {shared} "
        "stories or prompts: SHA-256 "
        f"{known.get('outputs_sha256')} and {about.get('outputs_sha256')}",
        fix="judge the same outputs, or give the method another name in one of them",
    )
