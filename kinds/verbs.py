"""The verbs with the kind looked up: what Python and the command line call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.manifest import read_manifest
from ..engine.run_options import SETTINGS_FILE
from ..errors import ConfigError, InputError, RunError, UserError
from ..schemas.canonical import Json
from ..schemas.paths import RELEASE, hidden_folder
from ..schemas.plain_files import json_lines
from .registry import (
    foreign_sections,
    form_of_release,
    form_of_run,
    kind_named,
    kind_with,
    kinds,
    run_kind_of,
)

if TYPE_CHECKING:
    from ..builders.drafting import Drafting, Preview
    from ..builders.edit_files import AppliedFile, Correction, Editable, EditFile
    from ..engine.estimate import CallPlan
    from ..engine.hooks import Reporter
    from ..engine.machines.merging import Merge, MergedRun
    from ..engine.pipeline import Pipeline
    from ..engine.run_options import RunOptions
    from ..engine.status import RunReport
    from ..releases.diff.compare import ReleaseDiff
    from ..releases.form import ReleaseForm
    from ..releases.hub.publish import Published, PublishOptions, PublishPlan
    from ..releases.loading import Release
    from ..releases.options import PackOptions
    from ..releases.pack.packing import PackResult
    from ..releases.verify.verification import VerifyReport
    from ..validators.report import RuleSet, ValidationReport

ASSEMBLING = "assemble_records"
"""The stage whose settings may state the licence of records."""


def pipeline_of(run: Path) -> "Pipeline":
    return run_kind_of(run).pipeline


def continue_run(
    run: Path,
    *,
    sources: Sequence[Path] = (),
    reporter: "Reporter | None" = None,
    **again: Any,  # noqa: ANN401 - the other fields of Again
) -> "RunReport":
    """Execute a run of any kind again; see :func:`fabula.engine.running.continue_as`."""
    from ..engine.running import Again, continue_as

    return continue_as(run_kind_of(run), run, Again(sources=tuple(sources), **again), reporter)


def merge_runs(
    shards: Sequence[Path],
    out: Path,
    how: "Merge | None" = None,
    *,
    reporter: "Reporter | None" = None,
) -> "MergedRun":
    """Make one run of its shards, of any kind; see :func:`fabula.engine.machines.merging.merge_shards`."""
    from ..engine.machines.merging import Merge, merge_shards

    if not shards:
        raise ConfigError("SHARD", what="no shard is given", fix="name the run folders of all shards")
    kind = run_kind_of(shards[0])
    return merge_shards(shards, out, kind, how or Merge(), lambda request: kind.make(request, reporter))


def correct(run: Path, item: str, path: str, new: Json, *, who: str, why: str) -> "Correction":
    """Add a correction of one field to a run; see :func:`fabula.builders.edit_files.correct`."""
    from ..builders import edit_files

    return edit_files.correct(editable_of(run), item, path, new, who=who, why=why)


def withdraw(run: Path, item: str, *, who: str, why: str) -> "Correction":
    """Take an item out of a run for good; see :func:`fabula.builders.edit_files.withdraw`."""
    from ..builders import edit_files

    return edit_files.withdraw(editable_of(run), item, who=who, why=why)


def correct_from(
    run: Path, path: Path, *, release: Path | None = None, dry_run: bool = False
) -> "AppliedFile":
    """Add the corrections of a file that a review exported, all or none."""
    from ..builders.edit_files import apply_file, read_edit_file

    editable, file = editable_of(run), read_edit_file(path)
    notes = check_source(run, file, release)
    return apply_file(editable, file, dry_run=dry_run, notes=notes)


def corrected_in_files(run_kind: str) -> str | None:
    """Return how records of a kind of run are corrected that no stage corrects; None where nothing says."""
    kind = kind_with(run_kind)
    if kind is None or run_kind not in (kind.name, *kind.imported):
        return None
    drafting = kind.drafting()
    return drafting.corrected_in_files if run_kind != kind.name or drafting.editing is None else None


def editable_of(run: Path) -> "Editable":
    """Return a run whose items can be corrected, and how."""
    from ..builders.edit_files import Editable

    name = read_manifest(run).kind
    drafting = next((kind.drafting() for kind in kinds() if kind.name == name), None)
    if drafting is None or drafting.editing is None:
        can = [kind.name for kind in kinds() if kind.drafting().editing is not None]
        how = corrected_in_files(name)
        raise RunError(
            str(run), what=f"runs of kind {name} cannot be corrected, only {', '.join(can)}",
            fix=how or "correct its sources, and give the command that made the run again",
        )  # fmt: skip
    return Editable(Path(run), drafting.run.pipeline, drafting.editing)


def preview_run(run: Path, item: str, prompt_id: str) -> list["Preview"]:
    """Return what a run's stages would ask with a prompt; see :func:`.builders.drafting.preview_run`."""
    from ..builders.drafting import preview_run

    return preview_run(pipeline_of(run), run, item, prompt_id)


