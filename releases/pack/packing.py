"""Packing a finished run into a release folder.

The bytes depend on the run, the options and the versions of the tools only. Nothing here reads the clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ...engine.lock import keep_private
from ...errors import ConfigError, InputError
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, pretty_bytes
from ...schemas.layout import RELEASE, SUMS, hidden_folder
from ...schemas.plain_files import read_json
from ...schemas.text import tallies
from ...validators.report import as_user_error
from ..diff.sides import Side
from ..diff.since import compare_with_previous, open_previous
from ..form import Facts, FinishedRun, HiddenTest, LeftOut, Packing, ReleaseForm
from ..hidden.commitments import salt_beside, write_salt
from ..hidden.search import search_rows
from ..options import PackOptions, one_licence
from ..target import finished_run, remove_half_placed, require_free, require_outside, staged, taken_back
from .documents import checksums, documents_of, file_entries, head, origin_of, release_document


@dataclass(frozen=True, slots=True)
class PackResult(Tabular):
    """What was packed."""

    folder: Path  # the public release
    hidden: Path | None  # the folder of the hidden-test stories, if there are any; their salt lies beside it
    version: str  # its version
    counts: dict[str, int]  # how many records and parts of them are public
    left_out: tuple[LeftOut, ...]  # the records of the run that are in neither folder
    notes: tuple[str, ...]  # what a person should know, one sentence each

    def grids(self) -> Iterator[Grid]:
        """Yield what was packed, and what was left out."""
        note = " ".join(self.notes)
        title = f"{self.folder.name}, version {self.version}"
        yield Grid("packed", title, ("part", "public"), tuple(self.counts.items()), note)
        if self.left_out:
            columns = ("record", "status", "stage", "code", "reason")
            rows = ((out.id, out.status, out.stage, out.code, out.reason) for out in self.left_out)
            yield Grid("left_out", "Left out", columns, tuple(rows), words=(1, 2, 3, 4))

    def as_json(self) -> dict[str, Json]:
        """Return the result as plain JSON."""
        return {
            "folder": str(self.folder),
            "hidden": None if self.hidden is None else str(self.hidden),
            "salt": None if self.hidden is None else str(salt_beside(self.hidden)),
            "version": self.version,
            "counts": dict(self.counts),
            "left_out": [entry.as_json() for entry in self.left_out],
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """Return the result as lines for people."""
        counted = tallies(self.counts)
        lines = [f"packed version {self.version}: {counted}", f"  release: {self.folder}"]
        if self.hidden is not None:
            lines.append(f"  hidden test, do not publish it: {self.hidden}")
            lines.append(
                f"  salt of the hidden test: {salt_beside(self.hidden)}\n"
                "    keep it secret and backed up; without it nobody can prove what the hidden test was"
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def pack(run: Path, out: Path, options: PackOptions, form: ReleaseForm) -> PackResult:
    """Pack a finished run into a release folder (paper, A.15, Table 23)."""
    _require_features(options, form)
    packing = form.packing(form, options.checked())
    options = packing.options
    require_outside(out, run)
    require_free(out)
    hidden_out = hidden_folder(out.absolute())
    folders: tuple[Path, ...] = (out.absolute(),)
    if form.hidden is not None:
        remove_half_placed(out.absolute(), hidden_out)
        require_free(hidden_out)
        folders = (*folders, hidden_out)
    previous = None if options.since is None else open_previous(options.since, options)
    with finished_run(run, form) as finished:
        packing.take(finished)
        licence = one_licence(packing.licences, options, str(run))
        with taken_back() as made, staged(*folders, private={hidden_out}) as drafts:
            facts = packing.write(finished, drafts, licence)
            _require_models(facts)
            origin = origin_of(finished)
            if previous is not None:
                side = Side(drafts[0], release_document(facts, origin, {}), facts.statistics)
                since = compare_with_previous(
                    previous, side, form.changes, options, finished.folder, packing.hidden
                )
                facts = replace(facts, options=since.options, since=since)
            for name, content in documents_of(facts, origin, file_entries(drafts[0])).items():
                (drafts[0] / name).write_bytes(content)
            if form.hidden is not None and packing.hidden:
                _write_hidden(drafts[1], finished, facts, packing)
                salt = form.hidden.salt(facts)
                _require_untold(drafts[0], drafts[1], form.hidden, salt)
                if salt is not None and write_salt(salt_beside(hidden_out), salt):
                    made.append(salt_beside(hidden_out))
    return PackResult(
        folder=out,
        hidden=hidden_out if packing.hidden else None,
        version=facts.options.version,
        counts=facts.totals,
        left_out=tuple(packing.left_out),
        notes=(*(facts.since.notes if facts.since is not None else ()), *packing.notes(facts)),
    )


def _require_models(facts: Facts) -> None:
    """Refuse what stand-ins for models wrote, unless the options allow it."""
    if facts.stand_ins and not facts.options.allow_stand_in:
        raise ConfigError(
            "--allow-stand-in",
            what="a stand-in for a model wrote or checked records of this run, so they mean nothing: "
            + "; ".join(facts.stand_ins),
            fix="build with a model or with the rules; or, to try things out, pack them as what they are, "
            "with --allow-stand-in",
        )


def _require_features(options: PackOptions, form: ReleaseForm) -> None:
    """Refuse options that mean nothing to the kind."""
    given = {
        "--subset": options.subsets,
        "--gold": options.gold,
        "--reviews": options.reviews,
        "--salt": options.salt,
    }
    for option in (name for name, value in given.items() if value and not form.additions):
        raise ConfigError(
            option,
            what=f"only runs of `fabula build katha` have subsets, reviews and a hidden test; this is "
            f"{form.what}",
            fix="leave the option out",
        )
    if options.video_rights is not None and not form.of_videos:
        raise ConfigError(
            "--video-rights",
            what=f"only runs of `fabula build entities` hold pictures of videos; this is {form.what}",
            fix="leave the option out",
        )


def _write_hidden(draft: Path, run: FinishedRun, facts: Facts, packing: Packing) -> None:
    """Write ``release.json`` and checksums of the folder that holds the hidden-test records."""
    keep_private(run.folder)
    own = {} if facts.form.hidden is None else facts.form.hidden.document(facts, packing)
    document = {**head(facts, origin_of(run), "hidden"), **own, "files": file_entries(draft)}
    (draft / RELEASE).write_bytes(pretty_bytes(document))
    (draft / SUMS).write_bytes(checksums(draft))


def _require_untold(public: Path, hidden: Path, test: HiddenTest, salt: bytes | None) -> None:
    """Refuse to place folders of which verifying would say that the one tells of the other."""
    issues = [*test.check(public, read_json(public / RELEASE), hidden, salt), *search_rows(public)]
    problems = [as_user_error(issue) for issue in issues if issue.level == "error"]
    if problems:
        raise InputError(problems)
