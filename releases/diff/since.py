"""What a release that is being packed changes since the version before it, and the version that this makes.

``changes.json`` says it by id and JSON path, without any values: the release itself has the new ones, and the
version before has the old ones. Of the hidden test it holds numbers only.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json
from ...schemas.layout import HIDDEN_SPLIT
from ..loading import stated_languages
from ..options import AUTO, METADATA, PackOptions
from .compare import ReleaseDiff, diff_sides, version_of
from .form import DiffForm
from .render import changes_document
from .sides import Side, open_side
from .version import Version, is_enough

_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Since:
    """What packing knows once the version before is compared."""

    options: PackOptions  # the options, with the version that the release gets
    previous: dict[str, Json]  # version and hash of the version before, as ``release.json`` names it
    changes: dict[str, Json]  # the content of ``changes.json``
    notes: tuple[str, ...]  # what a person should know, one sentence each


def open_previous(path: Path, options: PackOptions) -> Side:
    """Open the version that a release follows."""
    side = open_side(path)
    version_of(side)
    if side.document.get("visibility") == "hidden":
        raise InputError(
            [
                UserError(
                    f"--since {path}", what="this is the folder of a hidden test, not a public release",
                    fix="give the public folder beside it",
                )
            ]
        )  # fmt: skip
    name = _about(side).get("name")
    if name != options.name:
        raise ConfigError(
            "--name", what=f"the earlier release is called {name!r}, this one {options.name!r}",
            fix="give the earlier release of the same benchmark, or leave --since out to begin a new one",
        )  # fmt: skip
    return side


def options_since(path: Path) -> dict[str, Any]:
    """Return what the version before says about itself, for options that nobody gives.

    Address and citation are among it only where a person gave them: those that are made name the version.
    """
    side = open_side(path)
    about = _about(side)
    options: dict[str, Any] = {
        name: about.get(name) for name in ("name", "title", "contact") if isinstance(about.get(name), str)
    }
    if isinstance(side.document.get("license"), str):
        options["usual_license"] = side.document["license"]
    if "splits" not in side.document and (languages := stated_languages(side.folder)):
        options["languages"] = languages  # records that have splits say their own
    creators = about.get("creators")
    if isinstance(creators, list) and creators:
        options["creators"] = tuple(str(creator) for creator in creators)
    if isinstance(about.get("repo"), str):
        options["repo"] = about["repo"]
    for name in METADATA:
        if isinstance(about.get(name), list):
            options[name] = tuple(map(str, about[name]))
    made = PackOptions(str(side.document["version"]), **options)
    if isinstance(about.get("url"), str) and about["url"] != made.address:
        options["url"] = about["url"]
        made = replace(made, url=about["url"])
    if isinstance(about.get("citation"), str) and about["citation"] != made.reference:
        options["citation"] = about["citation"]
    return options


def compare_with_previous(
    previous: Side, draft: Side, form: DiffForm, options: PackOptions, run: Path, hidden: Collection[str]
) -> Since:
    """Compare the draft of a release with the version before, and settle its version."""
    before = version_of(previous)
    if options.version == AUTO:
        draft = replace(draft, document={**draft.document, "version": before.text})
    change = diff_sides(previous, draft, form)
    _require_steady_splits(change, run, hidden)
    version = change.due.text if options.version == AUTO else options.version
    _require_enough(change, before, Version.of(version, "--version"))
    identity = {"version": before.text, "sha256": previous.sha256}
    why = "; ".join(text for step, text in change.reasons if step is change.step)
    return Since(
        options=replace(options, version=version),
        previous=identity,
        changes=changes_document(change, version),
        notes=(f"a {change.step} step from {before}: {why}", *_breaks(change)),
    )


def _breaks(change: ReleaseDiff) -> Iterator[str]:
    """Yield what no version of one benchmark would usually do."""
    listed = change.old.document.get("records", {}).get(change.form.main, {})
    if listed and len(change.removed.get(change.form.main, ())) == len(listed):
        yield f"no story of {change.old.folder} is in this release; is it a version of the same benchmark?"
    promises = ("commitments" in side.document for side in (change.old, change.new))
    if all(promises) and change.hidden.kept is None:
        yield (
            f"the commitments of {change.old.folder} were made with another salt, so nobody can see "
            "which hidden stories stayed the same; with --salt a new run can use the earlier salt"
        )


def _about(side: Side) -> Mapping[str, Any]:
    about = side.document.get("about")
    return about if isinstance(about, dict) else {}


def _require_steady_splits(change: ReleaseDiff, run: Path, hidden: Collection[str]) -> None:
    moved = [(move.id, move.old, move.new) for move in change.moved]
    # A story that was published stays so: whoever wants can read it in the version before.
    moved += [(record.id, "public", HIDDEN_SPLIT) for record in change.gone if record.id in hidden]
    if not moved:
        return
    problems = [
        UserError(
            f"{run}: {story_id}",
            what=f"the story is in split {new}, and was in {old} in version {change.old_version}",
            fix="build on the run that the earlier version was packed from: there, stories keep their split",
        )
        for story_id, old, new in moved
    ]  # fmt: skip
    raise InputError(problems, shown=_MOST_NAMED)


def _require_enough(change: ReleaseDiff, before: Version, version: Version) -> None:
    if is_enough(before, change.step, version):
        return
    why = "; ".join(f"{text} ({step})" for step, text in change.reasons[:3])
    raise ConfigError(
        "--version",
        what=f"{version.text} is too low: since {before}, {why}, so that {change.due} or higher is due",
        fix=f"pack it as {change.due}, or give --version {AUTO}; a published version is never changed",
    )