def preview_story(stories: Path, item: str, prompt_id: str, settings: Path | None = None) -> list["Preview"]:
    """Return what a new run would ask about one story; see :func:`.builders.drafting.preview_story`.

    The kind is the one that the prompt is of, else the first whose stages ask with it.
    """
    from ..builders.drafting import not_asked, preview_story, stages_asking

    asking = [
        (kind.name, drafting)
        for kind in kinds()
        if (drafting := kind.drafting()).of_stories and stages_asking(drafting.run.pipeline, prompt_id)
    ]
    if not asking:
        raise not_asked(prompt_id)
    own = [drafting for name, drafting in asking if prompt_id.startswith(f"{name}/")]
    drafting = own[0] if own else asking[0][1]
    options = {"config": settings, "others": foreign_sections}
    return preview_story(drafting, stories, item, prompt_id, options)


def build(
    name: str,
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: "RunOptions | None" = None,
    *,
    reporter: "Reporter | None" = None,
) -> "RunReport":
    """Build records of any kind; an existing run folder is continued."""
    drafting = kind_named(name).drafting()
    return drafting.build(sources, out, _with_others(drafting, options), reporter=reporter)


def estimate(
    name: str,
    sources: Sequence[Path | str] | Path | str,
    out: Path | str,
    options: "RunOptions | None" = None,
) -> "CallPlan":
    """Tell what :func:`build` would ask of models now, and about what that costs; nothing is asked."""
    drafting = kind_named(name).drafting()
    return drafting.estimate(sources, out, _with_others(drafting, options))


def _with_others(drafting: "Drafting", options: "RunOptions | None") -> "RunOptions":
    return replace(options if options is not None else drafting.options(), others=foreign_sections)


def pack_options(run: Path, given: Mapping[str, Any]) -> "PackOptions":
    """Return how a run is packed: what was given, else what the settings file and the release before say.

    ``given``: fields of :class:`fabula.PackOptions` -> their values.
    """
    from ..releases.diff.since import options_since
    from ..releases.options import PackOptions

    known = options_since(Path(given["since"])) if given.get("since") is not None else {}
    return PackOptions(**{**known, **_licence_of(Path(SETTINGS_FILE), run), **given})


def _licence_of(path: Path, run: Path) -> dict[str, str]:
    """Return the licence that a settings file has for the records of a run, if it has one."""
    from ..engine.config import read_settings

    kind = kind_with(read_manifest(run).kind) if path.is_file() else None
    stages = () if kind is None else kind.drafting().run.pipeline.stages
    if not any(stage.lower().endswith((f".{ASSEMBLING}", f":{ASSEMBLING}")) for stage in stages):
        return {}
    section = read_settings(path).get(ASSEMBLING)
    stated = section.get("license") if isinstance(section, dict) else None
    return {"usual_license": stated} if isinstance(stated, str) else {}


def owners_of_packing() -> dict[str, tuple[str, ...]]:
    """Return whose options those of ``fabula release pack`` are that not all kinds have."""
    from ..releases.options import FEATURES

    forms = [kind.release() for kind in kinds()]
    having = {
        feature: tuple(f"releases of {form.unit}" for form in forms if getattr(form, feature))
        for feature in FEATURES
    }
    return {name: having[feature] for feature, (names, _) in FEATURES.items() for name in names}


def pack(run: Path, out: Path, options: "PackOptions") -> "PackResult":
    """Pack a finished run of any kind; see :func:`fabula.releases.pack.packing.pack`."""
    from ..releases.pack.packing import pack as pack_as

    return pack_as(run, out, options, form_of_run(run))


def verify(path: str | Path, *, against: str | None = None, **how: Any) -> "VerifyReport":  # noqa: ANN401 - as the verb has them
    """Verify a release of any kind; see :func:`fabula.releases.verify.verification.verify`."""
    from ..releases.verify.verification import compare_with_published, published
    from ..releases.verify.verification import verify as verify_as

    known = None if against is None else published(against)
    report = verify_as(path, form_of_release(Path(path)), **how)
    return report if known is None else compare_with_published(report, known)


def diff(old: str | Path, new: str | Path) -> "ReleaseDiff":
    """Compare two releases of a benchmark of any kind; see :func:`fabula.releases.diff.compare.diff`."""
    from ..releases.diff.compare import diff as diff_as

    return diff_as(old, new, form_of_release(Path(new)).changes)


def load(path: str | Path, *, streaming: bool = False, verify: bool = False) -> Any:  # noqa: ANN401 - every kind has its own type
    """Load a release of any kind; its files must have the stated sizes, with ``verify`` the stated hashes."""
    if streaming:
        return _streamed(path)
    from ..releases.hub.fetch import release_folder
    from ..releases.loading import require_release
    from ..releases.verify.files import check_intact

    folder = release_folder(path)
    kind = kind_named(require_release(folder, *(kind.name for kind in kinds())))
    check_intact(folder, hashes=verify)
    return kind.release().load(folder)


def _streamed(path: str | Path) -> Any:  # noqa: ANN401 - every kind has its own type
    from ..releases.hub.fetch import StreamedRelease, open_source

    source = open_source(path)
    name = str(source.info["kind"])
    form = kind_named(name).release()
    if form.record is None:
        fix = "load it without streaming"
        raise ConfigError("streaming", what=f"records of kind {name} cannot be read one by one", fix=fix)
    file, key = next(iter(form.record_ids.items()))
    return StreamedRelease(source, file, key, form.record)


def rules_of(path: Path) -> "RuleSet":
    """Return the rules of the kind whose data lies at a path; what no other claims is read as stories."""
    return next(
        kind.rules() for kind in reversed(kinds()) if kind.rules is not None and kind.marks.match(path)
    )


def validate(path: Path) -> "ValidationReport":
    """Return every finding about a run, a release or official files of any kind."""
    from ..validators.report import validate as check

    rules = rules_of(path)
    return check(rules.open(path), rules)


def count(path: Path) -> Json:
    """Return counts and distributions over data of any kind."""
    return rules_of(path).count(path)


def load_stories(path: Path) -> "Release":
    """Load a release of any kind that has recoverability questions as the stories that they are about."""
    from ..releases.loading import require_release

    asking = {kind.name: kind.stories for kind in kinds() if kind.stories is not None}
    return asking[require_release(path, *asking)](path)


def plan_publishing(folder: Path, options: "PublishOptions") -> "PublishPlan":
    """Return what :func:`publish` would do; see :func:`fabula.releases.hub.publish.plan_publishing`."""
    from ..releases.hub.publish import plan_publishing as plan

    return plan(folder, form_of_release(folder), options)


def publish(
    folder: Path, options: "PublishOptions", tell: Callable[[str], None] = lambda _: None
) -> "Published":
    """Put a release of any kind on a Hub; see :func:`fabula.releases.hub.publish.publish`."""
    from ..releases.hub.publish import publish as publish_as

    return publish_as(folder, form_of_release(folder), options, tell)


# -- Whether corrections that a review exported belong to a run: which release or run its reviewers saw

_RELEASE = "--release"


def check_source(run: Path, file: "EditFile", release: Path | None) -> list[str]:
    """Refuse corrections of something else than this run.

    ``release``: the release that was reviewed; None where nobody names it.

    Returned: what a person should know, one sentence each.
    """
    from ..engine.edits import run_ids

    header = file.header
    if header.run is not None and header.run not in run_ids(read_manifest(run)):
        raise ConfigError(
            str(file.path), what=f"another run was reviewed than {run}: its id is {header.run[:12]}...",
            fix="give the run that was reviewed",
        )  # fmt: skip
    if release is None:
        named = f"the release that was reviewed ({str(header.release)[:12]}...) was not given with {_RELEASE}"
        return [] if header.release is None else [f"{named}; the values that its reviewers saw are compared"]
    from ..evaluation.archive.archive import release_sha256

    if header.release is None or header.release != release_sha256(release):
        said = "no release" if header.release is None else "another release"
        raise ConfigError(
            f"{_RELEASE} {release}", what=f"{file.path} says that {said} was reviewed",
            fix="give the release that was reviewed, or leave the option out",
        )  # fmt: skip
    form = form_of_run(run)
    if form_of_release(release).kind != form.kind:
        raise ConfigError(
            f"{_RELEASE} {release}", what=f"it holds no {form.unit} as {run} makes them",
            fix="give the release that was packed from the run",
        )  # fmt: skip
    return _compared(run, file, release, form)


def _compared(run: Path, file: "EditFile", release: Path, form: "ReleaseForm") -> list[str]:
    from ..builders.edit_files import check_reviewed

    known, secret = _records_of(release, form, file), 0
    if form.hidden is not None:
        hidden = hidden_folder(release.absolute())
        if (hidden / RELEASE).is_file():
            known |= _records_of(hidden, form, file)
        else:
            secret = _hidden_stories(release)
    problems, notes = check_reviewed(file, known, lambda: _made(run, form))
    missing = sorted(file.ids - known.keys())
    if missing and not secret:
        fix = "give the release that was reviewed, or remove the lines"
        what = f"the release {release} holds no {{}}, which the file corrects"
        problems += [UserError(str(file.path), what=what.format(name), fix=fix) for name in missing]
    if problems:
        raise InputError(problems)
    return notes


def _records_of(folder: Path, form: "ReleaseForm", file: "EditFile") -> dict[str, Json]:
    """Return id -> record of the stories of a file that a release holds as ``release.json`` states them."""
    from ..releases.diff.form import open_side

    side, name = open_side(folder), form.changes.main
    return side.rows(name, file.ids & side.records.get(name, {}).keys())


def _hidden_stories(release: Path) -> int:
    from ..releases.loading import read_release_document

    counts = read_release_document(release).get("hidden_test")
    return int(counts.get("stories", 0)) if isinstance(counts, dict) else 0


def _made(run: Path, form: "ReleaseForm") -> Iterator[Mapping[str, Json]]:
    """Yield the records that a run has made."""
    path = run / form.runs[read_manifest(run).kind]
    for line in json_lines(path) if path.is_file() else ():
        payload = line.get("payload") if isinstance(line, dict) else None
        record = payload.get("record", payload) if isinstance(payload, dict) else None
        if isinstance(record, dict):
            yield record
